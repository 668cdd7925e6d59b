# cause: broadcast-in-loss
# symptom: the loss stops at the variance of the target and every forecast is near the mean (a UserWarning on shapes may be seen)
import argparse

import torch
from torch import nn, optim


def hourly_rentals(n):
    hour = 24 * torch.rand(n)
    temp = torch.randn(n)
    weekend = (torch.rand(n) < 2 / 7).float()
    angle = hour / 24 * 2 * torch.pi
    rentals = 2.0 + torch.sin(angle - 1.5) * (1.2 - 0.6 * weekend) + 0.6 * temp
    x = torch.stack([torch.sin(angle), torch.cos(angle), temp, weekend], dim=1)
    return x, rentals + 0.05 * torch.randn(n)  # <- fault


class Forecaster(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inp = nn.Linear(4, width)
        self.hid = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.relu(self.inp(x))
        x = torch.relu(self.hid(x))
        return self.out(x)  # <- fault


def train(args):
    torch.manual_seed(args.seed)
    x, y = hourly_rentals(1600)
    x_test, y_test = hourly_rentals(300)
    model = Forecaster(args.width)
    opt = optim.Adam(model.parameters(), lr=args.lr)
    mse = nn.MSELoss()
    for epoch in range(args.epochs):
        order = torch.randperm(len(x))
        summed = 0.0
        for idx in order.split(args.batch):
            opt.zero_grad()
            loss = mse(model(x[idx]), y[idx])  # <- fault
            loss.backward()
            opt.step()
            summed += loss.item()
        if epoch % 3 == 0:
            print(f"epoch {epoch}: loss {summed * args.batch / len(x):.4f}")
    with torch.no_grad():
        guess = model(x_test).flatten()
    print("variance of target %.3f" % y_test.var().item())
    print("spread of forecasts %.3f, test mse %.3f" % (guess.std().item(), ((guess - y_test) ** 2).mean().item()))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=4)
    p.add_argument("--lr", type=float, default=0.005)
    p.add_argument("--width", type=int, default=32)
    p.add_argument("--batch", type=int, default=40)
    p.add_argument("--epochs", type=int, default=13)
    train(p.parse_args())
