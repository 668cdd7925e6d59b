"""Convolutions, pooling, normalization, embedding, resampling and losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.fx.onnx.builder import Builder, UnsupportedCall, Value, rule, torch
from tinytorch.fx.onnx.ops.shape import known
from tinytorch.kernels import dtypes
from tinytorch.nn import functional as F


def _each(x: Any, dims: int) -> list[Any]:
    """Return an option for each spatial dimension."""
    if isinstance(x, (tuple, list)):
        return [*x] * (dims if len(x) == 1 else 1)
    return [x] * dims


def _batched(x: Value, dims: int, kind: str, *inputs: Any, **options: Any) -> Any:
    """Return the result of a node whose first input needs a batch dimension, which is added and taken away again."""
    single = range(x.ndim == dims + 1)
    made = x.builder.node(kind, x.unsqueeze(*single), *inputs, **options)
    return tuple([y.squeeze(*single) for y in made]) if isinstance(made, tuple) else made.squeeze(*single)


def _check_floats(x: Value) -> None:
    if not x.dtype.is_floating_point:
        raise UnsupportedCall("an input of integers")


# Convolutions -------------------------------------------------------------------------------------


def _convolution(dims: int) -> None:
    @rule(getattr(F, f"conv{dims}d"))
    def write(
        b: Builder, x: Value, weight: Value, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1,
    ) -> Any:  # fmt: skip
        _check_floats(x)
        kernel, dilations = [int(n or 0) for n in weight.shape[2:]], _each(dilation, dims)
        before = after = [0] * dims
        if padding == "same":
            total = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
            before = [n // 2 for n in total]
            after = [n - m for n, m in zip(total, before, strict=True)]
        elif padding != "valid":
            before = after = _each(padding, dims)
        return _batched(
            x, dims, "Conv", weight, bias, kernel_shape=kernel, strides=_each(stride, dims), pads=[*before, *after],
            dilations=dilations, group=groups,
        )  # fmt: skip

    @rule(getattr(F, f"conv_transpose{dims}d"))
    def transposed(
        b: Builder, x: Value, weight: Value, bias: Any = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        _check_floats(x)
        return _batched(
            x, dims, "ConvTranspose", weight, bias, kernel_shape=[int(n or 0) for n in weight.shape[2:]],
            strides=_each(stride, dims), pads=_each(padding, dims) * 2, dilations=_each(dilation, dims), group=groups,
            output_padding=_each(output_padding, dims),
        )  # fmt: skip


# Pooling ------------------------------------------------------------------------------------------


def _rounds_up(x: Value, kernel: Any, stride: Any, padding: Any, dilation: Any) -> bool:
    """Return whether rounding up gives another size than rounding down; UnsupportedCall where ONNX has more windows."""
    differs = False
    for k, n in enumerate(x.shape[x.ndim - len(kernel) :]):
        if n is None:
            return True
        room = n + 2 * padding[k] - dilation[k] * (kernel[k] - 1) - 1
        count = -(-room // stride[k]) + 1
        if (count - 1) * stride[k] >= n + padding[k]:
            raise UnsupportedCall("a window that begins in the padding")
        differs = differs or count != room // stride[k] + 1
    return differs


def _pooling(dims: int) -> None:
    @rule(getattr(F, f"max_pool{dims}d"), getattr(torch, f"max_pool{dims}d"))
    def maximum(
        b: Builder, x: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False, return_indices: bool = False,
    ) -> Any:  # fmt: skip
        _check_floats(x)
        kernel, pads, gaps = [_each(n, dims) for n in (kernel_size, padding, dilation)]
        steps = _each(stride, dims) if stride else kernel
        up = bool(ceil_mode) and _rounds_up(x, kernel, steps, pads, gaps)
        options: dict[str, Any] = {
            "kernel_shape": kernel, "strides": steps, "pads": pads * 2, "dilations": gaps, "ceil_mode": int(up)
        }  # fmt: skip
        if not return_indices:
            return _batched(x, dims, "MaxPool", **options)
        values, indices = _batched(x, dims, "MaxPool", outputs=2, **options)
        # ONNX counts places in the whole tensor, PyTorch in each channel.
        plane = b.product([x.size(k) for k in range(-dims, 0)])
        return values, b.node("Mod", indices, b.cast(plane, dtypes.int64))

    @rule(getattr(F, f"avg_pool{dims}d"))
    def mean(
        b: Builder, x: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        _check_floats(x)
        kernel, pads = _each(kernel_size, dims), _each(padding, dims)
        steps = _each(stride, dims) if stride else kernel
        up = bool(ceil_mode) and _rounds_up(x, kernel, steps, pads, [1] * dims)
        if up and (divisor_override or (count_include_pad and any(pads))):
            raise UnsupportedCall("ceil_mode with padding or a divisor")
        result = _batched(
            x, dims, "AveragePool", kernel_shape=kernel, strides=steps, pads=pads * 2, ceil_mode=int(up),
            count_include_pad=int((count_include_pad and not up) or bool(divisor_override)),
        )  # fmt: skip
        return result * (math.prod(kernel) / divisor_override) if divisor_override else result

    @rule(getattr(F, f"adaptive_avg_pool{dims}d"))
    def adaptive(b: Builder, x: Value, output_size: Any) -> Any:
        return _adaptive(x, _each(output_size, dims), "ReduceMean", "AveragePool", _mean_of_windows)

    @rule(getattr(F, f"adaptive_max_pool{dims}d"))
    def adaptive_maximum(b: Builder, x: Value, output_size: Any, return_indices: bool = False) -> Any:
        if return_indices:
            raise UnsupportedCall("indices of adaptive pooling")
        return _adaptive(x, _each(output_size, dims), "ReduceMax", "MaxPool", _maximum_of_windows)


def _adaptive(
    x: Value, wanted: Sequence[Any], whole: str, pool: str, windows: Callable[[Any, int, int, Sequence[slice]], Any]
) -> Any:
    """Return the results of adaptive pooling: by an operator for one window, or for equal ones, or by `windows`."""
    dims = len(wanted)
    sizes = x.shape[x.ndim - dims :]
    if all(n == 1 for n in wanted):
        return x.builder.node(whole, x, list(range(x.ndim - dims, x.ndim)), keepdims=1)
    if all(m is not None and (n is None or (n and m % n == 0)) for m, n in zip(sizes, wanted, strict=True)):
        kernel = [1 if n is None else m // n for m, n in zip(sizes, wanted, strict=True)]
        return _batched(x, dims, pool, kernel_shape=kernel, strides=kernel)
    y = x
    for k, n in enumerate(wanted):
        if n is not None:
            axis = x.ndim - dims + k
            m = known(x, axis, "adaptive pooling of a size that is not known")
            y = windows(y, x.ndim, axis, [slice(j * m // n, -(-(j + 1) * m // n)) for j in range(n)])
    return y


def _maximum_of_windows(y: Any, ndim: int, axis: int, windows: Sequence[slice]) -> Any:
    parts = [y.slice(axis, each.start, each.stop) for each in windows]
    return y.builder.concat(*[part.ReduceMax([axis], keepdims=1) for part in parts], axis=axis)


def _mean_of_windows(y: Any, ndim: int, axis: int, windows: Sequence[slice]) -> Any:
    """Return a product with a matrix."""
    matrix = np.zeros((windows[-1].stop, len(windows)), y.dtype.numpy)
    for j, each in enumerate(windows):
        matrix[each, j] = 1 / (each.stop - each.start)
    turned = y.Transpose(perm=[*range(axis), *range(axis + 1, ndim), axis])
    return turned.MatMul(matrix).Transpose(perm=[*range(axis), ndim - 1, *range(axis, ndim - 1)])


for _dims in (1, 2, 3):
    _convolution(_dims)
    _pooling(_dims)


# Normalization ------------------------------------------------------------------------------------


def _vector(x: Any, like: Value, number: float) -> Any:
    """Return a parameter of a channel each; one of the same number if there is none."""
    if x is not None:
        return x.cast(like.dtype)
    return np.full(known(like, 1, "the number of channels is not known"), number, like.dtype.numpy)


@rule(torch.batch_norm)
def _batch_norm(
    b: Builder, x: Value, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
    eps: float, cudnn_enabled: bool = False,
) -> Any:  # fmt: skip
    if running_mean is None:
        axes = [k for k in range(x.ndim) if k != 1]
        gap = x - x.ReduceMean(axes, keepdims=1)
        variance = (gap * gap).ReduceMean(axes, keepdims=1)
        return _affine(x, gap / (variance + eps).Sqrt(), weight, bias)
    if training:
        raise UnsupportedCall("running statistics are updated (training mode)")
    scale, offset = _vector(weight, x, 1), _vector(bias, x, 0)
    return x.BatchNormalization(scale, offset, running_mean, running_var, epsilon=float(eps))


def _affine(x: Value, y: Any, weight: Any, bias: Any) -> Any:
    """Return `y * weight + bias` with parameters of a channel each."""
    dims = range(1, x.ndim - 1)
    y = y if weight is None else y * weight.unsqueeze(*dims)
    return y if bias is None else y + bias.unsqueeze(*dims)


@rule(torch.layer_norm)
def _layer_norm(
    b: Builder, x: Value, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:  # fmt: skip
    shape = [normalized_shape] if isinstance(normalized_shape, int) else [*normalized_shape]
    scale = np.ones([b.number(n, "a size") for n in shape], x.dtype.numpy) if weight is None else weight
    return x.LayerNormalization(scale, bias, axis=-len(shape), epsilon=float(eps))


@rule(torch.rms_norm)
def _rms_norm(b: Builder, x: Value, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    count = 1 if isinstance(normalized_shape, int) else len(normalized_shape)
    eps = float(np.finfo(x.dtype.numpy).eps) if eps is None else eps
    y = x / ((x * x).ReduceMean(range(-count, 0), keepdims=1) + eps).Sqrt()
    return y if weight is None else y * weight


@rule(torch.group_norm)
def _group_norm(
    b: Builder, x: Value, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, *_: Any
) -> Any:  # fmt: skip
    sizes = x.sizes
    ones, zeros = [np.full(num_groups, n, x.dtype.numpy) for n in (1, 0)]
    y = x.Reshape([0, num_groups, -1]).InstanceNormalization(ones, zeros, epsilon=float(eps))
    return _affine(x, y.reshape(sizes), weight, bias)


@rule(F.instance_norm)
def _instance_norm(
    b: Builder, x: Value, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    if not use_input_stats:
        return _batch_norm(b, x, weight, bias, running_mean, running_var, False, momentum, eps)
    if running_mean is not None:
        raise UnsupportedCall("running statistics are updated (training mode)")
    return x.InstanceNormalization(_vector(weight, x, 1), _vector(bias, x, 0), epsilon=float(eps))


@rule(F.local_response_norm)
def _local_response_norm(
    b: Builder, x: Value, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:  # fmt: skip
    sizes, y = x.sizes, x
    if x.ndim != 4:  # (ONNX Runtime asks for four dimensions)
        y = x.reshape([*sizes[:2], b.product(sizes[2:-1]), sizes[-1] if x.ndim > 2 else 1])
    if size % 2 == 0:
        raise UnsupportedCall("an even size")
    y = y.LRN(alpha=float(alpha), beta=float(beta), bias=float(k), size=size)
    return y if x.ndim == 4 else y.reshape(sizes)


# Embedding ----------------------------------------------------------------------------------------


rule(torch.embedding)(lambda b, weight, indices, *_, **__: weight.Gather(indices, axis=0))


@rule(F.one_hot)
def _one_hot(b: Builder, x: Value, num_classes: int = -1) -> Any:
    if not isinstance(num_classes, int) or num_classes < 0:
        raise UnsupportedCall("the number of classes depends on values")
    return x.cast(dtypes.int64).OneHot(b.scalar(num_classes), [0, 1], axis=-1)


# Resampling ---------------------------------------------------------------------------------------


@rule(F.interpolate, F.upsample)
def _interpolate(
    b: Builder, x: Value, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None,
    recompute_scale_factor: Any = None, antialias: bool = False,
) -> Any:  # fmt: skip
    dims, shape = x.ndim - 2, b.out.shape[2:]
    if mode == "area":
        return _adaptive(x, list(shape), "ReduceMean", "AveragePool", _mean_of_windows)
    if antialias or not x.dtype.is_floating_point:
        raise UnsupportedCall("antialias=True, or integers: the numbers of runtimes differ")
    place = "align_corners" if align_corners else "half_pixel"
    if not align_corners and 1 in x.shape[2:] + shape:
        place = "pytorch_half_pixel"
    kinds: dict[str, dict[str, Any]] = {
        "nearest": {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"},
        "nearest-exact": {
            "mode": "nearest", "nearest_mode": "round_prefer_ceil", "coordinate_transformation_mode": "half_pixel"
        },
        "bicubic": {"mode": "cubic", "coordinate_transformation_mode": place, "cubic_coeff_a": -0.75},
    }  # fmt: skip
    options = kinds.get(mode, {"mode": "linear", "coordinate_transformation_mode": place})
    if size is None and not recompute_scale_factor and (not align_corners or None in shape):
        factors = [float(b.number(n, "a factor")) for n in _each(scale_factor, dims)]
        return x.Resize(None, np.array([1.0, 1.0, *factors], np.float32), **options)
    if None in shape and size is None:
        raise UnsupportedCall("a recomputed factor of a size that is not known")
    wanted = _each(size, dims) if None in shape else list(shape)
    return x.Resize(None, None, [*x.sizes[:2], *wanted], **options)


@rule(F.grid_sample)
def _grid_sample(
    b: Builder, x: Value, grid: Value, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Any = None
) -> Any:  # fmt: skip
    if b.opset >= 20:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    elif x.ndim != 4:
        raise UnsupportedCall("a volume, before version 20 of the operators")
    return x.GridSample(grid, mode=mode, padding_mode=padding_mode, align_corners=int(bool(align_corners)))


@rule(F.unfold)
def _unfold(
    b: Builder, x: Value, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:  # fmt: skip
    kernel, gaps, pads, steps = [_each(n, 2) for n in (kernel_size, dilation, padding, stride)]
    single = range(x.ndim == 3)
    y = x.unsqueeze(*single)
    given: Any = y.Pad([0, 0, *pads, 0, 0, *pads])
    at = []
    for k in (0, 1):
        m = known(y, k + 2, "windows along a size that is not known")
        starts = np.arange(0, m + 2 * pads[k] - gaps[k] * (kernel[k] - 1), steps[k])
        at.append(np.arange(kernel[k])[:, None] * gaps[k] + starts)  # (kernel, windows)
    given = given.Gather(at[0], axis=2)  # (n, c, kernel, windows, w)
    given = given.Gather(at[1], axis=4)  # (n, c, kernel, windows, kernel, windows)
    given = given.Transpose(perm=[0, 1, 2, 4, 3, 5])
    rows = b.product([y.size(1), *kernel])
    return given.reshape([y.size(0), rows, at[0].shape[1] * at[1].shape[1]]).squeeze(*single)


# Losses -------------------------------------------------------------------------------------------


def _reduced(y: Any, reduction: str, weight: Any = None, *deprecated: Any) -> Any:
    if any(each is not None for each in deprecated):
        raise UnsupportedCall("size_average or reduce, which are deprecated")
    y = y if weight is None else y * weight
    kind = {"none": "", "mean": "ReduceMean"}.get(reduction, "ReduceSum")
    return y.builder.node(kind, y, keepdims=0) if kind else y


def _of_gap(function: Any, numbers: Callable[..., Any]) -> None:
    """Enter a loss whose numbers, before they are reduced, are those of a function of the gap to the target."""

    @rule(function)
    def write(
        b: Builder, x: Value, target: Value, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
        weight: Any = None, **options: Any,
    ) -> Any:  # fmt: skip
        if weight is not None:
            raise UnsupportedCall("weights")
        y = numbers(x.cast(b.out.dtype) - target.cast(b.out.dtype), **options)
        return _reduced(y, reduction, None, size_average, reduce)


def _smooth(gap: Value, beta: float = 1.0) -> Any:
    return _quadratic(gap, beta, 0.5 / beta if beta else 0.0, 1)


def _quadratic(gap: Value, width: float, curve: float, slope: float) -> Any:
    """Return numbers that are quadratic near zero, and linear from there."""
    size = gap.Abs()
    if not width:
        return size
    half, line = size * size * curve, size - 0.5 * width
    line = line if slope == 1 else line * slope
    return gap.builder.where(size < width, half, line)


_of_gap(F.mse_loss, lambda gap: gap * gap)
_of_gap(F.l1_loss, lambda gap: gap.Abs())
_of_gap(F.smooth_l1_loss, _smooth)
_of_gap(F.huber_loss, lambda gap, delta=1.0: _quadratic(gap, delta, 0.5, delta))


@rule(F.binary_cross_entropy)
def _binary_cross_entropy(
    b: Builder, x: Value, target: Value, weight: Any = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    yes = target * x.Log().Max(-100)
    y = -(yes + (1 - target.cast(x.dtype)) * (1 - x).Log().Max(-100))
    return _reduced(y, reduction, weight, size_average, reduce)


@rule(F.binary_cross_entropy_with_logits, torch.binary_cross_entropy_with_logits)
def _binary_cross_entropy_with_logits(
    b: Builder, x: Value, target: Value, weight: Any = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", pos_weight: Any = None,
) -> Any:  # fmt: skip
    if pos_weight is not None or not isinstance(reduction, str):
        raise UnsupportedCall("pos_weight")
    # max(x, 0) - x * target + log(1 + exp(-|x|))
    rest = ((-x.Abs()).Exp() + 1).Log()
    return _reduced(x.Relu() - x * target + rest, reduction, weight, size_average, reduce)


@rule(F.nll_loss)
def _nll_loss(
    b: Builder, x: Value, target: Value, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    if (size_average, reduce) != (None, None):
        raise UnsupportedCall("size_average or reduce, which are deprecated")
    given = target.cast(dtypes.int64)
    options: dict[str, Any] = {"reduction": reduction, "ignore_index": ignore_index}
    if x.ndim < 2:
        return x.unsqueeze(0).NegativeLogLikelihoodLoss(given.Reshape([1]), weight, **options).Reshape([])
    return x.NegativeLogLikelihoodLoss(given, weight, **options)


@rule(F.cross_entropy)
def _cross_entropy(
    b: Builder, x: Value, target: Value, weight: Any = None, size_average: Any = None, ignore_index: int = -100,
    reduce: Any = None, reduction: str = "mean", label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    if label_smoothing or target.dtype.is_floating_point:
        raise UnsupportedCall("probabilities as targets, or label smoothing")
    logs = x.LogSoftmax(axis=1 if x.ndim > 1 else 0).with_shape(*x.shape)
    return _nll_loss(b, logs, target, weight, size_average, ignore_index, reduce, reduction)
