# cause: gradients-explode
# symptom: the gradient norm is 1e10 or more (then inf or nan) from the first steps, the loss is huge and becomes nan
"""River level from 40 days of rain, with a hand-written ReLU recurrent cell."""
import torch
from torch import nn


class RainCell(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.hidden = hidden
        self.w_in = nn.Parameter(0.3 * torch.randn(1, hidden))
        self.w_rec = nn.Parameter(0.4 * torch.randn(hidden, hidden))  # <- fault
        self.bias = nn.Parameter(torch.zeros(hidden))
        self.read = nn.Linear(hidden, 1)

    def forward(self, rain):
        h = rain.new_zeros(rain.shape[0], self.hidden)
        for day in range(rain.shape[1]):
            h = torch.relu(rain[:, day] @ self.w_in + h @ self.w_rec + self.bias)  # <- fault
        return self.read(h)


def rivers(n, days=40):
    rain = torch.relu(torch.randn(n, days, 1))
    level = torch.zeros(n, 1)
    for day in range(days):
        level = 0.8 * level + 0.2 * rain[:, day]
    return rain, (level - 0.4) / 0.2


def grad_norm(module):
    return torch.stack([p.grad.norm() for p in module.parameters()]).norm().item()


def main():
    torch.manual_seed(6)
    rain, level = rivers(800)
    rain_t, level_t = rivers(200)
    cell = RainCell()
    opt = torch.optim.SGD(cell.parameters(), lr=0.02)
    for epoch in range(8):
        for batch, idx in enumerate(torch.randperm(800).split(25)):
            loss = ((cell(rain[idx]) - level[idx]) ** 2).mean()
            opt.zero_grad()
            loss.backward()
            if batch == 0:
                print(f"epoch {epoch} first batch: loss {loss.item():.4g}, grad norm {grad_norm(cell):.4g}")
            opt.step()
    with torch.no_grad():
        print("test mse", ((cell(rain_t) - level_t) ** 2).mean().item())


if __name__ == "__main__":
    main()
