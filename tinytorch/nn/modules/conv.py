"""Convolutional layers, transposed ones, and their lazy forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn import init
from tinytorch.nn.modules._family import DimensionalLayer, non_default
from tinytorch.nn.modules.lazy import LazyModuleMixin
from tinytorch.nn.modules.utils import _ntuple, _reverse_repeat_tuple, _single
from tinytorch.nn.parameter import Parameter, UninitializedParameter
from tinytorch.ops.create import empty

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip

SizeOrInt = int | Sequence[int]


class _ConvNd(DimensionalLayer):
    """The base of all convolutional layers: parameters, their initial values, `repr`."""

    __constants__: ClassVar = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels", "out_channels",
        "kernel_size",
    ]  # fmt: skip

    padding: str | tuple[int, ...]
    weight: Tensor
    bias: Tensor | None
    _reversed_padding_repeated_twice: Sequence[int]

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...], stride: tuple[int, ...],
        padding: str | tuple[int, ...], dilation: tuple[int, ...], transposed: bool,
        output_padding: tuple[int, ...], groups: int, bias: bool, padding_mode: str, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        modes = {"zeros", "reflect", "replicate", "circular"}
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {modes}, but got padding_mode='{padding_mode}'")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding
        self.dilation, self.transposed = dilation, transposed
        self.output_padding, self.groups, self.padding_mode = output_padding, groups, padding_mode
        # The widths as `F.pad` takes them: (before, after) of the last dimension, then of the one before it.
        if isinstance(padding, str):
            widths = [0, 0] * len(kernel_size)
            if padding == "same":
                for i, (k, d) in enumerate(zip(kernel_size, dilation, strict=True)):
                    total, begin = d * (k - 1), 2 * (len(kernel_size) - 1 - i)
                    widths[begin : begin + 2] = [total // 2, total - total // 2]
            self._reversed_padding_repeated_twice = widths
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)
        self.weight = Parameter(empty(self._weight_shape(), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        if self.transposed:
            return self.in_channels, self.out_channels // self.groups, *self.kernel_size
        return self.out_channels, self.in_channels // self.groups, *self.kernel_size

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        # With a = sqrt(5) the bound of the weight is 1 / sqrt(fan_in), as that of the bias.
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = self.weight.shape[1] * math.prod(self.weight.shape[2:])
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)
            else:
                init.zeros_(self.bias)

    def extra_repr(self) -> str:
        zeros, ones = (0,) * len(self.kernel_size), (1,) * len(self.kernel_size)
        shown = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        shown += non_default(self, padding=zeros, dilation=ones, output_padding=zeros, groups=1)
        if self.bias is None:
            shown.append("bias=False")
        return ", ".join(shown + non_default(self, padding_mode="zeros"))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")

    def _padded(self, input: Tensor) -> tuple[Tensor, str | tuple[int, ...]]:
        """Return the input with its border, unless that is zeros, and the padding left to the convolution."""
        if self.padding_mode == "zeros":
            return input, self.padding
        border = self._reversed_padding_repeated_twice
        padded = F.pad(input, border, mode=self.padding_mode)
        return padded, (0,) * len(self.kernel_size)


class _ConvLayer(_ConvNd):
    """The family of `Conv1d`, `Conv2d` and `Conv3d`."""

    _function = "conv{dims}d"
    _example = """\
        >>> torch.nn.{name}(2, 3, 3, padding="same")(torch.ones(1, 2, {5})).shape
        torch.Size([1, 3, {5}])
    """
    _redefined: ClassVar[tuple[str, ...]] = ("__init__", "_conv_forward", "forward")

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: SizeOrInt, stride: SizeOrInt = 1,
        padding: str | SizeOrInt = 0, dilation: SizeOrInt = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        as_tuple = _ntuple(self._dims)
        super().__init__(
            in_channels, out_channels, as_tuple(kernel_size), as_tuple(stride),
            padding if isinstance(padding, str) else as_tuple(padding), as_tuple(dilation), False, as_tuple(0),
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        input, padding = self._padded(input)
        return getattr(F, self._function)(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_ConvLayer, dims=1):
    """A convolution (cross-correlation) of signals, `(N, C, L)` or `(C, L)`; arguments and attributes as `Conv2d`."""


class Conv2d(_ConvLayer, dims=2):
    """A convolution (cross-correlation) of images.

    All sizes are one number, or height and width. The padding "valid" is none, "same" keeps the size; its values are
    "zeros", or by `padding_mode` "reflect", "replicate" or "circular".

    Attributes:
        weight: `(O, C / groups, kH, kW)`, from U(-b, b) with b = 1 / sqrt(C / groups * kH * kW).
        bias: `(O,)`, from the same distribution, or None.

    Shape: `(N, C, H, W)` or `(C, H, W)` -> `(N, O, H', W')` or `(O, H', W')`.

    Example:
        >>> layer = torch.nn.Conv2d(16, 33, (3, 5), stride=(2, 1), padding=(4, 2))
        >>> layer(torch.ones(2, 16, 50, 100)).shape
        torch.Size([2, 33, 28, 100])
    """


class Conv3d(_ConvLayer, dims=3):
    """A convolution of volumes, `(N, C, D, H, W)` or `(C, D, H, W)`; arguments and attributes as `Conv2d`."""


class _ConvTransposeNd(_ConvNd):
    """The base of transposed convolutions: the output padding for a requested output size."""

    padding: tuple[int, ...]

    def _output_padding(
        self, input: Tensor, output_size: Sequence[int] | None, stride: Sequence[int], padding: Sequence[int],
        kernel_size: Sequence[int], num_spatial_dims: int, dilation: Sequence[int] | None = None,
    ) -> Sequence[int]:  # fmt: skip
        """Return the output padding with which the output has the size `output_size`."""
        if output_size is None:
            return _single(self.output_padding)
        dims = num_spatial_dims
        leading = 2 if input.ndim == dims + 2 else 1  # (N, C) or (C,)
        if len(output_size) == leading + dims:
            output_size = output_size[leading:]
        if len(output_size) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.ndim}D input, output_size must have {dims} or {leading + dims} "
                f"elements (got {len(output_size)})"
            )
        dilations = dilation or (1,) * dims
        smallest = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(input.shape[leading:], stride, padding, dilations, kernel_size, strict=True)
        ]
        largest = [low + s - 1 for low, s in zip(smallest, stride, strict=True)]
        if any(not low <= n <= high for low, n, high in zip(smallest, output_size, largest, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} "
                f"(for an input of {input.shape[2:]})"
            )
        return [n - low for n, low in zip(output_size, smallest, strict=True)]


class _ConvTransposeLayer(_ConvTransposeNd):
    """The family of `ConvTranspose1d`, `ConvTranspose2d` and `ConvTranspose3d`."""

    _function = "conv_transpose{dims}d"
    _example = """\
        >>> torch.nn.{name}(2, 3, 2, stride=2)(torch.ones(1, 2, {4})).shape
        torch.Size([1, 3, {8}])
    """
    _redefined: ClassVar[tuple[str, ...]] = ("__init__", "forward")

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: SizeOrInt, stride: SizeOrInt = 1,
        padding: SizeOrInt = 0, output_padding: SizeOrInt = 0, groups: int = 1, bias: bool = True,
        dilation: SizeOrInt = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        as_tuple = _ntuple(self._dims)
        super().__init__(
            in_channels, out_channels, as_tuple(kernel_size), as_tuple(stride), as_tuple(padding),
            as_tuple(dilation), True, as_tuple(output_padding), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Return the transposed convolution of `input`; `output_size` selects one of several possible sizes."""
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for {type(self).__name__}")
        output_padding = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, len(self.kernel_size), self.dilation
        )
        return getattr(F, self._function)(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTransposeLayer, dims=1):
    """A transposed convolution of signals, `(N, C, L)` or `(C, L)`; arguments and attributes as `ConvTranspose2d`."""


