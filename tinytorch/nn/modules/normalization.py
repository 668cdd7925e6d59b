"""Layers that normalise their input to mean 0 and variance 1, over features or groups of channels."""

from __future__ import annotations

import numbers
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn import init
from tinytorch.nn.modules._family import layer
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.create import empty

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _AffineNorm(Module):
    """The base of normalisations with a weight and a bias, which may be None."""

    weight: Tensor | None
    bias: Tensor | None

    def _register_affine(self, shape: Any, device: Any, dtype: Any, weight: bool, bias: bool) -> None:
        for name, present in (("weight", weight), ("bias", bias)):
            self.register_parameter(name, Parameter(empty(shape, device=device, dtype=dtype)) if present else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_AffineNorm):
    """(x - mean) / sqrt(variance + eps) * weight + bias, over the last dimensions; see `nn.functional.layer_norm`.

    Shape: `(*, *normalized_shape)` -> the same; `weight` and `bias`, if `elementwise_affine` and `bias`, have the shape
    `normalized_shape`, which may be one int.

    Example:
        >>> torch.nn.LayerNorm(3)(torch.tensor([1.0, 2.0, 3.0])).detach()
        tensor([-1.2247,  0.0000,  1.2247])
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
        self._register_affine(self.normalized_shape, device, dtype, elementwise_affine, elementwise_affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """x / sqrt(mean(x²) + eps) * weight, over the last dimensions; see `nn.functional.rms_norm`.

    Shape: `(*, *normalized_shape)` -> the same; `eps` is by default the dtype's machine epsilon.

    Example:
        >>> torch.nn.RMSNorm(2)(torch.tensor([1.0, 7.0])).detach()
        tensor([0.2000, 1.4000])
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
        weight = Parameter(empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_AffineNorm):
    """(x - mean) / sqrt(variance + eps) * weight + bias, over groups of channels; see `nn.functional.group_norm`.

    Shape: `(N, C, *)` -> the same; `weight` and `bias`, if `affine` and `bias`, are `(num_channels,)`.

    Example:
        >>> torch.nn.GroupNorm(2, 4)(torch.tensor([[1.0, 3.0, 5.0, 5.0]])).detach()
        tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])
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
        self._register_affine(num_channels, device, dtype, affine, affine and bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class _LocalNorm(Module):
    """The base of normalisations over neighbouring channels."""

    size: int
    alpha: float
    beta: float
    k: float

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


@layer(F.local_response_norm)
class LocalResponseNorm(_LocalNorm):
    """x / (k + alpha * mean(x²)) ** beta, the mean over `size` neighbouring channels.

    Arguments as `nn.functional.local_response_norm`.

    Shape: `(N, C, *)` -> the same.

    Example:
        >>> torch.nn.LocalResponseNorm(2)(torch.randn(2, 3, 4)).shape
        torch.Size([2, 3, 4])
    """

    size: int
    alpha: float = 0.0001
    beta: float = 0.75
    k: float = 1.0


@layer()
class CrossMapLRN2d(_LocalNorm):
    """`LocalResponseNorm` for images as in Lua Torch: with `(size - 1) // 2` channels on both sides.

    Shape: `(N, C, H, W)` -> the same; `alpha` is divided by `size`.

    Example:
        >>> torch.nn.CrossMapLRN2d(3)(torch.randn(2, 4, 3, 3)).shape
        torch.Size([2, 4, 3, 3])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        width, channels = (self.size - 1) // 2, input.shape[1]
        padded = F.pad(input * input, [0, 0, 0, 0, width, width])
        total = padded.narrow(1, 0, channels)
        for k in range(1, 2 * width + 1):
            total = total + padded.narrow(1, k, channels)
        return input * (total * (self.alpha / self.size) + self.k) ** -self.beta
