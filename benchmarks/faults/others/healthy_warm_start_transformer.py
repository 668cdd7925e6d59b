"""A small transformer that reverses digits; the rate warms up from nearly nothing."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(89)
LENGTH, DIGITS, DIM, STEPS, WARMUP = 5, 8, 48, 400, 50


class Block(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(d // self.heads), dim=-1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class Reverser(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(DIGITS, DIM), nn.Parameter(0.5 * torch.randn(LENGTH, DIM))
        self.blocks = nn.Sequential(Block(DIM), Block(DIM))
        self.out = nn.Linear(DIM, DIGITS)

    def forward(self, x):
        return self.out(self.blocks(self.token(x) + self.place))


def factor(step):
    if step < WARMUP:
        return 1e-5 + step / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


model = Reverser()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
for step in range(STEPS):
    x = torch.randint(0, DIGITS, (64, LENGTH))
    loss = F.cross_entropy(model(x).flatten(0, 1), x.flip(1).flatten(), label_smoothing=0.05)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step} rate {scheduler.get_last_lr()[0]:.1e} loss {loss.item():.3f}")
    scheduler.step()

model.eval()
with torch.no_grad():
    x = torch.randint(0, DIGITS, (500, LENGTH))
    print(f"final digit accuracy {(model(x).argmax(-1) == x.flip(1)).float().mean().item():.3f}")
