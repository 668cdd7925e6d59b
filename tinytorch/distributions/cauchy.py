"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.utils import alias, broadcast_all, formula
from tinytorch.ops.create import empty, full

__all__ = ["Cauchy"]


class Cauchy(Distribution):
    """The Cauchy distribution with median `loc` and half width at half maximum `scale`.

    Example:
        >>> torch.distributions.Cauchy(1.0, 2.0).mode
        tensor(1.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    mean = formula(lambda self: full(self._extended_shape(), float("nan"), dtype=self.loc.dtype))
    mode = alias("loc")
    variance = formula(lambda self: full(self._extended_shape(), float("inf"), dtype=self.loc.dtype))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return self.loc + empty(self._extended_shape(sample_shape), dtype=self.loc.dtype).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
