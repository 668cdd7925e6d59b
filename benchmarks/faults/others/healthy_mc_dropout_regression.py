"""Uncertainty of a power curve with dropout left on at prediction (Monte Carlo dropout)."""
import torch
import torch.nn as nn

torch.manual_seed(11)


class Curve(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, 80), nn.ReLU(), nn.Dropout(p), nn.Linear(80, 80), nn.ReLU(), nn.Dropout(p), nn.Linear(80, 1)
        )

    def forward(self, x):
        return self.layers(x)


def turbine(n):
    wind = torch.rand(n, 1) * 2 - 1
    return wind, torch.sigmoid(6 * wind) + 0.3 * torch.sin(4 * wind) + 0.05 * torch.randn(n, 1)


def predict(model, x, samples=50):
    model.train()  # dropout stays on, on purpose
    with torch.no_grad():
        draws = torch.stack([model(x) for _ in range(samples)])
    return draws.mean(0), draws.std(0)


wind, power = turbine(800)
model = Curve()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-5)
for epoch in range(40):
    total = 0.0
    for b in torch.randperm(800).split(50):
        loss = nn.functional.mse_loss(model(wind[b]), power[b])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 16
    if epoch % 8 == 0:
        print(f"epoch {epoch} mse {total:.4f}")

x, y = turbine(200)
mean, spread = predict(model, x)
far_spread = predict(model, torch.full((1, 1), 4.0))[1]
print(f"spread near {spread.mean().item():.3f}, far away {far_spread.item():.3f}")
print(f"final test r2 {1 - ((mean - y).pow(2).mean() / y.var()).item():.3f}")
