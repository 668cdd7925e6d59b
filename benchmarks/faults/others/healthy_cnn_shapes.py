import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CLASSES = ["disc", "square", "cross", "ring"]


class ShapesDataset(Dataset):
    """Images of 16 x 16 pixels, each with one shape somewhere, and noise."""

    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 4, (size,), generator=g)
        cx = torch.randint(5, 11, (size, 1, 1), generator=g)
        cy = torch.randint(5, 11, (size, 1, 1), generator=g)
        r = torch.randint(3, 6, (size, 1, 1), generator=g)
        yy, xx = torch.meshgrid(torch.arange(16), torch.arange(16), indexing="ij")
        dx, dy = (xx - cx).abs(), (yy - cy).abs()
        dist = (dx**2 + dy**2).float().sqrt()
        disc = dist <= r
        square = (dx <= r) & (dy <= r)
        cross = square & ((dx <= 0) | (dy <= 0))
        ring = disc & (dist > r - 1.5)
        stack = torch.stack([disc, square, cross, ring], dim=1).float()
        clean = stack[torch.arange(size), self.labels]
        noise = 0.25 * torch.randn(clean.shape, generator=g)
        self.images = (clean + noise).unsqueeze(1)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(12)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(24)
        self.drop = nn.Dropout(0.3)
        self.fc = nn.Linear(24 * 4 * 4, len(CLASSES))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        x = self.drop(torch.flatten(x, 1))
        return self.fc(x)


def train(model, loader, optimizer, epoch):
    model.train()
    for step, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.cross_entropy(output, target)
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"Train Epoch: {epoch} [{step * len(data)}/{len(loader.dataset)}]\tLoss: {loss.item():.6f}")


def test(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            correct += (output.argmax(dim=1) == target).sum().item()
    return correct / len(loader.dataset)


def main():
    torch.manual_seed(1)
    train_loader = DataLoader(ShapesDataset(1280, seed=10), batch_size=64, shuffle=True)
    test_loader = DataLoader(ShapesDataset(400, seed=11), batch_size=100)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(1, 6):
        train(model, train_loader, optimizer, epoch)
        acc = test(model, test_loader)
        print(f"Test accuracy: {acc:.3f}")
    print(f"final test accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
