"""torchvision's compiled operators: against their definitions, written as loops, and gradients against differences."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import tinytorch
from tinytorch.autograd import gradcheck

tinytorch.ops.load_library("/somewhere/torchvision/_C.so")
OPS = tinytorch.ops.torchvision
RNG = np.random.default_rng(0)


def boxes(count: int, size: float) -> Any:
    low = RNG.random((count, 2)) * size - 2
    return np.concatenate([low, low + RNG.random((count, 2)) * size], 1)


# The definitions ----------------------------------------------------------------------------------


def overlap(a: Any, b: Any) -> float:
    sides = [max(min(a[2 + k], b[2 + k]) - max(a[k], b[k]), 0) for k in (0, 1)]
    both = sides[0] * sides[1]
    return float(both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both))


def nms(dets: Any, scores: Any, threshold: float) -> list[int]:
    kept: list[int] = []
    for i in sorted(range(len(dets)), key=lambda i: -scores[i]):
        if all(overlap(dets[i], dets[j]) <= threshold for j in kept):
            kept.append(i)
    return kept


def bilinear(image: Any, y: float, x: float, edge: bool) -> float:
    """Return the value at a place; for regions (`edge`) the border goes on for one pixel, else there are zeros."""
    height, width = image.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    if edge:
        y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    total = 0.0
    for row, column in itertools.product((math.floor(y), math.floor(y) + 1), (math.floor(x), math.floor(x) + 1)):
        if 0 <= row < height and 0 <= column < width:
            total += image[row, column] * (1 - abs(y - row)) * (1 - abs(x - column))
    return total


def whole(number: float) -> int:
    return int(math.copysign(math.floor(abs(number) + 0.5), number))


def pooled(kind: str, images: Any, rois: Any, scale: float, bins: tuple[int, int], ratio: int, aligned: bool) -> Any:
    sensitive, channels = kind.startswith("ps_"), images.shape[1]
    outputs = channels // (bins[0] * bins[1]) if sensitive else channels
    result = np.zeros((len(rois), outputs, *bins))
    for k, c, p, q in np.ndindex(*result.shape):
        image = images[int(rois[k, 0]), (c * bins[0] + p) * bins[1] + q if sensitive else c]
        height, width = image.shape
        corners = rois[k, 1:] * scale
        if kind.endswith("align"):
            left, top, right, bottom = corners - (0.5 if aligned or sensitive else 0)
            sizes = [bottom - top, right - left]
            if not aligned and not sensitive:
                sizes = [max(size, 1) for size in sizes]
            counts = [ratio if ratio > 0 else math.ceil(sizes[a] / bins[a]) for a in (0, 1)]
            values = [
                bilinear(
                    image,
                    top + (p + (i + 0.5) / counts[0]) * sizes[0] / bins[0],
                    left + (q + (j + 0.5) / counts[1]) * sizes[1] / bins[1],
                    True,
                )
                for i, j in np.ndindex(*counts)
            ]
            result[k, c, p, q] = np.mean(values)
            continue
        left, top, right, bottom = map(whole, corners)
        more, cut = (0, 1) if sensitive else (1, 0)
        sizes = [max(bottom - top + more, 1), max(right - left + more, 1)]
        low = [math.floor(n * sizes[a] / bins[a]) + (top, left)[a] for a, n in ((0, p), (1, q))]
        high = [math.ceil((n + 1) * sizes[a] / bins[a]) + (top, left)[a] for a, n in ((0, p), (1, q))]
        ends = height - cut, width - cut
        low, high = ([min(max(each[a], 0), ends[a]) for a in (0, 1)] for each in (low, high))
        part = image[low[0] : high[0], low[1] : high[1]]
        result[k, c, p, q] = 0 if not part.size else part.mean() if sensitive else part.max()
    return result


def deformed(x: Any, weight: Any, offset: Any, mask: Any, bias: Any, stride: Any, pad: Any, dilation: Any) -> Any:
    """Return the convolution; groups and groups of offsets are what the shapes say."""
    batch, channels = x.shape[:2]
    outputs, per_group, rows, columns = weight.shape
    offset = offset.reshape(batch, -1, rows, columns, 2, *offset.shape[2:])
    mask = mask.reshape(batch, -1, rows, columns, *offset.shape[5:])
    result = np.zeros((batch, outputs, *offset.shape[5:]))
    for b, o, i, j in np.ndindex(*result.shape):
        total = bias[o]
        for c, r, s in np.ndindex(per_group, rows, columns):
            channel = o // (outputs // (channels // per_group)) * per_group + c
            group = channel // (channels // offset.shape[1])
            dy, dx = offset[b, group, r, s, :, i, j]
            y = i * stride[0] - pad[0] + r * dilation[0] + dy
            place = j * stride[1] - pad[1] + s * dilation[1] + dx
            total += weight[o, c, r, s] * mask[b, group, r, s, i, j] * bilinear(x[b, channel], y, place, False)
        result[b, o, i, j] = total
    return result


# Boxes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 5, 60])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.7, 1.0])
def test_nms(count: int, threshold: float) -> None:
    dets, scores = boxes(count, 20), RNG.random(count)
    scores[::3] = 0.5  # of the same score the first comes first
    kept = OPS.nms(tinytorch.tensor(dets).view(-1, 4), tinytorch.tensor(scores), threshold)
    assert kept.dtype is tinytorch.int64 and kept.tolist() == nms(dets, scores, threshold)


def test_nms_compares_in_doubles() -> None:
    dets, scores = tinytorch.tensor([[0.0, 0, 1, 10], [0, 0, 1, 7]]), tinytorch.tensor([0.9, 0.8])
    assert OPS.nms(dets, scores, 0.7).tolist() == [0, 1]  # 0.7 in float32 is less


def test_rotated_boxes() -> None:
    one = tinytorch.tensor([[1.0, 1, 2, 2, 0], [0, 0, 2, 2, 45]])
    two = tinytorch.tensor([[2.0, 1, 2, 2, 0], [1, 1, 2, 2, 90], [9, 9, 1, 1, 30], [0, 0, 2, 2, 0], [1, 1, 0, 2, 0]])
    octagon = 8 * (math.sqrt(2) - 1)
    turned = octagon / (8 - octagon)
    found = OPS.box_iou_rotated(one, two).numpy()
    np.testing.assert_allclose(found[0], [1 / 3, 1, 0, 1 / 7, 0], atol=1e-6)
    np.testing.assert_allclose(found[1, 2:], [0, turned, 0], atol=1e-6)
    straight = boxes(6, 5)
    centered = np.concatenate([(straight[:, :2] + straight[:, 2:]) / 2, straight[:, 2:] - straight[:, :2]], 1)
    centered = np.concatenate([centered, np.zeros((6, 1))], 1)
    found = OPS.box_iou_rotated(tinytorch.tensor(centered), tinytorch.tensor(centered))
    assert found.dtype is tinytorch.float32
    np.testing.assert_allclose(found.numpy(), [[overlap(a, b) for b in straight] for a in straight], atol=1e-6)


# Regions ------------------------------------------------------------------------------------------

KINDS = ["roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"]


def settings(kind: str, ratio: int, aligned: bool) -> list[Any]:
    return [ratio] * kind.endswith("align") + [aligned] * (kind == "roi_align")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bins", [(2, 2), (4, 2), (1, 1)])
@pytest.mark.parametrize(("scale", "ratio", "aligned"), [(1.0, -1, False), (0.5, 2, True), (0.3, 1, False)])
def test_regions(kind: str, bins: tuple[int, int], scale: float, ratio: int, aligned: bool) -> None:
    images = RNG.standard_normal((2, 8, 9, 12))
    rois = np.concatenate([RNG.integers(0, 2, (6, 1)), boxes(6, 24)], 1)
    rois[0, 1:] = np.round(rois[0, 1:])
    rois[1, 1:] = -90, -90, -80, -80  # outside
    for dtype in (np.float32, np.float64):
        given = [tinytorch.tensor(each.astype(dtype)) for each in (images, rois)]
        found = getattr(OPS, kind)(*given, scale, *bins, *settings(kind, ratio, aligned))
        found = found if kind == "roi_align" else found[0]
        assert found.numpy().dtype == dtype
        expected = pooled(kind, *(each.numpy() for each in given), scale, bins, ratio, aligned)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5 if dtype is np.float32 else 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_regions_have_gradients(kind: str) -> None:
    images = tinytorch.tensor(RNG.standard_normal((2, 8, 6, 7)), requires_grad=True)
    rois = tinytorch.tensor([[0, 0.2, 0.4, 4.1, 3.2], [1, 1.3, 0.2, 5.2, 4.6], [1, -9, -9, -5, -5]], dtype=images.dtype)

    def run(images: Any) -> Any:
        found = getattr(OPS, kind)(images, rois, 1.0, 2, 2, *settings(kind, 2, True))
        return found if kind == "roi_align" else found[0]

    assert gradcheck(run, (images,))
    assert run(images).grad_fn is not None
    none = getattr(OPS, kind)(images, rois[:0], 1.0, 2, 2, *settings(kind, 2, True))
    assert (none if kind == "roi_align" else none[0]).shape == (0, 2 if kind.startswith("ps_") else 8, 2, 2)


def test_what_the_last_pixels_of_ps_roi_pool_weigh() -> None:
    # As torchvision's operator has it: the last row and column are in no bin, but they get gradients.
    image = tinytorch.arange(9.0).view(1, 1, 3, 3).requires_grad_()
    out, channels = OPS.ps_roi_pool(image, tinytorch.tensor([[0.0, 0, 0, 3, 3]]), 1.0, 1, 1)
    out.sum().backward()
    assert out.item() == 2 and channels.dtype is tinytorch.int32
    np.testing.assert_allclose(image.grad.numpy(), np.full((1, 1, 3, 3), 1 / 9), rtol=1e-6)


def test_empty_regions_of_roi_align() -> None:
    image, roi = tinytorch.ones(1, 4, 5, 5, requires_grad=True), tinytorch.tensor([[0.0, 2, 2, 2, 2]])
    assert OPS.roi_align(image, roi, 1.0, 2, 2, -1, True).eq(0).all()  # no samples
    assert OPS.roi_align(image, roi, 1.0, 2, 2, -1, False).eq(1).all()  # at least one pixel wide
    out = OPS.ps_roi_align(image, roi, 1.0, 2, 2, -1)[0]
    out.sum().backward()
    assert out.isnan().all() and image.grad.eq(0).all()


# Deformable convolution ---------------------------------------------------------------------------

CONVOLUTIONS = {
    "plain": (4, 6, 1, 1, (3, 3), (1, 1), (1, 1), (1, 1), True),
    "without a mask": (4, 4, 1, 1, (3, 3), (2, 2), (0, 0), (1, 1), False),
    "groups": (6, 4, 2, 3, (2, 3), (1, 2), (2, 1), (2, 1), True),
}


def convolution(name: str, step: float) -> tuple[list[Any], list[Any]]:
    """Return tensors for a deformable convolution, and its settings; offsets are multiples of `step`."""
    channels, outputs, groups, offset_groups, kernel, stride, pad, dilation, use_mask = CONVOLUTIONS[name]
    size = [(s + 2 * p - d * (k - 1) - 1) // t + 1
            for s, p, d, k, t in zip((6, 7), pad, dilation, kernel, stride, strict=True)]  # fmt: skip
    taps = offset_groups * kernel[0] * kernel[1]
    shapes = [(2, channels, 6, 7), (outputs, channels // groups, *kernel), (2, 2 * taps, *size), (2, taps, *size)]
    arrays = [RNG.standard_normal(shape) for shape in [*shapes, (outputs,)]]
    arrays[2] = np.round(arrays[2] * 2 / step) * step
    if not use_mask:
        arrays[3] = np.ones(shapes[3])
    return arrays, [*stride, *pad, *dilation, groups, offset_groups, use_mask]


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("step", [1e-3, 1.0])
def test_deformable_convolution(name: str, step: float) -> None:
    arrays, given = convolution(name, step)
    found = OPS.deform_conv2d(*map(tinytorch.tensor, arrays), *given)
    expected = deformed(*arrays, given[0:2], given[2:4], given[4:6])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)
    empty = [np.zeros((0, *each.shape[1:])) if k in (0, 2, 3) else each for k, each in enumerate(arrays)]
    assert OPS.deform_conv2d(*map(tinytorch.tensor, empty), *given).shape == (0, *expected.shape[1:])


def test_deformable_convolution_has_gradients() -> None:
    arrays, given = convolution("groups", 1e-3)
    arrays[2] += 4e-4  # between pixels, where it is smooth
    leaves = [tinytorch.tensor(each, requires_grad=True) for each in arrays]
    assert gradcheck(lambda *leaves: OPS.deform_conv2d(*leaves, *given)[:1, :, ::3, ::2], leaves)


# What is asked of them ----------------------------------------------------------------------------

ONES = tinytorch.ones
IMAGE, ROI = ONES(1, 4, 8, 8), tinytorch.tensor([[0.0, 0, 0, 4, 4]])
WRONG = {
    "1-d boxes": (lambda: OPS.nms(ONES(4), ONES(4), 0.5), RuntimeError, "boxes should be a 2d tensor, got 1D"),
    "boxes of 5": (lambda: OPS.nms(ONES(4, 5), ONES(4), 0.5), RuntimeError, "boxes should have 4 elements"),
    "2-d scores": (lambda: OPS.nms(ONES(4, 4), ONES(4, 1), 0.5), RuntimeError, "scores should be a 1d tensor, got 2D"),
    "few scores": (lambda: OPS.nms(ONES(4, 4), ONES(3), 0.5), RuntimeError, "same number of elements in dimension 0"),
    "dtypes": (lambda: OPS.nms(ONES(4, 4), ONES(4).double(), 0.5), RuntimeError, "same type as scores"),
    "integers": (lambda: OPS.nms(ONES(1, 4).long(), ONES(1).long(), 0.5), NotImplementedError, '"nms_kernel" not'),
    "regions of 4": (lambda: OPS.roi_pool(IMAGE, ROI[:, 1:], 1.0, 2, 2), RuntimeError, "rois must have shape"),
    "3-d": (lambda: OPS.roi_pool(IMAGE[0], ROI, 1.0, 2, 2), IndexError, "Dimension out of range"),
    "types": (lambda: OPS.roi_pool(IMAGE, ROI.double(), 1.0, 2, 2), RuntimeError, "same type as tensor for"),
    "channels": (lambda: OPS.ps_roi_pool(IMAGE, ROI, 1.0, 3, 3), RuntimeError, "must be a multiple of pooling"),
    "quantized": (lambda: OPS.qnms(ONES(4, 4), ONES(4), 0.5), NotImplementedError, "Could not run 'torchvision"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, error, words = WRONG[name]
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_other_libraries_are_not_loaded() -> None:
    with pytest.raises(OSError, match=r"could not load .*image\.so: it is compiled for PyTorch"):
        tinytorch.ops.load_library("/somewhere/torchvision/image.so")
    assert OPS._cuda_version() == -1
