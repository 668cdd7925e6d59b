import torch
import math

import torch.nn as nn
import torch.optim as optim


def moons(n):
    t = math.pi * torch.rand(n)
    upper = (torch.rand(n) < 0.5).float()
    x = upper * t.cos() + (1 - upper) * (1 - t.cos()) - 0.5
    y = upper * t.sin() + (1 - upper) * (0.5 - t.sin()) - 0.25
    return torch.stack([x, y], dim=1) + 0.08 * torch.randn(n, 2)


class Coupling(nn.Module):
    def __init__(self, flip, hidden=32):
        super().__init__()
        self.flip = flip
        self.scale = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, 1), nn.Tanh())
        self.shift = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.gain = nn.Parameter(torch.ones(1))

    def forward(self, x):
        a, b = x[:, :1], x[:, 1:]
        if self.flip:
            a, b = b, a
        s = self.gain * self.scale(a)
        b = b * torch.exp(s) + self.shift(a)
        return torch.cat([b, a] if self.flip else [a, b], dim=1), s.squeeze(1)


class Flow(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.couplings = nn.ModuleList(Coupling(i % 2 == 1) for i in range(depth))

    def log_prob(self, x):
        log_det = torch.zeros(len(x))
        for c in self.couplings:
            x, s = c(x)
            log_det = log_det + s
        return -0.5 * (x**2).sum(1) - math.log(2 * math.pi) + log_det


torch.manual_seed(10)
flow = Flow()
opt = optim.Adam(flow.parameters(), lr=4e-3)
sched = optim.lr_scheduler.MultiStepLR(opt, milestones=[200, 300], gamma=0.3)
for i in range(350):
    loss = -flow.log_prob(moons(200)).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(flow.parameters(), 1.0)
    opt.step()
    sched.step()
    if i % 100 == 0:
        print("iteration %d, negative log-likelihood %.3f" % (i, loss.item()))

with torch.no_grad():
    nll = -flow.log_prob(moons(2000)).mean().item()
print(f"final negative log-likelihood {nll:.3f}")
