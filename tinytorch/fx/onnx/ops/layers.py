"""Convolutions, pooling, normalization, embedding, resampling and losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.fx.onnx.builder import Builder, Unsaid, Value, says
from tinytorch.kernels import dtypes


def _each(x: Any, dims: int) -> list[Any]:
    """Return an option for each spatial dimension."""
    return [x] * dims if isinstance(x, int) else [*x] * (dims if len(x) == 1 else 1)


def _batched(b: Builder, x: Value, dims: int) -> tuple[Value, bool]:
    """Return an input with a batch dimension, and whether that was added."""
    if x.ndim == dims + 2:
        return x, False
    return Value(b.unsqueezed(x, 0), (1, *x.shape), x.dtype), True


def _floats(x: Value) -> None:
    if not x.dtype.is_floating_point:
        raise Unsaid("an input of integers")


def _unbatched(b: Builder, y: str, added: bool) -> str:
    return b.squeezed(y, 0) if added else y


# Convolutions -------------------------------------------------------------------------------------


def _convolution(dims: int) -> None:
    @says(f"conv{dims}d", f"nn.functional.conv{dims}d")
    def write(
        b: Builder, x: Value, weight: Value, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Any:  # fmt: skip
        _floats(x)
        kernel, dilations = [int(n or 0) for n in weight.shape[2:]], _each(dilation, dims)
        before = after = [0] * dims
        if padding == "same":
            total = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
            before = [n // 2 for n in total]
            after = [n - m for n, m in zip(total, before, strict=True)]
        elif padding != "valid":
            before = after = _each(padding, dims)
        y, added = _batched(b, x, dims)
        result = b.op(
            "Conv", y, weight, bias, kernel_shape=kernel, strides=_each(stride, dims), pads=[*before, *after],
            dilations=dilations, group=groups,
        )  # fmt: skip
        return _unbatched(b, result, added)

    @says(f"conv_transpose{dims}d", f"nn.functional.conv_transpose{dims}d")
    def transposed(
        b: Builder, x: Value, weight: Value, bias: Any = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        _floats(x)
        y, added = _batched(b, x, dims)
        result = b.op(
            "ConvTranspose", y, weight, bias, kernel_shape=[int(n or 0) for n in weight.shape[2:]],
            strides=_each(stride, dims), pads=_each(padding, dims) * 2, dilations=_each(dilation, dims), group=groups,
            output_padding=_each(output_padding, dims),
        )  # fmt: skip
        return _unbatched(b, result, added)


# Pooling ------------------------------------------------------------------------------------------


def _check_ceil(b: Builder, x: Value, kernel: Any, stride: Any, padding: Any, dilation: Any, dims: int) -> bool:
    """Return whether rounding up gives another size than rounding down; Unsaid where ONNX has one window more."""
    differs = False
    for k in range(dims):
        n = x.shape[x.ndim - dims + k]
        if n is None:
            return True
        room = n + 2 * padding[k] - dilation[k] * (kernel[k] - 1) - 1
        count = -(-room // stride[k]) + 1
        if (count - 1) * stride[k] >= n + padding[k]:
            raise Unsaid("a window that begins in the padding")
        differs = differs or count != room // stride[k] + 1
    return differs


def _pooling(dims: int) -> None:
    def maximum(
        b: Builder, x: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        _floats(x)
        kernel = _each(kernel_size, dims)
        steps = _each(stride, dims) if stride else kernel
        pads, gaps = _each(padding, dims), _each(dilation, dims)
        up = bool(ceil_mode) and _check_ceil(b, x, kernel, steps, pads, gaps, dims)
        y, added = _batched(b, x, dims)
        options: dict[str, Any] = {
            "kernel_shape": kernel, "strides": steps, "pads": pads * 2, "dilations": gaps, "ceil_mode": int(up)
        }  # fmt: skip
        if not return_indices:
            return _unbatched(b, b.op("MaxPool", y, **options), added)
        values, indices = b.op("MaxPool", y, outputs=2, **options)
        # ONNX counts places in the whole tensor, PyTorch in each channel.
        plane = b.product([b.size(y, k) for k in range(2, dims + 2)])
        indices = b.op("Mod", indices, b.cast(plane, dtypes.int64))
        return _unbatched(b, values, added), _unbatched(b, indices, added)

    says(f"max_pool{dims}d", f"nn.functional.max_pool{dims}d")(maximum)

    @says(f"nn.functional.max_pool{dims}d_with_indices")
    def with_indices(b: Builder, x: Value, *args: Any, **kwargs: Any) -> Any:
        return maximum(b, x, *args, **{**kwargs, "return_indices": True})

    @says(f"nn.functional.avg_pool{dims}d", *["avg_pool1d"] * (dims == 1))
    def mean(
        b: Builder, x: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        _floats(x)
        kernel = _each(kernel_size, dims)
        steps = _each(stride, dims) if stride else kernel
        pads = _each(padding, dims)
        up = bool(ceil_mode) and _check_ceil(b, x, kernel, steps, pads, [1] * dims, dims)
        if up and (divisor_override or (count_include_pad and any(pads))):
            raise Unsaid("ceil_mode with padding or a divisor")
        y, added = _batched(b, x, dims)
        result = b.op(
            "AveragePool", y, kernel_shape=kernel, strides=steps, pads=pads * 2, ceil_mode=int(up),
            count_include_pad=int((count_include_pad and not up) or bool(divisor_override)),
        )  # fmt: skip
        if divisor_override:
            result = b.op("Mul", result, b.cast(math.prod(kernel) / divisor_override, x.dtype))
        return _unbatched(b, result, added)

    names = [f"nn.functional.adaptive_avg_pool{dims}d", *["adaptive_avg_pool1d"] * (dims == 1)]

    @says(*names)
    def adaptive(b: Builder, x: Value, output_size: Any) -> Any:
        return _adaptive_mean(b, x, _each_or_none(output_size, dims), dims)

    @says(f"nn.functional.adaptive_max_pool{dims}d")
    def adaptive_maximum(b: Builder, x: Value, output_size: Any, return_indices: bool = False) -> Any:
        wanted = _each_or_none(output_size, dims)
        if return_indices:
            raise Unsaid("indices of adaptive pooling")
        axes = list(range(x.ndim - dims, x.ndim))
        if all(n == 1 for n in wanted):
            return b.op("ReduceMax", x, np.array(axes), keepdims=1)
        try:
            kernel = _kernel(b, x, wanted, dims)
        except Unsaid:
            return _by_windows(b, x, wanted, dims)
        y, added = _batched(b, x, dims)
        return _unbatched(b, b.op("MaxPool", y, kernel_shape=kernel, strides=kernel), added)


def _each_or_none(x: Any, dims: int) -> list[Any]:
    return [*x] if isinstance(x, (tuple, list)) else [x] * dims


def _kernel(b: Builder, x: Value, wanted: Sequence[Any], dims: int) -> list[int]:
    """Return the sizes of the windows of adaptive pooling; Unsaid if they are not all of one size."""
    sizes = []
    for k, n in enumerate(wanted):
        m = x.shape[x.ndim - dims + k]
        if m is None or (n is not None and (m % n or not n)):
            raise Unsaid("windows of adaptive pooling that are not all of one size")
        sizes.append(1 if n is None else m // n)
    return sizes


def _adaptive_mean(b: Builder, x: Value, wanted: Sequence[Any], dims: int) -> Any:
    axes = list(range(x.ndim - dims, x.ndim))
    if all(n == 1 for n in wanted):
        return b.op("ReduceMean", x, np.array(axes), keepdims=1)
    try:
        kernel = _kernel(b, x, wanted, dims)
    except Unsaid:
        return _by_matrices(b, x, wanted, dims)
    y, added = _batched(b, x, dims)
    return _unbatched(b, b.op("AveragePool", y, kernel_shape=kernel, strides=kernel), added)


def _by_windows(b: Builder, x: Value, wanted: Sequence[Any], dims: int) -> Any:
    """Return the maxima of windows of several sizes, along one dimension after another."""
    y = x.name
    for k, n in enumerate(wanted):
        axis = x.ndim - dims + k
        m = x.shape[axis]
        if n is None:
            continue
        if m is None:
            raise Unsaid("adaptive pooling of a size that is not known")
        parts = [b.sliced(y, axis, j * m // n, -(-(j + 1) * m // n)) for j in range(n)]
        y = b.op("Concat", *[b.op("ReduceMax", part, np.array([axis]), keepdims=1) for part in parts], axis=axis)
    return y


def _by_matrices(b: Builder, x: Value, wanted: Sequence[Any], dims: int) -> Any:
    """Return the means of windows of several sizes: along each dimension a product with a matrix."""
    y, ndim = x.name, x.ndim
    for k, n in enumerate(wanted):
        axis = ndim - dims + k
        m = x.shape[axis]
        if n is None:
            continue
        if m is None:
            raise Unsaid("adaptive pooling of a size that is not known")
        matrix = np.zeros((m, n), x.dtype.numpy)
        for j in range(n):
            start, stop = j * m // n, -(-(j + 1) * m // n)
            matrix[start:stop, j] = 1 / (stop - start)
        order = [*range(axis), *range(axis + 1, ndim), axis]
        back = [*range(axis), ndim - 1, *range(axis, ndim - 1)]
        y = b.op("Transpose", b.op("MatMul", b.op("Transpose", y, perm=order), matrix), perm=back)
    return y


for _dims in (1, 2, 3):
    _convolution(_dims)
    _pooling(_dims)


# Normalization ------------------------------------------------------------------------------------


def _vector(b: Builder, x: Any, like: Value, number: float) -> Any:
    """Return a parameter of a channel each; one of the same number if there is none."""
    if x is not None:
        return b.cast(x, like.dtype)
    channels = like.shape[1]
    if channels is None:
        raise Unsaid("the number of channels is not known")
    return np.full(channels, number, like.dtype.numpy)


@says("nn.functional.batch_norm")
def batch_norm(
    b: Builder, x: Value, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Return the normalized batch."""
    if running_mean is None:
        axes = np.array([k for k in range(x.ndim) if k != 1])
        return _affine(b, x, _standardized(b, x, axes, eps, x.dtype), weight, bias)
    if training:
        raise Unsaid("running statistics are updated (training mode)")
    return b.op(
        "BatchNormalization", x, _vector(b, weight, x, 1), _vector(b, bias, x, 0), running_mean, running_var,
        epsilon=float(eps),
    )  # fmt: skip


