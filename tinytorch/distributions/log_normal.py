"""The log-normal distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.normal import Normal
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.transforms import ExpTransform
from tinytorch.distributions.utils import alias, formula

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """The distribution of exp(x) for x from Normal(loc, scale).

    Example:
        >>> torch.distributions.LogNormal(0.0, 1.0).mean
        tensor(1.6487)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    loc = alias("base_dist.loc", "The mean of the logarithm.")
    scale = alias("base_dist.scale", "The standard deviation of the logarithm.")
    mean = formula(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = formula(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self) -> Tensor:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
