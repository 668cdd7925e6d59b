"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from tinytorch._tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.cauchy import Cauchy
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.transforms import AbsTransform
from tinytorch.ops.create import as_tensor, full, zeros_like

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """|x| of x with a Cauchy distribution around 0, of half width `scale`.

    Example:
        >>> import tinytorch as torch
        >>> torch.distributions.HalfCauchy(1.0).mode
        tensor(0.)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of x."""
        scale: Tensor = self.base_dist.scale
        return scale

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), math.inf, dtype=self.scale.dtype)

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        variance: Tensor = self.base_dist.variance
        return variance

    def log_prob(self, value: Any) -> Tensor:
        value = as_tensor(value, dtype=self.base_dist.scale.dtype)
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
