"""Regression with uncertainty: dropout is left on at prediction time and many passes are averaged."""
import torch
from torch import nn
import torch.nn.functional as F


class StochasticRegressor(nn.Module):
    def __init__(self, width=64, p=0.1):
        super().__init__()
        self.p = p
        self.l1 = nn.Linear(1, width)
        self.l2 = nn.Linear(width, width)
        self.l3 = nn.Linear(width, 1)

    def forward(self, x):
        h = F.silu(self.l1(x))
        h = F.silu(self.l2(F.dropout(h, self.p, training=True)))  # Monte Carlo dropout: always on
        return self.l3(F.dropout(h, self.p, training=True))


def predict(model, x, passes=50):
    with torch.no_grad():
        draws = torch.stack([model(x) for _ in range(passes)])
    return draws.mean(0), draws.std(0)


def main():
    torch.manual_seed(1)
    x = torch.cat([torch.rand(400, 1) * 2 - 3, torch.rand(400, 1) * 2 + 1])
    y = torch.sin(2 * x) + 0.3 * x + 0.05 * torch.randn_like(x)
    model = StochasticRegressor()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=60)
    for epoch in range(60):
        for idx in torch.randperm(len(x)).split(50):
            loss = F.mse_loss(model(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1} loss {loss.item():.4f}")
    grid = torch.tensor([[-2.5], [-1.5], [0.0], [1.5], [2.5]])
    mean, std = predict(model, grid)
    for g, m, s in zip(grid, mean, std):
        print(f"x={g.item():+.1f} predicted {m.item():+.3f} +- {s.item():.3f}")
    mean, _ = predict(model, x)
    print("mse of the averaged prediction", F.mse_loss(mean, y).item())


if __name__ == "__main__":
    main()
