"""The exponential distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.exp_family import ExponentialFamily
from tinytorch.distributions.utils import broadcast_all, formula
from tinytorch.ops.create import empty, zeros_like
from tinytorch.ops.random import apart

__all__ = ["Exponential"]


class Exponential(ExponentialFamily):
    """The exponential distribution, with density rate * exp(-rate x).

    Example:
        >>> torch.distributions.Exponential(2.0).mean
        tensor(0.5000)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = formula(lambda self: self.rate.reciprocal())
    mode = formula(lambda self: zeros_like(self.rate))
    stddev = mean
    variance = formula(lambda self: self.rate.pow(-2))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return apart(empty(self._extended_shape(sample_shape), dtype=self.rate.dtype)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return 1 - (-self.rate * value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return -(-value).log1p() / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - self.rate.log()

    _natural_params: Any = formula(lambda self: (-self.rate,))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return -(-x).log()
