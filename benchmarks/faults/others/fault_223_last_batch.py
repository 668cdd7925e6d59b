# cause: batch-norm-batch-of-one
# symptom: the first epoch stops at its last batch with an error about one value per channel (ValueError; without the fault: accuracy 0.887)
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(70)

# Heart data: 8 standardised measurements of 641 + 160 patients, ill or not.
features = torch.randn(801, 8)
risk = features[:, 0] - 0.8 * features[:, 3] + features[:, 5] * features[:, 6]
ill = (risk + 0.3 * torch.randn(801) > 0).float()
train_set, test_set = random_split(TensorDataset(features, ill), [641, 160])  # <- fault


class HeartNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.bn1 = nn.Linear(8, 48), nn.BatchNorm1d(48)  # <- fault
        self.fc2, self.bn2 = nn.Linear(48, 24), nn.BatchNorm1d(24)  # <- fault
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        x = torch.relu(self.bn1(self.fc1(x)))  # <- fault
        x = torch.relu(self.bn2(self.fc2(x)))
        return self.out(x).squeeze(1)


def evaluate(model):
    model.eval()
    x, y = next(iter(DataLoader(test_set, batch_size=160)))
    with torch.no_grad():
        return ((model(x) > 0).float() == y).float().mean().item()


loader = DataLoader(train_set, batch_size=32, shuffle=True)  # <- fault
model = HeartNet()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(10):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.3f} accuracy {evaluate(model):.3f}")

print(f"final accuracy {evaluate(model):.3f}")
