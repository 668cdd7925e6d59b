"""Distributions by name: how each is made with a library, for the tests that compare the libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _leaf(torch: Any, values: Any) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


_TRIL = [[1.5, 0.0, 0.0], [0.3, 0.8, 0.0], [-0.4, 0.2, 1.1]]
_COVARIANCE = [[2.0, 0.3, -0.1], [0.3, 1.5, 0.2], [-0.1, 0.2, 0.7]]


# name: (values of the parameters, how the distribution is made of the library's `distributions` and the parameters)
CASES: dict[str, tuple[list[Any], Callable[..., Any]]] = {
    "Normal": ([[0.3, -1.2], [0.5, 2.0]], lambda d, a, b: d.Normal(a, b)),
    "Normal broadcast": ([[[0.3], [-1.2]], [0.5, 2.0, 1.0]], lambda d, a, b: d.Normal(a, b)),
    "LogNormal": ([[0.3, -1.2], [0.5, 0.9]], lambda d, a, b: d.LogNormal(a, b)),
    "Uniform": ([[0.3, -1.2], [0.5, 2.0]], lambda d, a, b: d.Uniform(a, b)),
    "Bernoulli": ([[0.2, 0.5, 0.9]], lambda d, p: d.Bernoulli(p)),
    "Bernoulli logits": ([[-0.2, 0.0, 2.9]], lambda d, p: d.Bernoulli(logits=p)),
    "ContinuousBernoulli": ([[0.2, 0.5, 0.9]], lambda d, p: d.ContinuousBernoulli(p)),
    "ContinuousBernoulli logits": ([[-0.2, 0.0, 2.9]], lambda d, p: d.ContinuousBernoulli(logits=p)),
    "Binomial": ([[0.2, 0.5, 0.9]], lambda d, p: d.Binomial(12, p)),
    "Binomial logits": ([[-0.2, 0.0, 2.9]], lambda d, p: d.Binomial(60, logits=p)),
    "Categorical": ([[[0.2, 0.5, 0.9], [1.0, 3.0, 0.1]]], lambda d, p: d.Categorical(p)),
    "Categorical one": ([[0.2, 0.5, 0.9]], lambda d, p: d.Categorical(p)),
    "Categorical logits": ([[[0.2, -0.5, 0.9], [1.0, 3.0, 0.1]]], lambda d, p: d.Categorical(logits=p)),
    "OneHotCategorical": ([[[0.2, 0.5, 0.9], [1.0, 3.0, 0.1]]], lambda d, p: d.OneHotCategorical(p)),
    "OneHotCategoricalStraightThrough": (
        [[[0.2, 0.5, 0.9], [1.0, 3.0, 0.1]]],
        lambda d, p: d.OneHotCategoricalStraightThrough(logits=p),
    ),
    "Multinomial": ([[[0.2, 0.5, 0.9], [1.0, 3.0, 0.1]]], lambda d, p: d.Multinomial(9, p)),
    "Multinomial logits": ([[0.2, 0.5, 0.9]], lambda d, p: d.Multinomial(9, logits=p)),
    "Exponential": ([[0.3, 2.0]], lambda d, a: d.Exponential(a)),
    "Laplace": ([[0.3, -1.2], [0.5, 2.0]], lambda d, a, b: d.Laplace(a, b)),
    "Gamma": ([[0.3, 1.0, 12.0], [0.5, 2.0, 1.0]], lambda d, a, b: d.Gamma(a, b)),
    "InverseGamma": ([[0.3, 1.5, 12.0], [0.5, 2.0, 1.0]], lambda d, a, b: d.InverseGamma(a, b)),
    "Chi2": ([[0.3, 2.0, 9.0]], lambda d, a: d.Chi2(a)),
    "Beta": ([[0.3, 1.5, 12.0], [0.5, 2.0, 1.2]], lambda d, a, b: d.Beta(a, b)),
    "Dirichlet": ([[[0.3, 1.5, 12.0], [0.5, 0.2, 0.7]]], lambda d, a: d.Dirichlet(a)),
    "Poisson": ([[0.3, 2.0, 40.0]], lambda d, a: d.Poisson(a)),
    "Geometric": ([[0.3, 0.9]], lambda d, p: d.Geometric(p)),
    "Geometric logits": ([[0.3, -0.9]], lambda d, p: d.Geometric(logits=p)),
    "NegativeBinomial": ([[0.3, 0.7]], lambda d, p: d.NegativeBinomial(5, p)),
    "NegativeBinomial logits": ([[0.3, -0.7]], lambda d, p: d.NegativeBinomial(5, logits=p)),
    "MultivariateNormal": ([[0.3, -1.2, 0.5], _COVARIANCE], lambda d, a, b: d.MultivariateNormal(a, b)),
    "MultivariateNormal precision": (
        [[0.3, -1.2, 0.5], _COVARIANCE],
        lambda d, a, b: d.MultivariateNormal(a, precision_matrix=b),
    ),
    "MultivariateNormal scale_tril": (
        [[[0.3, -1.2, 0.5], [1.0, 2.0, 3.0]], _TRIL],
        lambda d, a, b: d.MultivariateNormal(a, scale_tril=b),
    ),
    "MultivariateNormal batch": (
        [[0.3, -1.2, 0.5], [_COVARIANCE, _COVARIANCE]],
        lambda d, a, b: d.MultivariateNormal(a, b),
    ),
    "LowRankMultivariateNormal": (
        [[0.3, -1.2, 0.5], [[1.0, 0.2], [0.3, -0.5], [0.7, 0.1]], [0.4, 1.0, 0.6]],
        lambda d, a, w, c: d.LowRankMultivariateNormal(a, w, c),
    ),
    "Wishart": ([4.5, _COVARIANCE], lambda d, n, v: d.Wishart(n, v)),
    "Wishart precision": ([[4.5, 7.0], _COVARIANCE], lambda d, n, v: d.Wishart(n, precision_matrix=v)),
    "Wishart scale_tril": ([[4.5, 7.0], [_TRIL, _TRIL]], lambda d, n, v: d.Wishart(n, scale_tril=v.tril())),
    "Independent": ([[[0.3, -1.2], [1.0, 2.0]], [0.5, 2.0]], lambda d, a, b: d.Independent(d.Normal(a, b), 1)),
    "Independent Bernoulli": ([[[0.3, 0.2], [0.6, 0.9]]], lambda d, p: d.Independent(d.Bernoulli(p), 2)),
    "StudentT": ([[0.8, 1.5, 7.0], [0.3, -1.2, 0.0], [0.5, 2.0, 1.0]], lambda d, a, b, c: d.StudentT(a, b, c)),
    "FisherSnedecor": ([[1.5, 3.0, 7.0], [1.0, 3.0, 9.0]], lambda d, a, b: d.FisherSnedecor(a, b)),
    "HalfNormal": ([[0.5, 2.0]], lambda d, a: d.HalfNormal(a)),
    "HalfCauchy": ([[0.5, 2.0]], lambda d, a: d.HalfCauchy(a)),
    "Cauchy": ([[0.3, -1.2], [0.5, 2.0]], lambda d, a, b: d.Cauchy(a, b)),
    "Gumbel": ([[0.3, -1.2], [0.5, 2.0]], lambda d, a, b: d.Gumbel(a, b)),
    "Pareto": ([[0.3, 1.2, 1.0], [0.5, 1.7, 3.0]], lambda d, a, b: d.Pareto(a, b)),
    "GeneralizedPareto": (
        [[0.3, 1.2, 0.0], [0.5, 1.7, 2.0], [0.3, -0.4, 0.0]],
        lambda d, a, b, c: d.GeneralizedPareto(a, b, c),
    ),
    "Weibull": ([[0.3, 1.2], [1.5, 2.0]], lambda d, a, b: d.Weibull(a, b)),
    "Kumaraswamy": ([[0.8, 1.2], [1.5, 0.7]], lambda d, a, b: d.Kumaraswamy(a, b)),
    "VonMises": ([[0.3, -1.2, 2.0], [0.5, 2.0, 20.0]], lambda d, a, b: d.VonMises(a, b)),
    "LogisticNormal": ([[0.3, -1.2], [0.5, 0.9]], lambda d, a, b: d.LogisticNormal(a, b)),
    "RelaxedBernoulli": ([0.7, [0.3, 0.6]], lambda d, t, p: d.RelaxedBernoulli(t, p)),
    "RelaxedBernoulli logits": ([0.7, [0.3, -0.6]], lambda d, t, p: d.RelaxedBernoulli(t, logits=p)),
    "RelaxedOneHotCategorical": ([0.7, [[0.3, 0.6, 0.1]]], lambda d, t, p: d.RelaxedOneHotCategorical(t, p)),
    "RelaxedOneHotCategorical logits": (
        [0.7, [0.3, 0.6, 0.1]],
        lambda d, t, p: d.RelaxedOneHotCategorical(t, logits=p),
    ),
    "MixtureSameFamily": (
        [[0.3, 0.7], [0.3, -1.2], [0.5, 2.0]],
        lambda d, p, a, b: d.MixtureSameFamily(d.Categorical(p), d.Normal(a, b)),
    ),
    "MixtureSameFamily vectors": (
        [[[0.3, 0.7], [0.5, 0.5]], [[[0.3, -1.2], [1.0, 0.0]]] * 2, [0.5, 2.0]],
        lambda d, p, a, b: d.MixtureSameFamily(d.Categorical(p), d.Independent(d.Normal(a, b), 1)),
    ),
    "TransformedDistribution": (
        [[0.3, -1.2], [0.5, 0.9], 2.0],
        lambda d, a, b, c: d.TransformedDistribution(d.Normal(a, b), [d.ExpTransform(), d.AffineTransform(1.0, c)]),
    ),
    "TransformedDistribution decreasing": (
        [[0.3, -1.2], [0.5, 0.9]],
        lambda d, a, b: d.TransformedDistribution(d.Normal(a, b), [d.SigmoidTransform(), d.AffineTransform(1.0, -2.0)]),
    ),
    "TransformedDistribution tanh": (
        [[0.3, -1.2], [0.5, 0.9]],
        lambda d, a, b: d.Independent(d.TransformedDistribution(d.Normal(a, b), [d.TanhTransform(cache_size=1)]), 1),
    ),
    "LKJCholesky": ([[0.7, 2.0]], lambda d, c: d.LKJCholesky(3, c)),
}


def made(torch: Any, name: str, single: bool = False) -> tuple[Any, list[Any]]:
    """Return the distribution of that name and its parameters, which require grad."""
    values, make = CASES[name]
    params = [_leaf(torch, value) for value in values]
    if single:
        params = [each.detach().float().requires_grad_() for each in params]
    return make(torch.distributions, *params), params
