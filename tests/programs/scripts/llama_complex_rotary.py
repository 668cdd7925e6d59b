# A decoder whose rotary positions are complex numbers: torch.polar, view_as_complex, view_as_real.
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Options:
    dim: int = 32
    depth: int = 2
    heads: int = 4
    kv_heads: int = 2
    words: int = 50
    length: int = 16
    multiple: int = 16
    eps: float = 1e-5


def frequencies(head_dim: int, end: int, theta: float = 10000.0) -> torch.Tensor:
    rates = 1.0 / theta ** (torch.arange(0, head_dim, 2)[: head_dim // 2].float() / head_dim)
    angles = torch.outer(torch.arange(end, dtype=torch.float32), rates)
    return torch.polar(torch.ones_like(angles), angles)  # complex64, (end, head_dim / 2)


def rotated(q, k, turns):
    pairs = [torch.view_as_complex(each.float().reshape(*each.shape[:-1], -1, 2)) for each in (q, k)]
    turns = turns.view(1, turns.shape[0], 1, turns.shape[1])
    return [
        torch.view_as_real(each * turns).flatten(3).type_as(given) for each, given in zip(pairs, (q, k), strict=True)
    ]


class Norm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


class Attention(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.heads, self.kv_heads = options.heads, options.kv_heads
        self.head_dim = options.dim // options.heads
        self.wq = nn.Linear(options.dim, options.heads * self.head_dim, bias=False)
        self.wk = nn.Linear(options.dim, options.kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(options.dim, options.kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(options.heads * self.head_dim, options.dim, bias=False)

    def forward(self, x, turns, mask):
        batch, length, _ = x.shape
        q = self.wq(x).view(batch, length, self.heads, self.head_dim)
        k = self.wk(x).view(batch, length, self.kv_heads, self.head_dim)
        v = self.wv(x).view(batch, length, self.kv_heads, self.head_dim)
        q, k = rotated(q, k, turns)
        k, v = (each.repeat_interleave(self.heads // self.kv_heads, dim=2) for each in (k, v))
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores + mask
        shares = F.softmax(scores.float(), dim=-1).type_as(q)
        return self.wo(torch.matmul(shares, v).transpose(1, 2).contiguous().view(batch, length, -1))


class FeedForward(nn.Module):
    def __init__(self, options):
        super().__init__()
        width = int(2 * 4 * options.dim / 3)
        width = options.multiple * ((width + options.multiple - 1) // options.multiple)
        self.w1 = nn.Linear(options.dim, width, bias=False)
        self.w2 = nn.Linear(width, options.dim, bias=False)
        self.w3 = nn.Linear(options.dim, width, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.attention, self.feed_forward = Attention(options), FeedForward(options)
        self.attention_norm, self.ffn_norm = (Norm(options.dim, options.eps) for _ in range(2))

    def forward(self, x, turns, mask):
        h = x + self.attention(self.attention_norm(x), turns, mask)
        return h + self.feed_forward(self.ffn_norm(h))


class Decoder(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.tok_embeddings = nn.Embedding(options.words, options.dim)
        self.layers = nn.ModuleList(Block(options) for _ in range(options.depth))
        self.norm = Norm(options.dim, options.eps)
        self.output = nn.Linear(options.dim, options.words, bias=False)
        self.register_buffer("turns", frequencies(options.dim // options.heads, options.length * 2), persistent=False)

    def forward(self, tokens, start=0):
        length = tokens.shape[1]
        h = self.tok_embeddings(tokens)
        mask = None
        if length > 1:
            mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        for layer in self.layers:
            h = layer(h, self.turns[start : start + length], mask)
        return self.output(self.norm(h)).float()


torch.manual_seed(1234)
options = Options()
model = Decoder(options)
print(model.turns.dtype, tuple(model.turns.shape), model.turns[:2])
print(sum(p.numel() for p in model.parameters()), sorted(model.state_dict())[:3])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
losses = []
for step in range(20):
    tokens = torch.randint(0, options.words, (4, options.length + 1))
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.view(-1, options.words), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    print(f"step {step}: loss {loss.item():.4f}")

with torch.no_grad():
    # Only distances count: the same tokens one place later have the same scores.
    print(torch.allclose(model(tokens), model(tokens, start=3), atol=1e-4))
# Moved to another dtype, the complex buffer follows with the module.
half = Decoder(Options(depth=1)).double()
print(half.turns.dtype, half(tokens).dtype)


# A complex layer, trained: the least squares of a complex linear map, and a complex convolution.
class ComplexNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3, padding=1, dtype=torch.cfloat)
        self.linear = nn.Linear(8, 4, dtype=torch.cfloat)

    def forward(self, x):
        return self.linear(torch.tanh(self.conv(x)))


net = ComplexNet()
x = torch.randn(5, 2, 8, dtype=torch.cfloat)
y = torch.randn(5, 3, 4, dtype=torch.cfloat)
optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
for step in range(10):
    error = (net(x) - y).abs().pow(2).mean()
    optimizer.zero_grad()
    error.backward()
    optimizer.step()
    print(f"error {error.item():.4f}")
print(net, net.linear.weight.grad.dtype)
