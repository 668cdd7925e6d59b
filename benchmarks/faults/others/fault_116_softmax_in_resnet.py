# cause: softmax-before-cross-entropy
# symptom: the loss stays near ln 4 (test accuracy 0.527; without the fault: test accuracy 0.883)
import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader, TensorDataset


def textures(n, seed):
    """Stripes of four directions, 12 x 12 pixels."""
    g = torch.Generator().manual_seed(seed)
    label = torch.randint(0, 4, (n,), generator=g)
    angle = label * torch.pi / 4 + 0.15 * torch.randn(n, generator=g)
    yy, xx = torch.meshgrid(torch.arange(12.0), torch.arange(12.0), indexing="ij")
    phase = 6.28 * torch.rand(n, 1, 1, generator=g)
    wave = torch.sin(1.6 * (xx * angle.cos()[:, None, None] + yy * angle.sin()[:, None, None]) + phase)
    return (wave + 0.9 * torch.randn(wave.shape, generator=g)).unsqueeze(1), label


class BasicBlock(nn.Module):
    def __init__(self, channels, out, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != out:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        nn.init.zeros_(self.bn2.weight)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.relu(y + self.shortcut(x))


class SmallResNet(nn.Module):
    def __init__(self, n_classes=4):
        super().__init__()
        self.stem = nn.Conv2d(1, 12, 3, padding=1)
        self.layer1 = BasicBlock(12, 12)
        self.layer2 = BasicBlock(12, 24, stride=2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(24, n_classes)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return torch.softmax(self.fc(self.pool(x).flatten(1)), dim=1)  # <- fault


if __name__ == "__main__":
    torch.manual_seed(6)
    train_loader = DataLoader(TensorDataset(*textures(960, 1)), batch_size=48, shuffle=True, drop_last=True)
    x_test, y_test = textures(300, 2)
    net = SmallResNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True, weight_decay=5e-4)
    epochs = 4
    total = epochs * len(train_loader)
    warmup = LinearLR(optimizer, start_factor=0.1, total_iters=15)
    cosine = CosineAnnealingLR(optimizer, T_max=total - 15)
    scheduler = SequentialLR(optimizer, [warmup, cosine], milestones=[15])

    for epoch in range(epochs):
        net.train()
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            outputs = net(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            scheduler.step()
        net.eval()
        with torch.no_grad():
            predicted = torch.max(net(x_test), 1)[1]
            acc = 100 * (predicted == y_test).sum().item() / len(y_test)
        print(f"Epoch {epoch + 1}/{epochs} loss {loss.item():.3f} acc {acc:.1f}% lr {scheduler.get_last_lr()[0]:.4f}")
    print(f"final test accuracy {acc / 100:.3f}")
