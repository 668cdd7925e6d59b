"""Kullback-Leibler divergences of pairs of distributions, in closed form.

Divergences within an exponential family follow Nielsen and Nock, "Entropies and Cross-entropies of Exponential
Families", 2010; the others are integrals of log p - log q.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinytorch import linalg
from tinytorch.core.mode import traced_as
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.distributions.composed import Independent, TransformedDistribution
from tinytorch.distributions.continuous import (
    Beta,
    Cauchy,
    ContinuousBernoulli,
    Dirichlet,
    Exponential,
    Gamma,
    Laplace,
    Normal,
    Uniform,
)
from tinytorch.distributions.discrete import Bernoulli, Binomial, Categorical, Geometric, OneHotCategorical, Poisson
from tinytorch.distributions.distribution import Distribution, ExponentialFamily
from tinytorch.distributions.multivariate import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    Wishart,
    _multivariate_digamma,
    _squared_length,
)
from tinytorch.distributions.transformed import Gumbel, HalfNormal, Pareto
from tinytorch.distributions.utils import _sum_rightmost, euler_constant
from tinytorch.nn.functional import softplus
from tinytorch.ops.create import full_like

__all__ = ["kl_divergence", "register_kl"]

_INF = math.inf
_Divergence = Callable[[Any, Any], Tensor]
_KL_REGISTRY: dict[tuple[type, type], _Divergence] = {}
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[_Divergence], _Divergence]:
    """Register the decorated function as kl_divergence(p, q) for two classes and their subclasses.

    If several functions match, the one registered for the most specific classes is used.

    Example:
        >>> class Mine(torch.distributions.Normal):
        ...     pass
        >>> @torch.distributions.register_kl(Mine, Mine)
        ... def kl(p, q):
        ...     return "mine"
        >>> torch.distributions.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0))
        'mine'
    """
    for name, cls in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(cls, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {cls}")

    def decorator(function: _Divergence) -> _Divergence:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


def _dispatch(type_p: type, type_q: type) -> Any:
    """Return the function registered for the most specific classes, or NotImplemented."""
    matches = [
        (type_p.__mro__.index(p), type_q.__mro__.index(q), function)
        for (p, q), function in _KL_REGISTRY.items()
        if issubclass(type_p, p) and issubclass(type_q, q)
    ]
    if not matches:
        return NotImplemented
    left = min(matches, key=lambda match: (match[0], match[1]))[2]
    right = min(matches, key=lambda match: (match[1], match[0]))[2]
    if left is not right:
        warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({type_p.__name__}, {type_q.__name__})",
            RuntimeWarning,
        )
    return left


@traced_as("trusted", registry=_KL_REGISTRY)
def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the divergence KL(p || q), the mean of log p(x) - log q(x) over x from p, with shape `batch_shape`.

    Example:
        >>> d = torch.distributions
        >>> d.kl_divergence(d.Normal(1.0, 1.0), d.Normal(0.0, 1.0))
        tensor(0.5000)
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _dispatch(*pair)
    function = _KL_MEMOIZE[pair]
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return function(p, q)


def _uniform_mean_log(low: Tensor, high: Tensor, width: Tensor) -> Tensor:
    """Return the mean of log x for x from Uniform(low, high), where width = high - low."""
    return (high.xlogy(high) - low.xlogy(low) - width) / width


def _gamma_log_norm(q: Gamma) -> Tensor:
    """Return the logarithm of the reciprocal of the density's normalizing constant."""
    return q.concentration.lgamma() - q.concentration * q.rate.log()


# Pairs of the same family ------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = one.masked_fill(q.probs == 0, _INF).masked_fill(p.probs == 0, 0)
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zero = zero.masked_fill(q.probs == 1, _INF).masked_fill(p.probs == 1, 0)
    return one + zero


@register_kl(Beta, Beta)
def _beta_beta(p: Beta, q: Beta) -> Tensor:
    total_p = p.concentration1 + p.concentration0
    total_q = q.concentration1 + q.concentration0
    norm_q = q.concentration1.lgamma() + q.concentration0.lgamma() + total_p.lgamma()
    norm_p = p.concentration1.lgamma() + p.concentration0.lgamma() + total_q.lgamma()
    one = (p.concentration1 - q.concentration1) * p.concentration1.digamma()
    zero = (p.concentration0 - q.concentration0) * p.concentration0.digamma()
    return norm_q - norm_p + one + zero + (total_q - total_p) * total_p.digamma()


