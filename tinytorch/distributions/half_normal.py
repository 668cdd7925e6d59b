"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions._half import Half
from tinytorch.distributions.normal import Normal
from tinytorch.distributions.transforms import AbsTransform

__all__ = ["HalfNormal"]


class HalfNormal(Half):
    """|x| of normal x with mean 0 and standard deviation `scale`.

    Example:
        >>> torch.distributions.HalfNormal(1.0).mode
        tensor(0.)
    """

    arg_constraints = {"scale": constraints.positive}

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)
