# cause: step-without-backward
# symptom: the loss wobbles around its starting value for all epochs, parameters never change (grad is None)
"""Hourly bike rental demand from weather and clock features."""
import math
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def make_rentals(n, gen):
    hour = torch.rand(n, generator=gen) * 24
    temp = torch.randn(n, generator=gen) * 8 + 15
    rain = (torch.rand(n, generator=gen) < 0.2).float()
    weekend = (torch.rand(n, generator=gen) < 2 / 7).float()
    peak = torch.exp(-((hour - 8) / 2) ** 2) + torch.exp(-((hour - 17.5) / 2.5) ** 2)
    demand = 2 * peak * (1 - 0.6 * weekend) + 0.05 * temp - 0.8 * rain
    demand = demand + 0.1 * torch.randn(n, generator=gen)
    angle = hour / 24 * 2 * math.pi
    feats = torch.stack([angle.sin(), angle.cos(), (2 * angle).sin(), (2 * angle).cos(),
                         (temp - 15) / 8, rain, weekend], dim=1)
    return feats, demand[:, None]


class DemandTrainer:
    def __init__(self, model, lr=3e-3):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.criterion = nn.SmoothL1Loss()

    def run_batch(self, x, y):
        pred = self.model(x)
        loss = self.criterion(pred, y)
        self.optimizer.zero_grad()
        self.optimizer.step()  # <- fault
        return loss.item()

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        total = sum(self.criterion(self.model(x), y).item() * len(x) for x, y in loader)
        return total / len(loader.dataset)

    def fit(self, train_loader, val_loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            losses = [self.run_batch(x, y) for x, y in train_loader]
            print(f"epoch {epoch + 1:2d}  train {sum(losses) / len(losses):.4f}  "
                  f"val {self.evaluate(val_loader):.4f}")


if __name__ == "__main__":
    torch.manual_seed(3)
    gen = torch.Generator().manual_seed(11)
    ds = TensorDataset(*make_rentals(3000, gen))
    train, val = random_split(ds, [2400, 600], generator=gen)
    net = nn.Sequential(nn.Linear(7, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
    trainer = DemandTrainer(net)
    trainer.fit(DataLoader(train, 64, shuffle=True), DataLoader(val, 200), epochs=12)
