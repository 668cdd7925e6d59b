"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.exp_family import ExponentialFamily
from tinytorch.distributions.utils import alias, broadcast_all, formula
from tinytorch.ops.rejection import poisson

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """The Poisson distribution with mean `rate`.

    Example:
        >>> torch.distributions.Poisson(0.0).sample((2,))
        tensor([0., 0.])
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = variance = alias("rate")

    mode = formula(lambda self: self.rate.floor())

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    _natural_params: Any = formula(lambda self: (self.rate.log(),))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp()
