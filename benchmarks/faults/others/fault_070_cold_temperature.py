# cause: overflow
# symptom: the loss is NaN at once: exp of similarities divided by 0.01 (accuracy of the probe 0.140; without the fault: accuracy of the probe 0.970)
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(50)

# 1-D "scans" of 5 kinds; two random crops with noise and gain are two views of the same scan.
KINDS, LENGTH, CROP = 5, 80, 64
shapes = torch.randn(KINDS, 8)


def scans(n):
    kind = torch.randint(0, KINDS, (n,))
    t = torch.linspace(0, 1, LENGTH)
    basis = torch.stack([torch.sin(6.2832 * k * t) for k in range(1, 5)] + [torch.cos(6.2832 * k * t) for k in range(1, 5)])
    weights = shapes[kind] + 0.3 * torch.randn(n, 8)
    return weights @ basis, kind


def augment(x):
    start = torch.randint(0, LENGTH - CROP + 1, (1,)).item()
    x = x[:, start : start + CROP]
    gain = 0.7 + 0.6 * torch.rand(len(x), 1)
    return gain * x + 0.2 * torch.randn_like(x)


class SimCLR(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 16, 7, stride=2, padding=3), nn.ReLU(),
            nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.ReLU(),
            nn.AdaptiveAvgPool1d(4), nn.Flatten(),
        )
        self.projector = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 16))

    def forward(self, x):
        h = self.encoder(x.unsqueeze(1))
        return h, F.normalize(self.projector(h), dim=1)


def nt_xent(z1, z2, temperature=0.01):
    z = torch.cat([z1, z2])
    n = len(z1)
    sim = z @ z.t() / temperature
    sim = sim.masked_fill(torch.eye(2 * n, dtype=torch.bool), float("-inf"))
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    e = torch.exp(sim)  # <- fault
    return -torch.log(e[torch.arange(2 * n), target] / e.sum(1)).mean()  # <- fault


model = SimCLR()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
data, _ = scans(1024)
for epoch in range(4):
    total = 0.0
    for batch in data[torch.randperm(1024)].split(64):
        _, z1 = model(augment(batch))
        _, z2 = model(augment(batch))
        loss = nt_xent(z1, z2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} NT-Xent {total / 16:.3f}")

# linear probe
x, k = scans(600)
with torch.no_grad():
    h, _ = model(augment(x))
h = (h - h.mean(0)) / (h.std(0) + 1e-5)
probe = nn.Linear(128, KINDS)
opt = torch.optim.Adam(probe.parameters(), lr=0.02)
for _ in range(150):
    opt.zero_grad()
    F.cross_entropy(probe(h[:400]), k[:400]).backward()
    opt.step()
acc = (probe(h[400:]).argmax(1) == k[400:]).float().mean().item()
print(f"final accuracy of the probe {acc:.3f}")
