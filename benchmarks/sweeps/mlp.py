"""A small regression: 1,000 steps of two layers on 64 points."""

import torch
from torch import nn

steps = 1000
torch.manual_seed(0)
x = torch.randn(64, 10)
y = (x[:, :1] * 3).sin() + 0.1 * torch.randn(64, 1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
for step in range(steps):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, loss.item())
