# cause: state-dict-alias
# symptom: the model put back is the last one rather than the best (test loss 1.615; without the fault: test loss 0.633)
import torch
import torch.nn as nn

torch.manual_seed(101)


class EarlyStopping:
    """Remembers the state with the lowest validation loss."""

    def __init__(self, patience):
        self.patience, self.wait = patience, 0
        self.best, self.state = float("inf"), None

    def update(self, value, model):
        if value < self.best:
            self.best, self.wait = value, 0
            self.state = model.state_dict()  # <- fault
        else:
            self.wait += 1
        return self.wait >= self.patience


# Few patients, many gene probes, noisy labels: the model soon overfits.
def patients(n):
    probes = torch.randn(n, 60)
    score = probes[:, :4].sum(1) + 1.5 * torch.randn(n)
    return probes, (score > 0).float()


x_train, y_train = patients(150)
x_val, y_val = patients(400)
x_test, y_test = patients(1000)

model = nn.Sequential(nn.Linear(60, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
stopping = EarlyStopping(patience=60)

for epoch in range(200):
    for rows in torch.randperm(150).split(30):
        loss = criterion(model(x_train[rows]).squeeze(1), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val = criterion(model(x_val).squeeze(1), y_val).item()
    if epoch % 10 == 0:
        print(f"epoch {epoch} train {loss.item():.3f} val {val:.3f}")
    if stopping.update(val, model):
        break

model.load_state_dict(stopping.state)
with torch.no_grad():
    test = criterion(model(x_test).squeeze(1), y_test).item()
print(f"best val loss {stopping.best:.3f}")
print(f"final test loss {test:.3f}")
