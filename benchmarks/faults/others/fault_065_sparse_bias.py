# cause: relu-dead
# symptom: the first layer's units are zero for all inputs; the net gives a constant (test accuracy 0.333; without the fault: test accuracy 1.000)
import torch
import torch.nn as nn

torch.manual_seed(0)


def spirals(n_per_arm, arms=3, noise=0.12):
    xs, ys = [], []
    for k in range(arms):
        r = torch.linspace(0.1, 1.0, n_per_arm)
        phi = r * 5.0 + k * 2 * torch.pi / arms + noise * torch.randn(n_per_arm)
        xs.append(torch.stack([r * phi.cos(), r * phi.sin()], dim=1))
        ys.append(torch.full((n_per_arm,), k))
    return torch.cat(xs), torch.cat(ys)


X, y = spirals(400)
X_test, y_test = spirals(150)

model = nn.Sequential(
    nn.Linear(2, 64),
    nn.ReLU(),
    nn.Linear(64, 64),
    nn.ReLU(),
    nn.Linear(64, 3),
)
model[0].bias.data.fill_(-6.0)  # <- fault
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(25):
    order = torch.randperm(len(X))
    running = 0.0
    for i in range(0, len(X), 50):
        idx = order[i : i + 50]
        optimizer.zero_grad()
        logits = model(X[idx])
        loss = criterion(logits, y[idx])
        loss.backward()
        optimizer.step()
        running += loss.item() * len(idx)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1:3d}  loss {running / len(X):.4f}")

with torch.no_grad():
    accuracy = (model(X_test).argmax(1) == y_test).float().mean().item()
print(f"final test accuracy {accuracy:.3f}")
