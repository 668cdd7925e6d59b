"""The half-normal distribution, and the base class of folded distributions."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.normal import Normal
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.transforms import AbsTransform
from tinytorch.distributions.utils import alias, formula
from tinytorch.ops.create import zeros_like

__all__ = ["HalfNormal"]


class FoldedDistribution(TransformedDistribution):
    """The distribution of |x| for x from a distribution symmetric around 0 with a `scale`."""

    support = constraints.nonnegative
    has_rsample = True
    scale = alias("base_dist.scale", "The scale of x.")
    mode = formula(lambda self: zeros_like(self.scale))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self._log_prob(value)

    def _log_prob(self, value: Tensor) -> Tensor:
        log_prob: Tensor = self.base_dist.log_prob(value) + math.log(2)
        return log_prob.masked_fill(~(value >= 0), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(FoldedDistribution):
    """The distribution of |x| for x from Normal(0, scale).

    Example:
        >>> torch.distributions.HalfNormal(1.0).mode
        tensor(0.)
    """

    arg_constraints = {"scale": constraints.positive}

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    mean = formula(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = formula(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))
