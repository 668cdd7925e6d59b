"""Resizing and warping of images: interpolation along axes, and at the points of a grid.

Resizing is linear, and its transpose is a map of the same kind, so one op has derivatives of every order. Sampling at a
grid multiplies elements with weights that are polynomials of a point's coordinates, so derivatives are sums of the same
elements with other weights.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.kernels import resample as kernels
from tinytorch.kernels.checks import refused
from tinytorch.kernels.dtypes import FLOATS
from tinytorch.kernels.resample import Map
from tinytorch.kernels.shape import formatted
from tinytorch.ops.arguments import check_tensors
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.register import public


def _transposed(maps: tuple[Map | None, ...]) -> tuple[Map | None, ...]:
    return tuple([None if each is None else each.transposed for each in maps])


def op_named(kernel: Any, name: str, **facts: Any) -> Any:
    """Return one of the ops of a kernel, under the name that PyTorch gives a node (without "Backward0")."""
    made = op(**{"name": name, "batch": "folded", **facts})(kernel)
    made.op.name = f"_{name}"
    return made


def resampling(name: str, complex: str | None = None) -> Any:
    """Return the op `resample` under the name that PyTorch gives a node."""
    return op_named(kernels.resample, name, x=lambda g, maps: resample(g, _transposed(maps)), complex=complex)


resample = op(batch="folded", x=lambda g, maps: resample(g, _transposed(maps)), name="UpsampleBackward", complex=OWN)(
    kernels.resample
)


_NODES = {
    (mode, dims): resampling(f"Upsample{stem}{dims}D{tail}")
    for mode, stem, tail, several in (
        ("nearest", "Nearest", "", (1, 2, 3)),
        ("nearest-exact", "NearestExact", "", (1, 2, 3)),
        ("linear", "Linear", "", (1,)),
        ("bilinear", "Bilinear", "", (2,)),
        ("trilinear", "Trilinear", "", (3,)),
        ("bicubic", "Bicubic", "", (2,)),
        ("bilinear-aa", "Bilinear", "Aa", (2,)),
        ("bicubic-aa", "Bicubic", "Aa", (2,)),
        ("lanczos-aa", "Lanczos", "Aa", (2,)),
    )
    for dims in several
}

#: Ops that pad by copies of elements (reflection, replication), for 1, 2 and 3 dimensions.
borders = {
    (mode, dims): resampling(f"{stem}Pad{dims}D", OWN)
    for mode, stem in (("reflect", "Reflection"), ("replicate", "Replication"), ("circular", "Circular"))
    for dims in (1, 2, 3)
}
_KERNELS = {
    "nearest": "upsample_nearest{}d", "nearest-exact": "_upsample_nearest_exact{}d",
    "linear": "upsample_linear1d", "bilinear": "upsample_bilinear2d", "trilinear": "upsample_trilinear3d",
    "bicubic": "upsample_bicubic2d", "bilinear-aa": "_upsample_bilinear2d_aa", "bicubic-aa": "_upsample_bicubic2d_aa",
    "lanczos-aa": "_upsample_lanczos2d_aa",
}  # fmt: skip


def upsample(
    input: Tensor, mode: str, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None,
    align_corners: bool,
) -> Tensor:  # fmt: skip
    """Return `input` resized: to `output_size`, or by `scale_factors`.

    The modes are those of `interpolate`, with antialiasing "bilinear-aa", "bicubic-aa", "lanczos-aa".
    """
    x = input._array
    n = x.ndim - 2
    spatial = x.shape[2:]
    name = _KERNELS[mode].format(n)
    factors: list[float | None] = [None] * n
    try:
        if output_size is not None:
            sizes = [operator.index(each) for each in output_size]
        else:
            factors = [float(each) for each in scale_factors or ()]
            if str in map(type, scale_factors or ()):
                raise TypeError
            sizes = [int(length * each) for length, each in zip(spatial, factors, strict=True)]
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, {type(output_size).__name__}, "
            f"{type(scale_factors).__name__}), but expected one of: sizes as ints or scale factors as floats"
        ) from None
    if min(*spatial, *sizes) <= 0:
        letters = "DHW"[-n:]
        before, after = (
            ", ".join(f"{letter}: {v}" for letter, v in zip(letters, values, strict=True))
            for values in (spatial, sizes)
        )
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({before}) output ({after})"
        )
    if not x.shape[1]:
        raise RuntimeError(f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes {list(x.shape)}")
    pick = mode.startswith("nearest")
    if mode.endswith("-aa") and x.dtype.itemsize == 2:
        raise NotImplementedError(f"\"compute_index_ranges_weights\" not implemented for '{input.dtype.tensor_name}'")
    if not (x.dtype.kind in FLOATS or (x.dtype == np.uint8 and (pick or n == 2))):
        kernel = "compute_indices_weights_linear" if n != 2 and not pick else f"{name}_channels_last"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.tensor_name}'")
    if x.dtype == np.uint8 and not pick:
        stem, aa = mode.removesuffix("-aa"), mode.endswith("-aa")
        fixed = tuple(
            [
                None if a == b else kernels.fixed_point(stem, a, b, align_corners, factor, aa)
                for a, b, factor in zip(spatial, sizes, factors, strict=True)
            ]
        )
        return upsample_bytes(input, fixed)
    kind = np.float64 if x.dtype == np.float64 else np.float32
    maps = _maps(mode, spatial, tuple(sizes), tuple(factors), bool(align_corners), kind)
    return _NODES[mode, n](input, maps, True)


@functools.lru_cache(256)
def _maps(
    mode: str, spatial: tuple[int, ...], sizes: tuple[int, ...], factors: tuple[float | None, ...], align_corners: bool,
    kind: Any,
) -> tuple[Map | None, ...]:  # fmt: skip
    """Return the maps of the spatial dimensions that change; arguments as of `upsample`."""
    pick, n = mode.startswith("nearest"), len(spatial)
    maps: list[Map | None] = []
    for length, count, factor in zip(spatial, sizes, factors, strict=True):
        exact = mode == "nearest-exact"
        short = n == 2 and mode == "nearest"  # PyTorch's kernel checks the lengths alone
        if length == count and (factor is None or short or not (pick or mode == "bicubic")):
            maps.append(None)
        elif pick:
            maps.append(kernels.nearest(length, count, factor, exact, short))
        elif mode.endswith("-aa"):
            stem = mode.removesuffix("-aa")
            maps.append(kernels.filtered(stem, length, count, align_corners, factor, kind))
        else:
            make = kernels.cubic if mode == "bicubic" else kernels.linear
            maps.append(make(length, count, align_corners, factor, kind))
    return tuple(maps)


@per_example()
def upsample_bytes(input: Tensor, maps: tuple[Any, ...]) -> Tensor:
    """Return bytes mapped along their spatial dimensions by the integer weights of PyTorch."""
    x = input._array
    made = kernels.apply_to_bytes(x.reshape(-1, *x.shape[2:]), maps)
    return wrap(formatted(made.reshape(*x.shape[:2], *made.shape[1:]), x))


# Sampling at a grid -------------------------------------------------------------------------------


def _check_grid(input: Tensor, grid: Tensor, mode: int) -> None:
    x, places = input._array.shape, grid._array.shape
    if len(x) == 0 or len(places) == 0 or x[0] != places[0]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, but got input with sizes {list(x)} and "
            f"grid with sizes {list(places)}"
        )
    if len(x) not in (4, 5) or len(x) != len(places):
        kind = "4D or 5D" if len(x) not in (4, 5) else f"{len(x)}D"
        raise RuntimeError(
            f"grid_sampler(): expected {kind} input and grid with same number of dimensions, but got input with sizes "
            f"{list(x)} and grid with sizes {list(places)}"
        )
    if places[-1] != len(x) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(x) - 2} in last dimension, but got grid with sizes "
            f"{list(places)}"
        )
    if 0 in x[2:]:
        raise RuntimeError(
            f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {list(x)} with "
            f"dimension {2 + x[2:].index(0)} being empty"
        )
    if mode == 2 and len(x) == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if not input.dtype.is_floating_point:
        raise refused("grid_sampler3d_cpu" if len(x) == 5 else "grid_sampler_2d_cpu_kernel_impl", input._array)
    if input.dtype is not grid.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.tensor_name} but found {grid.dtype.tensor_name}")


# Three ops that are closed under differentiation: the values at the points of a grid, the transpose of that, and the
# derivative by the grid. `orders` says how often what they sum is differentiated by each coordinate.


def _by_coordinate(h: Tensor, orders: Any) -> list[tuple[Tensor, Any]]:
    """Return the parts of a gradient (N, *places, n) by coordinate, as (N, 1, *places), and the orders that belong."""
    raised = kernels.each_raised(orders)
    return [(h.select(-1, len(raised) - 1 - k).unsqueeze(1), each) for k, each in enumerate(raised)]


def _slopes_g(h: Tensor, x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool, orders: Any) -> Any:
    return sum(part * _sample(x, grid, mode, padding, align_corners, n) for part, n in _by_coordinate(h, orders))


def _slopes_x(
    h: Tensor, g: Tensor, x_shape: Any, grid: Tensor, mode: int, padding: int, align_corners: bool, orders: Any
) -> Any:
    options, spatial = (grid, mode, padding, align_corners), tuple(x_shape[2:])
    return sum(_spread(part * g, *options, n, spatial) for part, n in _by_coordinate(h, orders))


def _slopes_grid(
    h: Tensor, g: Tensor, x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool, orders: Any
) -> Any:
    return sum(_slopes(part * g, x, grid, mode, padding, align_corners, n) for part, n in _by_coordinate(h, orders))


_slopes = op_named(kernels.slopes_at, "GridSamplerBackward", g=_slopes_g, x=_slopes_x, grid=_slopes_grid)
_spread = op_named(
    kernels.spread_at,
    "GridSamplerBackward",
    g=lambda h, grid, mode, padding, align_corners, orders: _sample(h, grid, mode, padding, align_corners, orders),
    grid=lambda h, g, grid, mode, padding, align_corners, orders: _slopes(
        g, h, grid, mode, padding, align_corners, orders
    ),
)
_samples = {
    n: op_named(
        kernels.sample,
        f"GridSampler{n}D",
        x=lambda g, x_shape, grid, mode, padding, align_corners, orders: _spread(
            g, grid, mode, padding, align_corners, orders, tuple(x_shape[2:])
        ),
        grid=lambda g, x, grid, mode, padding, align_corners, orders: _slopes(
            g, x, grid, mode, padding, align_corners, orders
        ),
    )
    for n in (2, 3)
}
_sample = _samples[2]


@public(autocast="float32")
@per_example()
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return `input` sampled at the points of `grid`; see `nn.functional.grid_sample`.

    The interpolation is 0 for linear, 1 for the nearest element, 2 for cubic convolution; the padding 0 for zeros, 1
    for the border, 2 for reflections.

    Example:
        >>> image = torch.arange(4.0).view(1, 1, 2, 2)
        >>> torch.grid_sampler(image, torch.zeros(1, 1, 1, 2), 0, 0, True)
        tensor([[[[1.5000]]]])
    """
    check_tensors("grid_sampler", input=input, grid=grid)
    _check_grid(input, grid, interpolation_mode)
    narrow = input.dtype if input.dtype.itemsize == 2 else None
    if narrow is not None:
        input, grid = input.to(dtypes.float32), grid.to(dtypes.float32)
    n = input._array.ndim - 2
    out = _samples[n](input, grid, int(interpolation_mode), int(padding_mode), bool(align_corners), (0,) * n)
    return out if narrow is None else out.to(narrow)


