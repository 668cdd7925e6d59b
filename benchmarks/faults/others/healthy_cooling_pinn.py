"""Physics-informed net for u'' = -pi^2 sin(pi x), u(0)=u(1)=0. Adam first, L-BFGS for the last part."""
import math
import torch
from torch import nn


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))

    def forward(self, x):
        return self.net(x)


def residual(field, x):
    u = field(x)
    du = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
    d2u = torch.autograd.grad(du, x, torch.ones_like(du), create_graph=True)[0]
    return d2u + math.pi ** 2 * torch.sin(math.pi * x)


def total_loss(field, inner, edge):
    pde = residual(field, inner)
    wall = field(edge)
    # all targets are zero: the equation and the boundary values are the data
    return nn.functional.mse_loss(pde, torch.zeros_like(pde)) / 10 + 10 * nn.functional.mse_loss(wall, torch.zeros_like(wall))


torch.manual_seed(0)
field = Field()
inner = torch.linspace(0, 1, 40)[:, None].requires_grad_(True)
edge = torch.tensor([[0.0], [1.0]])
adam = torch.optim.Adam(field.parameters(), lr=5e-3)
lbfgs = torch.optim.LBFGS(field.parameters(), max_iter=10, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    loss = total_loss(field, inner, edge)
    loss.backward()
    return loss


for it in range(320):
    if it < 300:
        adam.zero_grad()
        loss = total_loss(field, inner, edge)
        loss.backward()
        adam.step()
    else:
        loss = lbfgs.step(closure)
    if it % 50 == 0 or it >= 300 and it % 5 == 4:
        print(f"{it:3d} {'adam' if it < 300 else 'lbfgs'} loss {loss.item():.6f}")

with torch.no_grad():
    x = torch.linspace(0, 1, 101)[:, None]
    print("max error", (field(x) - torch.sin(math.pi * x)).abs().max().item())
