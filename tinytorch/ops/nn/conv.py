"""Convolutions, transposed convolutions, and the columns of images.

`_conv`, `_conv_input` and `_conv_weight` are the partial derivatives of one trilinear form of input, weight and output:
the gradients of each op are the other two. So a derivative of any order costs one such product, and the gradient of a
weight is contiguous and can become its `.grad` without a copy. `unfold` and `fold` are transposes of one another.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from tinytorch.core.complex import HOLOMORPHIC, OWN
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.kernels import conv as kernels
from tinytorch.kernels import dtypes
from tinytorch.kernels.checks import refused
from tinytorch.ops import autocast
from tinytorch.ops.arguments import op_of
from tinytorch.ops.nn.versions import versions
from tinytorch.ops.rearrange import constant_pad
from tinytorch.ops.register import public

Sizes = tuple[int, ...]
SizeOrInt = int | Sequence[int]


# The family ---------------------------------------------------------------------------------------


def _per_channel(g: Tensor) -> Tensor:
    """Return the gradient of a bias: the sums over everything but the channels."""
    dims = (0, *range(2, g.ndim))
    return g.sum(dims)


_conv = op_of(
    kernels.convolution,
    batch="convolution",
    complex=HOLOMORPHIC,
    multiply_adds=lambda out, x, w, *rest: math.prod(out) * math.prod(w[1:]),
    x=lambda g, w, x_shape, stride, padding, dilation, groups: _conv_input(
        g, w, None, x_shape[2:], stride, padding, dilation, groups
    ),
    w=lambda g, x, w_shape, stride, padding, dilation, groups: _conv_weight(
        x, g, w_shape[2:], stride, padding, dilation, groups
    ),
    b=lambda g: _per_channel(g),
)
_conv_input = op_of(
    kernels.transposed_convolution,
    batch="convolution",
    complex=HOLOMORPHIC,
    name="Convolution",
    multiply_adds=lambda out, y, w, *rest: math.prod(y) * math.prod(w[1:]),
    y=lambda g, w, y_shape, stride, padding, dilation, groups: _conv(
        g, w, None, stride, padding, dilation, groups, y_shape[2:]
    ),
    w=lambda g, y, w_shape, stride, padding, dilation, groups: _conv_weight(
        g, y, w_shape[2:], stride, padding, dilation, groups
    ),
    b=lambda g: _per_channel(g),
)
_conv_weight = op_of(
    kernels.conv_weight,
    batch="convolution weight",
    complex=HOLOMORPHIC,
    name="ConvolutionBackward",
    multiply_adds=lambda out, x, y, *rest: math.prod(y) * x[1] * math.prod(out[2:]),  # (as of one group)
    x=lambda g, y, x_shape, stride, padding, dilation, groups: _conv_input(
        y, g, None, x_shape[2:], stride, padding, dilation, groups
    ),
    y=lambda g, x, y_shape, stride, padding, dilation, groups: _conv(
        x, g, None, stride, padding, dilation, groups, y_shape[2:]
    ),
)


# Checks -------------------------------------------------------------------------------------------


def _sizes(value: Any, dims: int) -> Sizes:
    """Return a setting per dimension."""
    sizes = tuple(map(operator.index, value if isinstance(value, (list, tuple)) else (value,)))
    return sizes if len(sizes) != 1 else sizes * dims


def _times(sizes: Sequence[int]) -> str:
    return " x ".join(str(each) for each in sizes)


def _settings(
    name: str, dims: int, input: Tensor, weight: Tensor, settings: dict[str, Any], groups: int, same: bool = False
) -> list[Sizes]:
    """Check the settings; return them with an entry per dimension of the weight.

    Args:
        settings: stride, padding, dilation, ... by name.
        same: whether the padding is "same", for which PyTorch checks the weight's dimensions first.
    """
    found, groups = [_sizes(value, dims) for value in settings.values()], operator.index(groups)
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if same and weight.ndim != dims + 2:
        raise RuntimeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight {list(weight.shape)}, but "
            f"got {dims + 2}-dimensional input of size {list(input.shape)} instead"
        )
    _check_settings(dict(zip(settings, found, strict=True)), weight.ndim - 2, groups)
    return found


def _check_settings(settings: dict[str, Sizes], dims: int, groups: int) -> None:
    for key, sizes in settings.items():
        if len(sizes) != dims:
            raise RuntimeError(
                f"expected {key} to be a single integer value or a list of {dims} values to match the convolution "
                f"dimensions, but got {key}={list(sizes)}"
            )
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    for key in ("padding", "output_padding"):
        if min(settings.get(key, (0,)), default=0) < 0:
            raise RuntimeError(f"negative {key} is not supported")
    if min(settings["stride"], default=1) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(settings["dilation"], default=1) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(settings['dilation'])}")


def _check(x: Tensor, w: Tensor, b: Tensor | None, groups: int, transposed: bool) -> None:
    """Check input, weight and bias of an ordinary or transposed convolution."""
    shape, weight = list(x.shape), list(w.shape)
    if weight[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{weight} instead"
        )
    if weight[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{weight}] instead"
        )
    channels = weight[0] if transposed else weight[1] * groups
    if shape[1] != channels:
        which = "transposed=1" if transposed else f"groups={groups}"
        raise RuntimeError(
            f"Given {which}, weight of size {weight}, expected input{shape} to have {channels} channels, but got "
            f"{shape[1]} channels instead"
        )
    outputs = weight[1] * groups if transposed else weight[0]
    if b is not None and tuple(b.shape) != (outputs,):
        which = "transposed=1, " if transposed else ""
        raise RuntimeError(
            f"Given {which}weight of size {weight}, expected bias to be 1-dimensional with {outputs} elements, but got "
            f"bias of size {list(b.shape)} instead"
        )


def _check_types(x: Tensor, w: Tensor, b: Tensor | None, kernel: str, narrow: bool) -> None:
    """Check that the dtypes agree, and that the kernel is for them; `narrow`: also for integers below 64 bits."""
    if b is not None and x.dtype is not b.dtype:
        first, second = dtypes.C_NAMES[x.dtype.name], dtypes.C_NAMES[b.dtype.name]
        raise RuntimeError(f"Input type ({first}) and bias type ({second}) should be the same")
    if x.dtype is not w.dtype:
        raise RuntimeError(f"expected scalar type {x.dtype.tensor_name} but found {w.dtype.tensor_name}")
    if x.dtype in dtypes.LACKING or not (narrow or x.dtype is dtypes.int64 or x.dtype.category >= dtypes.FLOATING):
        raise refused(kernel, x._array)
    if 0 in w.shape[2:] and x.shape[1]:
        names = ("kernel_depth", "kernel_height", "kernel_width")[-max(w.ndim - 2, 2) :]
        sizes = (1,) * (2 - (w.ndim - 2)) + tuple(w.shape[2:])
        shown = " ".join(f"{key}: {size}" for key, size in zip(names, sizes, strict=True))
        raise RuntimeError(f"kernel size should be greater than zero, but got {shown}")
    if 0 in x.shape[2:] and x.shape[0] and x.shape[1]:
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x.shape)}"
        )


def _run(x: Tensor, w: Tensor, b: Tensor | None, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Tensor:
    _check(x, w, b, groups, transposed=False)
    padded = [n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True)]
    reach = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    if any(n < k for n, k in zip(padded, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_times(padded)}). Kernel size: ({_times(reach)}). Kernel "
            "size can't be greater than actual input size"
        )
    spread = max(dilation, default=1) > 1
    _check_types(x, w, b, "slow_conv_dilated<>" if spread else f"slow_conv{max(w.ndim - 2, 2)}d_cpu", not spread)
    if not x.shape[1]:  # the output has no channels, either
        w, b = w[:0], None if b is None else b[:0]
    return _conv(x, w, b, stride, padding, dilation, groups, None)


def _run_transposed(
    x: Tensor, w: Tensor, b: Tensor | None, stride: Sizes, padding: Sizes, more: Sizes, groups: int, dilation: Sizes
) -> Tensor:
    _check(x, w, b, groups, transposed=True)
    _check_types(x, w, b, f"slow_conv_transpose{max(w.ndim - 2, 2)}d_out_cpu", False)
    if any(e >= s and e >= d for e, s, d in zip(more, stride, dilation, strict=True)):
        names = ("depth", "height", "width")[-max(len(stride), 2) :]
        ones = (1,) * (2 - len(stride))
        shown = " ".join(
            f"{key}_{which}: {size}"
            for key, sizes in (("output_padding", more), ("stride", stride), ("dilation", dilation))
            for which, size in zip(names, ones + sizes, strict=True)
        )
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {shown}")
    size = kernels.transposed_size(tuple(x.shape[2:]), tuple(w.shape[2:]), stride, padding, more, dilation)
    if min(size) < 1:
        raise RuntimeError(
            f"Given input size per channel: ({_times(x.shape[2:])}). Calculated output size per channel: "
            f"({_times(size)}). Output size is too small"
        )
    return _conv_input(x, w, b, size, stride, padding, dilation, groups)


# Convolutions -------------------------------------------------------------------------------------


_FORMS = tuple([
    f"Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, {padding}, "
    "tuple of ints dilation = 1, int groups = 1"
    for padding in ("tuple of ints padding = 0", 'str padding = "valid"')
])  # fmt: skip


@versions("conv{}d", 1, 2, 3, also="nn.functional.conv{}d", binds=False, forms=_FORMS)
def _convolved(
    dims: int, input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: SizeOrInt = 1,
    padding: str | SizeOrInt = 0, dilation: SizeOrInt = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Return the convolution (cross-correlation) over the last {n} dimensions, of shape (N, O, ...) or (O, ...).

    Besides the result it needs memory for about a million numbers, whatever the batch size.

    Shapes: (N, C, ...) or (C, ...), (O, C / groups, ...) and (O,). The settings are one number or one per dimension;
    the padding "valid" is none, "same" keeps the size.

    Example:
        >>> torch.{name}(torch.ones(1, 3, {4}), torch.ones(2, 3, {3}), padding=1).shape
        torch.Size([1, 2, {4}])

    Source: Chellapilla et al., "High Performance Convolutional Neural Networks for Document Processing", 2006.
    """
    if autocast.on:
        input, weight, bias = autocast.lowered(input, weight, bias)
    if isinstance(padding, str):
        return _convolved_by_name(dims, input, weight, bias, stride, padding, dilation, groups)
    settings = {"stride": stride, "padding": padding, "dilation": dilation}
    strides, paddings, dilations = _settings(f"conv{dims}d", dims, input, weight, settings, groups)
    if input.ndim == dims + 2:
        return _run(input, weight, bias, strides, paddings, dilations, groups)
    alone = input.unsqueeze(0)
    return _run(alone, weight, bias, strides, paddings, dilations, groups).squeeze(0)


