# cause: data-unshuffled
# symptom: nearly everything is called the last shape (accuracy 0.250; without the fault: accuracy 0.904)
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import ConcatDataset, DataLoader, Dataset

torch.manual_seed(10)
yy, xx = torch.meshgrid(torch.arange(14.0), torch.arange(14.0), indexing="ij")


def picture(shape):
    cy, cx = (5 + 4 * torch.rand(2)).tolist()
    r = 2.5 + 1.5 * torch.rand(1).item()
    dy, dx = (yy - cy).abs(), (xx - cx).abs()
    mask = {
        "disc": (dy**2 + dx**2).sqrt() < r,
        "ring": ((dy**2 + dx**2).sqrt() - r).abs() < 0.8,
        "box": torch.maximum(dy, dx) < r,
        "plus": torch.minimum(dy, dx) < 1.0,
    }[shape]
    return (mask.float() + 0.2 * torch.randn(14, 14)).unsqueeze(0)


class Folder(Dataset):
    """One folder of pictures, all of one shape."""

    def __init__(self, shape, label, n):
        self.pictures = [picture(shape) for _ in range(n)]
        self.label = label

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        return self.pictures[i], self.label


SHAPES = ["disc", "ring", "box", "plus"]
train_set = ConcatDataset([Folder(s, i, 320) for i, s in enumerate(SHAPES)])
test_set = ConcatDataset([Folder(s, i, 60) for i, s in enumerate(SHAPES)])
loader = DataLoader(train_set, batch_size=32)  # <- fault

cnn = nn.Sequential(
    nn.Conv2d(1, 10, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(10, 20, 3), nn.ReLU(), nn.Flatten(), nn.Linear(20 * 16, 4),
)
optimizer = torch.optim.SGD(cnn.parameters(), lr=0.05, momentum=0.9)
for epoch in range(6):
    for pictures, labels in loader:
        loss = F.cross_entropy(cnn(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} last loss {loss.item():.4f}")

right = 0
with torch.no_grad():
    for pictures, labels in DataLoader(test_set, batch_size=60):
        right += (cnn(pictures).argmax(1) == labels).sum().item()
print(f"final accuracy {right / len(test_set):.3f}")
