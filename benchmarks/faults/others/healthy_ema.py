import torch
import copy

import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(64)

# A small denoising diffusion model of points in the plane (two moons); samples come from averaged weights.
STEPS = 40
betas = torch.linspace(1e-3, 0.15, STEPS)
alphas_bar = torch.cumprod(1 - betas, 0)


def moons(n):
    t = torch.pi * torch.rand(n)
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, t.cos(), 1 - t.cos())
    y = torch.where(upper, t.sin(), 0.5 - t.sin())
    return torch.stack([x - 0.5, y - 0.25], 1) * 1.2 + 0.05 * torch.randn(n, 2)


class Denoiser(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.time = nn.Embedding(STEPS, 16)
        self.net = nn.Sequential(
            nn.Linear(18, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2)
        )

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], dim=1))


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


model = Denoiser()
ema = EMA(model, 0.99)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for i in range(900):
    x0 = moons(128)
    t = torch.randint(0, STEPS, (128,))
    noise = torch.randn_like(x0)
    a = alphas_bar[t][:, None]
    loss = F.mse_loss(model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)
    if i % 300 == 299:
        print(f"step {i + 1} loss {loss.item():.3f}")


@torch.no_grad()
def generate(net, n):
    x = torch.randn(n, 2)
    for k in reversed(range(STEPS)):
        eps = net(x, torch.full((n,), k))
        x = (x - betas[k] / (1 - alphas_bar[k]).sqrt() * eps) / (1 - betas[k]).sqrt()
        if k > 0:
            x = x + betas[k].sqrt() * torch.randn_like(x)
    return x


distance = torch.cdist(generate(ema.shadow, 500), moons(2000)).min(1).values.mean().item()
print(f"final mean distance to the data {distance:.3f}")
