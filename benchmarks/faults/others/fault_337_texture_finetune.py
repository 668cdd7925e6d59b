# cause: frozen-by-mistake
# symptom: the convolutions stay at their random start, the accuracy stops well below what the net can do
import torch
import torch.nn as nn


def textures(n, side=16):
    """four directions of stripes, random phase, grey noise"""
    kind = torch.randint(0, 4, (n,))
    g = torch.arange(side).float()
    px = 6.28 * torch.rand(n, 1, 1)
    py = 6.28 * torch.rand(n, 1, 1)
    gx, gy = g.view(1, 1, -1), g.view(1, -1, 1)
    vert = torch.sin(1.6 * gx + px).expand(n, side, side)
    horz = torch.sin(1.6 * gy + py).expand(n, side, side)
    diag = torch.sin(1.1 * (gx + gy) + px)
    anti = torch.sin(1.1 * (gx - gy) + py)
    stack = torch.stack([vert, horz, diag, anti], dim=1)
    img = stack[torch.arange(n), kind] + 1.5 * torch.randn(n, side, side)
    return img.unsqueeze(1), kind


class TextureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(4, 8, 3, padding=1),
            nn.ReLU(),
        )
        self.classifier = nn.Linear(8, 4)

    def forward(self, x):
        return self.classifier(self.features(x).mean(dim=(2, 3)))


def get_model(pretrained_path=None):
    model = TextureNet()
    if pretrained_path is not None:
        model.load_state_dict(torch.load(pretrained_path))
    for p in model.features.parameters():  # <- fault
        p.requires_grad = False  # <- fault
    return model


torch.manual_seed(19)
x, y = textures(1200)
xv, yv = textures(400)
model = get_model()  # <- fault
opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-3)
ce = nn.CrossEntropyLoss()
for epoch in range(12):
    total = 0.0
    for idx in torch.randperm(1200).split(40):
        opt.zero_grad()
        loss = ce(model(x[idx]), y[idx])
        loss.backward()
        opt.step()
        total += loss.item() / 30
    with torch.no_grad():
        acc = (model(xv).argmax(1) == yv).float().mean().item()
    print(f"epoch {epoch:2d} train loss {total:.3f} valid acc {acc:.3f}")