class ConvTranspose2d(_ConvTransposeLayer, dims=2):
    """A transposed convolution of images: it maps the size of a convolution's output to that of its input.

    `padding` is cropped on each side of the output; `output_padding` rows and columns are added on one side. The
    padding mode is "zeros"; other arguments as for `Conv2d`.

    Attributes:
        weight: `(C, O / groups, kH, kW)`, from U(-b, b) with b = 1 / sqrt(O / groups * kH * kW).
        bias: `(O,)`, from the same distribution, or None.

    Shape:
        `(N, C, H, W)` or `(C, H, W)` -> `(N, O, H', W')` or `(O, H', W')`, H' = (H - 1) * stride -
        2 * padding + dilation * (kH - 1) + output_padding + 1.

    Example:
        >>> down = torch.nn.Conv2d(16, 16, 3, stride=2, padding=1)
        >>> up = torch.nn.ConvTranspose2d(16, 16, 3, stride=2, padding=1)
        >>> x = torch.ones(1, 16, 12, 12)
        >>> up(down(x), output_size=x.size()).shape
        torch.Size([1, 16, 12, 12])
    """


class ConvTranspose3d(_ConvTransposeLayer, dims=3):
    """A transposed convolution of volumes, `(N, C, D, H, W)` or `(C, D, H, W)`; arguments as `ConvTranspose2d`."""


