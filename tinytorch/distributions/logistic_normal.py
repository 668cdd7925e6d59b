"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.distributions import constraints
from tinytorch.distributions.normal import Normal
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.transforms import StickBreakingTransform
from tinytorch.distributions.utils import alias

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """The distribution on the simplex of normal vectors mapped by the stick-breaking transform.

    Example:
        >>> torch.distributions.LogisticNormal(torch.zeros(3), torch.ones(3)).sample().shape
        torch.Size([4])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = alias("base_dist.base_dist.loc", "The mean of the normal vectors.")
    scale = alias("base_dist.base_dist.scale", "The standard deviations of the normal vectors.")
