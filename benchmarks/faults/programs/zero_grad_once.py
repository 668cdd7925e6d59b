# cause: zero_grad-missing
"""Regression with the whole data set in each step."""

import torch
from torch import nn

torch.manual_seed(1)
x = torch.rand(256, 4) * 2 - 1
y = (x[:, 0] * x[:, 1] + torch.sin(3 * x[:, 2])).unsqueeze(1) + 0.01 * torch.randn(256, 1)

model = nn.Sequential(
    nn.Linear(4, 64),
    nn.Tanh(),
    nn.Linear(64, 64),
    nn.Tanh(),
    nn.Linear(64, 1),
)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

optimizer.zero_grad()
for step in range(300):
    prediction = model(x)
    loss = criterion(prediction, y)
    loss.backward()  # <- fault
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