def _convolved_by_name(
    dims: int, input: Any, weight: Any, bias: Any, stride: Any, padding: str, dilation: Any, groups: Any
) -> Tensor:
    """Return a convolution with the padding "valid" (no padding) or "same" (the output has the input's size)."""
    name = f"conv{dims}d"
    if padding not in ("same", "valid"):
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if padding == "valid":
        return _convolved[dims](input, weight, bias, stride, 0, dilation, groups)
    settings = {"stride": stride, "dilation": dilation}
    strides, dilations = _settings(name, dims, input, weight, settings, groups, same=True)
    if set(strides) - {1}:
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for d, k in zip(dilations, weight.shape[2:], strict=True)]
    if any(total % 2 for total in totals):
        warn(
            "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the "
            "input be created"
        )
        widths = [width for total in reversed(totals) for width in (0, total % 2)]
        input = constant_pad(input, tuple(widths), 0)
    halves = tuple(total // 2 for total in totals)
    return _convolved[dims](input, weight, bias, strides, halves, dilations, groups)


conv1d, conv2d, conv3d = _convolved.values()


@versions("conv_transpose{}d", 1, 2, 3, also="nn.functional.conv_transpose{}d", binds=False)
def _transposed(
    dims: int, input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: SizeOrInt = 1,
    padding: SizeOrInt = 0, output_padding: SizeOrInt = 0, groups: int = 1, dilation: SizeOrInt = 1,
) -> Tensor:  # fmt: skip
    """Return the transposed convolution over the last {n} dimensions: the gradient of `conv{n}d` by its input.

    Its shape is (N, O, H', ...) or (O, H', ...), with H' = (H - 1) * stride - 2 * padding + dilation * (kH - 1) +
    output_padding + 1.

    Shapes: (N, C, H, ...) or (C, H, ...), (C, O / groups, kH, ...) and (O,). `padding` is cut off on each side of the
    output; `output_padding`, added on one side, is less than `stride` or less than `dilation`: it selects one of the
    input sizes that `conv{n}d` maps to one output size.

    Example:
        >>> torch.{name}(torch.ones(1, 3, {4}), torch.ones(3, 2, {2}), stride=2).shape
        torch.Size([1, 2, {8}])
    """
    if autocast.on:
        input, weight, bias = autocast.lowered(input, weight, bias)
    name = f"conv_transpose{dims}d"
    settings = {"stride": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation}
    strides, paddings, more, dilations = _settings(name, dims, input, weight, settings, groups)
    if input.ndim == dims + 2:
        return _run_transposed(input, weight, bias, strides, paddings, more, groups, dilations)
    alone = input.unsqueeze(0)
    out = _run_transposed(alone, weight, bias, strides, paddings, more, groups, dilations)
    return out.squeeze(0)


conv_transpose1d, conv_transpose2d, conv_transpose3d = _transposed.values()


@public()
def convolution(
    input: Tensor, weight: Tensor, bias: Tensor | None, stride: SizeOrInt, padding: SizeOrInt,
    dilation: SizeOrInt, transposed: bool, output_padding: SizeOrInt, groups: int,
) -> Tensor:  # fmt: skip
    """Return the ordinary or transposed convolution of batches with as many dimensions as the weight.

    Shapes: `(N, C, *)`, `(O, C / groups, *)` (transposed: `(C, O / groups, *)`), `(O,)` or None; settings as for
    `conv2d` and `conv_transpose2d`.

    Example:
        >>> x, w = torch.ones(1, 3, 5, 5), torch.ones(2, 3, 3, 3)
        >>> torch.convolution(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1).shape
        torch.Size([1, 2, 3, 3])
    """
    dims = weight.ndim - 2
    if input.ndim != dims + 2:
        raise RuntimeError(
            f"Expected {dims + 2}-dimensional input for {dims + 2}-dimensional weight {list(weight.shape)}, but got "
            f"{input.ndim}-dimensional input of size {list(input.shape)} instead"
        )
    if input.dtype.is_complex:  # (as in PyTorch, whose other functions compose products of the parts)
        raise refused("slow_conv2d_cpu", input._array)
    if transposed:
        settings = stride, padding, output_padding, groups, dilation
        return autocast.outside(_transposed[dims], input, weight, bias, *settings)
    return autocast.outside(_convolved[dims], input, weight, bias, stride, padding, dilation, groups)


@public(binds=False, also="nn.functional.conv_tbc", autocast="low")
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Return the convolution, `(T + 2 * pad - k + 1, N, O)`, of signals whose dimensions are time, batch, channels.

    Shapes: (T, N, C), (k, C, O) and (O,).

    Example:
        >>> torch.conv_tbc(torch.ones(5, 2, 3), torch.ones(3, 3, 4), torch.zeros(4), pad=1).shape
        torch.Size([5, 2, 4])
    """
    if input.ndim != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel.")
    if weight.ndim != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.ndim != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {input.dtype.tensor_name} and {weight.dtype.tensor_name}"
        )
    x, w = input.permute(1, 2, 0), weight.permute(2, 1, 0)
    out: Tensor = _conv(x, w, bias, (1,), (pad,), (1,), 1, None)
    return out.permute(2, 0, 1)


# Columns of images --------------------------------------------------------------------------------


_unfold = op_of(
    kernels.unfold,
    batch="folded",
    complex=OWN,
    name="Im2Col",
    refuses="im2col_out_cpu",
    x=lambda g, x_shape, kernel, dilation, padding, stride: _fold(g, x_shape[2:], kernel, dilation, padding, stride),
)


_fold = op_of(
    kernels.fold,
    batch="folded",
    complex=OWN,
    name="Col2Im",
    x=lambda g, kernel, dilation, padding, stride: _unfold(g, kernel, dilation, padding, stride),
)


def _pairs(name: str, **settings: Any) -> list[Sizes]:
    """Return the settings of `unfold` and `fold`, two numbers each."""
    found: list[Sizes] = []
    for key, value in settings.items():
        try:
            sizes = _sizes(value, 2)
        except TypeError:
            message = f"{name}(): argument '{key}' must be tuple of ints, not {type(value).__name__}"
            raise TypeError(message) from None
        if len(sizes) != 2:
            raise RuntimeError(f"It is expected {key} equals to 2, but got size {len(sizes)}")
        found.append(sizes)
        least, short = (0, "pad") if key == "padding" else (1, key.replace("_size", ""))
        if key != "output_size" and min(sizes) < least:
            what = "non-negative" if key == "padding" else "greater than zero"
            raise RuntimeError(
                f"{key.replace('_', ' ')} should be {what}, but got {short}_height: {sizes[0]} "
                f"{short}_width: {sizes[1]}"
            )
    return found


def _check_columns(name: str, x: Tensor) -> None:
    if x._array.dtype.kind in "iu":
        raise NotImplementedError(f"\"{name}\" not implemented for '{x.dtype.tensor_name}'")


@public("nn.functional.unfold")
def unfold(
    input: Tensor, kernel_size: SizeOrInt, dilation: SizeOrInt = 1, padding: SizeOrInt = 0, stride: SizeOrInt = 1
) -> Tensor:
    """Return the sliding blocks of images as columns, shape (N, C * kH * kW, blocks) or (C * kH * kW, blocks).

    Shapes: (N, C, H, W) or (C, H, W); not for integers.

    Example:
        >>> x = torch.arange(6.0).reshape(1, 2, 3)
        >>> torch.nn.functional.unfold(x, (1, 2))
        tensor([[0., 1., 3., 4.],
                [1., 2., 4., 5.]])
    """
    kernel, dilations, paddings, strides = _pairs(
        "unfold", kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    if input.ndim not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
            f"input, but got: {list(input.shape)}"
        )
    size = (input.shape[-2], input.shape[-1])
    places = kernels.conv_size(size, kernel, strides, paddings, dilations)
    if min(places) < 1:
        raise RuntimeError(
            f"Given input with spatial size {size}, kernel_size={kernel}, dilation={dilations}, padding={paddings}, "
            f"calculated shape of the array of sliding blocks as {places}, but its components must be at least one."
        )
    _check_columns("im2col_out_cpu", input)
    if input.ndim == 4:
        return _unfold(input, kernel, dilations, paddings, strides)
    return _unfold(input.unsqueeze(0), kernel, dilations, paddings, strides).squeeze(0)


@public("nn.functional.fold")
def fold(
    input: Tensor, output_size: SizeOrInt, kernel_size: SizeOrInt, dilation: SizeOrInt = 1,
    padding: SizeOrInt = 0, stride: SizeOrInt = 1,
) -> Tensor:  # fmt: skip
    """Return images (N, C, H, W) or (C, H, W), the sums of blocks that are given as columns; the transpose of `unfold`.

    Shapes: (N, C * kH * kW, blocks) or (C * kH * kW, blocks); `output_size` is the height and width of the images, of
    which `padding` is cut off. Not for integers.

    Example:
        >>> x = torch.tensor([[0.0, 1.0], [1.0, 2.0]])
        >>> torch.nn.functional.fold(x, (1, 3), (1, 2))
        tensor([[[0., 2., 2.]]])
    """
    size, kernel, dilations, paddings, strides = _pairs(
        "fold", output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride
    )
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(input.shape)}"
        )
    rows, columns = input.shape[-2:]
    if rows % (kernel[0] * kernel[1]):
        raise RuntimeError(
            f"Expected size of input's dimension {input.ndim - 2} to be divisible by the product of kernel_size, but "
            f"got input.size({input.ndim - 2})={rows} and kernel_size={kernel}."
        )
    places = kernels.conv_size(size, kernel, strides, paddings, dilations)
    if min(places) < 1:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={dilations}, padding={paddings}, "
            f"stride={strides}, calculated shape of the array of sliding blocks as {tuple(places)}, which is too small "
            "(non-positive)"
        )
    if places[0] * places[1] != columns:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, dilation={dilations}, padding={paddings}, "
            f"stride={strides}, expected size of input's dimension {input.ndim - 1} to match the calculated number of "
            f"sliding blocks {places[0]} * {places[1]} = {places[0] * places[1]}, but got "
            f"input.size({input.ndim - 1})={columns}."
        )
    _check_columns("col2im_out_cpu", input)
    if input.ndim == 3:
        return _fold(input, size, kernel, dilations, paddings, strides)
    return _fold(input.unsqueeze(0), size, kernel, dilations, paddings, strides).squeeze(0)
