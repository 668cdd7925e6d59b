"""The affine layers `Linear` and `Bilinear`, and `Identity`."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn import init
from tinytorch.nn.modules.lazy import LazyModuleMixin
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter, UninitializedParameter
from tinytorch.ops.create import empty

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input; any arguments are accepted and ignored.

    Example:
        >>> torch.nn.Identity(54, unused=True)(torch.ones(2))
        tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """y = x Wᵀ + b.

    Attributes:
        weight: `(out_features, in_features)`, from U(-k, k) with k = 1/sqrt(in_features).
        bias: `(out_features,)`, from the same distribution, or None.

    Shape: `(*, in_features)` -> `(*, out_features)`.

    Example:
        >>> layer = torch.nn.Linear(20, 30)
        >>> layer(torch.ones(128, 20)).shape
        torch.Size([128, 30])
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        # With a = sqrt(5) the bound sqrt(3) * gain / sqrt(fan_in) equals 1 / sqrt(fan_in).
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Return x Wᵀ + b, of shape `(*, out_features)`."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """`Linear` under PyTorch's name for it in `MultiheadAttention`."""


class Bilinear(Module):
    """y_k = x1ᵀ W_k x2 + b_k.

    Attributes:
        weight: `(out_features, in1_features, in2_features)`, from U(-k, k) with k = 1/sqrt(in1_features).
        bias: `(out_features,)`, from the same distribution, or None.

    Shape: `(*, in1_features)`, `(*, in2_features)` -> `(*, out_features)`.

    Example:
        >>> layer = torch.nn.Bilinear(20, 30, 40)
        >>> layer(torch.ones(128, 20), torch.ones(128, 30)).shape
        torch.Size([128, 40])
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        if self.in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got (in1_features={self.in1_features})")
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Return the bilinear form of both inputs, of shape `(*, out_features)`."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that takes `in_features` from its first input.

    Example:
        >>> layer = torch.nn.LazyLinear(3)
        >>> layer(torch.ones(2, 7)).shape, layer
        (torch.Size([2, 3]), Linear(in_features=7, out_features=3, bias=True))
    """

    cls_to_become = Linear
    weight: Any
    bias: Any

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        # Without a bias, which is drawn later, after the weight.
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters again, unless they have no shape yet."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Give the parameters the shapes that match `input`, and draw them."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                    init.zeros_(self.bias)  # which is not drawn without features
                self.reset_parameters()
        if self.in_features == 0:  # the parameters were loaded
            self.in_features = input.shape[-1]
