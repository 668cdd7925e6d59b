# cause: optimizer-of-other-model
# symptom: the adapted model is exactly as bad on the new site as before (accuracy at site B 0.065; without the fault: accuracy at site B 0.998)
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(47)

# Leaf measurements at two sites; at the second, the scanner mixes its channels.
proto = torch.randn(4, 12)
rotation = torch.linalg.qr(torch.randn(12, 12))[0]


def leaves(n, site):
    y = torch.randint(0, 4, (n,))
    x = proto[y] + 0.5 * torch.randn(n, 12)
    return (x if site == "A" else x @ rotation), y


def accuracy(net, site):
    x, y = leaves(600, site)
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


def fit(net, optimizer, site, steps):
    for step in range(steps):
        x, y = leaves(50, site)
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"site {site} step {step:3d} loss {loss.item():.3f}")


source = nn.Sequential(nn.Linear(12, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 4))
optimizer = torch.optim.Adam(source.parameters(), lr=3e-3)
fit(source, optimizer, "A", 300)
print(f"site A {accuracy(source, 'A'):.3f}, site B before {accuracy(source, 'B'):.3f}")

adapted = copy.deepcopy(source)  # <- fault
optimizer = torch.optim.Adam(source.parameters(), lr=2e-3)  # <- fault
fit(adapted, optimizer, "B", 300)  # <- fault
print(f"final accuracy at site B {accuracy(adapted, 'B'):.3f}")