@register_kl(Binomial, Binomial)
def _binomial_binomial(p: Binomial, q: Binomial) -> Tensor:
    # With more trials than q, p has values that q has not; with fewer, there is no closed form.
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return kl.masked_fill(p.total_count > q.total_count, _INF)


@register_kl(Categorical, Categorical)
def _categorical_categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    return terms.masked_fill(q.probs == 0, _INF).masked_fill(p.probs == 0, 0).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli_continuous_bernoulli(p: ContinuousBernoulli, q: ContinuousBernoulli) -> Tensor:
    return p.mean * (p.logits - q.logits) + (p._log_norm() + (-p.probs).log1p()) - (q._log_norm() + (-q.probs).log1p())


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    total_p = p.concentration.sum(-1)
    total_q = q.concentration.sum(-1)
    norms = (q.concentration.lgamma() - p.concentration.lgamma()).sum(-1)
    mean_log = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    cross_term = ((p.concentration - q.concentration) * mean_log).sum(-1)
    return total_p.lgamma() - total_q.lgamma() + norms + cross_term


@register_kl(Exponential, Exponential)
def _exponential_exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _family_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    params, normalizer, gradients = p._normalized()
    result = q._log_normalizer(*q._natural_params) - normalizer
    for one, other, gradient in zip(params, q._natural_params, gradients, strict=True):
        result = result - _sum_rightmost((other - one) * gradient, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _gamma_gamma(p: Gamma, q: Gamma) -> Tensor:
    a, b = p.concentration, q.concentration
    norms = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return norms + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Gumbel, Gumbel)
def _gumbel_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, loc_q, loc_p = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    power = (loc_q + (1 + ratio).lgamma() - loc_p).exp()
    return -ratio.log() - loc_q + loc_p + ratio * euler_constant + power - (1 + euler_constant)


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


def _trace_squared(tril: Tensor, matrix: Tensor) -> Tensor:
    """Return the trace of (L L^T)^-1 A A^T."""
    return linalg.solve_triangular(tril, matrix, upper=False).pow(2).sum((-2, -1))


