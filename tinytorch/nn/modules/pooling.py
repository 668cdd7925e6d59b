"""Pooling layers: the maximum, average or norm of each window, and the inverse of maximum pooling."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn.modules._family import DimensionalLayer, layer
from tinytorch.nn.modules.utils import _ntuple

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip


def _tuples(layer: Any, dims: int) -> None:
    """Turn the sizes of the windows of a layer into tuples; the stride is by default the size."""
    if layer.stride is None:
        layer.stride = layer.kernel_size
    for name in ("kernel_size", "stride", "padding"):
        setattr(layer, name, _ntuple(dims)(getattr(layer, name)))


# Sliding windows ----------------------------------------------------------------------------------


@layer(shown="kernel_size stride padding dilation ceil_mode")
class _MaxPoolNd(DimensionalLayer):
    _function = "max_pool{dims}d"
    _example = """\
        >>> torch.nn.{name}(2)(torch.ones(1, {4})).shape
        torch.Size([1, {2}])
    """

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    dilation: Any = 1
    return_indices: bool = False
    ceil_mode: bool = False

    def __post_init__(self) -> None:
        if self.stride is None:
            self.stride = self.kernel_size

    def forward(self, input: Tensor) -> Any:
        """Return the maxima; with `return_indices`, the maxima and their indices."""
        windows = self.kernel_size, self.stride, self.padding, self.dilation
        function = getattr(F, self._function)
        return function(input, *windows, ceil_mode=self.ceil_mode, return_indices=self.return_indices)


class MaxPool1d(_MaxPoolNd, dims=1):
    """The maximum of each window of the last dimension; arguments as `nn.functional.max_pool1d`."""


class MaxPool2d(_MaxPoolNd, dims=2):
    """The maximum of each window of the last two dimensions; arguments as `nn.functional.max_pool2d`."""


class MaxPool3d(_MaxPoolNd, dims=3):
    """The maximum of each window of the last three dimensions; arguments as `nn.functional.max_pool3d`."""


@layer(shown="kernel_size stride padding")
class _MaxUnpoolNd(DimensionalLayer):
    _function = "max_unpool{dims}d"
    _example = """\
        >>> pool, unpool = torch.nn.MaxPool{dims}d(2, return_indices=True), torch.nn.{name}(2)
        >>> unpool(*pool(torch.ones(1, {4}))).shape
        torch.Size([1, {4}])
    """
    _redefined = ("__init__", "forward")

    kernel_size: Any
    stride: Any = None
    padding: Any = 0

    def __post_init__(self) -> None:
        _tuples(self, self._dims)

    def forward(self, input: Tensor, indices: Tensor, output_size: list[int] | None = None) -> Tensor:
        return getattr(F, self._function)(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd, dims=1):
    """Puts the maxima of `MaxPool1d` back to their places among zeros; arguments as `nn.functional.max_unpool1d`.

    Example:
        >>> pool, unpool = torch.nn.MaxPool1d(2, return_indices=True), torch.nn.MaxUnpool1d(2)
        >>> unpool(*pool(torch.tensor([[1.0, 3.0, 4.0, 2.0]])))
        tensor([[0., 3., 4., 0.]])
    """


class MaxUnpool2d(_MaxUnpoolNd, dims=2):
    """Puts the maxima of `MaxPool2d` back to their places among zeros; arguments as `nn.functional.max_unpool2d`."""


class MaxUnpool3d(_MaxUnpoolNd, dims=3):
    """Puts the maxima of `MaxPool3d` back to their places among zeros; arguments as `nn.functional.max_unpool3d`."""


class _AvgPoolNd(DimensionalLayer):
    _repr_attributes = "kernel_size stride padding"
    _function = "avg_pool{dims}d"
    _example = """\
        >>> torch.nn.{name}(2)(torch.ones(1, {4})).shape
        torch.Size([1, {2}])
    """


@layer(F.avg_pool1d)
class AvgPool1d(_AvgPoolNd, dims=1):
    """The average of each window of the last dimension; arguments as `nn.functional.avg_pool1d`."""

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True

    def __post_init__(self) -> None:
        _tuples(self, 1)


@layer()
class _AvgPoolWithDivisor(_AvgPoolNd):
    _redefined = ("__init__", "forward")

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None

    def __post_init__(self) -> None:
        if self.stride is None:
            self.stride = self.kernel_size

    def forward(self, input: Tensor) -> Tensor:
        windows = self.kernel_size, self.stride, self.padding, self.ceil_mode
        return getattr(F, self._function)(input, *windows, self.count_include_pad, self.divisor_override)


class AvgPool2d(_AvgPoolWithDivisor, dims=2):
    """The average of each window of the last two dimensions; arguments as `nn.functional.avg_pool2d`."""


class AvgPool3d(_AvgPoolWithDivisor, dims=3):
    """The average of each window of the last three dimensions; arguments as `nn.functional.avg_pool3d`."""


@layer(shown="norm_type kernel_size stride ceil_mode")
class _LPPoolNd(DimensionalLayer):
    _function = "lp_pool{dims}d"
    _example = """\
        >>> torch.nn.{name}(2, 2)(torch.ones(1, {4})).shape
        torch.Size([1, {2}])
    """

    norm_type: float
    kernel_size: Any
    stride: Any = None
    ceil_mode: bool = False

    def forward(self, input: Tensor) -> Tensor:
        windows = self.kernel_size, self.stride, self.ceil_mode
        return getattr(F, self._function)(input, float(self.norm_type), *windows)


class LPPool1d(_LPPoolNd, dims=1):
    """The p-norm of each window of the last dimension; arguments as `nn.functional.lp_pool1d`."""


class LPPool2d(_LPPoolNd, dims=2):
    """The p-norm of each window of the last two dimensions; arguments as `nn.functional.lp_pool2d`."""


class LPPool3d(_LPPoolNd, dims=3):
    """The p-norm of each window of the last three dimensions; arguments as `nn.functional.lp_pool3d`."""


# Windows at random places -------------------------------------------------------------------------


class _FractionalMaxPoolNd(DimensionalLayer):
    _function = "fractional_max_pool{dims}d"
    _example = """\
        >>> torch.nn.{name}(2, output_size=2)(torch.ones(1, {4})).shape
        torch.Size([1, {2}])
    """
    _redefined = ("__init__", "forward")

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        if self._dims == 3 and min(_ntuple(1)(kernel_size), default=1) <= 0:
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        as_tuple = _ntuple(self._dims)
        self.kernel_size = as_tuple(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else as_tuple(output_size)
        self.output_ratio = None if output_ratio is None else as_tuple(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{type(self).__name__} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """Return the maxima; with `return_indices`, the maxima and their indices."""
        sizes = self.kernel_size, self.output_size, self.output_ratio
        function = getattr(F, self._function)
        return function(input, *sizes, self.return_indices, _random_samples=self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPoolNd, dims=2):
    """The maxima of windows at random positions; arguments as `nn.functional.fractional_max_pool2d`."""


class FractionalMaxPool3d(_FractionalMaxPoolNd, dims=3):
    """The maxima of windows at random positions; arguments as `nn.functional.fractional_max_pool3d`."""


# A given number of windows ------------------------------------------------------------------------


@layer(shown="output_size")
class _AdaptiveMaxPoolNd(DimensionalLayer):
    _function = "adaptive_max_pool{dims}d"
    _example = """\
        >>> torch.nn.{name}(2)(torch.ones(1, {4})).shape
        torch.Size([1, {2}])
    """

    output_size: Any
    return_indices: bool = False

    def forward(self, input: Tensor) -> Any:
        """Return the maxima; with `return_indices`, the maxima and their indices."""
        return getattr(F, self._function)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd, dims=1):
    """The maximum of each of `output_size` windows; arguments as `nn.functional.adaptive_max_pool1d`."""


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd, dims=2):
    """The maximum of each of `output_size` windows; arguments as `nn.functional.adaptive_max_pool2d`."""


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd, dims=3):
    """The maximum of each of `output_size` windows; arguments as `nn.functional.adaptive_max_pool3d`."""


@layer(shown="output_size")
class _AdaptiveAvgPoolNd(DimensionalLayer):
    _function = "adaptive_avg_pool{dims}d"
    _example = _AdaptiveMaxPoolNd._example

    output_size: Any

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._function)(input, self.output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd, dims=1):
    """The average of each of `output_size` windows; arguments as `nn.functional.adaptive_avg_pool1d`."""


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd, dims=2):
    """The average of each of `output_size` windows; arguments as `nn.functional.adaptive_avg_pool2d`."""


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd, dims=3):
    """The average of each of `output_size` windows; arguments as `nn.functional.adaptive_avg_pool3d`."""
