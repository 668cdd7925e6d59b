# cause: log-of-zero
# symptom: the loss is nan from the first update on (share of time near food 0.226; without the fault: share of time near food 0.838)
import torch
import torch.nn as nn

torch.manual_seed(39)

# A forager on a ring of 10 cells walks left, stays or walks right; some moves are barred.
CELLS, MOVES = 10, 3
barred = torch.zeros(CELLS, MOVES, dtype=torch.bool)
barred[0, 0] = barred[9, 2] = True
barred[:, 1] = True


class Forager(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Sequential(nn.Linear(2 * CELLS, 48), nn.ReLU(), nn.Linear(48, MOVES))

    def forward(self, cell, food):
        hot = torch.cat([torch.eye(CELLS)[cell], torch.eye(CELLS)[food]], dim=1)
        logits = self.table(hot).masked_fill(barred[cell], float("-inf"))
        return torch.softmax(logits, dim=1)


def entropy(p):
    return -(p * torch.log(p)).sum(dim=1)  # <- fault


def play(net, n=40, steps=10):
    cell, food = torch.randint(CELLS, (n,)), torch.randint(CELLS, (n,))
    score, log_probs, bonus = torch.zeros(n), 0.0, 0.0
    for _ in range(steps):
        p = net(cell, food)
        move = (p.detach().cumsum(1) < torch.rand(n, 1)).sum(1).clamp(max=MOVES - 1)
        log_probs = log_probs + torch.log(p[torch.arange(n), move])
        bonus = bonus + entropy(p)
        cell = (cell + move - 1).clamp(0, CELLS - 1)
        score += ((cell - food).abs() <= 1).float()
    return score / steps, log_probs, bonus


net = Forager()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for it in range(150):
    score, log_probs, bonus = play(net)
    advantage = score - score.mean()
    loss = -(advantage * log_probs).mean() - 0.002 * bonus.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 30 == 0:
        print(f"iteration {it} loss {loss.item():.3f} near food {score.mean().item():.3f}")

with torch.no_grad():
    print(f"final share of time near food {play(net, 500)[0].mean().item():.3f}")
