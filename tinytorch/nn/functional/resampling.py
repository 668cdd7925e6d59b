"""Resizing and warping functions of `nn.functional`; their ops are in `ops/nn/resample.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.ops import autocast
from tinytorch.ops.arguments import check_tensor
from tinytorch.ops.nn import resample
from tinytorch.ops.nn.pool import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from tinytorch.ops.register import autocasting, public

_AREA = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
_LINEAR = {"linear": 3, "bilinear": 4, "trilinear": 5}
_GRID_WARNING = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)


@public("nn.functional.interpolate")
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Return `input` resized along its spatial dimensions.

    Args:
        input: shape (N, C, L), (N, C, H, W) or (N, C, D, H, W).
        size: the new lengths, one int or one per dimension.
        scale_factor: or the factors of the lengths; the products are rounded down.
        mode: "nearest", "nearest-exact" (rounded as by other libraries), "area" (averages);
            "linear" (3-D), "bilinear", "bicubic", "lanczos" (4-D), "trilinear" (5-D).
        align_corners: whether to align the centers of the corner elements, rather than their outer edges (the default).
        recompute_scale_factor: whether to recompute the scale from the rounded lengths.
        antialias: whether to apply an anti-aliasing filter when downsampling (bilinear, bicubic, lanczos).

    Example:
        >>> x = torch.tensor([[[1.0, 3.0]]])
        >>> torch.nn.functional.interpolate(x, scale_factor=2)
        tensor([[[1., 1., 3., 3.]]])
        >>> torch.nn.functional.interpolate(x, size=4, mode="linear")
        tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])
    """
    check_tensor(input, "interpolate")
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    n = input.ndim - 2
    sizes, factors = _sizes_or_factors(input, size, scale_factor, n)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if factors is not None and (recompute_scale_factor or mode == "area"):
        lengths = input.shape[2:]
        sizes = [int(length * factor) for length, factor in zip(lengths, factors, strict=True)]
        factors = None
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and n == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if n in _AREA:
        if mode == "area":
            if autocast.on and n == 3:
                (input,) = autocast.raised(input)
            return _AREA[n](input, sizes)
        if mode in ("nearest", "nearest-exact"):
            return resample.upsample(input, mode, sizes, factors, False)
        if mode == "lanczos" and n == 2:
            if align_corners:
                raise ValueError("Lanczos mode does not support align_corners=True")
            if not antialias:
                raise ValueError("Lanczos mode requires antialias=True")
        if _LINEAR.get(mode) == n + 2 or (mode in ("bicubic", "lanczos") and n == 2):
            full = f"{mode}-aa" if antialias else mode
            return resample.upsample(input, full, sizes, factors, bool(align_corners))
        if mode in _LINEAR:
            raise NotImplementedError(f"Got {n + 2}D input, but {mode} mode needs {_LINEAR[mode]}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {n + 2}D) for the modes: nearest | linear | "
        f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def _sizes_or_factors(
    input: Tensor, size: Any, scale_factor: Any, n: int
) -> tuple[Sequence[Any] | None, Sequence[Any] | None]:
    """Return the sizes, or the factors, one per spatial dimension."""
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if not isinstance(size, (list, tuple)):
            return [size] * n, None
        if len(size) != n:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(input.shape[2:])} and output size of {size}. Please provide input tensor in (N, "
                "C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
            )
        if not all(hasattr(length, "__index__") for length in size):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, "
                f"int, int], but got size with types {[type(length) for length in size]}"
            )
        return size, None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if not isinstance(scale_factor, (list, tuple)):
        return None, [scale_factor] * n
    if len(scale_factor) != n:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {list(input.shape[2:])} and scale_factor of shape {scale_factor}. Please provide input "
            "tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    return None, scale_factor


@public("nn.functional.upsample", listed=False)
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """Return `interpolate(input, size, scale_factor, mode, align_corners)`; deprecated.

    Example:
        >>> x = torch.tensor([[[1.0, 3.0]]])
        >>> torch.nn.functional.interpolate(x, scale_factor=2)  # the replacement
        tensor([[[1., 1., 3., 3.]]])
    """
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@public("nn.functional.upsample_nearest", listed=False)
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Return `interpolate(input, size, scale_factor)`; deprecated.

    Example:
        >>> x = torch.tensor([[[1.0, 3.0]]])
        >>> torch.nn.functional.interpolate(x, scale_factor=2)  # the replacement
        tensor([[[1., 1., 3., 3.]]])
    """
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@public("nn.functional.upsample_bilinear", listed=False)
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """Return `input` interpolated with `mode="bilinear", align_corners=True`; deprecated.

    Example:
        >>> x = torch.tensor([[[[1.0, 3.0]]]])
        >>> torch.nn.functional.interpolate(x, (1, 3), mode="bilinear", align_corners=True)
        tensor([[[[1., 2., 3.]]]])
    """
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _deprecated(name: str) -> None:
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


@public("nn.functional.grid_sample")
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Return `input` sampled at the positions of `grid`.

    Shapes: (N, C, H, W) and (N, H', W', 2) -> (N, C, H', W'), or (N, C, D, H, W) and (N, D', H', W', 3) -> (N, C, D',
    H', W'): the grid has the positions (x, y) or (x, y, z), of which -1 and 1 are the ends of the input: its outer
    edges, or with `align_corners` the centers of its corner elements. The mode is "bilinear" (trilinear in 5-D),
    "nearest" or, in 4-D, "bicubic"; values outside are "zeros", those of the "border", or by "reflection".

    Example:
        >>> image = torch.arange(4.0).view(1, 1, 2, 2)
        >>> grid = torch.tensor([[[[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]]]])
        >>> torch.nn.functional.grid_sample(image, grid, align_corners=True)
        tensor([[[[0.0000, 1.5000, 3.0000]]]])

    Source: Jaderberg et al., "Spatial Transformer Networks", 2015.
    """
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if mode not in modes:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in paddings:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        warn(_GRID_WARNING)
    return (autocasting(resample.grid_sampler) if autocast.on else resample.grid_sampler)(
        input, grid, modes.index(mode), paddings.index(padding_mode), bool(align_corners)
    )


@public("nn.functional.affine_grid")
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return a grid for `grid_sample`: the positions of the result, mapped by the affine matrices `theta`.

    Shapes: (N, 2, 3) or (N, 3, 4); `size` is the shape of the result of `grid_sample`.

    Example:
        >>> theta = torch.tensor([[[1.0, 0, 0], [0, 1, 0]]])
        >>> torch.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=True)
        tensor([[[[-1.,  0.],
                  [ 1.,  0.]]]])
    """
    if align_corners is None:
        warn(_GRID_WARNING)
    if not theta.dtype.is_floating_point:
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    if theta.ndim != 3 or theta.shape[-2:] != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return resample.affine_grid_generator(theta, size, bool(align_corners))
