# cause: eval-missing
# symptom: the held-out error is noisy and far too high, and the same field gets a different forecast each time
import torch
from torch import nn


def make_fields(n, gen):
    """rain, sun, soil pH, nitrogen, slope -> tonnes per hectare (standardised inputs)"""
    x = torch.randn(n, 5, generator=gen)
    y = 5.0 + 1.5 * x[:, 0] - 0.8 * x[:, 0] ** 2 + x[:, 1] + 0.7 * torch.tanh(2 * x[:, 3]) - 0.5 * x[:, 4]
    return x, y + 0.1 * torch.randn(n, generator=gen)


def build():
    return nn.Sequential(
        nn.Linear(5, 128), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(128, 64), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(64, 1),
    )


def train_epoch(model, opt, x, y, bs=50):
    model.train()
    for idx in torch.randperm(len(x)).split(bs):
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x[idx]).squeeze(1), y[idx])
        loss.backward()
        opt.step()
    return loss.item()


@torch.no_grad()
def validate(model, x, y):  # <- fault
    pred = model(x).squeeze(1)  # <- fault
    return nn.functional.mse_loss(pred, y).item()


def main():
    torch.manual_seed(21)
    gen = torch.Generator().manual_seed(8)
    xtr, ytr = make_fields(1500, gen)
    xva, yva = make_fields(400, gen)
    model = build()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(20):
        tr = train_epoch(model, opt, xtr, ytr)
        va = validate(model, xva, yva)
        if epoch % 3 == 1:
            print(f"epoch {epoch:2d} last batch {tr:.3f} held-out mse {va:.3f}")
    with torch.no_grad():
        one = xva[:1]
        forecasts = [model(one).item() for _ in range(4)]  # <- fault
    print("field 0, asked four times:", ["%.2f" % f for f in forecasts], "truth %.2f" % yva[0].item())


if __name__ == "__main__":
    main()
