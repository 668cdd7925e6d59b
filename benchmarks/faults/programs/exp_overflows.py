# cause: overflow
"""Attention written by hand: which token occurs at the place that the first token names?"""

import torch
from torch import nn

torch.manual_seed(7)
V, T, D = 8, 8, 32
x = torch.randint(0, V, (800, T))
y = x[torch.arange(800), x[:, 0]]


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = q @ k.transpose(1, 2) / D**0.5
        e = torch.exp(scores * 300)  # <- fault
        weights = e / e.sum(-1, keepdim=True)
        return weights @ v


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(V, D)
        self.places = nn.Embedding(T, D)
        self.attention = Attention(D)
        self.norm = nn.LayerNorm(D)
        self.out = nn.Linear(D, V)

    def forward(self, x):
        h = self.tokens(x) + self.places(torch.arange(T))
        h = self.norm(h + self.attention(h))
        return self.out(h[:, 0])


model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
for epoch in range(20):
    for xb, yb in zip(x.split(80), y.split(80)):
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    if epoch % 4 == 0:
        print(epoch, loss.item())
