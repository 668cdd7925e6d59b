"""`nn.functional.pad`; its ops are `constant_pad` in `ops/rearrange.py` and `borders` in `ops/nn/resample.py`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.kernels.checks import refused
from tinytorch.kernels.dtypes import RARE
from tinytorch.kernels.resample import Map
from tinytorch.ops import autocast
from tinytorch.ops.nn.resample import borders
from tinytorch.ops.rearrange import constant_pad
from tinytorch.ops.register import public


@public("nn.functional.pad")
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Return `input` with a border.

    Args:
        input: any shape; in modes other than "constant", with one or two dimensions more than are padded.
        pad: (before, after) for the last dimension, then for the one before it, and so on; negative widths crop.
        mode: "constant", "reflect" (the mirror image, end elements excluded), "replicate" (copies of the end
            elements) or "circular" (elements from the opposite end).
        value: the value of a constant border, by default 0.

    Example:
        >>> torch.nn.functional.pad(torch.tensor([[1.0, 2.0]]), (1, 0, 0, 1))
        tensor([[0., 1., 2.],
                [0., 0., 0.]])
        >>> torch.nn.functional.pad(torch.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
        tensor([[3., 2., 1., 2., 3., 2.]])
    """
    try:
        widths = tuple([operator.index(width) for width in pad])
    except TypeError:
        raise TypeError(f"pad(): argument 'pad' (position 2) must be tuple of ints, not {type(pad).__name__}") from None
    shape = input._array.shape
    if len(widths) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(widths) > 2 * len(shape):
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(widths)} and input of dimension {len(shape)}"
        )
    if mode == "constant":
        return constant_pad(input, widths, 0.0 if value is None else float(value))
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    n = len(widths) // 2
    if n not in (1, 2, 3) or len(shape) not in (n + 1, n + 2):
        raise NotImplementedError(f"Padding size {len(widths)} is not supported for {len(shape)}D input tensor.")
    pairs = [(widths[2 * k], widths[2 * k + 1]) for k in range(n)][::-1]
    _check_widths(input, mode, pairs, n)
    if autocast.on and (mode == "replicate" or (mode == "reflect" and n < 3)):
        (input,) = autocast.raised(input)
    maps = tuple(
        [
            None if pair == (0, 0) else _border(mode, length, *pair)
            for length, pair in zip(shape[-n:], pairs, strict=True)
        ]
    )
    return borders[mode, n](input, maps, mode != "circular")


def _check_widths(input: Tensor, mode: str, pairs: list[tuple[int, int]], n: int) -> None:
    """Raise PyTorch's errors for an input that is too small for its border, or cropped too much."""
    shape = input._array.shape
    if mode != "circular":
        if input._array.dtype.char in RARE:
            raise refused(f"{'reflection' if mode == 'reflect' else 'replication'}_pad{n}d", input._array)
        if 0 in shape[-n - 1 :]:
            raise RuntimeError(
                f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
                f"dimensions for input, but got: {list(shape)}"
            )
    lengths = [length + sum(pair) for length, pair in zip(shape[-n:], pairs, strict=True)]
    for k in range(n - 1, -1, -1):
        (before, after), dim = pairs[k], len(shape) - n + k
        length = shape[dim]
        if mode == "reflect" and max(before, after) >= length:
            raise RuntimeError(
                f"Argument #{2 * (n - k) + 2}: Padding size should be less than the corresponding input dimension, "
                f"but got: padding ({before}, {after}) at dimension {dim} of input {list(shape)}"
            )
        if mode == "circular":
            if max(before, after) > length:
                raise RuntimeError("Padding value causes wrapping around more than once.")
            if length + before + after < 0:
                raise RuntimeError("Negative padding value is resulting in an empty dimension")
    if mode != "circular":
        if max(lengths) < 1:
            before_all, after_all = (
                " ".join(f"{letter}: {v}" for letter, v in zip("DHW"[-n:], values, strict=True))
                for values in (shape[-n:], lengths)
            )
            raise RuntimeError(f"input ({before_all}) is too small. Calculated output {after_all}")
        if min(lengths) < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(lengths)}: {lengths}")


@functools.lru_cache(256)
def _border(mode: str, length: int, before: int, after: int) -> Any:
    """Return the map from the positions of the padded dimension to those of the input."""
    count = length + before + after
    positions = np.arange(-before, length + after)
    if mode == "replicate":
        positions = positions.clip(0, length - 1)
    elif mode == "circular":
        # (cropped elements do not reappear at the opposite end)
        cropped, inner = max(-before, 0), length - max(-before, 0) - max(-after, 0)
        positions = np.arange(-max(before, 0), inner + max(after, 0)) % max(inner, 1) + cropped
    else:
        positions = length - 1 - np.abs(length - 1 - np.abs(positions))
    return Map(np.arange(count), positions, np.ones(count), (count, length))
