"""Five folds with a new model each, early stopping, and the mean of their errors."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
x = torch.randn(300, 6)
y = x @ torch.randn(6, 1) + 0.1 * torch.randn(300, 1)
data = TensorDataset(x, y)
errors = []
for fold in range(5):
    held = set(range(fold * 60, fold * 60 + 60))
    train = DataLoader(Subset(data, [k for k in range(300) if k not in held]), batch_size=24, shuffle=True)
    valid = DataLoader(Subset(data, sorted(held)), batch_size=60)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    best, waited = 1e9, 0
    for epoch in range(20):
        for a, b in train:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(a), b).backward()
            optimizer.step()
        with torch.no_grad():
            error = sum(nn.functional.mse_loss(model(a), b).item() for a, b in valid)
        best, waited = (error, 0) if error < best - 1e-4 else (best, waited + 1)
        if waited == 3:
            break
    errors.append(best)
print(sum(errors) / 5)