@says("batch_norm")
def _batch_norm(
    b: Builder, x: Value, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
    momentum: float, eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    return batch_norm(b, x, running_mean, running_var, weight, bias, training, momentum, eps)


@says("layer_norm", "nn.functional.layer_norm")
def _layer_norm(
    b: Builder, x: Value, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:  # fmt: skip
    shape = [normalized_shape] if isinstance(normalized_shape, int) else [*normalized_shape]
    scale = np.ones([b.number(n, "a size") for n in shape], x.dtype.numpy) if weight is None else weight
    return b.op("LayerNormalization", x, scale, bias, axis=-len(shape), epsilon=float(eps))


@says("rms_norm", "nn.functional.rms_norm")
def _rms_norm(b: Builder, x: Value, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    eps = float(np.finfo(x.dtype.numpy).eps) if eps is None else eps
    mean = b.op("ReduceMean", b.op("Mul", x, x), np.arange(-count, 0), keepdims=1)
    y = b.op("Div", x, b.op("Sqrt", b.op("Add", mean, b.cast(eps, x.dtype))))
    return y if weight is None else b.op("Mul", y, weight)


def _standardized(b: Builder, x: Any, axes: Any, eps: float, dtype: Any) -> str:
    """Return a tensor with mean 0 and variance 1 along axes."""
    gap = b.op("Sub", x, b.op("ReduceMean", x, axes, keepdims=1))
    variance = b.op("ReduceMean", b.op("Mul", gap, gap), axes, keepdims=1)
    return b.op("Div", gap, b.op("Sqrt", b.op("Add", variance, b.cast(eps, dtype))))


def _affine(b: Builder, x: Value, y: str, weight: Any, bias: Any) -> str:
    """Return `y * weight + bias` with parameters of a channel each."""
    for kind, each in (("Mul", weight), ("Add", bias)):
        if each is not None:
            y = b.op(kind, y, b.unsqueezed(each, *range(1, x.ndim - 1)))
    return y


@says("nn.functional.group_norm", "group_norm")
def _group_norm(
    b: Builder, x: Value, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> Any:  # fmt: skip
    sizes = b.sizes(x)
    y = b.op("Reshape", x, b.ints([0, num_groups, -1]))
    ones, zeros = np.ones(num_groups, x.dtype.numpy), np.zeros(num_groups, x.dtype.numpy)
    y = b.op("InstanceNormalization", y, ones, zeros, epsilon=float(eps))
    return _affine(b, x, b.reshaped(y, sizes), weight, bias)


@says("nn.functional.instance_norm")
def _instance_norm(
    b: Builder, x: Value, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    if not use_input_stats:
        return batch_norm(b, x, running_mean, running_var, weight, bias, False, momentum, eps)
    if running_mean is not None:
        raise Unsaid("running statistics are updated (training mode)")
    scale, offset = _vector(b, weight, x, 1), _vector(b, bias, x, 0)
    return b.op("InstanceNormalization", x, scale, offset, epsilon=float(eps))


@says("nn.functional.local_response_norm")
def _local_response_norm(
    b: Builder, x: Value, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:  # fmt: skip
    sizes = b.sizes(x)
    y: Any = x  # (ONNX Runtime asks for four dimensions)
    if x.ndim != 4:
        y = b.reshaped(x, [*sizes[:2], b.product(sizes[2:-1]), sizes[-1] if x.ndim > 2 else 1])
    if size % 2 == 0:
        raise Unsaid("an even size")
    y = b.op("LRN", y, alpha=float(alpha), beta=float(beta), bias=float(k), size=size)
    return y if x.ndim == 4 else b.reshaped(y, sizes)


@says("nn.functional.normalize")
def _normalize(b: Builder, x: Value, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    if p not in (1, 2) or not isinstance(dim, int):
        raise Unsaid("another norm than the first and second")
    norm = b.op("ReduceL1" if p == 1 else "ReduceL2", x, np.array([x.dim(dim)]), keepdims=1)
    return b.op("Div", x, b.op("Max", norm, b.cast(eps, x.dtype)))


# Embedding ----------------------------------------------------------------------------------------


@says("nn.functional.embedding")
def _embedding(
    b: Builder, x: Value, weight: Value, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    if max_norm is not None:
        raise Unsaid("max_norm writes to the weight")
    return b.op("Gather", weight, x, axis=0)


@says("embedding")
def _rows_of(b: Builder, weight: Value, indices: Value, *_: Any, **__: Any) -> Any:
    return b.op("Gather", weight, indices, axis=0)


@says("nn.functional.one_hot")
def _one_hot(b: Builder, x: Value, num_classes: int = -1) -> Any:
    if not isinstance(num_classes, int) or num_classes < 0:
        raise Unsaid("the number of classes depends on values")
    return b.op("OneHot", b.cast(x, dtypes.int64), np.array(num_classes, np.int64), np.array([0, 1], np.int64), axis=-1)


# Resampling ---------------------------------------------------------------------------------------


@says("nn.functional.interpolate", "nn.functional.upsample")
def _interpolate(
    b: Builder, x: Value, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None, antialias: bool = False,
) -> Any:  # fmt: skip
    dims = x.ndim - 2
    if mode == "area":
        return _adaptive_mean(b, x, list(b.out.shape[2:]), dims)
    if antialias or not x.dtype.is_floating_point:
        raise Unsaid("antialias=True, or integers: the numbers of runtimes differ")
    kind = {"nearest": "nearest", "nearest-exact": "nearest", "bicubic": "cubic"}.get(mode, "linear")
    options: dict[str, Any] = {"mode": kind}
    if kind == "nearest":
        exact = mode == "nearest-exact"
        options["nearest_mode"] = "round_prefer_ceil" if exact else "floor"
        options["coordinate_transformation_mode"] = "half_pixel" if exact else "asymmetric"
    else:
        options["coordinate_transformation_mode"] = "align_corners" if align_corners else "half_pixel"
        if not align_corners and 1 in x.shape[2:] + b.out.shape[2:]:
            options["coordinate_transformation_mode"] = "pytorch_half_pixel"
        if kind == "cubic":
            options["cubic_coeff_a"] = -0.75
    if size is None and not recompute_scale_factor:
        factors = _each_or_none(scale_factor, dims)
        if not align_corners or None in b.out.shape[2:]:
            scales = np.array([1.0, 1.0, *[float(b.number(n, "a factor")) for n in factors]], np.float32)
            return b.op("Resize", x, None, scales, **options)
    wanted: list[Any]
    if None not in b.out.shape[2:]:
        wanted = list(b.out.shape[2:])
    elif size is not None:
        wanted = _each_or_none(size, dims)
    else:
        raise Unsaid("a recomputed factor of a size that is not known")
    return b.op("Resize", x, None, None, b.ints([*b.sizes(x)[:2], *wanted]), **options)


@says("nn.functional.grid_sample")
def _grid_sample(
    b: Builder, x: Value, grid: Value, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Any = None
) -> Any:  # fmt: skip
    kind = mode
    if b.opset >= 20:
        kind = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    elif x.ndim != 4:
        raise Unsaid("a volume, before version 20 of the operators")
    return b.op("GridSample", x, grid, mode=kind, padding_mode=padding_mode, align_corners=int(bool(align_corners)))


@says("nn.functional.unfold")
def _unfold(
    b: Builder, x: Value, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:  # fmt: skip
    kernel, gaps, pads, steps = [_each(n, 2) for n in (kernel_size, dilation, padding, stride)]
    y, added = _batched(b, x, 2)
    h, w = y.shape[2:]
    if h is None or w is None:
        raise Unsaid("windows along a size that is not known")
    given = b.op("Pad", y, np.array([0, 0, *pads, 0, 0, *pads], np.int64))
    at = []
    for k, m in enumerate((h, w)):
        starts = np.arange(0, m + 2 * pads[k] - gaps[k] * (kernel[k] - 1), steps[k])
        at.append(np.arange(kernel[k])[:, None] * gaps[k] + starts)  # (kernel, windows)
    given = b.op("Gather", given, at[0], axis=2)  # (n, c, kernel, windows, w)
    given = b.op("Gather", given, at[1], axis=4)  # (n, c, kernel, windows, kernel, windows)
    given = b.op("Transpose", given, perm=[0, 1, 2, 4, 3, 5])
    rows = b.product([b.size(y, 1), *kernel])
    result = b.reshaped(given, [b.size(y, 0), rows, at[0].shape[1] * at[1].shape[1]])
    return _unbatched(b, result, added)


# Losses -------------------------------------------------------------------------------------------


def _reduction(b: Builder, y: str, reduction: str, old: Any = (None, None)) -> str:
    if any(each is not None for each in old):
        raise Unsaid("size_average or reduce, which are deprecated")
    return y if reduction == "none" else b.op("ReduceMean" if reduction == "mean" else "ReduceSum", y, keepdims=0)


@says("nn.functional.mse_loss")
def _mse_loss(
    b: Builder, x: Value, target: Value, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    weight: Any = None,
) -> Any:  # fmt: skip
    if weight is not None:
        raise Unsaid("weights")
    gap = b.op("Sub", b.cast(x, b.out.dtype), b.cast(target, b.out.dtype))
    return _reduction(b, b.op("Mul", gap, gap), reduction, (size_average, reduce))


@says("nn.functional.l1_loss")
def _l1_loss(
    b: Builder, x: Value, target: Value, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    weight: Any = None,
) -> Any:  # fmt: skip
    if weight is not None:
        raise Unsaid("weights")
    gap = b.op("Sub", b.cast(x, b.out.dtype), b.cast(target, b.out.dtype))
    return _reduction(b, b.op("Abs", gap), reduction, (size_average, reduce))


def _of_gap(name: str) -> None:
    """Enter a loss that is quadratic near zero, and linear from there."""

    @says(name)
    def write(
        b: Builder, x: Value, target: Value, *old: Any, reduction: str = "mean", beta: float = 1.0, delta: float = 1.0,
        weight: Any = None, **more: Any,
    ) -> Any:  # fmt: skip
        if old or weight is not None or any(each is not None for each in more.values()):
            raise Unsaid("weights, or options that are deprecated")
        dtype, smooth = b.out.dtype, name.endswith("smooth_l1_loss")
        width = beta if smooth else delta
        gap = b.op("Abs", b.op("Sub", b.cast(x, dtype), b.cast(target, dtype)))
        if not width:
            return _reduction(b, gap, reduction)
        half = b.op("Mul", b.op("Mul", gap, gap), b.cast(0.5 / width if smooth else 0.5, dtype))
        line = b.op("Sub", gap, b.cast(0.5 * width, dtype))
        line = line if smooth else b.op("Mul", line, b.cast(width, dtype))
        return _reduction(b, b.op("Where", b.op("Less", gap, b.cast(width, dtype)), half, line), reduction)


_of_gap("nn.functional.smooth_l1_loss")
_of_gap("nn.functional.huber_loss")


@says("nn.functional.binary_cross_entropy")
def _binary_cross_entropy_of_probabilities(
    b: Builder, x: Value, target: Value, weight: Any = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    dtype, one, least = x.dtype, b.cast(1, x.dtype), b.cast(-100, x.dtype)
    yes = b.op("Mul", target, b.op("Max", b.op("Log", x), least))
    no = b.op("Mul", b.op("Sub", one, b.cast(target, dtype)), b.op("Max", b.op("Log", b.op("Sub", one, x)), least))
    y = b.op("Neg", b.op("Add", yes, no))
    return _reduction(b, y if weight is None else b.op("Mul", y, weight), reduction, (size_average, reduce))


@says("nn.functional.nll_loss")
def _nll_loss(
    b: Builder, x: Value, target: Value, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    if (size_average, reduce) != (None, None):
        raise Unsaid("size_average or reduce, which are deprecated")
    given = b.cast(target, dtypes.int64)
    if x.ndim < 2:
        y = b.op(
            "NegativeLogLikelihoodLoss", b.unsqueezed(x, 0), b.op("Reshape", given, np.array([1])), weight,
            reduction=reduction, ignore_index=ignore_index,
        )  # fmt: skip
        return b.op("Reshape", y, np.zeros(0, np.int64))
    return b.op("NegativeLogLikelihoodLoss", x, given, weight, reduction=reduction, ignore_index=ignore_index)


@says("nn.functional.cross_entropy")
def _cross_entropy(
    b: Builder, x: Value, target: Value, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    if label_smoothing or target.dtype.is_floating_point:
        raise Unsaid("probabilities as targets, or label smoothing")
    logs = Value(b.op("LogSoftmax", x, axis=1 if x.ndim > 1 else 0), x.shape, x.dtype)
    return _nll_loss(b, logs, target, weight, size_average, ignore_index, reduce, reduction)


@says("nn.functional.binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits")
def _binary_cross_entropy(
    b: Builder, x: Value, target: Value, weight: Any = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", pos_weight: Any = None,
) -> Any:  # fmt: skip
    if pos_weight is not None or not isinstance(reduction, str):
        raise Unsaid("pos_weight")
    # max(x, 0) - x * target + log(1 + exp(-|x|))
    rest = b.op("Log", b.op("Add", b.op("Exp", b.op("Neg", b.op("Abs", x))), b.cast(1, x.dtype)))
    y = b.op("Add", b.op("Sub", b.op("Relu", x), b.op("Mul", x, target)), rest)
    return _reduction(b, y if weight is None else b.op("Mul", y, weight), reduction, (size_average, reduce))


__all__ = ["batch_norm"]
