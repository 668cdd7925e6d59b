"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.exp_family import ExponentialFamily
from tinytorch.distributions.utils import _standard_normal, alias, broadcast_all, formula
from tinytorch.ops.random import normal

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.distributions.Normal(0.0, 1.0).sample((2,))
        tensor([ 1.5410, -0.2934])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    mean = mode = alias("loc")
    stddev = alias("scale")
    variance = formula(lambda self: self.stddev.pow(2))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return self.loc + _standard_normal(self._extended_shape(sample_shape), self.loc.dtype) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        variance = self.scale**2
        return -((value - self.loc) ** 2) / (2 * variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    _natural_params: Any = formula(lambda self: (self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x.pow(2) / y + 0.5 * (-math.pi / y).log()
