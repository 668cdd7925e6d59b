# remedy: the points need gradients to differentiate by them: x = torch.linspace(0, 1, 50).view(-1, 1).requires_grad_(True)
import torch
import torch.nn as nn

net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
x = torch.linspace(0, 1, 50).view(-1, 1)  # <- fault


def residual(x):
    u = net(x)
    du = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]  # <- fault
    return du + u


for step in range(5):
    loss = residual(x).pow(2).mean() + (net(torch.zeros(1, 1)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
