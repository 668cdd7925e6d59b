"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

from tinytorch._tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.normal import Normal
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.transforms import AbsTransform
from tinytorch.ops.create import zeros_like

__all__ = ["HalfNormal"]


class HalfNormal(TransformedDistribution):
    """|x| of normal x with mean 0 and standard deviation `scale`.

    Example:
        >>> import tinytorch as torch
        >>> torch.distributions.HalfNormal(1.0).mode
        tensor(0.)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of x."""
        scale: Tensor = self.base_dist.scale
        return scale

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        log_prob: Tensor = self.base_dist.log_prob(value) + math.log(2)
        return log_prob.masked_fill(~(value >= 0), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        cdf: Tensor = 2 * self.base_dist.cdf(value) - 1
        return cdf

    def icdf(self, value: Tensor) -> Tensor:
        icdf: Tensor = self.base_dist.icdf((value + 1) / 2)
        return icdf

    def entropy(self) -> Tensor:
        entropy: Tensor = self.base_dist.entropy() - math.log(2)
        return entropy