def _check_event_shapes(p: Distribution, q: Distribution, families: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {families} with different event shapes cannot be computed")


@register_kl(MultivariateNormal, MultivariateNormal)
def _mvn_mvn(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_event_shapes(p, q, "Multivariate Normals")
    tril = q._unbroadcasted_scale_tril
    trace = _trace_squared(tril, p._unbroadcasted_scale_tril)
    length = _squared_length(tril, q.loc - p.loc)
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + length - p.event_shape[0])


@register_kl(Wishart, Wishart)
def _wishart_wishart(p: Wishart, q: Wishart) -> Tensor:
    n = p.event_shape[0]
    trace = _trace_squared(q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril)
    return (
        q.df * (q._half_log_det() - p._half_log_det())
        + 0.5 * p.df * (trace - n)
        + (q.df / 2).mvlgamma(n)
        - (p.df / 2).mvlgamma(n)
        + 0.5 * (p.df - q.df) * _multivariate_digamma(p.df / 2, n)
    )


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _low_low(p: LowRankMultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_event_shapes(p, q, "Low Rank Multivariate Normals")
    # By the matrix inversion lemma, (W W^T + D)^-1 = D^-1 - A A^T with A = D^-1 W L^-T.
    inverse = q._inverse_factor()
    diagonal = q._unbroadcasted_cov_diag
    factor_p, diagonal_p = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    trace = (
        (diagonal_p / diagonal).sum(-1)
        + (factor_p / diagonal.sqrt().unsqueeze(-1)).pow(2).sum((-2, -1))
        - (inverse * diagonal_p.sqrt().unsqueeze(-2)).pow(2).sum((-2, -1))
        - (inverse @ factor_p).pow(2).sum((-2, -1))
    )
    length = q._squared_length(q.loc - p.loc)
    return 0.5 * (q._log_det() - p._log_det() + trace + length - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _mvn_low(p: MultivariateNormal, q: LowRankMultivariateNormal) -> Tensor:
    _check_event_shapes(p, q, "(Low Rank) Multivariate Normals")
    tril = p._unbroadcasted_scale_tril
    trace = (tril / q._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)).pow(2).sum((-2, -1)) - (
        q._inverse_factor() @ tril
    ).pow(2).sum((-2, -1))
    length = q._squared_length(q.loc - p.loc)
    return 0.5 * (q._log_det() + trace + length - p.event_shape[0]) - p._half_log_det()


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _low_mvn(p: LowRankMultivariateNormal, q: MultivariateNormal) -> Tensor:
    _check_event_shapes(p, q, "(Low Rank) Multivariate Normals")
    tril = q._unbroadcasted_scale_tril
    trace = _trace_squared(tril, p._unbroadcasted_cov_factor) + _trace_squared(
        tril, p._unbroadcasted_cov_diag.sqrt().diag_embed()
    )
    length = _squared_length(tril, q.loc - p.loc)
    return q._half_log_det() + 0.5 * (trace + length - p._log_det() - p.event_shape[0])


@register_kl(Normal, Normal)
def _normal_normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto_pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return kl.masked_fill(p.scale < q.scale, _INF)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed_transformed(p: TransformedDistribution, q: TransformedDistribution) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _uniform_uniform(p: Uniform, q: Uniform) -> Tensor:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return kl.masked_fill((q.low > p.low) | (q.high < p.high), _INF)


@register_kl(Independent, Independent)
def _independent_independent(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _cauchy_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    # Chyzak and Nielsen, 2019.
    both = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return both - (4 * p.scale * q.scale).log()


register_kl(Geometric, Geometric)(lambda p, q: -p.entropy() - (-q.probs).log1p() / p.probs - q.logits)
register_kl(HalfNormal, HalfNormal)(lambda p, q: _normal_normal(p.base_dist, q.base_dist))
register_kl(OneHotCategorical, OneHotCategorical)(lambda p, q: _categorical_categorical(p._categorical, q._categorical))
register_kl(Poisson, Poisson)(lambda p, q: p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate))

# Pairs of different families: the divergence is infinite if p has values outside of q's support ----


def _register_infinite(type_p: type, parameter: str, *types_q: type) -> None:
    def divergence(p: Any, q: Any) -> Tensor:
        return full_like(getattr(p, parameter), _INF)

    for type_q in types_q:
        register_kl(type_p, type_q)(divergence)


_register_infinite(Beta, "concentration1", Pareto)
_register_infinite(ContinuousBernoulli, "probs", Pareto)
_register_infinite(Exponential, "rate", Beta, ContinuousBernoulli, Pareto, Uniform)
_register_infinite(Gamma, "concentration", Beta, ContinuousBernoulli, Pareto, Uniform)
for _type in (Gumbel, Laplace, Normal):
    _register_infinite(_type, "loc", Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Pareto, "scale", Beta, ContinuousBernoulli, Uniform)
_register_infinite(Poisson, "rate", Bernoulli, Binomial)
register_kl(Bernoulli, Poisson)(lambda p, q: -p.entropy() - (p.probs * q.rate.log() - q.rate))
register_kl(Gamma, Exponential)(lambda p, q: -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate)


def _any_normal(p: Distribution, q: Normal) -> Tensor:
    squared = q.scale.pow(2)
    energy = 0.5 * (2 * math.pi * squared).log() + 0.5 * (p.variance + (p.mean - q.loc).pow(2)) / squared
    return -p.entropy() + energy


for _type_p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Uniform):
    register_kl(_type_p, Normal)(_any_normal)


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
def _any_exponential(p: Distribution, q: Exponential) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, ContinuousBernoulli)
def _beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_norm()


@register_kl(Beta, Gamma)
def _beta_gamma(p: Beta, q: Gamma) -> Tensor:
    total = p.concentration1 + p.concentration0
    mean_log = p.concentration1.digamma() - total.digamma()
    return -p.entropy() + _gamma_log_norm(q) - (q.concentration - 1) * mean_log + q.rate * p.mean


