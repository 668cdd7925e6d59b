"""inference.py LIBRARY MODEL [FILE]: inference of public models with tinytorch, PyTorch or ONNX Runtime.

The models are those of torchvision and transformers, with random weights; a batch is four images of 224 x 224, or two
for the largest model, or four texts of 128 tokens. tinytorch compiles them with `mode="inference"`; ONNX Runtime reads
a file that PyTorch has exported.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Model(NamedTuple):
    """A model: its name, the function that makes it, and the shape of its input, integers if it has two dimensions."""

    what: str
    make: Callable[[Any], Any]
    shape: tuple[int, ...]


# Convolutions -------------------------------------------------------------------------------------


def _norm(torch: Any, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, act: Any = None) -> Any:
    """Return a convolution without bias, a batch norm, and an activation function unless that is None."""
    nn = torch.nn
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), *([] if act is None else [act(inplace=True)]))


def _head(torch: Any, channels: int, *before: Any) -> list[Any]:
    nn = torch.nn
    return [*before, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)]


def _block(torch: Any, body: Any, shortcut: Any = None, act: Any = None) -> Any:
    """Return the sum of a branch and its input, or a shortcut from it, and an activation function after it."""

    class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.body, self.shortcut, self.act = body, shortcut, None if act is None else act(inplace=True)

        def forward(self, x: Any) -> Any:
            y = self.body(x)
            y += x if self.shortcut is None else self.shortcut(x)
            return y if self.act is None else self.act(y)

    return Block()


def resnet50(torch: Any) -> Any:
    """ResNet-50 (He et al., 2016), with the stride in the 3 x 3 convolutions."""
    nn = torch.nn
    layers, channels = [_norm(torch, 3, 64, 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for k in range(count):
            step = stride if k == 0 else 1
            body = nn.Sequential(
                _norm(torch, channels, width, 1, act=nn.ReLU), _norm(torch, width, width, 3, step, act=nn.ReLU),
                _norm(torch, width, 4 * width, 1),
            )  # fmt: skip
            shortcut = _norm(torch, channels, 4 * width, 1, step) if k == 0 else None
            layers.append(_block(torch, body, shortcut, nn.ReLU))
            channels = 4 * width
    return nn.Sequential(*layers, *_head(torch, channels))


def mobilenet_v2(torch: Any) -> Any:
    """MobileNet-V2 (Sandler et al., 2018)."""
    nn = torch.nn
    layers, channels = [_norm(torch, 3, 32, 3, 2, act=nn.ReLU6)], 32
    for factor, outputs, count, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for k in range(count):
            width, step = factor * channels, stride if k == 0 else 1
            body = [_norm(torch, channels, width, 1, act=nn.ReLU6)] if factor > 1 else []
            body += [_norm(torch, width, width, 3, step, width, nn.ReLU6), _norm(torch, width, outputs, 1)]
            branch = nn.Sequential(*body)
            layers.append(_block(torch, branch) if step == 1 and channels == outputs else branch)
            channels = outputs
    return nn.Sequential(*layers, *_head(torch, 1280, _norm(torch, channels, 1280, 1, act=nn.ReLU6)))


def _excite(torch: Any, channels: int, squeezed: int) -> Any:
    """Return the factors of channels that a small network computes from their means, times the input."""
    nn = torch.nn

    class Excite(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.pool, self.act = nn.AdaptiveAvgPool2d(1), nn.SiLU(inplace=True)
            self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)

        def forward(self, x: Any) -> Any:
            return self.fc2(self.act(self.fc1(self.pool(x)))).sigmoid() * x

    return Excite()


def efficientnet_b0(torch: Any) -> Any:
    """EfficientNet-B0 (Tan and Le, 2019)."""
    nn = torch.nn
    layers, channels = [_norm(torch, 3, 32, 3, 2, act=nn.SiLU)], 32
    for factor, kernel, stride, outputs, count in (
        (1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
        (6, 3, 1, 320, 1),
    ):  # fmt: skip
        for k in range(count):
            width, step = factor * channels, stride if k == 0 else 1
            body = [_norm(torch, channels, width, 1, act=nn.SiLU)] if factor > 1 else []
            body.append(_norm(torch, width, width, kernel, step, width, nn.SiLU))
            branch = nn.Sequential(*body, _excite(torch, width, channels // 4), _norm(torch, width, outputs, 1))
            layers.append(_block(torch, branch) if step == 1 and channels == outputs else branch)
            channels = outputs
    return nn.Sequential(*layers, *_head(torch, 1280, _norm(torch, channels, 1280, 1, act=nn.SiLU)))


def convnext_tiny(torch: Any) -> Any:
    """ConvNeXt-T (Liu et al., 2022)."""
    nn = torch.nn

    class Norm(nn.LayerNorm):  # type: ignore[misc, name-defined]
        """A norm over the channels of images."""

        def forward(self, x: Any) -> Any:
            return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, width: int) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.full((width, 1, 1), 0.1))
            self.conv, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width, 1e-6)
            self.up, self.act, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            y = self.norm(self.conv(x).permute(0, 2, 3, 1))
            y = self.scale * self.down(self.act(self.up(y))).permute(0, 3, 1, 2)
            y += x
            return y

    layers = [nn.Conv2d(3, 96, 4, 4), Norm(96, 1e-6)]
    for k, count in enumerate((3, 3, 9, 3)):
        width = 96 << k
        layers += [Norm(width // 2, 1e-6), nn.Conv2d(width // 2, width, 2, 2)] if k else []
        layers += [Block(width) for _ in range(count)]
    pool, flat, last = _head(torch, 768)
    return nn.Sequential(*layers, pool, Norm(768, 1e-6), flat, last)


# Attention ----------------------------------------------------------------------------------------


def _layer(torch: Any, width: int, heads: int, first: bool, eps: float) -> Any:
    """Return a layer of a Transformer; `first`: the norms come before the branches, else after the sums."""
    nn = torch.nn

    class Layer(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
            self.up, self.act, self.down = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            self.norm1, self.norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)

        def attend(self, x: Any) -> Any:
            q, k, v = (
                part(x).view(x.shape[0], x.shape[1], heads, width // heads).transpose(1, 2)
                for part in (self.query, self.key, self.value)
            )
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
            return self.out(y.transpose(1, 2).reshape(x.shape))

        def forward(self, x: Any) -> Any:
            if first:
                x = x + self.attend(self.norm1(x))
                return x + self.down(self.act(self.up(self.norm2(x))))
            x = self.norm1(x + self.attend(x))
            return self.norm2(x + self.down(self.act(self.up(x))))

    return Layer()


def vit_b_16(torch: Any) -> Any:
    """ViT-B/16 (Dosovitskiy et al., 2021)."""
    nn = torch.nn

    class ViT(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.token = nn.Conv2d(3, 768, 16, 16), nn.Parameter(torch.zeros(1, 1, 768))
            self.places = nn.Parameter(0.02 * torch.randn(1, 197, 768))
            self.layers = nn.Sequential(*[_layer(torch, 768, 12, True, 1e-6) for _ in range(12)])
            self.norm, self.last = nn.LayerNorm(768, 1e-6), nn.Linear(768, 1000)

        def forward(self, x: Any) -> Any:
            y = self.conv(x).flatten(2).transpose(1, 2)
            y = torch.cat([self.token.expand(x.shape[0], -1, -1), y], 1) + self.places
            return self.last(self.norm(self.layers(y))[:, 0])

    return ViT()


def bert_base(torch: Any) -> Any:
    """BERT-base (Devlin et al., 2019), without the head."""
    nn = torch.nn

    class Bert(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(30522, 768), nn.Embedding(512, 768)
            self.norm = nn.LayerNorm(768, 1e-12)
            self.layers = nn.Sequential(*[_layer(torch, 768, 12, False, 1e-12) for _ in range(12)])

        def forward(self, x: Any) -> Any:
            return self.layers(self.norm(self.words(x) + self.places.weight[: x.shape[1]]))

    return Bert()


MODELS = {
    "resnet50": Model("ResNet-50", resnet50, (4, 3, 224, 224)),
    "mobilenet_v2": Model("MobileNet-V2", mobilenet_v2, (4, 3, 224, 224)),
    "efficientnet_b0": Model("EfficientNet-B0", efficientnet_b0, (4, 3, 224, 224)),
    "convnext_tiny": Model("ConvNeXt-T", convnext_tiny, (4, 3, 224, 224)),
    "vit_b_16": Model("ViT-B/16", vit_b_16, (2, 3, 224, 224)),
    "bert_base": Model("BERT-base", bert_base, (4, 128)),
}


def given(name: str) -> Any:
    """Return the input of a model as an array."""
    shape, rng = MODELS[name].shape, np.random.default_rng(0)
    return rng.integers(0, 30522, shape) if len(shape) == 2 else rng.standard_normal(shape).astype(np.float32)


def made(torch: Any, name: str) -> Any:
    """Return a model in evaluation mode, whose activations neither grow nor vanish."""
    torch.manual_seed(0)
    model = MODELS[name].make(torch).eval()
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight, mode="fan_out")
    return model


def export(name: str, file: str) -> None:
    """Write a model as a file that ONNX Runtime reads, by PyTorch."""
    import torch

    model, x = made(torch, name), torch.from_numpy(given(name))
    torch.onnx.export(model, (x,), file, dynamo=False, opset_version=17, input_names=["x"], output_names=["y"])


def task(library: str, name: str, file: str = "") -> Callable[[], Any]:
    """Return the function that is timed: inference of a batch.

    Args:
        library: "tinytorch", "torch" or "onnxruntime".
        name: of the model.
        file: the exported model, for ONNX Runtime.
    """
    x: Any = given(name)
    if library == "onnxruntime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(os.environ["OMP_NUM_THREADS"])
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, {"x": x})[0]
    torch: Any = importlib.import_module(library)
    model, x = made(torch, name), torch.from_numpy(x)
    if library == "torch":
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    else:
        model = torch.compile(model, mode="inference")

    def work() -> Any:
        with torch.no_grad():
            return model(x)

    return work


if __name__ == "__main__":
    from benchmarks.side import serve

    if sys.argv[1] == "export":
        export(*sys.argv[2:])
    else:
        serve(task(*sys.argv[1:]))
