"""Pretrain convolutions on many pictures, then freeze them and train a new head on few."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(22)


def gratings(n, kinds):
    """Stripes at one of `kinds` angles."""
    k = torch.randint(kinds, (n,))
    angle = (torch.pi * k / kinds)[:, None, None]
    yy, xx = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    phase = 6.28 * torch.rand(n, 1, 1)
    stripes = torch.sin(1.5 * (xx * torch.cos(angle) + yy * torch.sin(angle)) + phase)
    return (stripes + 0.4 * torch.randn(n, 12, 12)).unsqueeze(1), k


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5)
        self.bn = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3)

    def forward(self, x):
        x = F.relu(self.bn(self.conv1(x)))
        return F.relu(self.conv2(x)).mean(dim=(2, 3))


def fit(features, head, params, x, y, epochs):
    optimizer = torch.optim.Adam(params, lr=5e-3)
    for epoch in range(epochs):
        for b in torch.randperm(len(x)).split(40):
            loss = F.cross_entropy(head(features(x[b])), y[b])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.3f}")


backbone, head8 = Backbone(), nn.Linear(32, 8)
fit(backbone, head8, [*backbone.parameters(), *head8.parameters()], *gratings(1000, 8), epochs=5)

backbone.eval()
backbone.requires_grad_(False)
head4 = nn.Linear(32, 4)
fit(backbone, head4, head4.parameters(), *gratings(120, 4), epochs=15)

head4.eval()
x, y = gratings(400, 4)
with torch.no_grad():
    print(f"final accuracy {(head4(backbone(x)).argmax(1) == y).float().mean().item():.3f}")
