"""The generalized Pareto distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.utils import alias, broadcast_all
from tinytorch.ops.arithmetic import isclose
from tinytorch.ops.create import full_like
from tinytorch.ops.masks import where
from tinytorch.ops.random import rand

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The distribution of excesses over a threshold, P(X > x) = (1 + c (x - loc) / scale)^(-1 / c), c = concentration.

    Example:
        >>> torch.distributions.GeneralizedPareto(0.0, 1.0, 0.5).mean
        tensor(2.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def _exponential(self) -> Tensor:
        """Return where the concentration is zero, so that the distribution is exponential."""
        return isclose(self.concentration, self.concentration.new_zeros(()))

    def _safe(self) -> Tensor:
        return where(self._exponential(), full_like(self.concentration, 1.0), self.concentration)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        z = (value - self.loc) / self.scale
        c = self._safe()
        power = 1 / c + 1
        general = where(power == 0, power, -power * (c * z).log1p())  # zero also for 0 * inf
        return -self.scale.log() + where(self._exponential(), -z, general)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return log P(X > value).

        Example:
            >>> torch.distributions.GeneralizedPareto(0.0, 1.0, 0.0).log_survival_function(torch.tensor(2.0))
            tensor(-2.)
        """
        self._check_sample(value)
        z = (value - self.loc) / self.scale
        c = self._safe()
        return where(self._exponential(), -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return log P(X <= value).

        Example:
            >>> torch.distributions.GeneralizedPareto(0.0, 1.0, 0.0).log_cdf(torch.tensor(2.0)).exp()
            tensor(0.8647)
        """
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        c = self._safe()
        log_survival = (-value).log1p()
        general = self.loc + self.scale * (-c * log_survival).expm1() / c
        return where(self._exponential(), self.loc - self.scale * log_survival, general)

    @property
    def mean(self) -> Tensor:
        mean = self.loc + self.scale / (1 - self.concentration)
        return mean.masked_fill(~(self.concentration < 1), float("nan"))

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        variance = self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))
        return variance.masked_fill(~(c < 0.5), float("nan"))

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1

    mode = alias("loc")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        c, infinite = self.concentration, full_like(self.loc, float("inf"))
        return constraints.interval(self.loc, where(c < 0, self.loc - self.scale / c, infinite))
