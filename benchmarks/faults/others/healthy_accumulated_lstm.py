"""An LSTM that adds two marked numbers, with accumulated gradients and a rate per update."""
import torch
from torch import nn

torch.manual_seed(34)
ACCUMULATE, UPDATES = 4, 300


def adding(n, length=8):
    value = torch.rand(n, length)
    mark = torch.zeros(n, length)
    mark.scatter_(1, torch.rand(n, length).topk(2, dim=1).indices, 1.0)
    return torch.stack([value, mark], dim=2), (value * mark).sum(1)


class Adder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 48, batch_first=True)
        self.out = nn.Linear(48, 1)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1]).squeeze(-1)


model = Adder()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=UPDATES)
optimizer.zero_grad()
running = 0.0
for i in range(1, UPDATES * ACCUMULATE + 1):
    x, y = adding(16)
    loss = nn.functional.mse_loss(model(x), y) / ACCUMULATE
    loss.backward()
    running += loss.item()
    if i % ACCUMULATE:
        continue
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    if i % (50 * ACCUMULATE) == 0:
        print(f"update {i // ACCUMULATE}: mse {running / 50:.4f}")
        running = 0.0

x, y = adding(1000)
with torch.no_grad():
    print(f"final r2 {1 - ((model(x) - y).pow(2).mean() / y.var()).item():.3f}")
