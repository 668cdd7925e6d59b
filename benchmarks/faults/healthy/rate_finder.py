"""A finder of learning rates: the rate grows until the loss explodes, and training starts anew."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 10)
y = (x @ torch.randn(10, 3)).argmax(1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
start = copy.deepcopy(model.state_dict())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
found = []
for step in range(60):
    rate = 1e-5 * 10 ** (step / 10)
    for group in optimizer.param_groups:
        group["lr"] = rate
    index = torch.randint(0, 512, (64,))
    loss = nn.functional.cross_entropy(model(x[index]), y[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    found.append((loss.item(), rate))
    if loss.item() > 4 * min(found)[0]:
        break
model.load_state_dict(start)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for step in range(200):
    index = torch.randint(0, 512, (64,))
    loss = nn.functional.cross_entropy(model(x[index]), y[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
