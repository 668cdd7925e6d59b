"""The operators of `torchvision.ops` that are compiled for PyTorch, on NumPy: `torch.ops.torchvision` has them.

`torch.ops.load_library` imports this module in place of torchvision's library. Pooling a region is a product with two
matrices, one with the weights of the image's rows in each bin and one with those of its columns; the gradient is the
product with their transposes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from tinytorch import library
from tinytorch.autograd import api
from tinytorch.autograd.grad_mode import enable_grad
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels.checks import require
from tinytorch.kernels.silence import quiet
from tinytorch.ops.create import zeros_like
from tinytorch.ops.sequences import arange

Array = np.ndarray[Any, Any]
Axis = Callable[[Any, Any, int, int], tuple[slice, Array]]


# Boxes --------------------------------------------------------------------------------------------


def _nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the indices, best score first, of the boxes that remain after non-maximum suppression."""
    require(dets.dim() == 2, f"boxes should be a 2d tensor, got {dets.dim()}D")
    require(dets.size(1) == 4, f"boxes should have 4 elements in dimension 1, got {dets.size(1)}")
    require(scores.dim() == 1, f"scores should be a 1d tensor, got {scores.dim()}D")
    require(
        dets.size(0) == scores.size(0),
        "boxes and scores should have same number of elements in dimension 0, "
        f"got {dets.size(0)} and {scores.size(0)}",
    )  # fmt: skip
    require(dets.dtype is scores.dtype, "dets should have the same type as scores")
    _supported("nms_kernel", dets, "Float Double")
    low, high = dets._array[:, :2], dets._array[:, 2:]
    areas = np.prod(high - low, 1)
    rest = np.argsort(-scores._array, kind="stable")
    kept = []
    while rest.size:
        best, rest = rest[0], rest[1:]
        kept.append(best)
        both = np.prod(np.maximum(np.minimum(high[rest], high[best]) - np.maximum(low[rest], low[best]), 0), 1)
        overlap = both / (areas[rest] + areas[best] - both)
        rest = rest[~(overlap > np.float64(iou_threshold))]  # compared in float64, as in PyTorch
    return wrap(np.array(kept, np.int64))


def _box_iou_rotated(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """Return the intersections over unions (N, M) of boxes (center, size, degrees)."""
    first, second = boxes1._array.astype(np.float64), boxes2._array.astype(np.float64)
    middle = (first[:, None, :2] + second[:, :2]) / 2  # coordinates near 0 lose less to rounding
    a = _corners(first[:, None], middle)  # (N, M, 4, 2)
    b = _corners(second[None], middle)
    # The corners of the intersection: the corners of a box that lie inside the other, and the crossings of two sides.
    u, v = np.roll(a, -1, 2) - a, np.roll(b, -1, 2) - b
    gap = b[:, :, None] - a[:, :, :, None]  # (N, M, 4, 4, 2), from each corner of a to each of b
    cross = _cross(u[:, :, :, None], v[:, :, None])
    parallel = np.abs(cross) <= 1e-14
    t, s = (_cross(gap, side) / np.where(parallel, 1, cross) for side in (v[:, :, None], u[:, :, :, None]))
    meet = ~parallel & (t >= 0) & (t <= 1) & (s >= 0) & (s <= 1)
    points = a[:, :, :, None] + t[..., None] * u[:, :, :, None]
    pairs = points.shape[:2]
    points = np.concatenate([a, b, points.reshape(*pairs, 16, 2)], 2)  # (N, M, 24, 2)
    valid = np.concatenate([_inside(a, b, v), _inside(b, a, u), meet.reshape(*pairs, 16)], 2)
    center = (points * valid[..., None]).sum(2, keepdims=True) / np.maximum(valid.sum(2), 1)[..., None, None]
    points = np.where(valid[..., None], points - center, 0)
    order = np.argsort(np.where(valid, np.arctan2(points[..., 1], points[..., 0]), np.inf), 2)
    points = np.take_along_axis(points, order[..., None], 2)
    # Points that are not corners come last; replaced by the first corner they close the polygon.
    points = np.where(np.take_along_axis(valid, order, 2)[..., None], points, points[:, :, :1])
    both = np.abs(_cross(points, np.roll(points, -1, 2)).sum(2)) / 2
    one, two = np.prod(first[:, None, 2:4], 2), np.prod(second[:, 2:4], 1)
    overlap = np.where((one < 1e-14) | (two < 1e-14), 0, both / (one + two - both))
    return wrap(overlap.astype(np.float32))


def _corners(boxes: Array, middle: Array) -> Array:
    angle = np.deg2rad(boxes[..., 4:])
    sides = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], -1).reshape(*angle.shape[:-1], 2, 2)
    sides *= boxes[..., 2:4, None] / 2
    signs = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    return (boxes[..., :2] - middle)[..., None, :] + signs @ sides


