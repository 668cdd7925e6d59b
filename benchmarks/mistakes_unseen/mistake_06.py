# remedy: the mask (batch, keys) must broadcast against (batch, heads, queries, keys): mask[:, None, None, :]
import torch
import torch.nn as nn
import torch.nn.functional as F


class MaskedAttention(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def split(self, t):
        return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = q @ k.transpose(-1, -2)
        scores = scores.masked_fill(~mask, float("-inf"))  # <- fault
        return (F.softmax(scores, -1) @ v).transpose(1, 2).flatten(2)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 32)
        self.layers = nn.ModuleList([MaskedAttention() for _ in range(2)])

    def forward(self, tokens):
        mask = tokens != 0
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, mask)
        return x


Encoder()(torch.randint(0, 50, (6, 9)))
