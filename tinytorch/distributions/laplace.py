"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.utils import alias, broadcast_all, formula
from tinytorch.kernels.limits import finfo
from tinytorch.ops.create import empty
from tinytorch.ops.random import apart

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The Laplace distribution, with density exp(-|x - loc| / scale) / (2 scale).

    Example:
        >>> torch.distributions.Laplace(0.0, 1.0).variance
        tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    mean = mode = alias("loc")

    variance = formula(lambda self: 2 * self.scale.pow(2))
    stddev = formula(lambda self: 2**0.5 * self.scale)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        dtype = self.loc.dtype
        u = apart(empty(shape, dtype=dtype)).uniform_(finfo(dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        difference = value - self.loc
        return 0.5 - 0.5 * difference.sign() * (-difference.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
