"""The Kumaraswamy distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.transforms import AffineTransform, PowerTransform
from tinytorch.distributions.uniform import Uniform
from tinytorch.distributions.utils import broadcast_all, euler_constant, formula
from tinytorch.ops.create import full_like

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The Kumaraswamy distribution: P(X <= x) = 1 - (1 - x^a)^b with a = concentration1, b = concentration0.

    Example:
        >>> torch.distributions.Kumaraswamy(1.0, 1.0).mean
        tensor(0.5000)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        low, high = full_like(self.concentration0, 0), full_like(self.concentration0, 1)
        base = Uniform(low, high, validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int) -> Tensor:
        """Return the mean of X^n."""
        a, b = self.concentration1, self.concentration0
        one = 1 + n / a
        return (one.lgamma() + b.lgamma() - (one + b).lgamma()).exp() * b

    mean = formula(lambda self: self._moment(1))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        # PyTorch 2.13 takes logarithms of negative numbers here, and returns NaN.
        mode = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return mode.masked_fill((b < 1) | (a < 1), float("nan"))

    variance = formula(lambda self: self._moment(2) - self.mean.pow(2))

    def entropy(self) -> Tensor:
        one, zero = 1 - self.concentration1.reciprocal(), 1 - self.concentration0.reciprocal()
        harmonic = (self.concentration0 + 1).digamma() + euler_constant
        return zero + one * harmonic - self.concentration1.log() - self.concentration0.log()
