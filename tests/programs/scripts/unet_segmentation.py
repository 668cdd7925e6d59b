# Segmentation of generated shapes with a small U-Net: dice loss, IoU, schedules, weight averages.
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, Dataset, random_split

torch.manual_seed(5)


class Shapes(Dataset):
    def __init__(self, n, size=16):
        self.n, self.size = n, size

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        cy, cx = torch.randint(4, self.size - 4, (2,), generator=g).tolist()
        r = torch.randint(2, 5, (1,), generator=g).item()
        yy, xx = torch.meshgrid(torch.arange(self.size), torch.arange(self.size), indexing="ij")
        if i % 2:
            mask = ((yy - cy) ** 2 + (xx - cx) ** 2 <= r * r).long()
        else:
            mask = 2 * ((yy - cy).abs().le(r) & (xx - cx).abs().le(r)).long()
        noise = torch.randn(3, self.size, self.size, generator=g) * 0.3
        image = noise + torch.stack([(mask == k).float() for k in range(3)])
        return {"image": image, "mask": mask, "id": f"s{i}"}


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels, mid_channels=None):
        super().__init__()
        mid_channels = mid_channels or out_channels
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(mid_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding="same", bias=False),
            nn.GroupNorm(2, out_channels),
            nn.SiLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear=True):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        dy, dx = x2.size()[2] - x1.size()[2], x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, bilinear):
        super().__init__()
        f = 2 if bilinear else 1
        self.inc = DoubleConv(3, 8)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 16))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(16, 32 // f))
        self.up1 = Up(32, 16 // f, bilinear)
        self.up2 = Up(16, 8, bilinear)
        self.outc = nn.Conv2d(8, 3, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        return self.outc(self.up2(self.up1(x3, x2), x1))


def dice_loss(logits, target, eps=1e-6):
    probs = F.softmax(logits, dim=1)
    onehot = F.one_hot(target, 3).permute(0, 3, 1, 2).float()
    inter = 2 * (probs * onehot).sum((0, 2, 3))
    return 1 - ((inter + eps) / (probs.sum((0, 2, 3)) + onehot.sum((0, 2, 3)) + eps)).mean()


def iou(pred, target):
    conf = torch.bincount(target.flatten() * 3 + pred.flatten(), minlength=9).view(3, 3)
    return conf.diagonal() / (conf.sum(0) + conf.sum(1) - conf.diagonal()).clamp(min=1)


train, val = random_split(Shapes(40), [0.8, 0.2], generator=torch.Generator().manual_seed(0))
loader = DataLoader(train, batch_size=8, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(1))
val_loader = DataLoader(val, batch_size=8)
for bilinear in (True, False):
    net = UNet(bilinear)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-2)
    sched = OneCycleLR(opt, max_lr=1e-2, epochs=2, steps_per_epoch=len(loader), pct_start=0.3)
    ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    for epoch in range(2):
        net.train()
        for batch in loader:
            logits = net(batch["image"])
            loss = F.cross_entropy(logits, batch["mask"], weight=torch.tensor([0.2, 1.0, 1.0])) + dice_loss(logits, batch["mask"])
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
            ema.update_parameters(net)
        print(f"epoch {epoch} loss {loss.item():.4f} lr {sched.get_last_lr()[0]:.6f}", batch["id"][:2])
    update_bn(DataLoader([d["image"] for d in train], batch_size=8), ema)
    for name, m in (("net", net), ("ema", ema)):
        m.eval()
        with torch.no_grad():
            batch = next(iter(val_loader))
            out = m(batch["image"])
            print(name, out.shape, F.cross_entropy(out, batch["mask"]), iou(out.argmax(1), batch["mask"]).shape)
    print(int(ema.n_averaged), len(ema.state_dict()), sum(p.numel() for p in net.parameters()))
swa_opt = torch.optim.SGD(net.parameters(), lr=0.1)
swa = SWALR(swa_opt, swa_lr=0.01, anneal_epochs=3, anneal_strategy="linear")
lrs = []
for _ in range(5):
    swa_opt.step()
    swa.step()
    lrs.append(swa.get_last_lr()[0])
print(lrs)
