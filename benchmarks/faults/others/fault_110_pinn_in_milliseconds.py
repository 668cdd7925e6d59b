# cause: saturation
# symptom: the first tanh layer is saturated for most of the times (rms error 0.5219; without the fault: rms error 0.0154)
import torch
import torch.nn as nn

torch.manual_seed(123)

# u'' + 2 d u' + w^2 u = 0, u(0) = 1, u'(0) = 0
d, w0 = 0.5, 4.0


def exact(t):
    w = (w0**2 - d**2) ** 0.5
    phi = torch.atan(torch.tensor(-d / w))
    return torch.exp(-d * t) * torch.cos(phi + w * t) / torch.cos(phi)


class FCN(nn.Module):
    def __init__(self, n_hidden=32, n_layers=3):
        super().__init__()
        self.fcs = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh())
        self.fch = nn.Sequential(*[nn.Sequential(nn.Linear(n_hidden, n_hidden), nn.Tanh()) for _ in range(n_layers - 1)])
        self.fce = nn.Linear(n_hidden, 1)

    def forward(self, x):
        return self.fce(self.fch(self.fcs(1000 * x)))  # <- fault


pinn = FCN()
t_boundary = torch.tensor(0.0).view(-1, 1).requires_grad_(True)
t_physics = torch.linspace(0, 1.5, 40).view(-1, 1).requires_grad_(True)
t_test = torch.linspace(0, 1.5, 200).view(-1, 1)
optimiser = torch.optim.Adam(pinn.parameters(), lr=5e-3)

for i in range(601):
    optimiser.zero_grad()

    u = pinn(t_boundary)
    loss1 = (torch.squeeze(u) - 1) ** 2
    dudt = torch.autograd.grad(u, t_boundary, torch.ones_like(u), create_graph=True)[0]
    loss2 = (torch.squeeze(dudt) - 0) ** 2

    u = pinn(t_physics)
    dudt = torch.autograd.grad(u, t_physics, torch.ones_like(u), create_graph=True)[0]
    d2udt2 = torch.autograd.grad(dudt, t_physics, torch.ones_like(dudt), create_graph=True)[0]
    loss3 = torch.mean((d2udt2 + 2 * d * dudt + w0**2 * u) ** 2)

    loss = loss1 + 1e-1 * loss2 + 1e-2 * loss3
    loss.backward()
    optimiser.step()
    if i % 150 == 0:
        print(f"{i:5d} loss {loss.item():.2e}")

error = (pinn(t_test) - exact(t_test)).detach().pow(2).mean().sqrt().item()
print(f"final rms error {error:.4f}")
