# remedy: a transposed tensor is not contiguous: y.reshape(B, T, C), or y.contiguous().view(B, T, C)
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        att = (q @ k.transpose(-2, -1) / (C // self.heads) ** 0.5).softmax(-1)
        y = (att @ v).transpose(1, 2)
        return self.proj(y.view(B, T, C))  # <- fault


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attn = nn.LayerNorm(32), SelfAttention(32, 4)

    def forward(self, x):
        return x + self.attn(self.norm(x))


model = nn.Sequential(nn.Linear(8, 32), Layer(), Layer(), nn.Linear(32, 1))
model(torch.randn(2, 10, 8))
