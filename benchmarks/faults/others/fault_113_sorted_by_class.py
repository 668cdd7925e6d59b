# cause: data-unshuffled
# symptom: each batch has one class: the last ones are predicted for all (accuracy of the first task 0.661; without the fault: accuracy of the first task 0.953)
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(31)

projection = torch.randn(6, 40)


def blobs(centers, per_class):
    k = len(centers)
    y = torch.arange(k).repeat_interleave(per_class)
    z = centers[y] + 0.5 * torch.randn(k * per_class, 6)
    return torch.tanh(z @ projection / 2) + 0.1 * torch.randn(len(y), 40), y


class Classifier(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, num_classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def fit(model, loader, optimizer, epochs, tag):
    criterion = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(epochs):
        for x, y in loader:  # <- fault
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            print(f"{tag} epoch {epoch + 1} loss {loss.item():.4f}")


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


# 1. a large task with 12 classes
source = 1.3 * torch.randn(12, 6)
model = Classifier(12)
xs, ys = blobs(source, 100)
fit(model, DataLoader(TensorDataset(xs, ys), 100), optim.Adam(model.parameters(), 4e-3), 5, "pretrain")  # <- fault
first = accuracy(model, xs, ys)

# 2. a small task with 5 new classes: only the new head is trained
for param in model.backbone.parameters():
    param.requires_grad = False
model.head = nn.Linear(32, 5)
optimizer = optim.SGD(model.head.parameters(), lr=0.05, momentum=0.9)
target = 1.3 * torch.randn(5, 6)
xt, yt = blobs(target, 30)
xv, yv = blobs(target, 100)
fit(model, DataLoader(TensorDataset(xt, yt), 16, shuffle=True), optimizer, 20, "finetune")
print(f"accuracy of the new task {accuracy(model, xv, yv):.3f}")
print(f"final accuracy of the first task {first:.3f}")
