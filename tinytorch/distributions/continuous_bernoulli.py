"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.exp_family import ExponentialFamily
from tinytorch.distributions.utils import (
    ProbsOrLogits,
    broadcast_all,
    clamp_probs,
    formula,
    lazy_property,
    logits_to_probs,
)
from tinytorch.nn.functional import binary_cross_entropy_with_logits
from tinytorch.ops.create import full_like, ones_like, zeros_like
from tinytorch.ops.masks import where
from tinytorch.ops.random import rand

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """The distribution on [0, 1] with a density proportional to probs^x (1 - probs)^(1 - x).

    Args:
        probs: the parameter, in (0, 1); it is not a probability.
        logits: alternatively, its log odds.
        lims: an interval around 1/2 in which Taylor series replace formulas that lose precision there.

    Source:
        Loaiza-Ganem and Cunningham, "The Continuous Bernoulli", 2019.

    Example:
        >>> torch.distributions.ContinuousBernoulli(torch.tensor(0.5)).mean
        tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True
    _copied = ("_given", "_lims")

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._set_param(probs, logits)
        if probs is not None:
            if validate_args is not None and not constraints.unit_interval.check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def _outside(self) -> Tensor:
        """Return where `probs` is outside of `lims`: there the closed formulas are used."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        """Return `probs` with values inside of `lims` replaced by the lower limit."""
        return where(self._outside(), self.probs, full_like(self.probs, self._lims[0]))

    def _log_norm(self) -> Tensor:
        """Return the logarithm of the density's normalizing constant."""
        cut = self._cut()
        below = where(cut <= 0.5, cut, zeros_like(cut))
        above = where(cut >= 0.5, cut, ones_like(cut))
        log_norm = ((-cut).log1p() - cut.log()).abs().log() - where(
            cut <= 0.5, (-2.0 * below).log1p(), (2.0 * above - 1.0).log()
        )
        x = (self.probs - 0.5).pow(2)
        taylor = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x
        return where(self._outside(), log_norm, taylor)

    @property
    def mean(self) -> Tensor:
        cut = self._cut()
        mean = cut / (2.0 * cut - 1.0) + 1.0 / ((-cut).log1p() - cut.log())
        x = self.probs - 0.5
        taylor = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x
        return where(self._outside(), mean, taylor)

    @property
    def variance(self) -> Tensor:
        cut = self._cut()
        variance = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2) + 1.0 / ((-cut).log1p() - cut.log()).pow(2)
        x = (self.probs - 0.5).pow(2)
        taylor = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x
        return where(self._outside(), variance, taylor)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        cross_entropy = binary_cross_entropy_with_logits(logits, value, reduction="none")
        return -cross_entropy + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        cut = self._cut()
        cdf = (cut.pow(value) * (1.0 - cut).pow(1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        inside = where(self._outside(), cdf, value)
        return where(value <= 0.0, zeros_like(value), where(value >= 1.0, ones_like(value), inside))

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut()
        quantile = ((-cut + value * (2.0 * cut - 1.0)).log1p() - (-cut).log1p()) / (cut.log() - (-cut).log1p())
        return where(self._outside(), quantile, value)

    def entropy(self) -> Tensor:
        log_zero, log_one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log_zero - log_one) - self._log_norm() - log_zero

    _natural_params: Any = formula(lambda self: (self.logits,))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = where(outside, x, full_like(x, self._lims[0] - 0.5))
        log_norm = cut.expm1().abs().log() - cut.abs().log()
        taylor = 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0
        return where(outside, log_norm, taylor)