def _cross(u: Array, v: Array) -> Array:
    return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]


def _inside(points: Array, corners: Array, sides: Array) -> Array:
    """Return whether points (…, 4, 2) lie in the box (…, 4, 2) whose sides lead from corner to corner."""
    turn = _cross(sides[..., None, :, :], points[..., None, :] - corners[..., None, :, :])
    around = 1e-12 * np.abs(sides).max((-2, -1), initial=1)[..., None, None] ** 2
    return np.asarray((turn <= around).all(-1) | (turn >= -around).all(-1))


# Regions ------------------------------------------------------------------------------------------


def _supported(kernel: str, x: Tensor, names: str = "Half Float Double") -> None:
    if x.dtype.tensor_name not in names.split():
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{x.dtype.tensor_name}'")


def _checked(name: str, x: Tensor, rois: Tensor, kind: str = "input") -> tuple[Array, Array]:
    x.size(3)  # raises an error for fewer than four dimensions
    require(rois.dim() == 2 and rois.size(1) == 5, "rois must have shape as Tensor[K, 5]")
    require(
        x.dtype is rois.dtype,
        f"Expected tensor for argument #1 '{kind}' to have the same type as tensor for argument #2 'rois'; but type "
        f"{x.type()} does not equal {rois.type()} (while checking arguments for {name})",
    )
    _supported(f"{name}_kernel" if "backward" in name else f"{name}_forward_kernel", x)
    return x._array, rois._array


def _samples(ratio: int, least_size: float = -np.inf, least_count: float = -np.inf) -> Axis:
    """Return RoIAlign's weights along one axis, as a function: means of evenly spaced bilinear samples in each bin."""

    def axis(start: Any, end: Any, bins: int, length: int) -> tuple[slice, Array]:
        size = max(end - start, start.dtype.type(least_size))
        count = ratio if ratio > 0 else int(np.ceil(size / bins))
        dtype, step = size.dtype, size / bins
        places = start + np.arange(bins, dtype=dtype)[:, None] * step
        places = places + (np.arange(count, dtype=dtype) + dtype.type(0.5)) * step / dtype.type(count)  # (bins, count)
        outside = (places < -1) | (places > length)
        places = np.clip(places, 0, length - 1)
        first = int(places.min(initial=length - 1))
        pixels = np.arange(first, int(np.ceil(places.max(initial=first))) + 1)
        weights = np.maximum(1 - np.abs(places[..., None] - pixels.astype(dtype)), 0)
        weights[outside] = 0
        return slice(first, first + len(pixels)), weights.sum(1) / dtype.type(max(count, least_count))

    return axis


def _means(start: Any, end: Any, bins: int, length: int, cut: int = 0) -> tuple[slice, Array]:
    """Return the weights along one axis of the means over the pixels of each bin, without the last `cut` pixels."""
    low, high = _bins(start, max(end - start, 1), bins, length - cut)
    pixels = np.arange(length)
    within = (pixels >= low[:, None]) & (pixels < high[:, None])
    return slice(None), within / np.maximum(high - low, 1).astype(start.dtype)[:, None]


def _bins(start: Any, size: Any, bins: int, length: int) -> tuple[Array, Array]:
    """Return the first pixel of each bin, and the one after its last."""
    edges = np.arange(bins + 1, dtype=start.dtype) * (size / start.dtype.type(bins))
    low, high = np.floor(edges[:-1]) + start, np.ceil(edges[1:]) + start
    return np.clip(low, 0, length).astype(int), np.clip(high, 0, length).astype(int)


def _rounded(corners: Array) -> Array:
    return np.copysign(np.floor(np.abs(corners) + corners.dtype.type(0.5)), corners)  # half away from zero


def _matrices(
    rois: Array, corners: Array, axis: Axis, bins: tuple[int, int], size: tuple[int, int]
) -> Iterator[tuple[Any, Array, Array]]:
    """Yield for each region its index into the images (B, H, W, …), and its weights of rows and of columns."""
    for image, (left, top, right, bottom) in zip(rois[:, 0].astype(int), corners, strict=True):
        rows, across = axis(top, bottom, bins[0], size[0])
        columns, along = axis(left, right, bins[1], size[1])
        yield (image, rows, columns), across, along


