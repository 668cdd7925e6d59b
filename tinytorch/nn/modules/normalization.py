"""Layers that bring their input to mean 0 and variance 1."""

from __future__ import annotations

import numbers
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn import init
from tinytorch.nn.functional import layers
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.create import empty

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _Norm(Module):
    """Has a weight and a bias, or None in their places."""

    weight: Tensor | None
    bias: Tensor | None

    def _make(self, shape: Any, device: Any, dtype: Any, **wanted: bool) -> None:
        for name, each in wanted.items():
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)) if each else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0 again."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Norm):
    """(x - mean) / sqrt(variance + eps) * weight + bias, over the last dimensions of each sample.

    Args:
        normalized_shape: the lengths of these dimensions, or of the only one.
        eps: keeps the divisor from 0.
        elementwise_affine: whether there is a weight (and a bias).
        bias: whether there is a bias.
        device, dtype: of the parameters.

    Attributes:
        weight, bias: of shape `normalized_shape`, 1 and 0 at first; or None.

    Shape:
        `(*, *normalized_shape)` -> the same.

    Example:
        >>> torch.nn.LayerNorm(3)(torch.tensor([1.0, 2.0, 3.0])).detach()
        tensor([-1.2247,  0.0000,  1.2247])

    Source:
        Ba et al., "Layer normalization", 2016.
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        wanted = {"weight": elementwise_affine, "bias": elementwise_affine and bias}
        self._make(self.normalized_shape, device, dtype, **wanted)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """x / sqrt(mean(x²) + eps) * weight, over the last dimensions of each sample.

    Args:
        eps: keeps the divisor from 0; by default the dtype's machine epsilon.
        elementwise_affine: whether there is a weight.
        the others: as for `LayerNorm`.

    Attributes:
        weight: of shape `normalized_shape`, 1 at first; or None.

    Shape:
        `(*, *normalized_shape)` -> the same.

    Example:
        >>> torch.nn.RMSNorm(2)(torch.tensor([1.0, 7.0])).detach()
        tensor([0.2000, 1.4000])

    Source:
        Zhang and Sennrich, "Root mean square layer normalization", 2019.
    """

    weight: Tensor | None

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(empty(self.normalized_shape, device=device, dtype=dtype))
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 again."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Return the normalised input."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Norm):
    """(x - mean) / sqrt(variance + eps) * weight + bias, over each group of channels of each sample.

    Args:
        num_groups: into how many groups the channels are divided.
        num_channels: the number of channels.
        the others: as for `BatchNorm1d`.

    Attributes:
        weight, bias: of shape `(num_channels,)`, 1 and 0 at first; or None.

    Shape:
        `(N, C, *)` -> the same.

    Raises:
        ValueError: the channels cannot be divided so.

    Example:
        >>> torch.nn.GroupNorm(2, 4)(torch.tensor([[1.0, 3.0, 5.0, 5.0]])).detach()
        tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])

    Source:
        Wu and He, "Group Normalization", 2018.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._make(num_channels, device, dtype, weight=affine, bias=affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the settings."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """x / (k + alpha * mean(x²)) ** beta, the mean over `size` neighbouring channels.

    Arguments as `nn.functional.local_response_norm`.

    Shape:
        `(N, C, *)` -> the same.

    Example:
        >>> torch.nn.LocalResponseNorm(2)(torch.randn(2, 3, 4)).shape
        torch.Size([2, 3, 4])

    Source:
        Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks", 2012, section 3.3.
    """

    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """`LocalResponseNorm` for images as Torch had it: the channels before and after are equally many.

    Args:
        size: by which `alpha` is divided; `(size - 1) // 2` channels before and after are added up.
        alpha, beta, k: as for `LocalResponseNorm`.

    Shape:
        `(N, C, H, W)` -> the same.

    Raises:
        ValueError: the input has not four dimensions.

    Example:
        >>> torch.nn.CrossMapLRN2d(3)(torch.randn(2, 4, 3, 3)).shape
        torch.Size([2, 4, 3, 3])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalised input."""
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        beside = (self.size - 1) // 2
        total = layers._sum_of_neighbours(input * input, beside, beside)
        return input * (total * (self.alpha / self.size) + self.k) ** -self.beta

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
