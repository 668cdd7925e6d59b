# cause: gradients-vanish
"""A deep network of small layers on two rings."""

import torch
from torch import nn

torch.manual_seed(8)
n = 400
angle = torch.rand(n) * 6.2832
label = (torch.arange(n) % 2).float()
radius = 1 + label + 0.1 * torch.randn(n)
points = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)


def block(width):
    return nn.Sequential(nn.Linear(width, width), nn.Sigmoid())  # <- fault


model = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), *[block(24) for _ in range(5)], nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
loss_fn = nn.BCEWithLogitsLoss()


def step(batch, target):
    optimizer.zero_grad()
    out = model(batch).squeeze(1)
    loss = loss_fn(out, target)
    loss.backward()
    optimizer.step()
    return loss.item(), ((out > 0) == (target > 0.5)).float().mean().item()


for epoch in range(40):
    order = torch.randperm(n)
    for idx in order.chunk(5):
        loss, accuracy = step(points[idx], label[idx])
    if epoch % 10 == 0:
        print(epoch, loss, accuracy)
