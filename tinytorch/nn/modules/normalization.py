"""Layers that bring their input to mean 0 and variance 1."""

from __future__ import annotations

from typing import Any

from tinytorch._tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn import init
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.create import empty

__all__ = ["LayerNorm", "RMSNorm"]


class LayerNorm(Module):
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
        >>> import tinytorch as torch
        >>> torch.nn.LayerNorm(3)(torch.tensor([1.0, 2.0, 3.0])).detach()
        tensor([-1.2247,  0.0000,  1.2247])

    Source:
        Ba et al., "Layer normalization", 2016.
    """

    weight: Tensor | None
    bias: Tensor | None

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
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", True), ("bias", bias)):
            if elementwise_affine and wanted:
                values = empty(self.normalized_shape, device=device, dtype=dtype)
                self.register_parameter(name, Parameter(values))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0 again."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

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
        normalized_shape: the lengths of these dimensions, or of the only one.
        eps: keeps the divisor from 0; by default the dtype's machine epsilon.
        elementwise_affine: whether there is a weight.
        device, dtype: of the weight.

    Attributes:
        weight: of shape `normalized_shape`, 1 at first; or None.

    Shape:
        `(*, *normalized_shape)` -> the same.

    Example:
        >>> import tinytorch as torch
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
        if isinstance(normalized_shape, int):
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
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )
