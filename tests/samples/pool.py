"""Samples of `ops.pool`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples import Sample, distinct, integers, normal, sample, uniform


def at(name: str, *args: Any, **kwargs: Any) -> Sample:
    """Return a sample of a function of `nn.functional`."""
    return sample(f"nn.functional.{name}", *args, **kwargs)


SHAPES = {1: (2, 3, 9), 2: (2, 2, 6, 7), 3: (1, 2, 4, 5, 4)}

MAXIMA = [
    case
    for n, shape in SHAPES.items()
    for case in (
        at(f"max_pool{n}d", distinct(*shape), 2),
        at(f"max_pool{n}d", distinct(*shape[1:]), 2, 1),
        at(f"max_pool{n}d", distinct(*shape), 3, 2, 1),
        at(f"max_pool{n}d", distinct(*shape), 3, 2, 1, ceil_mode=True),
        at(f"max_pool{n}d", distinct(*shape), 2, 1, 0, 2, return_indices=True),
        at(f"max_pool{n}d_with_indices", distinct(*shape), 3, 1, 1),
        at(f"adaptive_max_pool{n}d", distinct(*shape), 3),
        at(f"adaptive_max_pool{n}d", distinct(*shape), 1, True),
        at(f"adaptive_max_pool{n}d_with_indices", distinct(*shape[1:]), 2),
        sample(f"max_pool{n}d", distinct(*shape), 2, 2),
    )
]
MAXIMA += [
    sample("max_pool1d_with_indices", distinct(3, 8), 3),
    sample("adaptive_max_pool1d", distinct(3, 8), 3),
    at("max_pool2d", distinct(2, 3, 6, 8), 2),
    at("max_pool2d", distinct(3, 5, 7), 2),
    at("max_pool2d", distinct(3, 5, 7), 2, ceil_mode=True),
    at("max_pool2d", distinct(0, 3, 4, 4), 2),
    at("max_pool2d", distinct(2, 1, 6, 6), (3, 2), (2, 1), (1, 0)),
    at("max_pool2d", integers(2, 1, 6, 6), 3, 2, 1),
    at("max_pool2d", integers(2, 1, 6, 6), 2),
    at("adaptive_max_pool2d", distinct(2, 3, 5, 6), (None, 4)),
    at("adaptive_max_pool2d", distinct(3, 4, 6), (2, 3)),
    # One window is at the end, whatever is drawn; tests/nn/test_pooling.py has more of them.
    at("fractional_max_pool2d", distinct(2, 3, 7, 6), 2, 1),
    at("fractional_max_pool2d", distinct(3, 7, 6), (2, 3), None, (0.2, 0.2), return_indices=True),
    at("fractional_max_pool3d", distinct(2, 2, 5, 6, 4), 2, 1),
    at("fractional_max_pool2d_with_indices", distinct(1, 2, 6, 6), 2, 1),
    at("fractional_max_pool3d_with_indices", distinct(2, 4, 4, 4), 2, 1),
]

AVERAGES = [
    case
    for n, shape in SHAPES.items()
    for case in (
        at(f"avg_pool{n}d", normal(*shape), 2),
        at(f"avg_pool{n}d", normal(*shape[1:]), 2, 1),
        at(f"avg_pool{n}d", normal(*shape), 3, 2, 1),
        at(f"avg_pool{n}d", normal(*shape), 3, 2, 1, True, False),
        at(f"avg_pool{n}d", normal(*shape), 3, 2, 0, True),
        at(f"avg_pool{n}d", normal(*shape), 2, 3),
        at(f"adaptive_avg_pool{n}d", normal(*shape), 3),
        at(f"adaptive_avg_pool{n}d", normal(*shape), 1),
        at(f"adaptive_avg_pool{n}d", normal(*shape[1:]), 8),
        at(f"lp_pool{n}d", uniform(*shape, low=0.5), 3, 2),
        at(f"lp_pool{n}d", uniform(*shape, low=0.5), 2.5, 2, 1, True),
        at(f"lp_pool{n}d", distinct(*shape), float("inf"), 2),
    )
]
AVERAGES += [
    sample("avg_pool1d", normal(3, 8), 3, 1, 1, count_include_pad=False),
    sample("adaptive_avg_pool1d", normal(3, 8), 3),
    at("avg_pool2d", normal(2, 3, 6, 8), 2),
    at("avg_pool2d", normal(2, 3, 6, 8), (2, 3), (1, 2), (1, 0), divisor_override=5),
    at("avg_pool2d", normal(0, 3, 4, 4), 2),
    at("avg_pool2d", integers(1, 1, 6, 6), 2),
    at("avg_pool3d", normal(1, 2, 4, 4, 4), 2, divisor_override=3),
    at("adaptive_avg_pool2d", normal(2, 3, 6, 4), (None, 2)),
    at("adaptive_avg_pool2d", normal(2, 3, 6, 4), (3, 2)),
    at("adaptive_avg_pool3d", normal(1, 2, 4, 3, 5), (2, 3, None)),
    at("lp_pool1d", distinct(2, 3, 8), -float("inf"), 2),
]


def spots(planes: tuple[int, ...], count: int, size: int) -> np.ndarray:
    """Return for each plane `count` different indices below `size`."""
    rng = np.random.default_rng(0)
    return np.stack([rng.permutation(size)[:count] for _ in range(int(np.prod(planes)))]).reshape(*planes, count)


UNPOOLED = [
    at("max_unpool1d", normal(2, 3, 4), spots((2, 3), 4, 8), 2),
    at("max_unpool1d", normal(3, 4), spots((3,), 4, 9), 2, output_size=(9,)),
    # (PyTorch's of more dimensions take no strided input.)
]

SAMPLES = MAXIMA + AVERAGES + UNPOOLED
