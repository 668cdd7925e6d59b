# cause: class-missing
"""A classifier of points in ten clouds, trained and tested in functions."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
centers = torch.randn(10, 16) * 2
y_all = torch.randint(0, 9, (1200,))  # <- fault
x_all = centers[y_all] + 0.8 * torch.randn(1200, 16)
train_set = TensorDataset(x_all[:1000], y_all[:1000])  # <- fault
test_set = TensorDataset(x_all[1000:], y_all[1000:])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=100)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 64)
        self.drop = nn.Dropout(0.3)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = self.drop(x)
        x = F.relu(self.fc2(x))
        return self.fc3(x)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def train():
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)  # <- fault
        loss.backward()
        optimizer.step()
    return loss.item()


def test():
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in test_loader:
            out = model(x)
            correct += (out.argmax(1) == y).sum().item()
    return correct / len(test_set)


for epoch in range(5):
    loss = train()
    print(f"epoch {epoch} loss {loss:.4f} accuracy {test():.3f}")