# Lazy layers: the number of input channels is taken from the first input ---------------------------


class _LazyConvXdMixin(LazyModuleMixin):
    """Makes a convolution lazy: its parameters get their shapes from the first input."""

    groups: int
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    weight: Any
    bias: Any
    _weight_shape: Callable[[], tuple[int, ...]]

    def _register_uninitialized(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """Register parameters without a shape."""
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters again, unless they have no shape yet."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Give the parameters the shapes that match `input`, and draw them."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        with no_grad():
            self.weight.materialize(self._weight_shape())
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
                init.zeros_(self.bias)  # which is not drawn without channels
            self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        dims = self._get_num_spatial_dims()
        if input.dim() not in (dims + 1, dims + 2):
            raise RuntimeError(
                f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        return input.shape[1] if input.dim() == dims + 2 else input.shape[0]

    def _get_num_spatial_dims(self) -> int:
        return len(self.kernel_size)


class _LazyConv(_LazyConvXdMixin):
    _example = """\
        >>> layer = torch.nn.{name}(4, 3)
        >>> layer(torch.ones(2, 5, {7})).shape, layer.in_channels
        (torch.Size([2, 4, {5}]), 5)
    """
    _redefined: ClassVar[tuple[str, ...]] = ("__init__",)

    def __init__(
        self, out_channels: int, kernel_size: SizeOrInt, stride: SizeOrInt = 1, padding: str | SizeOrInt = 0,
        dilation: SizeOrInt = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._register_uninitialized(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d, dims=1, becomes=Conv1d):
    """A `Conv1d` that takes `in_channels` from its first input."""


class LazyConv2d(_LazyConv, Conv2d, dims=2, becomes=Conv2d):
    """A `Conv2d` that takes `in_channels` from its first input."""


class LazyConv3d(_LazyConv, Conv3d, dims=3, becomes=Conv3d):
    """A `Conv3d` that takes `in_channels` from its first input."""


class _LazyConvTranspose(_LazyConvXdMixin):
    _example = """\
        >>> layer = torch.nn.{name}(4, 3)
        >>> layer(torch.ones(2, 5, {7})).shape, layer.in_channels
        (torch.Size([2, 4, {9}]), 5)
    """
    _redefined: ClassVar[tuple[str, ...]] = ("__init__",)

    def __init__(
        self, out_channels: int, kernel_size: SizeOrInt, stride: SizeOrInt = 1, padding: SizeOrInt = 0,
        output_padding: SizeOrInt = 0, groups: int = 1, bias: bool = True, dilation: SizeOrInt = 1,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._register_uninitialized(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d, dims=1, becomes=ConvTranspose1d):
    """A `ConvTranspose1d` that takes `in_channels` from its first input."""


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d, dims=2, becomes=ConvTranspose2d):
    """A `ConvTranspose2d` that takes `in_channels` from its first input."""


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d, dims=3, becomes=ConvTranspose3d):
    """A `ConvTranspose3d` that takes `in_channels` from its first input."""
