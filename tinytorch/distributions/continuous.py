"""Continuous distributions of one variable, and the Dirichlet distribution, of which `Beta` is a case."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from tinytorch.autograd.function import Function, once_differentiable
from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution, ExponentialFamily
from tinytorch.distributions.utils import (
    ProbsOrLogits,
    _standard_normal,
    alias,
    broadcast_all,
    checked,
    clamp_probs,
    formula,
    lazy_property,
    logits_to_probs,
    method,
)
from tinytorch.kernels import dtypes
from tinytorch.kernels.limits import finfo
from tinytorch.nn.functional import binary_cross_entropy_with_logits, one_hot
from tinytorch.ops.arithmetic import isclose
from tinytorch.ops.create import as_tensor, empty, full, full_like, ones_like, tensor, zeros, zeros_like
from tinytorch.ops.join import stack
from tinytorch.ops.masks import where
from tinytorch.ops.random import apart, normal, rand
from tinytorch.ops.rejection import _dirichlet_grad, _sample_dirichlet, _standard_gamma

__all__ = [
    "Beta", "Cauchy", "Chi2", "ContinuousBernoulli", "Dirichlet", "Exponential", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Laplace", "Normal", "StudentT", "Uniform", "VonMises",
]  # fmt: skip


class LocScale(Distribution):
    """Base class of families on the real line with a location, at which the density is highest, and a scale."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    mode = alias("loc")


class Normal(LocScale, ExponentialFamily):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.distributions.Normal(0.0, 1.0).sample((2,))
        tensor([ 1.5410, -0.2934])
    """

    _mean_carrier_measure = 0

    mean = alias("loc")
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

    cdf = checked(lambda self, value: 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)).erf()))
    icdf = method(lambda self, value: self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2))
    entropy = method(lambda self: 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log())
    _natural_params: Any = formula(lambda self: (self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()))
    _log_normalizer = method(lambda self, x, y: -0.25 * x.pow(2) / y + 0.5 * (-math.pi / y).log())


class Laplace(LocScale):
    """The Laplace distribution, with density exp(-|x - loc| / scale) / (2 scale).

    Example:
        >>> torch.distributions.Laplace(0.0, 1.0).variance
        tensor(2.)
    """

    mean = alias("loc")
    variance = formula(lambda self: 2 * self.scale.pow(2))
    stddev = formula(lambda self: 2**0.5 * self.scale)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        dtype = self.loc.dtype
        u = apart(empty(shape, dtype=dtype)).uniform_(finfo(dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    log_prob = checked(lambda self, value: -(2 * self.scale).log() - (value - self.loc).abs() / self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        difference = value - self.loc
        return 0.5 - 0.5 * difference.sign() * (-difference.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    entropy = method(lambda self: 1 + (2 * self.scale).log())


class Cauchy(LocScale):
    """The Cauchy distribution with median `loc` and half width at half maximum `scale`.

    Example:
        >>> torch.distributions.Cauchy(1.0, 2.0).mode
        tensor(1.)
    """

    mean = formula(lambda self: full(self._extended_shape(), float("nan"), dtype=self.loc.dtype))
    variance = formula(lambda self: full(self._extended_shape(), float("inf"), dtype=self.loc.dtype))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return self.loc + empty(self._extended_shape(sample_shape), dtype=self.loc.dtype).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    cdf = checked(lambda self, value: ((value - self.loc) / self.scale).atan() / math.pi + 0.5)
    icdf = method(lambda self, value: (math.pi * (value - 0.5)).tan() * self.scale + self.loc)
    entropy = method(lambda self: math.log(4 * math.pi) + self.scale.log())


# Coefficients by ascending power for I0 and I1, below 3.75 and above: Abramowitz and Stegun, 9.8.1 to 9.8.4.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
)
_LARGE = (
    (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377),
    (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654, -0.00420059),
)


def _polynomial(y: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    value: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = coefficient + y * value
    return value


def _log_bessel(x: Tensor, order: int) -> Tensor:
    """Return the logarithm of the modified Bessel function I0 or I1 of x > 0."""
    y = x / 3.75
    y = y * y
    small = _polynomial(y, _SMALL[order])
    if order == 1:
        small = x.abs() * small
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return where(x < 3.75, small.log(), large)


class VonMises(Distribution):
    """The von Mises distribution of angles, with mean direction `loc` and concentration `concentration`.

    Example:
        >>> d = torch.distributions.VonMises(torch.tensor([1.0]), torch.tensor([4.0]))
        >>> d.sample((2,)).shape
        torch.Size([2, 1])

    Source:
        Best and Fisher, "Efficient Simulation of the von Mises Distribution", 1979.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, Size(), validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        log_prob = self.concentration * (value - self.loc).cos()
        return log_prob - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        kappa = self.concentration.double()
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        # For small kappa the formula loses all precision: use a Taylor series.
        return where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            kappa, r = self.concentration.double(), self._proposal_r
            x = zeros(shape, dtype=dtypes.float64)
            done = zeros(shape, dtype=dtypes.bool)
            while not done.all():
                u1, u2, u3 = rand((3, *shape), dtype=dtypes.float64).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
                x = where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            angle = (x + math.pi + self.loc.double()) % (2 * math.pi) - math.pi
            return angle.to(self.loc.dtype)

    mean = mode = alias("loc")

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()


