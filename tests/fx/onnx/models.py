"""Small models of each kind, with what they take."""

from __future__ import annotations

import math
from typing import Any

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F


class Block(nn.Module):
    """Two convolutions beside a shortcut, with an activation in place."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.conv2, self.act = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(self.act(self.bn1(self.conv1(x)))))
        y += self.shortcut(x)
        return self.act(y)


class ResNet(nn.Module):
    """A residual network."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU6(), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.pool, self.fc, self.drop = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 5), nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        return self.fc(self.drop(torch.flatten(self.pool(self.blocks(self.stem(x))), 1)))


class ConvNeXt(nn.Module):
    """Depthwise convolutions, norms over channels, GELU and a squeeze-and-excitation."""

    def __init__(self) -> None:
        super().__init__()
        self.patch, self.depth = nn.Conv2d(3, 8, 4, 4), nn.Conv2d(8, 8, 7, padding=3, groups=8)
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 32), nn.Linear(32, 8)
        self.scale, self.act = nn.Parameter(torch.full((8, 1, 1), 0.1)), nn.SiLU(inplace=True)
        self.squeeze, self.excite = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)

    def forward(self, x: Any) -> Any:
        x = self.patch(x)
        y = self.down(F.gelu(self.up(self.norm(self.depth(x).permute(0, 2, 3, 1))))).permute(0, 3, 1, 2)
        y = x + self.scale * y
        return self.excite(self.act(self.squeeze(F.adaptive_avg_pool2d(y, 1)))).sigmoid() * y


class GPT(nn.Module):
    """A language model, whose causal mask is a buffer that is cut to the length."""

    def __init__(self, causal: bool = False) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(30, 16), nn.Embedding(32, 16)
        self.norm1, self.norm2, self.last = nn.LayerNorm(16), nn.LayerNorm(16), nn.Linear(16, 30, bias=False)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 64), nn.GELU(approximate="tanh"), nn.Linear(64, 16), nn.Dropout(0.1))
        self.register_buffer("mask", torch.tril(torch.ones(32, 32)).view(1, 1, 32, 32), persistent=False)
        self.causal = causal
        self.last.weight = self.words.weight

    def forward(self, tokens: Any) -> Any:
        batch, length = tokens.size()
        assert length <= 32, f"a text of {length} tokens is too long"
        x = self.words(tokens) + self.places(torch.arange(0, length, dtype=torch.long))
        q, k, v = (y.view(batch, length, 4, 4).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(16, dim=2))
        if self.causal:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
            y = F.softmax(scores, dim=-1) @ v
        x = x + self.out(y.transpose(1, 2).contiguous().view(batch, length, 16))
        return self.last((x + self.mlp(self.norm2(x)))[:, [-1], :])


class ViT(nn.Module):
    """An encoder of patches, with a token of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.token = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.randn(1, 1, 16))
        self.places = nn.Parameter(torch.randn(1, 17, 16))
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True), 2, enable_nested_tensor=False
        )
        self.head = nn.Linear(16, 5)

    def forward(self, x: Any) -> Any:
        y = self.conv(x).flatten(2).transpose(1, 2)
        y = torch.cat([self.token.expand(x.shape[0], -1, -1), y], 1) + self.places
        return self.head(self.layers(y)[:, 0])


class Tagger(nn.Module):
    """An embedding, a recurrent network, and a layer for each step."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 6)
        self.rnn = getattr(nn, kind)(6, 5, **options)
        self.last = nn.Linear(10 if options.get("bidirectional") else 5, 3)

    def forward(self, tokens: Any) -> Any:
        y, state = self.rnn(self.words(tokens))
        return self.last(y), state


class UNet(nn.Module):
    """Down and up again, by a transposed convolution and by interpolation, with concatenations."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.middle, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8)
        self.up, self.join = nn.ConvTranspose2d(8, 8, 2, 2), nn.Conv2d(16, 4, 3, padding=1)
        self.last = nn.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        a = F.leaky_relu(self.down1(x))
        b = F.elu(self.down2(F.max_pool2d(a, 2)))
        c = self.norm(self.middle(F.avg_pool2d(b, 2)))
        y = self.join(torch.cat([self.up(c), b], dim=1))
        y = F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        y = torch.cat([y, F.interpolate(a, size=a.shape[2:], mode="nearest")], 1)
        return self.last(y)


class Quickstart(nn.Module):
    """The network of PyTorch's first tutorial."""

    def __init__(self) -> None:
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(28 * 28, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10)
        )

    def forward(self, x: Any) -> Any:
        return self.linear_relu_stack(self.flatten(x))


class Writes(nn.Module):
    """Writes into tensors, and through views of them."""

    def forward(self, x: Any) -> Any:
        y = x * 2
        rows = y[1]
        rows.mul_(10)
        y[:, 0] = -1
        left, right = y.view(2, 2, 3).unbind(1)
        last = y.t()[-1]
        y[0, 1:3] += x[1, 1:3]
        y.reshape(-1)[5] = 7
        z = torch.zeros(3, 3)
        z.diagonal().fill_(4)
        return y, rows, left, right, last, z


def images(*sizes: int, channels: int = 3, side: int = 16) -> Any:
    """Return a batch of images."""
    return (torch.randn(sizes[0], channels, side, side),)


def texts(*sizes: int) -> Any:
    """Return a batch of texts."""
    return (torch.randint(0, 20, sizes),)


__all__ = [
    "GPT", "Block", "ConvNeXt", "Quickstart", "ResNet", "Tagger", "UNet", "ViT", "Writes", "images", "texts",
]  # fmt: skip
