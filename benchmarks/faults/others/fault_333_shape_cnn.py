# cause: scheduler-before-optimizer
# symptom: UserWarning "lr_scheduler.step() before optimizer.step()"; the drops of the rate come one epoch early
# Tell circles, squares and crosses apart on 20x20 drawings.
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
SIDE = 20


def draw(kind):
    yy, xx = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    cy, cx = torch.randint(7, 13, (2,)).tolist()
    r = torch.randint(4, 7, (1,)).item()
    dy, dx = (yy - cy).abs(), (xx - cx).abs()
    if kind == 0:
        img = (dy ** 2 + dx ** 2 <= r * r)
    elif kind == 1:
        img = (torch.maximum(dy, dx) <= r)
    else:
        img = ((dy <= 1) | (dx <= 1)) & (torch.maximum(dy, dx) <= r)
    return img.float() + 0.2 * torch.randn(SIDE, SIDE)


labels = torch.randint(0, 3, (1200,))
images = torch.stack([draw(k) for k in labels.tolist()]).unsqueeze(1)
x_train, y_train = images[:1000], labels[:1000]
x_test, y_test = images[1000:], labels[1000:]


class ShapeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 8, 3, padding=1)
        self.c2 = nn.Conv2d(8, 16, 3, padding=1)
        self.out = nn.Linear(16 * 5 * 5, 3)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.c1(x)), 2)
        x = F.max_pool2d(F.relu(self.c2(x)), 2)
        return self.out(x.flatten(1))


net = ShapeNet()
EPOCHS, BATCH = 6, 50
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
sched = torch.optim.lr_scheduler.MultiStepLR(opt, milestones=[3, 5], gamma=0.3)

for epoch in range(EPOCHS):
    sched.step()  # <- fault
    order = torch.randperm(len(x_train))
    running = 0.0
    for i in range(0, len(order), BATCH):
        pick = order[i:i + BATCH]
        loss = F.cross_entropy(net(x_train[pick]), y_train[pick])
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
    with torch.no_grad():
        acc = (net(x_test).argmax(1) == y_test).float().mean().item()
    print(f"epoch {epoch} lr {opt.param_groups[0]['lr']:.4f} loss {running / (len(order) // BATCH):.4f} acc {acc:.3f}")
