"""The uniform distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.utils import broadcast_all, formula
from tinytorch.ops.random import rand

__all__ = ["Uniform"]


class Uniform(Distribution):
    """The uniform distribution on [low, high).

    Raises:
        ValueError: low >= high.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.distributions.Uniform(1.0, 3.0).sample((2,))
        tensor([1.9925, 2.5364])
    """

    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.size(), validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    mean = formula(lambda self: (self.high + self.low) / 2)
    mode = formula(lambda self: float("nan") * self.high)
    stddev = formula(lambda self: (self.high - self.low) / 12**0.5)
    variance = formula(lambda self: (self.high - self.low).pow(2) / 12)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return self.low + rand(self._extended_shape(sample_shape), dtype=self.low.dtype) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        inside = self.low.le(value).type_as(self.low) * self.high.gt(value).type_as(self.low)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