@public(autocast="float32")
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return images (N, C, H, W) sampled at the points of `grid`; see `grid_sampler`.

    Example:
        >>> torch.grid_sampler_2d(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 0, 0, False)
        tensor([[[[1.]]]])
    """
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@public(autocast="float32")
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return volumes (N, C, D, H, W) sampled at the points of `grid`; see `grid_sampler`.

    Example:
        >>> torch.grid_sampler_3d(torch.ones(1, 1, 2, 2, 2), torch.zeros(1, 1, 1, 1, 3), 0, 0, False)
        tensor([[[[[1.]]]]])
    """
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@public()
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """Return the grid of points at which affine maps `theta` sample an image; see `nn.functional.affine_grid`.

    Example:
        >>> torch.affine_grid_generator(torch.tensor([[[1.0, 0, 0], [0, 1, 0]]]), (1, 1, 1, 2), True)
        tensor([[[[-1.,  0.],
                  [ 1.,  0.]]]])
    """
    spatial = [int(each) for each in size[2:]]
    n = len(spatial)
    kind = theta._array.dtype
    wide = kind if kind.itemsize > 2 else np.dtype(np.float32)
    base = np.ones_like(theta._array, dtype=wide, shape=(*spatial, n + 1))
    for k, length in enumerate(spatial):
        if align_corners:
            line = np.linspace(-1, 1, length) if length > 1 else np.zeros(length)
        else:
            line = (np.linspace(-1, 1, length) if length > 1 else np.zeros(length)) * ((length - 1) / max(length, 1))
        shape = [1] * n
        shape[k] = length
        base[..., n - 1 - k] = line.reshape(shape)
    count = int(size[0])
    points: Tensor = wrap(
        np.broadcast_to(base.reshape(1, -1, n + 1), (count, base.size // (n + 1), n + 1)).astype(kind)
    )
    grid: Tensor = points.bmm(theta.transpose(1, 2))
    return grid.view(count, *spatial, n)
