"""What the half-normal and the half-Cauchy distribution have in common."""

from __future__ import annotations

import math

from tinytorch.core.tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.utils import given
from tinytorch.ops.create import zeros_like


class Half(TransformedDistribution):
    """|x| of x with a distribution that is symmetric around 0, and has a `scale`."""

    support = constraints.nonnegative
    has_rsample = True

    scale = given("base_dist.scale", "The scale of x.")

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        log_prob: Tensor = self.base_dist.log_prob(value) + math.log(2)
        return log_prob.masked_fill(~(value >= 0), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
