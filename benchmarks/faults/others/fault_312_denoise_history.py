# cause: memory-grows
# symptom: the memory in use climbs by the same amount every round, until the machine has no more
import resource

import torch
import torch.nn as nn


class Smoother(nn.Module):
    """Takes the noise off a short signal."""

    def __init__(self, length=64, width=256):
        super().__init__()
        self.down = nn.Linear(length, width)
        self.mid = nn.Linear(width, width)
        self.up = nn.Linear(width, length)

    def forward(self, s):
        h = torch.relu(self.down(s))
        h = torch.relu(self.mid(h))
        return self.up(h)


def signals(n, length=64):
    t = torch.linspace(0, 6.28, length)
    clean = torch.sin(t * (1 + 2 * torch.rand(n, 1)) + 6.28 * torch.rand(n, 1))
    return clean + 0.3 * torch.randn(n, length), clean


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


torch.manual_seed(23)
model = Smoother()
accumulate = 2
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.5, patience=1)
noisy, clean = signals(4000)
held_noisy, held_clean = signals(500)
history = []
for epoch in range(6):
    opt.zero_grad()
    epoch_sum = 0.0
    for i, idx in enumerate(torch.randperm(4000).split(100)):
        loss = nn.functional.mse_loss(model(noisy[idx]), clean[idx])
        (loss / accumulate).backward()
        epoch_sum += loss.item()
        if (i + 1) % accumulate == 0:
            opt.step()
            opt.zero_grad()
            held = nn.functional.mse_loss(model(held_noisy), held_clean)  # <- fault
            history.append(held)  # <- fault
    plateau.step(epoch_sum)
    best = min(h.item() for h in history)
    print(f"epoch {epoch} train {epoch_sum / 40:.4f} held-out {held.item():.4f} best {best:.4f} memory {megabytes():.0f} MB")
