# cause: state-dict-alias
# symptom: after "restoring the best epoch" the validation loss is that of the last epoch, not the best one
"""Concentration of a compound from noisy spectra; small set, so keep the best epoch."""
import torch
from torch import nn


class EarlyStopper:
    def __init__(self, patience):
        self.patience = patience
        self.best_loss = float("inf")
        self.best_state = None
        self.waited = 0

    def update(self, val_loss, model):
        if val_loss < self.best_loss:
            self.best_loss = val_loss
            self.best_state = model.state_dict()  # <- fault
            self.waited = 0
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model):
        model.load_state_dict(self.best_state)


def spectra(n, channels=80):
    grid = torch.linspace(0, 1, channels)
    conc = torch.rand(n, 3)
    centres = torch.tensor([0.3, 0.38, 0.7])
    lines = torch.exp(-((grid[None] - centres[:, None]) / 0.06) ** 2)
    return conc @ lines + 0.15 * torch.randn(n, channels), conc[:, :1]


def main():
    torch.manual_seed(21)
    x, y = spectra(240)
    y = y + 0.15 * torch.randn_like(y)  # the cheap lab assay is noisy, the held-out one is not
    xv, yv = spectra(300)
    model = nn.Sequential(nn.Linear(80, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    mse = nn.MSELoss()
    stopper = EarlyStopper(patience=30)

    for epoch in range(200):
        model.train()
        for idx in torch.randperm(len(x)).split(20):
            optimizer.zero_grad()
            loss = mse(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            val = mse(model(xv), yv).item()
        if epoch % 5 == 0:
            print(f"epoch {epoch:3d} train {loss.item():.5f} val {val:.5f}")
        if stopper.update(val, model):
            print("stopped at epoch", epoch)
            break

    stopper.restore(model)
    with torch.no_grad():
        print(f"best val seen {stopper.best_loss:.5f}, val after restore {mse(model(xv), yv).item():.5f}")


if __name__ == "__main__":
    main()
