"""Distributions in compiled functions: made, used, and given values that they refuse; the same bit for bit."""

from __future__ import annotations

from typing import Any

import pytest

import tinytorch as torch
from tests.compiler.drawn import code_of
from tests.compiler.test_programs import difference, seen
from tinytorch.compiler.compiled import Compiled

#: How each is made of two tensors of four numbers; `p` makes numbers positive.
MADE = {
    "Bernoulli": "D.Bernoulli(logits=x)", "Beta": "D.Beta(p(x), p(y))", "Binomial": "D.Binomial(5, logits=x)",
    "Categorical": "D.Categorical(logits=x)", "Cauchy": "D.Cauchy(x, p(y))", "Chi2": "D.Chi2(p(x))",
    "ContinuousBernoulli": "D.ContinuousBernoulli(logits=x)", "Dirichlet": "D.Dirichlet(p(x))",
    "Exponential": "D.Exponential(p(x))", "FisherSnedecor": "D.FisherSnedecor(p(x), p(y))",
    "Gamma": "D.Gamma(p(x), p(y))", "Geometric": "D.Geometric(logits=x)", "Gumbel": "D.Gumbel(x, p(y))",
    "HalfCauchy": "D.HalfCauchy(p(x))", "HalfNormal": "D.HalfNormal(p(x))",
    "Independent": "D.Independent(D.Normal(x, p(y)), 1)", "InverseGamma": "D.InverseGamma(p(x), p(y))",
    "Kumaraswamy": "D.Kumaraswamy(p(x), p(y))", "LKJCholesky": "D.LKJCholesky(3, p(x))",
    "Laplace": "D.Laplace(x, p(y))", "LogNormal": "D.LogNormal(x, p(y))", "LogisticNormal": "D.LogisticNormal(x, p(y))",
    "LowRankMultivariateNormal": "D.LowRankMultivariateNormal(x, x.unsqueeze(-1), p(y))",
    "MixtureSameFamily": "D.MixtureSameFamily(D.Categorical(logits=x), D.Normal(x, p(y)))",
    "Multinomial": "D.Multinomial(4, logits=x)", "MultivariateNormal": "D.MultivariateNormal(x, torch.diag(p(y)))",
    "NegativeBinomial": "D.NegativeBinomial(p(x), logits=y)", "Normal": "D.Normal(x, p(y))",
    "OneHotCategorical": "D.OneHotCategorical(logits=x)",
    "OneHotCategoricalStraightThrough": "D.OneHotCategoricalStraightThrough(logits=x)",
    "Pareto": "D.Pareto(p(x), p(y))", "Poisson": "D.Poisson(p(x))",
    "RelaxedBernoulli": "D.RelaxedBernoulli(torch.tensor(0.7), logits=x)",
    "RelaxedOneHotCategorical": "D.RelaxedOneHotCategorical(torch.tensor(0.7), logits=x)",
    "StudentT": "D.StudentT(p(x), y)",
    "TransformedDistribution": "D.TransformedDistribution(D.Normal(x, p(y)), [D.AffineTransform(1.0, 2.0)])",
    "Uniform": "D.Uniform(x, x + p(y))", "VonMises": "D.VonMises(x, p(y))", "Weibull": "D.Weibull(p(x), p(y))",
    "Wishart": "D.Wishart(torch.tensor(5.0), torch.diag(p(y)))",
}  # fmt: skip
USED = [
    "d.sample()", "d.sample((3,))", "d.rsample((2,))", "d.log_prob(d.sample())", "d.entropy()", "d.mean", "d.variance",
    "d.mode", "d.stddev", "d.cdf(d.sample())", "torch.autograd.grad(d.log_prob(d.sample()).sum(), x)",
    "d.expand((2, *d.batch_shape)).sample()", "d.enumerate_support()", "d.perplexity()",
]  # fmt: skip
#: What is never a program: samples that are drawn until they fit, matrices that must be definite.
AS_IT_IS = {"Beta", "Dirichlet", "LKJCholesky", "MultivariateNormal", "VonMises", "Wishart"}


def outcome(text: str, compiles: bool) -> tuple[list[Any], Any]:
    """Return all that can be seen of six calls; the fifth is given a NaN."""
    scope = {"D": torch.distributions, "torch": torch, "p": lambda x: x.abs() + 0.5}
    exec(code_of(text, f"<{text}>"), scope)
    function: Any = Compiled(scope["f"]) if compiles else scope["f"]  # type: ignore[arg-type]
    torch.manual_seed(7)
    found: list[Any] = []
    for k in range(6):
        x, y = torch.randn(4, requires_grad="grad" in text), torch.randn(4)
        if k == 4:
            x.data[1] = float("nan")
        try:
            found.append(seen(function(x, y)))
        except (ValueError, NotImplementedError, RuntimeError) as error:
            found.append(type(error).__name__)
        found.append(torch.get_rng_state().numpy().tobytes())
    return found, function


@pytest.mark.filterwarnings("ignore:Singular sample")
@pytest.mark.parametrize("name", MADE)
def test_distributions_are_the_same_compiled(name: str) -> None:
    programs = 0
    for used in USED:
        text = f"def f(x, y):\n    d = {MADE[name]}\n    return {used}\n"
        (expected, _), (found, compiled) = outcome(text, False), outcome(text, True)
        assert not (where := difference(expected, found)), f"{used}: {where}"
        programs += bool(compiled.variants)
    assert programs or name in AS_IT_IS
