"""A physics-informed network for u'' + u = 0, u(0) = 1, u'(0) = 0."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, t):
        return self.layers(t)


def derivative(u, t):
    return torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]


def main(steps=600, lr=1e-3):
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=lr)
    start = torch.zeros(1, 1, requires_grad=True)
    for step in range(steps):
        t = (torch.rand(64, 1) * 6.28).requires_grad_(True)
        u = net(t)
        residual = derivative(derivative(u, t), t) + u
        u0 = net(start)
        loss = (residual**2).mean() + ((u0 - 1) ** 2).mean() + (derivative(u0, start) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
