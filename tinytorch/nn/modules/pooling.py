"""Pooling layers: maxima, averages and norms of windows, and maxima put back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional
from tinytorch.nn.modules._family import Shown, own
from tinytorch.nn.modules.module import Module

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip


def _tuple(value: Any, n: int) -> tuple[Any, ...]:
    """Return one value n times, or several as they are."""
    return tuple(value) if isinstance(value, Iterable) else (value,) * n


class _MaxPool(Shown):
    _shown = "kernel_size stride padding dilation ceil_mode"
    return_indices: bool
    ceil_mode: bool

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode


class MaxPool1d(_MaxPool):
    """Takes the maxima of windows of the last dimension; arguments as `nn.functional.max_pool1d`.

    Example:
        >>> torch.nn.MaxPool1d(2)(torch.ones(1, 4)).shape
        torch.Size([1, 2])
    """

    def forward(self, input: Tensor) -> Any:
        """Return the maxima, with `return_indices` and where they are."""
        windows = self.kernel_size, self.stride, self.padding, self.dilation
        return functional.max_pool1d(input, *windows, ceil_mode=self.ceil_mode, return_indices=self.return_indices)


class MaxPool2d(_MaxPool):
    """Takes the maxima of windows of the last two dimensions; arguments as `nn.functional.max_pool2d`.

    Example:
        >>> torch.nn.MaxPool2d(2)(torch.ones(1, 4, 4)).shape
        torch.Size([1, 2, 2])
    """

    def forward(self, input: Tensor) -> Any:
        """Return the maxima, with `return_indices` and where they are."""
        windows = self.kernel_size, self.stride, self.padding, self.dilation
        return functional.max_pool2d(input, *windows, ceil_mode=self.ceil_mode, return_indices=self.return_indices)


class MaxPool3d(_MaxPool):
    """Takes the maxima of windows of the last three dimensions; arguments as `nn.functional.max_pool3d`.

    Example:
        >>> torch.nn.MaxPool3d(2)(torch.ones(1, 4, 4, 4)).shape
        torch.Size([1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Any:
        """Return the maxima, with `return_indices` and where they are."""
        windows = self.kernel_size, self.stride, self.padding, self.dilation
        return functional.max_pool3d(input, *windows, ceil_mode=self.ceil_mode, return_indices=self.return_indices)


class _MaxUnpool(Shown):
    _shown = "kernel_size stride padding"
    _dims: int
    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = _tuple(kernel_size, self._dims)
        self.stride = _tuple(stride if stride is not None else kernel_size, self._dims)
        self.padding = _tuple(padding, self._dims)


@own("__init__")
class MaxUnpool1d(_MaxUnpool):
    """Puts maxima back where `MaxPool1d` found them, among zeros; arguments as `nn.functional.max_unpool1d`.

    Example:
        >>> pool, unpool = torch.nn.MaxPool1d(2, return_indices=True), torch.nn.MaxUnpool1d(2)
        >>> unpool(*pool(torch.ones(1, 4))).sum()
        tensor(2.)
    """

    _dims = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Return the maxima at their places; see `nn.functional.max_unpool1d`."""
        return functional.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


@own("__init__")
class MaxUnpool2d(_MaxUnpool):
    """Puts maxima back where `MaxPool2d` found them, among zeros; arguments as `MaxUnpool1d`.

    Example:
        >>> pool, unpool = torch.nn.MaxPool2d(2, return_indices=True), torch.nn.MaxUnpool2d(2)
        >>> unpool(*pool(torch.ones(1, 4, 4))).sum()
        tensor(4.)
    """

    _dims = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Return the maxima at their places; see `nn.functional.max_unpool2d`."""
        return functional.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


@own("__init__")
class MaxUnpool3d(_MaxUnpool):
    """Puts maxima back where `MaxPool3d` found them, among zeros; arguments as `MaxUnpool1d`.

    Example:
        >>> pool, unpool = torch.nn.MaxPool3d(2, return_indices=True), torch.nn.MaxUnpool3d(2)
        >>> unpool(*pool(torch.ones(1, 4, 4, 4))).sum()
        tensor(8.)
    """

    _dims = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Return the maxima at their places; see `nn.functional.max_unpool3d`."""
        return functional.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _AvgPool(Shown):
    _shown = "kernel_size stride padding"
    kernel_size: Any
    stride: Any
    padding: Any


class AvgPool1d(_AvgPool):
    """Takes the averages of windows of the last dimension; arguments as `nn.functional.avg_pool1d`.

    Example:
        >>> torch.nn.AvgPool1d(2)(torch.ones(1, 4)).shape
        torch.Size([1, 2])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _tuple(kernel_size, 1)
        self.stride = _tuple(stride if stride is not None else kernel_size, 1)
        self.padding = _tuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Return the averages."""
        return functional.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _DividedAvgPool(_AvgPool):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override


@own("__init__")
class AvgPool2d(_DividedAvgPool):
    """Takes the averages of windows of the last two dimensions; arguments as `nn.functional.avg_pool2d`.

    Example:
        >>> torch.nn.AvgPool2d(2)(torch.ones(1, 4, 4)).shape
        torch.Size([1, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the averages."""
        windows = self.kernel_size, self.stride, self.padding, self.ceil_mode
        return functional.avg_pool2d(input, *windows, self.count_include_pad, self.divisor_override)


@own("__init__")
class AvgPool3d(_DividedAvgPool):
    """Takes the averages of windows of the last three dimensions; arguments as `nn.functional.avg_pool3d`.

    Example:
        >>> torch.nn.AvgPool3d(2)(torch.ones(1, 4, 4, 4)).shape
        torch.Size([1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the averages."""
        windows = self.kernel_size, self.stride, self.padding, self.ceil_mode
        return functional.avg_pool3d(input, *windows, self.count_include_pad, self.divisor_override)


class _FractionalMaxPool(Module):
    _n: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        name, n = type(self).__name__, self._n
        if n == 3 and min(_tuple(kernel_size, 1), default=1) <= 0:
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        self.kernel_size = _tuple(kernel_size, n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else _tuple(output_size, n)
        self.output_ratio = None if output_ratio is None else _tuple(output_ratio, n)
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < each < 1 for each in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")


class FractionalMaxPool2d(_FractionalMaxPool):
    """Takes the maxima of windows whose places are drawn at random; arguments as `nn.functional.fractional_max_pool2d`.

    Example:
        >>> torch.nn.FractionalMaxPool2d(2, output_size=2)(torch.ones(1, 4, 4)).shape
        torch.Size([1, 2, 2])
    """

    _n = 2

    def forward(self, input: Tensor) -> Any:
        """Return the maxima; see `nn.functional.fractional_max_pool2d`."""
        sizes = self.kernel_size, self.output_size, self.output_ratio
        return functional.fractional_max_pool2d(
            input, *sizes, self.return_indices, _random_samples=self._random_samples
        )


class FractionalMaxPool3d(_FractionalMaxPool):
    """Takes the maxima of windows whose places are drawn at random; see `FractionalMaxPool2d`.

    Example:
        >>> torch.nn.FractionalMaxPool3d(2, output_size=2)(torch.ones(1, 4, 4, 4)).shape
        torch.Size([1, 2, 2, 2])
    """

    _n = 3

    def forward(self, input: Tensor) -> Any:
        """Return the maxima; see `nn.functional.fractional_max_pool3d`."""
        sizes = self.kernel_size, self.output_size, self.output_ratio
        return functional.fractional_max_pool3d(
            input, *sizes, self.return_indices, _random_samples=self._random_samples
        )


class _LPPool(Shown):
    _shown = "norm_type kernel_size stride ceil_mode"

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode


class LPPool1d(_LPPool):
    """Takes the p-norms of windows of the last dimension; arguments as `nn.functional.lp_pool1d`.

    Example:
        >>> torch.nn.LPPool1d(2, 2)(torch.ones(1, 4)).shape
        torch.Size([1, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the norms."""
        return functional.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPool):
    """Takes the p-norms of windows of the last two dimensions; arguments as `nn.functional.lp_pool2d`.

    Example:
        >>> torch.nn.LPPool2d(2, 2)(torch.ones(1, 4, 4)).shape
        torch.Size([1, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the norms."""
        return functional.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPool):
    """Takes the p-norms of windows of the last three dimensions; arguments as `nn.functional.lp_pool3d`.

    Example:
        >>> torch.nn.LPPool3d(2, 2)(torch.ones(1, 4, 4, 4)).shape
        torch.Size([1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the norms."""
        return functional.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveMaxPool(Shown):
    _shown = "output_size"

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices


class _AdaptiveAvgPool(Shown):
    _shown = "output_size"

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Takes the maxima of `output_size` windows that cover the last dimension.

    Arguments as `nn.functional.adaptive_max_pool1d`.

    Example:
        >>> torch.nn.AdaptiveMaxPool1d(2)(torch.ones(1, 4)).shape
        torch.Size([1, 2])
    """

    def forward(self, input: Tensor) -> Any:
        """Return the maxima; see `nn.functional.adaptive_max_pool1d`."""
        return functional.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Takes the maxima of `output_size` windows that cover the last two dimensions; see `AdaptiveMaxPool1d`.

    Example:
        >>> torch.nn.AdaptiveMaxPool2d(2)(torch.ones(1, 4, 4)).shape
        torch.Size([1, 2, 2])
    """

    def forward(self, input: Tensor) -> Any:
        """Return the maxima; see `nn.functional.adaptive_max_pool2d`."""
        return functional.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Takes the maxima of `output_size` windows that cover the last three dimensions; see `AdaptiveMaxPool1d`.

    Example:
        >>> torch.nn.AdaptiveMaxPool3d(2)(torch.ones(1, 4, 4, 4)).shape
        torch.Size([1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Any:
        """Return the maxima; see `nn.functional.adaptive_max_pool3d`."""
        return functional.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Takes the averages of `output_size` windows that cover the last dimension.

    Arguments as `nn.functional.adaptive_avg_pool1d`.

    Example:
        >>> torch.nn.AdaptiveAvgPool1d(2)(torch.ones(1, 4)).shape
        torch.Size([1, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the averages; see `nn.functional.adaptive_avg_pool1d`."""
        return functional.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Takes the averages of `output_size` windows that cover the last two dimensions; see `AdaptiveAvgPool1d`.

    Example:
        >>> torch.nn.AdaptiveAvgPool2d(2)(torch.ones(1, 4, 4)).shape
        torch.Size([1, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the averages; see `nn.functional.adaptive_avg_pool2d`."""
        return functional.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Takes the averages of `output_size` windows that cover the last three dimensions; see `AdaptiveAvgPool1d`.

    Example:
        >>> torch.nn.AdaptiveAvgPool3d(2)(torch.ones(1, 4, 4, 4)).shape
        torch.Size([1, 2, 2, 2])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the averages; see `nn.functional.adaptive_avg_pool3d`."""
        return functional.adaptive_avg_pool3d(input, self.output_size)