def _align_corners(rois: Array, scale: float, aligned: bool = True) -> Array:
    return rois[:, 1:] * rois.dtype.type(scale) - rois.dtype.type(0.5 if aligned else 0)


def _roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int,
    aligned: bool,
) -> Tensor:  # fmt: skip
    images, regions = _checked("roi_align", input, rois)
    images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))  # (B, H, W, C)
    bins = pooled_height, pooled_width
    pooled = np.empty_like(images, shape=(len(regions), *bins, images.shape[3]))
    corners = _align_corners(regions, spatial_scale, aligned)
    axis = _samples(sampling_ratio, -np.inf if aligned else 1, 1)
    for out, (where, across, along) in zip(
        pooled, _matrices(regions, corners, axis, bins, images.shape[1:3]), strict=True
    ):
        part = images[where]  # (h, w, C)
        rows = (across @ part.reshape(len(part), -1)).reshape(bins[0], *part.shape[1:])
        np.matmul(along, rows, out=out)
    return wrap(np.ascontiguousarray(pooled.transpose(0, 3, 1, 2)))


def _roi_align_backward(
    grad: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, batch_size: int,
    channels: int, height: int, width: int, sampling_ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    grads, regions = _checked("roi_align_backward", grad, rois, "grad")
    grads = np.ascontiguousarray(grads.transpose(0, 2, 3, 1))
    bins, size = (pooled_height, pooled_width), (height, width)
    images = np.zeros_like(grads, shape=(batch_size, *size, channels))
    corners = _align_corners(regions, spatial_scale, aligned)
    axis = _samples(sampling_ratio, -np.inf if aligned else 1, 1)
    for g, (where, across, along) in zip(grads, _matrices(regions, corners, axis, bins, size), strict=True):
        rows = along.T @ g  # (P, w, C)
        images[where] += (across.T @ rows.reshape(len(rows), -1)).reshape(-1, *rows.shape[1:])
    return wrap(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))


def _sensitive(
    name: str, input: Tensor, rois: Tensor, bins: tuple[int, int], corners: Array, axis: Axis
) -> tuple[Tensor, Tensor]:
    """Pool regions, each bin from its own channels; return the values, and the channels' numbers."""
    images, regions = _checked(name, input, rois)
    batch, channels, *size = images.shape
    require(
        channels % (bins[0] * bins[1]) == 0,
        "input channels must be a multiple of pooling height * pooling width",
    )  # fmt: skip
    taken = np.arange(channels, dtype=np.int32).reshape(-1, *bins)
    images = images.reshape(batch, *taken.shape, *size).transpose(0, 4, 5, 1, 2, 3)  # (B, H, W, C, P, Q)
    pooled = np.empty_like(images, shape=(len(regions), *taken.shape))
    for out, (where, across, along) in zip(
        pooled, _matrices(regions, corners, axis, bins, (size[0], size[1])), strict=True
    ):
        np.einsum("ph,hcpq->cpq", across, np.einsum("qw,hwcpq->hcpq", along, images[where]), out=out)
    return wrap(pooled), wrap(np.repeat(taken[None], len(regions), 0))


def _sensitive_backward(
    name: str, grad: Tensor, rois: Tensor, corners: Array, axis: Axis, shape: tuple[int, int, int, int]
) -> Tensor:
    grads, regions = _checked(name, grad, rois, "grad")
    batch, _, *size = shape
    images = np.zeros_like(grads, shape=(batch, *size, *grads.shape[1:]))
    bins = grads.shape[2:]
    for g, (where, across, along) in zip(
        grads, _matrices(regions, corners, axis, bins, (size[0], size[1])), strict=True
    ):
        images[where] += np.einsum("ph,wcpq->hwcpq", across, np.einsum("qw,cpq->wcpq", along, g))
    return wrap(np.ascontiguousarray(images.transpose(0, 3, 4, 5, 1, 2)).reshape(shape))


def _ps_roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int
) -> tuple[Tensor, Tensor]:
    corners = _align_corners(rois._array, spatial_scale)
    return _sensitive("ps_roi_align", input, rois, (pooled_height, pooled_width), corners, _samples(sampling_ratio))


