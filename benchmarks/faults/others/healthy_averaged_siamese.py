"""Siamese matching of noisy signatures; an average of the weights is evaluated."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(117)

writers = torch.randn(30, 20)


def pairs(n):
    a = torch.randint(30, (n,))
    same = torch.rand(n) < 0.5
    b = torch.where(same, a, (a + torch.randint(1, 30, (n,))) % 30)
    noise = torch.randn(2, n, 20)
    return writers[a] + 0.6 * noise[0], writers[b] + 0.6 * noise[1], same.float()


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 16))

    def forward(self, x):
        return self.net(x)


def contrastive(u, v, same, margin=2.0):
    distance = torch.sqrt((u - v).pow(2).sum(1) + 1e-6)
    pull = same * distance.pow(2)
    push = (1 - same) * F.relu(margin - distance).pow(2)
    return (pull + push).mean()


encoder = Encoder()
average = copy.deepcopy(encoder).requires_grad_(False)
optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
for step in range(600):
    encoder.train()
    a, b, same = pairs(64)
    loss = contrastive(encoder(a), encoder(b), same)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), encoder.parameters()):
            slow.lerp_(fast, 0.02)
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f}")

average.eval()
with torch.no_grad():
    a, b, same = pairs(2000)
    distance = (average(a) - average(b)).norm(dim=1)
guess = (distance < 1.2).float()
print(f"final accuracy {(guess == same).float().mean().item():.3f}")
