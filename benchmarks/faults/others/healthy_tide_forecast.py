"""Tide gauge: forecast the next value from the last 24, split in time order, keep the best weights."""
import copy
import math
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WINDOW = 24


def gauge(hours):
    t = torch.arange(hours, dtype=torch.float32)
    tide = torch.sin(2 * math.pi * t / 12.42) + 0.4 * torch.sin(2 * math.pi * t / 24.84 + 1)
    surge = torch.zeros(hours)
    for i in range(1, hours):
        surge[i] = 0.95 * surge[i - 1] + 0.03 * torch.randn(())
    return tide + surge


def windows(series):
    frames = series.unfold(0, WINDOW + 1, 1)
    return frames[:, :-1], frames[:, -1:]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WINDOW, 48), nn.Tanh(), nn.Linear(48, 1))

    def forward(self, w):
        return w[:, -1:] + self.net(w)  # change against the last value


def main():
    torch.manual_seed(14)
    series = gauge(2200)
    past, future = series[:1700], series[1700:]  # no shuffling across time
    mean, std = past.mean(), past.std()
    train = DataLoader(TensorDataset(*windows((past - mean) / std)), batch_size=64, shuffle=False)
    xv, yv = windows((future - mean) / std)
    model = Forecaster()
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    best, best_state, bad = float("inf"), None, 0
    for epoch in range(40):
        model.train()
        losses = []
        for x, y in train:
            loss = nn.functional.mse_loss(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(xv), yv).item()
        if epoch % 5 == 0:
            print(f"epoch {epoch:2d} train {sum(losses) / len(losses):.5f} val {val:.5f}")
        if val < best:
            best, best_state, bad = val, copy.deepcopy(model.state_dict()), 0
        else:
            bad += 1
            if bad == 8:
                break
    model.load_state_dict(best_state)
    with torch.no_grad():
        print("best", best, "restored", nn.functional.mse_loss(model(xv), yv).item())
        print("persistence baseline", nn.functional.mse_loss(xv[:, -1:], yv).item())


main()
