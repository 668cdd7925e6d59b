"""The Weibull distribution."""

from __future__ import annotations

from typing import Any, Self

from tinytorch.core.tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.exponential import Exponential
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.transforms import AffineTransform, PowerTransform
from tinytorch.distributions.utils import broadcast_all, euler_constant, formula
from tinytorch.ops.create import ones_like

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution, of scale * x^(1 / concentration) for x from Exponential(1).

    Example:
        >>> torch.distributions.Weibull(2.0, 1.0).mean
        tensor(2.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new.concentration_reciprocal = new.concentration.reciprocal()
        new.transforms = [
            PowerTransform(exponent=new.concentration_reciprocal),
            AffineTransform(loc=0, scale=new.scale),
        ]
        return new

    mean = formula(lambda self: self.scale * (1 + self.concentration_reciprocal).lgamma().exp())

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Tensor:
        r = self.concentration_reciprocal
        return self.scale.pow(2) * ((1 + 2 * r).lgamma().exp() - (2 * (1 + r).lgamma()).exp())

    def entropy(self) -> Tensor:
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + (self.scale * r).log() + 1
