# cause: train-missing
# symptom: a deep stack with batch norm learns nothing (valid accuracy 0.477; without the fault: valid accuracy 0.915)
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(14)

DEPTH, WIDTH = 14, 48


def stack():
    layers = [nn.Linear(10, WIDTH)]
    for _ in range(DEPTH):
        layers += [nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)]
    layers += [nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2)]
    return nn.Sequential(*layers)


x = torch.randn(2400, 10)
y = ((x[:, 0] * x[:, 1] + x[:, 2] * x[:, 3]) > 0).long()
train_loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=100, shuffle=True)
valid_loader = DataLoader(TensorDataset(x[2000:], y[2000:]), batch_size=200)


def validate(net):
    net.eval()  # <- fault
    hits = 0
    with torch.no_grad():
        for xb, yb in valid_loader:
            hits += (net(xb).argmax(1) == yb).sum().item()
    return hits / 400


net = stack()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
print(f"before training: {validate(net):.3f}")  # <- fault

for epoch in range(12):  # <- fault
    running = 0.0
    for xb, yb in train_loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(xb), yb)  # <- fault
        loss.backward()
        opt.step()
        running += loss.item()
    print(f"epoch {epoch}: loss {running / len(train_loader):.4f}, valid {validate(net):.3f}")

print(f"final valid accuracy {validate(net):.3f}")
