"""The inverse gamma distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.gamma import Gamma
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.transforms import PowerTransform
from tinytorch.distributions.utils import alias, formula
from tinytorch.ops.create import tensor

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / x for x from Gamma(concentration, rate).

    Example:
        >>> torch.distributions.InverseGamma(3.0, 2.0).mean
        tensor(1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        minus_one = tensor(-1.0, dtype=base.rate.dtype)
        super().__init__(base, PowerTransform(minus_one), validate_args=validate_args)

    concentration = alias("base_dist.concentration", "The shape of x.")
    rate = alias("base_dist.rate", "The rate of x.")

    @property
    def mean(self) -> Tensor:
        mean = self.rate / (self.concentration - 1)
        return mean.where(self.concentration > 1, float("inf"))

    mode = formula(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        variance = self.rate.square() / ((c - 1).square() * (c - 2))
        return variance.where(c > 2, float("inf"))

    def entropy(self) -> Tensor:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()
