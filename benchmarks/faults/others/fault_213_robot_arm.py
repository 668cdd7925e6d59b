# cause: relu-on-logits
# symptom: the hand is never placed left of or below the shoulder (mean distance 0.700; without the fault: mean distance 0.054)
import torch
import torch.nn as nn
from torch.nn.functional import mse_loss

torch.manual_seed(1)


def build_mlp(sizes):
    layers = []
    for n_in, n_out in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]  # <- fault
    return nn.Sequential(*layers)  # <- fault


def hand_position(angles):
    """Where a planar arm of three links (lengths 1.0, 0.7, 0.4) holds its hand."""
    total = angles.cumsum(dim=1)
    links = torch.tensor([1.0, 0.7, 0.4])
    return torch.stack([(links * total.cos()).sum(1), (links * total.sin()).sum(1)], dim=1)


def batches(n, size):
    for _ in range(n):
        angles = (torch.rand(size, 3) * 2 - 1) * 3.0
        yield angles, hand_position(angles)


model = build_mlp([3, 96, 96, 2])
opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=800)
for i, (angles, position) in enumerate(batches(800, 128)):
    loss = mse_loss(model(angles), position)  # <- fault
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    sched.step()
    if i % 200 == 0:
        print(f"batch {i:3d} loss {loss.item():.4f}")

angles, position = next(batches(1, 1000))
with torch.no_grad():
    guess = model(angles)
print("range of the guesses", guess.min().item(), guess.max().item())
print(f"final mean distance {(guess - position).norm(dim=1).mean().item():.3f}")