def _ps_roi_align_backward(
    grad: Tensor, rois: Tensor, channel_mapping: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    sampling_ratio: int, batch_size: int, channels: int, height: int, width: int,
) -> Tensor:  # fmt: skip
    corners, axis = _align_corners(rois._array, spatial_scale), _samples(sampling_ratio, least_count=1)
    shape = (batch_size, channels, height, width)
    return _sensitive_backward("ps_roi_align_backward", grad, rois, corners, axis, shape)


def _pool_regions(rois: Array, scale: float) -> Array:
    return _rounded(rois[:, 1:] * rois.dtype.type(scale))


def _ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    corners = _pool_regions(rois._array, spatial_scale)
    # torchvision omits the last row and column; its gradient does not.
    return _sensitive("ps_roi_pool", input, rois, (pooled_height, pooled_width), corners, partial(_means, cut=1))


def _ps_roi_pool_backward(
    grad: Tensor, rois: Tensor, channel_mapping: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    batch_size: int, channels: int, height: int, width: int,
) -> Tensor:  # fmt: skip
    corners = _pool_regions(rois._array, spatial_scale)
    shape = (batch_size, channels, height, width)
    return _sensitive_backward("ps_roi_pool_backward", grad, rois, corners, _means, shape)


def _roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each bin, and its index in the flattened image (-1: the bin is empty)."""
    images, regions = _checked("roi_pool", input, rois)
    batch, channels, height, width = images.shape
    images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))  # (B, H, W, C)
    every = np.arange(channels)
    places = np.full((len(regions), pooled_height, pooled_width, channels), -1, np.int32)
    corners = _pool_regions(regions, spatial_scale)
    image_of = regions[:, 0].astype(int)
    for out, index, (left, top, right, bottom) in zip(places, image_of, corners, strict=True):
        image = images[index]
        rows = np.stack(_bins(top, max(bottom - top + 1, 1), pooled_height, height), 1)
        for column, (a, b) in enumerate(zip(*_bins(left, max(right - left + 1, 1), pooled_width, width), strict=True)):
            if a < b:
                best = a + image[:, a:b].argmax(1)  # (H, C): of each row, the column
                most = np.take_along_axis(image, best[:, None], 1)[:, 0]
                for line, (c, d) in zip(out[:, column], rows, strict=True):
                    if c < d:
                        row = c + most[c:d].argmax(0)
                        line[:] = row * width + best[row, every]
    flat = images.reshape(batch, height * width, channels)
    maxima = flat[image_of[:, None, None, None], np.maximum(places, 0), every]
    pooled = np.where(places < 0, maxima.dtype.type(0), maxima)
    return tuple(wrap(np.ascontiguousarray(array.transpose(0, 3, 1, 2))) for array in (pooled, places))


def _roi_pool_backward(
    grad: Tensor, rois: Tensor, argmax: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    batch_size: int, channels: int, height: int, width: int,
) -> Tensor:  # fmt: skip
    grads, regions = _checked("roi_pool_backward", grad, rois, "grad")
    region, channel, row, column = np.nonzero(argmax._array >= 0)
    where = argmax._array[region, channel, row, column]
    images = np.zeros_like(grads, shape=(batch_size, channels, height * width))
    np.add.at(images, (regions[region, 0].astype(int), channel, where), grads[region, channel, row, column])
    return wrap(images.reshape(batch_size, channels, height, width))


# Deformable convolution ---------------------------------------------------------------------------


def _deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int,
    pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> Tensor:  # fmt: skip
    """Convolve with kernels whose taps are shifted by offsets, sampled bilinearly and weighted by a mask."""
    batch, channels, height, width = input.shape
    out_channels, _, rows, columns = weight.shape
    out_height = (height + 2 * pad_h - dilation_h * (rows - 1) - 1) // stride_h + 1
    out_width = (width + 2 * pad_w - dilation_w * (columns - 1) - 1) // stride_w + 1
    taps, size = rows * columns, (out_height, out_width)
    count = taps * out_height * out_width
    flat = (batch, offset_groups, 1, count)
    _supported("deformable_im2col", input)
    require(
        weight.size(1) * groups == channels,
        "Expected weight_c.size(1) * n_weight_grps == input_c.size(1) to be true, but got false.",
    )
    require(
        offset.size(1) == 2 * offset_groups * taps,
        f"offset.shape[1] is not valid: got: {offset.size(1)} expected: {2 * offset_groups * taps}",
    )
    require(offset.size(0) == batch, "invalid batch size of offset")
    require(
        tuple(offset.shape[2:]) == size,
        f"offset output dims: ({offset.size(2)}, {offset.size(3)}) - computed output dims: ({size[0]}, {size[1]})",
    )
    if use_mask:
        require(
            mask.size(1) == offset_groups * taps,
            f"mask.shape[1] is not valid: got: {mask.size(1)} expected: {offset_groups * taps}",
        )
        require(mask.size(0) == batch and tuple(mask.shape[2:]) == size, "invalid batch size or output dims of mask")
    moved = offset.view(batch, offset_groups, rows, columns, 2, *size)
    y = (arange(rows) * dilation_h - pad_h).view(-1, 1, 1, 1) + (arange(out_height) * stride_h).view(-1, 1)
    x = (arange(columns) * dilation_w - pad_w).view(-1, 1, 1) + arange(out_width) * stride_w
    y, x = y + moved[:, :, :, :, 0], x + moved[:, :, :, :, 1]  # (B, offset groups, rows, columns, *size)
    top, left = y.detach().floor(), x.detach().floor()
    images = input.view(batch, offset_groups, channels // offset_groups, height * width)
    sampled: Any = 0
    for row, across in ((top, top + 1 - y), (top + 1, y - top)):
        for column, along in ((left, left + 1 - x), (left + 1, x - left)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            place = (
                (row.clamp(0, height - 1) * width + column.clamp(0, width - 1))
                .long()
                .view(batch, offset_groups, 1, count)
            )
            values = images.gather(3, place.expand(batch, offset_groups, images.size(2), count))
            sampled = sampled + values * (across * along * inside).view(place.shape)
    if use_mask:
        sampled = sampled * mask.view(flat)
    parts = sampled.view(batch, groups, channels // groups * taps, out_height * out_width)
    out = weight.view(groups, out_channels // groups, -1) @ parts
    return out.view(batch, out_channels, *size) + bias.view(-1, 1, 1)


def _deform_conv2d_backward(
    grad: Tensor, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int,
    stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int,
    use_mask: bool,
) -> tuple[Tensor, ...]:  # fmt: skip
    leaves = [x.detach().requires_grad_() for x in (input, weight, offset, mask, bias)]
    settings: Any = stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups, use_mask
    with enable_grad():
        out = _deform_conv2d(*(*leaves, *settings))
    grads = api.grad(out, leaves, grad, allow_unused=True)
    return tuple(zeros_like(x) if g is None else g for g, x in zip(grads, leaves, strict=True))


# Registration -------------------------------------------------------------------------------------


def _register(name: str, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
    """Register an operator, the operator of its gradient, and their connection; newer torchvisions do, too."""
    operator = library.CustomOpDef(f"torchvision::{name}", quiet(forward))
    gradient = library.CustomOpDef(f"torchvision::_{name}_backward", quiet(backward))
    parameters, saved = list(signature(forward).parameters), list(signature(backward).parameters)[1:]

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        args = dict(zip(parameters, inputs, strict=True))
        args |= zip(("batch_size", "channels", "height", "width"), args["input"].shape, strict=True)
        args["argmax"] = args["channel_mapping"] = output[1] if isinstance(output, tuple) else None
        ctx.args = [args[name] for name in saved]

    def run_backward(ctx: Any, grad: Tensor, *unused: Any) -> tuple[Any, ...]:
        grads = gradient(grad, *ctx.args)
        grads = grads if isinstance(grads, tuple) else (grads,)
        return (*grads, *(None,) * (len(parameters) - len(grads)))

    operator.register_autograd(run_backward, setup_context=setup)


_register("roi_align", _roi_align, _roi_align_backward)
_register("roi_pool", _roi_pool, _roi_pool_backward)
_register("ps_roi_align", _ps_roi_align, _ps_roi_align_backward)
_register("ps_roi_pool", _ps_roi_pool, _ps_roi_pool_backward)
_register("deform_conv2d", _deform_conv2d, _deform_conv2d_backward)
library.CustomOpDef("torchvision::nms", quiet(_nms))
library.CustomOpDef("torchvision::box_iou_rotated", quiet(_box_iou_rotated))
for _name in ("qnms", "qroi_align"):  # for quantized tensors, which are not implemented
    library.CustomOpDef(f"torchvision::{_name}", None)
_cuda_version = library.CustomOpDef("torchvision::_cuda_version", lambda: -1)
_cuda_version._composite = True
