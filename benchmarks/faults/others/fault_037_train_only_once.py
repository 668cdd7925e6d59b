# cause: train-missing
# symptom: dropout is off after the first epoch: the net overfits (test mse of the last state 0.0593; without the fault: test mse of the last state 0.0394)
import torch
from torch import nn
import copy

torch.manual_seed(19)

# Few noisy points and a large net: it starts to overfit, so the best state is kept.
def sample(n, noise):
    x = torch.rand(n, 3) * 2 - 1
    y = torch.sin(2.5 * x[:, :1]) * x[:, 1:2] + 0.5 * x[:, 2:] ** 2
    return x, y + noise * torch.randn(n, 1)

x_train, y_train = sample(120, 0.25)
x_val, y_val = sample(120, 0.0)
x_test, y_test = sample(400, 0.0)

model = nn.Sequential(nn.Linear(3, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 1))
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
mse = nn.MSELoss()

model.train()
best_loss, best_state, patience, bad = float("inf"), None, 400, 0
for epoch in range(200):
    for idx in torch.randperm(120).split(40):
        opt.zero_grad()
        loss = mse(model(x_train[idx]), y_train[idx])  # <- fault
        loss.backward()
        opt.step()
    model.eval()  # <- fault
    with torch.no_grad():
        val = mse(model(x_val), y_val).item()
    if val < best_loss:
        best_loss, bad = val, 0
        best_state = copy.deepcopy(model.state_dict())
    else:
        bad += 1
        if bad > patience:
            print(f"stopped after epoch {epoch}")
            break
    if epoch % 20 == 0:
        print(f"epoch {epoch} train {loss.item():.4f} val {val:.4f}")

with torch.no_grad():
    last = mse(model(x_test), y_test).item()
    model.load_state_dict(best_state)
    best = mse(model(x_test), y_test).item()

print(f"test mse of the best state {best:.4f}")
print(f"final test mse of the last state {last:.4f}")
