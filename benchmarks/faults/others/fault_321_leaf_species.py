# cause: class-missing
# symptom: training accuracy near 1, validation accuracy 0: the validation rows are one species that training never saw
"""Leaf species from 10 shape measurements. The catalogue lists specimens species by species."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

SPECIES = ("oak", "beech", "maple", "birch", "hazel")
PER_SPECIES = 300


def catalogue():
    prototypes = 1.5 * torch.randn(len(SPECIES), 10)
    rows, names = [], []
    for k in range(len(SPECIES)):
        rows.append(prototypes[k] + torch.randn(PER_SPECIES, 10))
        names.append(torch.full((PER_SPECIES,), k))
    return TensorDataset(torch.cat(rows), torch.cat(names))


def accuracy(model, loader):
    model.eval()
    n_right, n = 0, 0
    with torch.no_grad():
        for x, y in loader:
            n_right += (model(x).argmax(dim=1) == y).sum().item()
            n += y.numel()
    return n_right / n


def main():
    torch.manual_seed(17)
    dataset = catalogue()
    n_train = int(0.8 * len(dataset))
    order = list(range(len(dataset)))  # <- fault
    train_set = Subset(dataset, order[:n_train])  # <- fault
    val_set = Subset(dataset, order[n_train:])  # <- fault
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=100)

    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, len(SPECIES)))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(10):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        print(f"{epoch}: loss={total / n_train:.4f} "
              f"train={accuracy(model, train_loader):.3f} val={accuracy(model, val_loader):.3f}")


main()
