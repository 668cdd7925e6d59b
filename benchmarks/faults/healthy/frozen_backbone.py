"""Transfer: a network is trained, its body frozen, and a new head trained; best weights are copied."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(600, 8)
first, second = (x[:, 0] * x[:, 1] > 0).long(), (x[:, 0] * x[:, 1] + 0.3 * x[:, 2] > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.body(x))


net = Net()


def fit(params, target, steps):
    optimizer = torch.optim.Adam(params, lr=5e-3)
    best, state = 9.0, None
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), target)
        loss.backward()
        optimizer.step()
        if loss.item() < best:
            best, state = loss.item(), copy.deepcopy(net.state_dict())
    net.load_state_dict(state)
    return best


print(fit(net.parameters(), first, 120))
for p in net.body.parameters():
    p.requires_grad = False
net.head = nn.Linear(32, 2)
print(fit(filter(lambda p: p.requires_grad, net.parameters()), second, 80))
