import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Adam

torch.manual_seed(77)


def truth(x):
    return torch.sin(3 * x) + 0.3 * x


class BayesianNet(nn.Module):
    """Dropout stays on when predicting: the spread of the predictions is the model's uncertainty."""

    def __init__(self, p=0.05):
        super().__init__()
        self.p = p
        self.l1 = nn.Linear(1, 100)
        self.l2 = nn.Linear(100, 100)
        self.l3 = nn.Linear(100, 1)

    def forward(self, x):
        x = F.dropout(torch.tanh(self.l1(x)), p=self.p, training=self.training)
        x = F.dropout(torch.tanh(self.l2(x)), p=self.p, training=self.training)
        return self.l3(x)


x = 4 * torch.rand(400, 1) - 2
y = truth(x) + 0.1 * torch.randn(400, 1)
net = BayesianNet()
opt = Adam(net.parameters(), lr=4e-3)

net.train()
for epoch in range(80):
    for idx in torch.randperm(400).chunk(8):
        opt.zero_grad()
        loss = F.mse_loss(net(x[idx]), y[idx])
        loss.backward()
        opt.step()
    if epoch % 20 == 19:
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}")

grid = torch.linspace(-2, 2, 100)[:, None]
with torch.no_grad():
    net.train()  # Monte-Carlo dropout
    draws = torch.stack([net(grid) for _ in range(50)])
mean, spread = draws.mean(0), draws.std(0)
rmse = (mean - truth(grid)).pow(2).mean().sqrt().item()
print(f"mean spread {spread.mean().item():.3f}")
print(f"final rmse of the mean {rmse:.3f}")
