# cause: scheduler-too-often
# symptom: the learning rate is almost nothing after the first epoch and the accuracy stops there
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 8


def draw(n, side=12):
    x = 0.3 * torch.randn(n, 1, side, side)
    y = torch.randint(0, 4, (n,))
    for i in range(n):
        r, c = torch.randint(1, side - 6, (2,)).tolist()
        k = y[i].item()
        if k == 0:      # horizontal bar
            x[i, 0, r + 2, c:c + 5] += 1.0
        elif k == 1:    # vertical bar
            x[i, 0, r:r + 5, c + 2] += 1.0
        elif k == 2:    # hollow square
            x[i, 0, r, c:c + 5] += 1.0
            x[i, 0, r + 4, c:c + 5] += 1.0
            x[i, 0, r:r + 5, c] += 1.0
            x[i, 0, r:r + 5, c + 4] += 1.0
        else:           # diagonal
            for d in range(5):
                x[i, 0, r + d, c + d] += 1.0
    return x, y


class ShapeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.out = nn.Linear(16 * 3 * 3, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.out(x.flatten(1))


torch.manual_seed(5)
train_loader = DataLoader(TensorDataset(*draw(1200)), batch_size=40, shuffle=True)
test_x, test_y = draw(300)
model = ShapeNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)  # <- fault

for epoch in range(EPOCHS):
    total = 0.0
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()  # <- fault
        total += loss.item()
    with torch.no_grad():
        acc = (model(test_x).argmax(1) == test_y).float().mean().item()
    lr = optimizer.param_groups[0]["lr"]
    print(f"epoch {epoch + 1}: lr {lr:.2e} train loss {total / len(train_loader):.4f} test acc {acc:.3f}")
