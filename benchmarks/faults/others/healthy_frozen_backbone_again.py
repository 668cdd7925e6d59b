"""Pretrain a small CNN on stripe direction, freeze it, then train only a new head on another task."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def stripes(n, side=16):
    angle = torch.rand(n) * math.pi
    freq = 0.6 + 0.8 * torch.rand(n)
    yy, xx = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    along = xx * torch.cos(angle)[:, None, None] + yy * torch.sin(angle)[:, None, None]
    img = torch.sin(freq[:, None, None] * along + 6.28 * torch.rand(n, 1, 1))
    img = img + 0.2 * torch.randn(n, side, side)
    return img[:, None], (angle / math.pi * 8).long().clamp(max=7), (angle > math.pi / 2).long()


backbone = lambda: nn.Sequential(
    nn.Conv2d(1, 16, 5, padding=2), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
)


def run(features, head, params, x, y, epochs, lr, frozen):
    opt = torch.optim.Adam(params, lr=lr)
    for epoch in range(epochs):
        head.train()
        features.train(not frozen)  # the frozen backbone keeps its running statistics
        total = 0.0
        for idx in torch.randperm(len(x)).split(50):
            loss = F.cross_entropy(head(features(x[idx])), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        print(f"  epoch {epoch} loss {total / len(x):.4f}")


def main():
    torch.manual_seed(3)
    x, octant, _ = stripes(1000)
    features = backbone()
    pre_head = nn.Linear(32, 8)
    print("pretraining")
    run(features, pre_head, [*features.parameters(), *pre_head.parameters()], x, octant, 8, 5e-3, frozen=False)

    for p in features.parameters():
        p.requires_grad_(False)
    small_x, _, leaning = stripes(400)
    head = nn.Linear(32, 2)
    print("new head on the frozen backbone")
    run(features, head, head.parameters(), small_x, leaning, 10, 2e-2, frozen=True)

    features.eval()
    test_x, _, test_y = stripes(300)
    with torch.no_grad():
        acc = (head(features(test_x)).argmax(1) == test_y).float().mean().item()
    print(f"test accuracy {acc:.3f}")


main()
