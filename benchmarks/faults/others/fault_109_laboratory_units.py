# cause: inputs-unscaled
# symptom: the accuracy stays low: columns have scales from 0.4 to 750 (validation accuracy 0.457; without the fault: validation accuracy 0.967)
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm


class WineDataset(Dataset):
    """Three sorts, 13 measurements each, in the units of a laboratory."""

    scale = torch.tensor([13, 2.3, 2.4, 19, 100, 2.3, 2.0, 0.36, 1.6, 5.1, 0.96, 2.6, 750])

    def __init__(self, n, seed, transform=None):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.randint(0, 3, (n,), generator=g)
        shift = 0.35 * torch.randn(3, 13, generator=torch.Generator().manual_seed(1000))
        self.x = self.scale * (1 + 0.4 * shift[self.y] + 0.13 * torch.randn(n, 13, generator=g))
        self.transform = transform

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        if self.transform:
            x = self.transform(x)
        return x, self.y[i]


class Standardize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, x):
        return (x - self.mean) / self.std


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr=1e-3, epochs=12):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, factor=0.5, patience=2)
        self.epochs = epochs

    def train_epoch(self, epoch):
        self.model.train()
        total = 0.0
        for x, y in tqdm(self.train_loader, desc=f"epoch {epoch}", disable=None):
            self.optimizer.zero_grad()
            out = self.model(x)  # <- fault
            loss = self.criterion(out, y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        loss, hits, n = 0.0, 0, 0
        for x, y in self.val_loader:
            out = self.model(x)
            loss += self.criterion(out, y).item() * len(y)
            hits += (out.argmax(1) == y).sum().item()
            n += len(y)
        return loss / n, hits / n

    def fit(self):
        for epoch in range(self.epochs):
            train_loss = self.train_epoch(epoch)
            val_loss, val_acc = self.validate()
            self.scheduler.step(val_loss)
            print(f"[{epoch:02d}] train {train_loss:.4f} | val {val_loss:.4f} | acc {val_acc:.3f}")
        return val_acc


def main():
    torch.manual_seed(0)
    train_raw = WineDataset(800, seed=1)
    transform = Standardize(train_raw.x.mean(0), train_raw.x.std(0))
    train_loader = DataLoader(WineDataset(800, 1), batch_size=32, shuffle=True)  # <- fault
    val_loader = DataLoader(WineDataset(300, 2), batch_size=100)
    model = nn.Sequential(
        nn.Linear(13, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 3)
    )
    acc = Trainer(model, train_loader, val_loader).fit()
    print(f"final validation accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
