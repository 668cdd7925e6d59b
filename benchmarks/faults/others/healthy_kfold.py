import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)

# a table as from sklearn's make_classification: 4 informative columns, 4 mixtures of them, 4 of noise
n = 600
y = torch.randint(0, 2, (n,)).float()
centers = torch.tensor([[1.0, 1, -1, 0.5], [-1.0, 0.5, 1, -1]])
informative = centers[y.long()] + torch.randn(n, 4)
mixed = informative @ torch.randn(4, 4)
X = torch.cat([informative, mixed, torch.randn(n, 4)], dim=1)
X = (X - X.mean(dim=0)) / X.std(dim=0)
dataset = TensorDataset(X, y)


def build():
    return nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))


def fit(model, loader, epochs=12):
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=1e-2)
    crit = nn.BCEWithLogitsLoss()
    model.train()
    for _ in range(epochs):
        for xb, yb in loader:
            opt.zero_grad()
            loss = crit(model(xb).squeeze(-1), yb)
            loss.backward()
            opt.step()
    return loss.item()


def score(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for xb, yb in loader:
            correct += ((model(xb).squeeze(-1) > 0).float() == yb).sum().item()
    return correct / len(loader.dataset)


K = 5
folds = torch.randperm(n).chunk(K)
scores = []
for k in range(K):
    val_idx = folds[k].tolist()
    train_idx = torch.cat([folds[j] for j in range(K) if j != k]).tolist()
    train_loader = DataLoader(Subset(dataset, train_idx), batch_size=32, shuffle=True)
    val_loader = DataLoader(Subset(dataset, val_idx), batch_size=120)
    model = build()
    last = fit(model, train_loader)
    scores.append(score(model, val_loader))
    print(f"fold {k}: last loss {last:.3f}, accuracy {scores[-1]:.3f}")
print(f"final mean accuracy {sum(scores) / K:.3f}")