class Uniform(Distribution):
    """The uniform distribution on [low, high).

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

    cdf = checked(lambda self, value: ((value - self.low) / (self.high - self.low)).clamp(0, 1))
    icdf = method(lambda self, value: value * (self.high - self.low) + self.low)
    entropy = method(lambda self: (self.high - self.low).log())


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

    log_prob = checked(lambda self, value: self.rate.log() - self.rate * value)
    cdf = checked(lambda self, value: 1 - (-self.rate * value).exp())
    icdf = method(lambda self, value: -(-value).log1p() / self.rate)
    entropy = method(lambda self: 1.0 - self.rate.log())
    _natural_params: Any = formula(lambda self: (-self.rate,))
    _log_normalizer = method(lambda self, x: -(-x).log())


class Gamma(ExponentialFamily):
    """The gamma distribution with shape `concentration` and rate `rate`.

    Example:
        >>> torch.distributions.Gamma(3.0, 2.0).mean
        tensor(1.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    mean = formula(lambda self: self.concentration / self.rate)
    mode = formula(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = formula(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value.dtype).tiny)  # the density at zero is zero or infinite
        return value

    def log_prob(self, value: Any) -> Tensor:
        value = as_tensor(value, dtype=self.rate.dtype)
        self._check_sample(value)
        c = self.concentration
        return c.xlogy(self.rate) + (c - 1).xlogy(value) - self.rate * value - c.lgamma()

    def entropy(self) -> Tensor:
        c = self.concentration
        return c - self.rate.log() + c.lgamma() + (1.0 - c) * c.digamma()

    cdf = checked(lambda self, value: self.concentration.igamma(self.rate * value))
    _natural_params: Any = formula(lambda self: (self.concentration - 1, -self.rate))
    _log_normalizer = method(lambda self, x, y: (x + 1).lgamma() + (x + 1) * (-y.reciprocal()).log())


class Chi2(Gamma):
    """The chi-squared distribution with `df` degrees of freedom: Gamma(df / 2, 1 / 2).

    Example:
        >>> torch.distributions.Chi2(3.0).mean
        tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}
    _expanded_params = Gamma.arg_constraints

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = formula(lambda self: self.concentration * 2, "The degrees of freedom.")


class _Dirichlet(Function):
    """Sampling with implicit reparameterization gradients, which follow from the beta-distributed marginals."""

    generate_vmap_rule = True

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x = _sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        x, concentration = ctx.saved_tensors
        total = concentration.sum(-1, True).expand_as(concentration)
        grad = _dirichlet_grad(x, concentration, total)
        return grad * (grad_output - (x * grad_output).sum(-1, True))


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution on the simplex, with `concentration` of shape (..., K).

    Example:
        >>> torch.distributions.Dirichlet(torch.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(Size(shape[:-1]), Size(shape[-1:]), validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        c = self.concentration
        return (c - 1.0).xlogy(value).sum(-1) + c.sum(-1).lgamma() - c.lgamma().sum(-1)

    mean = formula(lambda self: self.concentration / self.concentration.sum(-1, True))

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        corners = (self.concentration < 1).all(-1)
        corner = one_hot(mode.argmax(-1), self.concentration.shape[-1]).to(mode)
        return where(corners.unsqueeze(-1), corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        c, total = self.concentration, self.concentration.sum(-1)
        total_term = (c.size(-1) - total) * total.digamma()
        return c.lgamma().sum(-1) - total.lgamma() - total_term - ((c - 1.0) * c.digamma()).sum(-1)

    _natural_params: Any = formula(lambda self: (self.concentration,))
    _log_normalizer = method(lambda self, x: x.lgamma().sum(-1) - x.sum(-1).lgamma())


class Beta(ExponentialFamily):
    """The beta distribution, with density x^(concentration1 - 1) (1 - x)^(concentration0 - 1) / B.

    Example:
        >>> torch.distributions.Beta(1.0, 3.0).mean
        tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _components = ("_dirichlet",)

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        if isinstance(concentration1, Real) and isinstance(concentration0, Real):
            concentration = tensor([float(concentration1), float(concentration0)])
        else:
            concentration = stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(concentration, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    mean = formula(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = formula(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    rsample = method(lambda self, sample_shape=(): self._dirichlet.rsample(sample_shape).select(-1, 0))
    log_prob = checked(lambda self, value: self._dirichlet.log_prob(stack([value, 1.0 - value], -1)))
    entropy = method(lambda self: self._dirichlet.entropy())
    concentration1 = formula(lambda self: self._dirichlet.concentration[..., 0], "The exponent of x, plus one.")
    concentration0 = formula(lambda self: self._dirichlet.concentration[..., 1], "The exponent of 1 - x, plus one.")
    _natural_params: Any = formula(lambda self: (self.concentration1, self.concentration0))
    _log_normalizer = method(lambda self, x, y: x.lgamma() + y.lgamma() - (x + y).lgamma())


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared variables divided by their degrees of freedom, `df1` and `df2`.

    Example:
        >>> torch.distributions.FisherSnedecor(2.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _components = ("_gamma1", "_gamma2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 2, float("nan"))
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, float("nan"))

    @property
    def variance(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 4, float("nan"))
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x1 = self._gamma1.rsample(sample_shape).view(shape)
        x2 = self._gamma2.rsample(sample_shape).view(shape)
        tiny = finfo(x2.dtype).tiny
        return (x1 / x2.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        t1 = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        t2 = half1 * ratio.log() + (half1 - 1) * value.log()
        t3 = (half1 + half2) * (ratio * value).log1p()
        return t1 + t2 - t3


class StudentT(Distribution):
    """Student's t-distribution with `df` degrees of freedom, location `loc` and scale `scale`.

    Example:
        >>> torch.distributions.StudentT(4.0).variance
        tensor(2.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _components = ("_chi2",)

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    mean = formula(lambda self: self.loc.masked_fill(self.df <= 1, float("nan")))
    mode = alias("loc")

    @property
    def variance(self) -> Tensor:
        # df is replaced where the variance is infinite: there the formula's gradient would be NaN.
        df = self.df.masked_fill(self.df <= 2, 3.0)
        finite = self.scale.pow(2) * df / (df - 2)
        return finite.masked_fill(self.df <= 2, float("inf")).masked_fill(self.df <= 1, float("nan"))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, self.df.dtype)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * (z / self.df).rsqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        y = (value - self.loc) / self.scale
        half, above = 0.5 * self.df, 0.5 * (self.df + 1.0)
        z = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + half.lgamma() - above.lgamma()
        return -above * (y**2.0 / self.df).log1p() - z

    def entropy(self) -> Tensor:
        half, above = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + 0.5 * math.log(math.pi) - above.lgamma()
        return self.scale.log() + above * (above.digamma() - half.digamma()) + 0.5 * self.df.log() + log_beta


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

    _safe = method(lambda self: where(self._exponential(), full_like(self.concentration, 1.0), self.concentration))

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

    cdf = method(lambda self, value: self.log_cdf(value).exp())

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

    entropy = method(lambda self: self.scale.log() + self.concentration + 1)
    mode = alias("loc")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        c, infinite = self.concentration, full_like(self.loc, float("inf"))
        return constraints.interval(self.loc, where(c < 0, self.loc - self.scale / c, infinite))
