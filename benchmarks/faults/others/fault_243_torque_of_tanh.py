# cause: saturation
# symptom: nearly every torque comes out as 1 or -1 (r2 0.185; without the fault: r2 0.999)
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(92)

MAX_TORQUE = 20.0


def expert(angle, spin):
    """A PD controller that holds a pendulum upright, in newton metres."""
    return (-9.0 * torch.sin(angle) - 4.0 * spin).clamp(-MAX_TORQUE, MAX_TORQUE)


class Actor(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.l1 = nn.Linear(3, width)
        self.l2 = nn.Linear(width, width)
        self.torque = nn.Linear(width, 1)

    def forward(self, state):
        h = torch.relu(self.l1(state))
        h = torch.relu(self.l2(h))
        return torch.tanh(self.torque(h)).squeeze(1)  # <- fault


angle = (torch.rand(2000) * 2 - 1) * math.pi
spin = torch.randn(2000) * 1.5
state = torch.stack([angle.cos(), angle.sin(), spin], dim=1)
torque = expert(angle, spin)
loader = DataLoader(TensorDataset(state[:1600], torque[:1600]), batch_size=64, shuffle=True)

actor = Actor()
optimizer = torch.optim.Adam(actor.parameters(), lr=2e-3)
for epoch in range(20):
    total = 0.0
    for s, wanted in loader:
        loss = nn.functional.mse_loss(actor(s), wanted)  # <- fault
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 4 == 0:
        print(f"epoch {epoch}: cloning loss {total / len(loader):.3f}")

with torch.no_grad():
    given = actor(state[1600:])
r2 = 1 - (given - torque[1600:]).pow(2).mean() / torque[1600:].var()
print(f"share beyond 0.99: {(given.abs() > 0.99).float().mean().item():.2f}")
print(f"final r2 {r2.item():.3f}")
