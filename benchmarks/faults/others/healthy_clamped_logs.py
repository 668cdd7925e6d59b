"""A mixture-of-experts classifier whose likelihood is a log of clamped probabilities."""
import torch
import torch.nn as nn

torch.manual_seed(78)
EPS = 1e-7


class Experts(nn.Module):
    def __init__(self, n_in=2, experts=4, hidden=12):
        super().__init__()
        self.gate = nn.Linear(n_in, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(n_in, hidden), nn.Tanh(), nn.Linear(hidden, 1)) for _ in range(experts)
        )

    def forward(self, x):
        share = torch.softmax(self.gate(x), dim=1)
        chance = torch.sigmoid(torch.cat([e(x) for e in self.experts], dim=1))
        return (share * chance).sum(1), share


def chessboard(n):
    x = torch.rand(n, 2) * 4 - 2
    return x, ((x[:, 0] > 0) ^ (x[:, 1] > 0)).float()


def log_likelihood(p, y):
    p = p.clamp(EPS, 1 - EPS)
    return y * torch.log(p) + (1 - y) * torch.log(1 - p)


def balance(share):
    mean = share.mean(0)
    return (mean * torch.log(mean.clamp(min=EPS))).sum()


model = Experts()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(600):
    x, y = chessboard(100)
    p, share = model(x)
    loss = -log_likelihood(p, y).mean() + 0.01 * balance(share)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step} loss {loss.item():.4f}")

x, y = chessboard(1000)
with torch.no_grad():
    p, _ = model(x)
print(f"mean log likelihood {log_likelihood(p, y).mean().item():.3f}")
print(f"final accuracy {((p > 0.5).float() == y).float().mean().item():.3f}")
