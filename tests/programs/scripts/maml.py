import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 20), nn.ReLU(), nn.Linear(20, 1))
meta_opt = torch.optim.Adam(net.parameters(), lr=1e-2)


def sample_task():
    amplitude, phase = torch.rand(1) * 4.9 + 0.1, torch.rand(1) * math.pi
    return lambda x: amplitude * torch.sin(x + phase)


def forward(x, weights):
    x = F.relu(F.linear(x, weights[0], weights[1]))
    return F.linear(x, weights[2], weights[3])


for it in range(5):
    meta_opt.zero_grad()
    total = 0.0
    for _ in range(3):
        f = sample_task()
        x_s, x_q = torch.rand(10, 1) * 10 - 5, torch.rand(10, 1) * 10 - 5
        fast = list(net.parameters())
        for _ in range(2):
            loss = F.mse_loss(forward(x_s, fast), f(x_s))
            grads = torch.autograd.grad(loss, fast, create_graph=True)
            fast = [w - 0.01 * g for w, g in zip(fast, grads)]
        total = total + F.mse_loss(forward(x_q, fast), f(x_q))
    (total / 3).backward()
    meta_opt.step()
    print(f"{it} meta loss {total.item() / 3:.4f}")
params = dict(net.named_parameters())


def task_loss(p, x, y):
    return ((functional_call(net, p, (x,)) - y) ** 2).mean()


def inner(p, x, y):
    g = grad(task_loss)(p, x, y)
    return {k: p[k] - 0.01 * g[k] for k in p}


xs, ys = torch.randn(4, 5, 1), torch.randn(4, 5, 1)
losses = vmap(lambda x, y: task_loss(inner({k: v.detach() for k, v in params.items()}, x, y), x, y))(xs, ys)
print(losses)
per_sample = vmap(grad(task_loss), in_dims=(None, 0, 0))({k: v.detach() for k, v in params.items()}, xs, ys)
print({k: tuple(v.shape) for k, v in per_sample.items()}, per_sample["2.bias"].flatten())
