# cause: wrong-loss
# symptom: the loss is exactly 0 from the first batch and the accuracy stays at chance
import torch
import torch.nn as nn
from torch.utils.data import Dataset, DataLoader


class Customers(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.x = torch.randn(n, 6, generator=g)
        score = 1.5 * self.x[:, 0] - self.x[:, 1] + self.x[:, 2] * self.x[:, 3]
        self.y = (score > 0).float().unsqueeze(1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


class ChurnModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(6, 32),
            nn.ReLU(),
            nn.Linear(32, 16),
            nn.ReLU(),
            nn.Linear(16, 1),
        )

    def forward(self, x):
        return self.net(x)


def accuracy(model, loader):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in loader:
            right += ((model(x) > 0).float() == y).sum().item()
            total += len(y)
    model.train()
    return right / total


torch.manual_seed(0)
train_dl = DataLoader(Customers(1200, 1), batch_size=32, shuffle=True)
valid_dl = DataLoader(Customers(400, 2), batch_size=200)
model = ChurnModel()
loss_function = nn.CrossEntropyLoss()  # <- fault
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(8):
    losses = []
    for x, y in train_dl:
        optimizer.zero_grad()
        loss = loss_function(model(x), y)  # <- fault
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch + 1}: loss {sum(losses) / len(losses):.4f}  valid accuracy {accuracy(model, valid_dl):.3f}")
