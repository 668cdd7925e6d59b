"""Samples of `ops.resample` and of `pad` in all modes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples import Sample, booleans, integers, normal, sample, uniform


def at(name: str, *args: Any, **kwargs: Any) -> Sample:
    """Return a sample of a function of `nn.functional`."""
    return sample(f"nn.functional.{name}", *args, **kwargs)


SHAPES = {1: (2, 3, 5), 2: (2, 2, 4, 5), 3: (1, 2, 3, 4, 2)}
MODES = {
    1: ("nearest", "nearest-exact", "linear", "area"),
    2: ("nearest", "nearest-exact", "bilinear", "bicubic", "area"),
    3: ("nearest", "nearest-exact", "trilinear", "area"),
}

RESIZED = [
    at("interpolate", normal(*shape), mode=mode, **size)
    for n, shape in SHAPES.items()
    for mode in MODES[n]
    for size in ({"size": 3}, {"size": 7}, {"scale_factor": 2}, {"scale_factor": 1.6})
]
RESIZED += [
    at("interpolate", normal(*SHAPES[n]), size, mode=mode, align_corners=True)
    for n, mode in ((1, "linear"), (2, "bilinear"), (2, "bicubic"), (3, "trilinear"))
    for size in (1, 3, 8)
]
RESIZED += [
    at("interpolate", normal(1, 2, 6, 7), mode=mode, antialias=True, **size)
    for mode in ("bilinear", "bicubic", "lanczos")
    for size in ({"size": 4}, {"size": (3, 9)}, {"scale_factor": 0.4})
]
RESIZED += [
    at("interpolate", normal(2, 3, 4, 5), (4, 10)),
    at("interpolate", normal(2, 3, 4, 5), scale_factor=(3, 2)),
    at("interpolate", normal(2, 3, 4, 5), (4, 5), mode="bilinear"),
    at("interpolate", normal(0, 3, 4, 5), 3, mode="bilinear"),
    at("interpolate", normal(2, 3, 4, 5), scale_factor=1.7, mode="bilinear", recompute_scale_factor=True),
    at("interpolate", integers(1, 3, 6, 7, low=0, high=256).astype(np.uint8), 9, mode="bilinear"),
    at("interpolate", integers(1, 3, 6, 7, low=0, high=256).astype(np.uint8), 4, mode="bicubic"),
    at("interpolate", integers(1, 3, 6, 7, low=0, high=256).astype(np.uint8), 9),
]

for each in RESIZED:
    each.atol = 1e-10  # in float32 PyTorch rounds the weights in another order

PADDED = [
    at("pad", normal(*shape), widths, mode)
    for shape, widths in (
        ((2, 3, 5), (2, 1)),
        ((3, 5), (0, 3)),
        ((2, 2, 4, 5), (1, 2, 3, 0)),
        ((2, 4, 5), (-1, 2, 1, -2)),
        ((1, 2, 3, 4, 3), (1, 2, 2, 1, 2, 1)),
        ((2, 3, 4, 3), (-1, 0, 1, 2, 0, -1)),
    )
    for mode in ("constant", "reflect", "replicate", "circular")
]
PADDED += [
    at("pad", normal(2, 3), (1, 2), value=1.5),
    at("pad", integers(2, 3, 4), (1, 1), "replicate"),
    at("pad", booleans(2, 3, 4), (1, 1), "circular"),
    at("pad", booleans(2, 3), (1, 0), value=1),
]


def places(*shape: int, wide: float) -> np.ndarray:
    """Return places of a grid, up to `wide`, of which none is near a border or between two elements."""
    return np.round(uniform(*shape, low=-wide, high=wide) * 16) / 16 + 0.0123


GRIDS = [
    at("grid_sample", normal(2, 3, 4, 5), places(2, 3, 2, 2, wide=wide), mode, padding, corners)
    for mode in ("bilinear", "nearest", "bicubic")
    for padding in ("zeros", "border", "reflection")
    for wide, corners in ((0.9, True), (1.9, False))
]
GRIDS += [
    at("grid_sample", normal(1, 2, 3, 4, 3), places(1, 2, 2, 2, 3, wide=1.6), mode, padding, corners)
    for mode in ("bilinear", "nearest")
    for padding, corners in (("zeros", False), ("border", True), ("reflection", False))
]
for each in GRIDS:
    # Of the nearest elements the grid has no gradient, and PyTorch has no second derivatives to compare with.
    each.atol = 1e-9
GRIDS += [
    sample("grid_sampler", normal(2, 3, 4, 5), places(2, 3, 2, 2, wide=0.9), 0, 0, False),
    sample("grid_sampler_2d", normal(2, 3, 4, 5), places(2, 3, 2, 2, wide=0.9), 0, 1, False),
    sample("grid_sampler_3d", normal(1, 2, 3, 4, 3), places(1, 2, 2, 2, 3, wide=0.9), 0, 1, True),
    at("affine_grid", normal(2, 2, 3), (2, 1, 3, 4), True),
    at("affine_grid", normal(2, 2, 3), (2, 1, 3, 4), False),
    at("affine_grid", normal(2, 3, 4), (2, 1, 2, 3, 4), False),
    sample("affine_grid_generator", normal(2, 2, 3), (2, 1, 3, 4), False),
]

SAMPLES = RESIZED + PADDED + GRIDS
