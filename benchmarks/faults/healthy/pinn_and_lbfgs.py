"""y'' = -y by derivatives of a network, first by Adam and then by LBFGS with a closure."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
t = torch.linspace(0, 2, 40).unsqueeze(1).requires_grad_()


def residual():
    y = net(t)
    (dy,) = torch.autograd.grad(y.sum(), t, create_graph=True)
    (d2y,) = torch.autograd.grad(dy.sum(), t, create_graph=True)
    return ((d2y + y) ** 2).mean() + ((y[0] - 1) ** 2).sum() + (dy[0] ** 2).sum()


adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for _ in range(150):
    adam.zero_grad()
    loss = residual()
    loss.backward()
    adam.step()
print(loss.item())
lbfgs = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=10)


def closure():
    lbfgs.zero_grad()
    loss = residual()
    loss.backward()
    return loss


for _ in range(5):
    print(lbfgs.step(closure).item())
