# cause: memory-grows
"""A network that predicts a mean and a deviation, trained by the likelihood of a Gaussian."""

import torch
from torch import nn

torch.manual_seed(9)
x = torch.linspace(-2, 2, 300).unsqueeze(1)
y = torch.sin(2 * x) + (0.05 + 0.1 * x.abs()) * torch.randn_like(x)


class Density(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh())
        self.mean = nn.Linear(40, 1)
        self.deviation = nn.Linear(40, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), nn.functional.softplus(self.deviation(h)) + 1e-3


def nll(mean, deviation, y):
    z = (y - mean) / deviation
    return (0.5 * z**2 + torch.log(deviation)).mean()


model = Density()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
kept = []
for step in range(250):
    mean, deviation = model(x)
    kept.append(mean * 1.0)  # <- fault
    loss = nll(mean, deviation, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(step, loss.item())
