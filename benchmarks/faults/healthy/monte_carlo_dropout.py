"""Uncertainty by dropout that stays on: many passes over the same inputs."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-1, 1, 128).unsqueeze(1)
y = torch.sin(4 * x) + 0.05 * torch.randn_like(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(1, 64), nn.Linear(64, 64), nn.Linear(64, 1)

    def forward(self, x):
        x = F.dropout(torch.tanh(self.a(x)), 0.1, training=True)
        x = F.dropout(torch.tanh(self.b(x)), 0.1, training=True)
        return self.c(x)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(200):
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
net.eval()
with torch.no_grad():
    samples = torch.stack([net(x) for _ in range(30)])
print(loss.item(), samples.std(0).mean().item())
