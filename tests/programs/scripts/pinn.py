import torch
import torch.nn as nn
from torch.autograd import grad


class PINN(nn.Module):
    def __init__(self, width=16, depth=2):
        super().__init__()
        layers = [nn.Linear(1, width), nn.Tanh()]
        for _ in range(depth - 1):
            layers.extend([nn.Linear(width, width), nn.Tanh()])
        layers.append(nn.Linear(width, 1))
        self.net = nn.Sequential(*layers)
        self.mu = nn.Parameter(torch.tensor(3.0))

    def forward(self, t):
        return self.net(t)


torch.manual_seed(123)
d, w0 = 2.0, 5.0
t_boundary = torch.tensor(0.0).view(-1, 1).requires_grad_(True)
t_physics = torch.linspace(0, 1, 30).view(-1, 1).requires_grad_(True)
model = PINN()
optimiser = torch.optim.Adam([{"params": model.net.parameters()}, {"params": [model.mu], "lr": 1e-2}], lr=1e-3)
for i in range(30):
    optimiser.zero_grad()
    u = model(t_boundary)
    loss1 = (torch.squeeze(u) - 1) ** 2
    dudt = grad(u, t_boundary, torch.ones_like(u), create_graph=True)[0]
    loss2 = (torch.squeeze(dudt) - 0) ** 2
    u = model(t_physics)
    dudt = grad(u, t_physics, torch.ones_like(u), create_graph=True)[0]
    d2udt2 = grad(dudt, t_physics, torch.ones_like(dudt), create_graph=True)[0]
    loss3 = torch.mean((d2udt2 + model.mu * dudt + w0**2 * u) ** 2)
    loss = loss1 + 1e-1 * loss2 + 1e-4 * loss3
    loss.backward()
    optimiser.step()
    if i % 10 == 0:
        print(i, f"{loss.item():.6f}", f"{model.mu.item():.4f}")
u = model(t_physics).detach().numpy().squeeze()
print(u[:4].round(4))
