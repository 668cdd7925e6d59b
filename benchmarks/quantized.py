"""Measure quantized linear layers: `python -m benchmarks.quantized [layers] [tokens] [errors]` prints these tables.

The layers are those of GPT-2 of 124 million parameters, with random weights: products with 1 to 64 rows, the time per
token of all layers together, and the errors of the output. PyTorch's quantized model is measured, too, if it is
installed. All sides take turns; a time is the median, and a ratio is that of medians.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "2")

import numpy as np  # noqa: E402

import tinytorch  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

#: In and out features of the layers of a block, and of the last layer.
BLOCK, HEAD, BLOCKS = ((768, 2304), (768, 768), (768, 3072), (3072, 768)), (768, 50257), 12
#: Bytes of the weights with which a layer is measured: many such layers in turn, so that none is in a cache.
WEIGHTS = 1 << 28


def medians(sides: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """Return the median time of each function, in seconds."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(turns + 1):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            if turn:  # the first one is not counted
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(each) for name, each in times.items()}


def quantized(library: Any, model: Any, dtype: str = "qint8", **options: Any) -> Any:
    """Return the quantized model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's function is deprecated
        return library.ao.quantization.quantize_dynamic(model, dtype=getattr(library, dtype), **options)


def block(library: Any) -> Any:
    """Return the model: a GPT-2 that sees one token, so that the result of attention is the value of that token."""
    nn, F = library.nn, library.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(768), nn.LayerNorm(768)
            self.attention, self.projection, self.wide, self.narrow = (nn.Linear(*sizes) for sizes in BLOCK)

        def forward(self, x: Any) -> Any:
            x = x + self.projection(self.attention(self.before(x))[..., -768:])
            return x + self.narrow(F.gelu(self.wide(self.between(x))))

    library.manual_seed(0)
    model = nn.Sequential(*[Block() for _ in range(BLOCKS)], nn.LayerNorm(768), nn.Linear(*HEAD, bias=False)).eval()
    rng = np.random.default_rng(0)
    with library.no_grad():
        for each in model.parameters():
            if each.ndim == 2:
                each.copy_(library.from_numpy(rng.normal(0, 0.02, tuple(each.shape)).astype(np.float32)))
    return model


def print_layers() -> None:
    """Print the time of a layer with several numbers of rows."""
    print("| layer | rows | float32, ms | int8 | float16 | bfloat16 |\n|---|---|---|---|---|---|")
    dtypes = ("qint8", "float16", "bfloat16")
    for sizes in (*BLOCK, HEAD):
        count = -(-WEIGHTS // (4 * sizes[0] * sizes[1]))
        layers = [tinytorch.nn.Linear(*sizes) for _ in range(count)]
        sides = {"float32": layers} | {
            name: list(quantized(tinytorch, tinytorch.nn.Sequential(*layers), name)) for name in dtypes
        }
        for rows in (1, 8, 64):
            x = tinytorch.randn(rows, sizes[0])
            with tinytorch.no_grad():
                found = medians({name: lambda side=side, x=x: [f(x) for f in side] for name, side in sides.items()}, 5)
            times = [each / count for each in found.values()]
            ratios = "".join(f" {times[0] / each:.1f} times as fast |" for each in times[1:])
            print(f"| {sizes[0]} → {sizes[1]} | {rows} | {times[0] * 1e3:.2f} |{ratios}", flush=True)


def print_tokens() -> None:
    """Print how many tokens the model computes in a second, one after the other."""
    print("| model | tokens per second | megabytes |\n|---|---|---|")
    ours, x = block(tinytorch), tinytorch.randn(1, 768)
    sides = {"tinytorch": ours} | {
        f"tinytorch, {name}": quantized(tinytorch, ours, name) for name in ("qint8", "float16", "bfloat16")
    }
    sides["tinytorch, qint8, compiled"] = tinytorch.compile(sides["tinytorch, qint8"])
    calls: dict[str, Any] = {name: lambda each=each: each(x) for name, each in sides.items()}
    if torch is not None:
        theirs, y = block(torch), torch.randn(1, 768)
        others = {"PyTorch": theirs, "PyTorch, qint8": quantized(torch, theirs)}
        calls |= {name: lambda each=each: each(y) for name, each in others.items()}
    with tinytorch.no_grad(), torch.no_grad() if torch is not None else tinytorch.no_grad():
        found = medians(calls, 9)
    for name, each in found.items():
        size = "" if name not in sides or "compiled" in name else f"{megabytes(sides[name]):.0f}"
        print(f"| {name} | {1 / each:.1f} | {size} |", flush=True)


def megabytes(model: Any) -> float:
    """Return the size of the state of a model."""
    return sum(each.numel() * each.element_size() for each in model.state_dict().values()) / 1e6


def print_errors() -> None:
    """Print the error of the output for 256 inputs, relative to float32: of root mean squares."""
    print("| weights | error of the output | same largest output |\n|---|---|---|")
    ours = block(tinytorch)
    x = np.random.default_rng(1).standard_normal((256, 768)).astype(np.float32)
    with tinytorch.no_grad():
        expected = ours(tinytorch.from_numpy(x)).numpy()
        results = {
            f"tinytorch, {name}": quantized(tinytorch, ours, name)(tinytorch.from_numpy(x)).numpy()
            for name in ("qint8", "float16", "bfloat16")
        }
    if torch is not None:
        theirs = block(torch)
        q = torch.ao.quantization
        with torch.no_grad():
            for name in ("default_dynamic", "per_channel_dynamic", "float16_dynamic"):
                spec = {torch.nn.Linear: getattr(q, f"{name}_qconfig")}
                results[f"PyTorch, {name}"] = quantized(torch, theirs, qconfig_spec=spec)(torch.from_numpy(x)).numpy()
    for name, found in results.items():
        error = np.sqrt(np.mean((found - expected) ** 2) / np.mean(expected**2))
        same = np.mean(found.argmax(1) == expected.argmax(1))
        print(f"| {name} | {error:.2%} | {same:.1%} |", flush=True)


TABLES = {"layers": print_layers, "tokens": print_tokens, "errors": print_errors}

if __name__ == "__main__":
    if torch is not None:
        torch.set_num_threads(2)
    for name in sys.argv[1:] or TABLES:
        TABLES[name]()
        print()
