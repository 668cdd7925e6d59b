# cause: memory-grows
# symptom: each snapshot kept for the film holds on to memory (growth of memory 311 MB; without the fault: growth of memory 1 MB)
import resource

import torch
import torch.nn as nn

torch.manual_seed(4)

# Fit u(x, t) of a travelling wave from scattered sensors and keep frames for a film.
grid_x, grid_t = torch.meshgrid(torch.linspace(0, 1, 64), torch.linspace(0, 1, 48), indexing="ij")
grid = torch.stack([grid_x.flatten(), grid_t.flatten()], dim=1)


def wave(points):
    x, t = points[:, :1], points[:, 1:]
    return torch.sin(6.2832 * (x - t)) * torch.exp(-0.5 * t)


class WaveNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, p):
        return self.c(torch.tanh(self.b(torch.tanh(self.a(p)))))


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


model = WaveNet()
adam = torch.optim.Adam(model.parameters(), lr=5e-3)
frames = []
for step in range(600):
    sensors = torch.rand(128, 2)
    loss = (model(sensors) - wave(sensors)).square().mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
    if step % 5 == 0:
        frames.append(model(grid).view(64, 48))  # <- fault
    if step == 80:
        before = memory()
    if step % 150 == 0:
        print(f"step {step} loss {loss.item():.4f} memory {memory():.0f} MB")

film = torch.stack([f.detach() for f in frames])
print("film", tuple(film.shape), "last error", (film[-1].flatten() - wave(grid)[:, 0]).abs().mean().item())
print(f"final growth of memory {memory() - before:.0f} MB")
