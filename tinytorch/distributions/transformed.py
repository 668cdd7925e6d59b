"""Distributions of a function of a variable from another distribution."""

from __future__ import annotations

import math
from typing import Any, Self

from tinytorch.core.tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.composed import TransformedDistribution
from tinytorch.distributions.continuous import Cauchy, Exponential, Gamma, Normal, Uniform
from tinytorch.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    StickBreakingTransform,
)
from tinytorch.distributions.utils import alias, broadcast_all, checked, euler_constant, formula, method
from tinytorch.kernels.limits import finfo
from tinytorch.ops.create import as_tensor, full, full_like, ones_like, tensor, zeros_like

__all__ = [
    "Gumbel", "HalfCauchy", "HalfNormal", "InverseGamma", "Kumaraswamy", "LogNormal", "LogisticNormal", "Pareto",
    "Weibull",
]  # fmt: skip


class LogNormal(TransformedDistribution):
    """The distribution of exp(x) for x from Normal(loc, scale).

    Example:
        >>> torch.distributions.LogNormal(0.0, 1.0).mean
        tensor(1.6487)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    loc = alias("base_dist.loc", "The mean of the logarithm.")
    scale = alias("base_dist.scale", "The standard deviation of the logarithm.")
    mean = formula(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = formula(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self) -> Tensor:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    entropy = method(lambda self: self.base_dist.entropy() + self.loc)


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


class Gumbel(TransformedDistribution):
    """The Gumbel distribution: loc - scale * log(-log(u)) for uniform u.

    Example:
        >>> torch.distributions.Gumbel(1.0, 2.0).mode
        tensor(1.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = finfo(self.loc.dtype)
        base = Uniform(full_like(self.loc, info.tiny), full_like(self.loc, 1 - info.eps), validate_args=validate_args)
        transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    mean = formula(lambda self: self.loc + self.scale * euler_constant)
    mode = alias("loc")
    stddev = formula(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = formula(lambda self: self.stddev.pow(2))
    entropy = method(lambda self: self.scale.log() + (1 + euler_constant))


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


class Pareto(TransformedDistribution):
    """The Pareto distribution: P(X > x) = (scale / x)^alpha for x >= scale.

    Example:
        >>> torch.distributions.Pareto(1.0, 3.0).mean
        tensor(1.5000)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)  # infinite for alpha <= 1
        return a * self.scale / (a - 1)

    mode = alias("scale")

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    entropy = method(lambda self: (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal()))


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


class InverseGamma(TransformedDistribution):
    """The distribution of 1 / x for x from Gamma(concentration, rate).

    Example:
        >>> torch.distributions.InverseGamma(3.0, 2.0).mean
        tensor(1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        minus_one = tensor(-1.0, dtype=base.rate.dtype)
        super().__init__(base, PowerTransform(minus_one), validate_args=validate_args)

    concentration = alias("base_dist.concentration", "The shape of x.")
    rate = alias("base_dist.rate", "The rate of x.")

    @property
    def mean(self) -> Tensor:
        mean = self.rate / (self.concentration - 1)
        return mean.where(self.concentration > 1, float("inf"))

    mode = formula(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        variance = self.rate.square() / ((c - 1).square() * (c - 2))
        return variance.where(c > 2, float("inf"))

    def entropy(self) -> Tensor:
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()


class FoldedDistribution(TransformedDistribution):
    """The distribution of |x| for x from a distribution symmetric around 0 with a `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _base: Any

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._base(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    scale = alias("base_dist.scale", "The scale of x.")
    mode = formula(lambda self: zeros_like(self.scale))
    log_prob = checked(lambda self, value: self._log_prob(value))

    def _log_prob(self, value: Tensor) -> Tensor:
        log_prob: Tensor = self.base_dist.log_prob(value) + math.log(2)
        return log_prob.masked_fill(~(value >= 0), -math.inf)

    cdf = checked(lambda self, value: 2 * self.base_dist.cdf(value) - 1)
    icdf = method(lambda self, value: self.base_dist.icdf((value + 1) / 2))
    entropy = method(lambda self: self.base_dist.entropy() - math.log(2))


class HalfNormal(FoldedDistribution):
    """The distribution of |x| for x from Normal(0, scale).

    Example:
        >>> torch.distributions.HalfNormal(1.0).mode
        tensor(0.)
    """

    _base = Normal
    mean = formula(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = formula(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))


class HalfCauchy(FoldedDistribution):
    """The distribution of |x| for x from Cauchy(0, scale).

    Example:
        >>> torch.distributions.HalfCauchy(1.0).mode
        tensor(0.)
    """

    _base = Cauchy
    mean = formula(lambda self: full(self._extended_shape(), math.inf, dtype=self.scale.dtype))
    variance = formula(lambda self: self.base_dist.variance)

    def _log_prob(self, value: Any) -> Tensor:
        return super()._log_prob(as_tensor(value, dtype=self.scale.dtype))
