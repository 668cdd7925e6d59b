# cause: sqrt-at-zero
# symptom: the loss is finite, the weights are NaN after one step: errors of padded states are exactly 0 (mean error of the whole path nan; without the fault: mean error of the whole path 0.138)
import torch
import torch.nn as nn

torch.manual_seed(4)

T, H = 60, 0.1


def pendulum(y):
    angle, speed = y[..., 0], y[..., 1]
    return torch.stack([speed, -2.0 * torch.sin(angle) - 0.15 * speed], -1)


def odeint(f, y0, steps, h):
    """Euler, with every state kept."""
    ys = [y0]
    for _ in range(steps):
        ys.append(ys[-1] + h * f(ys[-1]))
    return torch.stack(ys)


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, y):
        return self.net(y)


starts = torch.tensor([[2.0, 0.0], [-1.0, 1.0], [0.5, -2.0]])
with torch.no_grad():
    truth = odeint(pendulum, starts, T * 10, H / 10)[::10]  # (T + 1, 3, 2), in finer steps

func = ODEFunc()
optimizer = torch.optim.RMSprop(func.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
WINDOW = 8
for it in range(1, 301):
    t0 = torch.randint(0, T - WINDOW, (32,))
    who = torch.randint(0, 3, (32,))
    batch_y = torch.stack([truth[t0 + i, who] for i in range(WINDOW + 1)])
    optimizer.zero_grad()
    pred = odeint(func, batch_y[0], WINDOW, H)
    length = torch.randint(3, WINDOW + 2, (32,))  # some records end early
    valid = (torch.arange(WINDOW + 1)[:, None] < length).float()
    error = (pred - batch_y) * valid[..., None]
    loss = torch.sqrt((error**2).sum(-1)).sum() / valid.sum()  # <- fault
    loss.backward()
    optimizer.step()
    if it % 60 == 0:
        print("Iter {:04d} | Loss {:.6f}".format(it, loss.item()))
    if it % 2 == 0:
        scheduler.step()

with torch.no_grad():
    error = (odeint(func, starts, T, H) - truth).abs().mean().item()
print(f"final mean error of the whole path {error:.3f}")