@register_kl(Beta, Uniform)
def _beta_uniform(p: Beta, q: Uniform) -> Tensor:
    kl = -p.entropy() + (q.high - q.low).log()
    return kl.masked_fill((q.low > 0) | (q.high < 1), _INF)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    # As in PyTorch, infinite also if a bound of q equals one of p.
    kl = -p.entropy() + (q.high - q.low).log()
    return kl.masked_fill((q.low >= 0) | (q.high <= 1), _INF)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    ratio, c = q.rate / p.rate, q.concentration
    return -c * ratio.log() + ratio + c.lgamma() + c * euler_constant - (1 + euler_constant)


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    loc = q.loc / q.scale
    return product.log() - 1 - loc + loc.exp() * product / (product + 1) + product.reciprocal()


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    loc = q.loc / q.scale
    entropy_term = (p.concentration - 1) * p.concentration.digamma() - p.concentration.lgamma() - p.concentration
    power = loc.exp() * (1 + product.reciprocal()).pow(-p.concentration)
    return entropy_term + product.log() + p.concentration / product + power - loc


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    difference = (p.loc - q.loc) / q.scale
    return -0.5 * (ratio * 2 * math.pi).log() - 0.5 + difference + (-difference + 0.5 * ratio).exp()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Normal, q: Laplace) -> Tensor:
    difference = p.loc - q.loc
    relative = difference / p.scale
    mean_distance = math.sqrt(2 / math.pi) * p.scale * (-0.5 * relative.pow(2)).exp()
    mean_distance = mean_distance + difference * (math.sqrt(0.5) * relative).erf()
    return -(p.scale / q.scale).log() + mean_distance / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    product = p.scale * q.rate
    kl = (p.alpha / product).log() - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return kl.masked_fill(p.alpha <= 1, _INF)


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    energy = q.rate * p.alpha * p.scale / (p.alpha - 1)
    kl = p.alpha.log() - mean_log + _gamma_log_norm(q) + (1 - q.concentration) * mean_log + energy - 1
    return kl.masked_fill(p.alpha <= 1, _INF)


@register_kl(Pareto, Normal)
def _pareto_normal(p: Pareto, q: Normal) -> Tensor:
    common = p.scale / (p.alpha - 1)
    spread = p.alpha * common.pow(2) / (p.alpha - 2) + (p.alpha * common - q.loc).pow(2)
    norms = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
    kl = norms - p.alpha.reciprocal() + spread / (2 * q.scale.pow(2)) - 1
    return kl.masked_fill(p.alpha <= 2, _INF)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Uniform, q: Beta) -> Tensor:
    width = p.high - p.low
    mean_log = _uniform_mean_log(p.low, p.high, width)
    mean_log_rest = _uniform_mean_log(1 - p.high, 1 - p.low, width)  # 1 - x is uniform, too
    total = q.concentration1 + q.concentration0
    norm = q.concentration1.lgamma() + q.concentration0.lgamma() - total.lgamma()
    kl = (1 - q.concentration0) * mean_log_rest + norm - width.log() - (q.concentration1 - 1) * mean_log
    return kl.masked_fill((p.high > 1) | (p.low < 0), _INF)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    # As in PyTorch, infinite also if a bound of p equals one of q.
    kl = -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_norm()
    return kl.masked_fill((p.high >= 1) | (p.low <= 0), _INF)


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    kl = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return kl.masked_fill(p.low < 0, _INF)


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    width = p.high - p.low
    mean_log = _uniform_mean_log(p.low, p.high, width)
    energy = q.rate * (p.high + p.low) / 2
    kl = -width.log() + _gamma_log_norm(q) + (1 - q.concentration) * mean_log + energy
    return kl.masked_fill(p.low < 0, _INF)


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    width = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return width.log() + 0.5 * (high + low) - width * ((-high).exp() - (-low).exp())


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    width = p.high - p.low
    norm = (q.alpha * q.scale.pow(q.alpha) * width).log()
    return (_uniform_mean_log(p.low, p.high, width) * (q.alpha + 1) - norm).masked_fill(p.low < q.scale, _INF)
