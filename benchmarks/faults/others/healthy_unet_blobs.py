import torch
import torch.nn as nn
import torch.nn.functional as F


def blobs(n, size=24):
    """Bright ellipses on an uneven background; the mask says where they are."""
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    mask = torch.zeros(n, size, size, dtype=torch.bool)
    for _ in range(2):
        cx, cy = torch.randint(4, size - 4, (2, n, 1, 1))
        a, b = 2 + 4 * torch.rand(2, n, 1, 1)
        mask |= ((xx - cx) / a) ** 2 + ((yy - cy) / b) ** 2 <= 1
    slope = torch.randn(n, 1, 1) * (xx / size - 0.5)
    image = 0.9 * mask + slope + 0.35 * torch.randn(n, size, size)
    return image[:, None], mask[:, None].float()


def double_conv(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
        nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, base=8):
        super().__init__()
        self.inc = double_conv(1, base)
        self.down = double_conv(base, 2 * base)
        self.up = nn.ConvTranspose2d(2 * base, base, 2, stride=2)
        self.merge = double_conv(2 * base, base)
        self.outc = nn.Conv2d(base, 1, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down(F.max_pool2d(x1, 2))
        x = torch.cat([x1, self.up(x2)], dim=1)
        return self.outc(self.merge(x))


def dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits)
    inter = (p * target).sum(dim=(1, 2, 3))
    union = p.sum(dim=(1, 2, 3)) + target.sum(dim=(1, 2, 3))
    return (1 - (2 * inter + eps) / (union + eps)).mean()


torch.manual_seed(15)
images, masks = blobs(320)
val_images, val_masks = blobs(80)
net = UNet()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)

for epoch in range(4):
    net.train()
    for idx in torch.randperm(320).split(16):
        pred = net(images[idx])
        loss = F.binary_cross_entropy_with_logits(pred, masks[idx]) + dice_loss(pred, masks[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        found = net(val_images) > 0
        truth = val_masks > 0.5
        iou = ((found & truth).sum() / (found | truth).sum()).item()
    print(f"epoch {epoch} loss {loss.item():.3f} IoU {iou:.3f}")
print(f"final IoU {iou:.3f}")
