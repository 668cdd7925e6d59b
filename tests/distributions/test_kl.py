"""Every pair of families with a divergence against PyTorch's: values, gradients, the choice of the function."""

from __future__ import annotations

from typing import Any

import pytest

import tinytorch
from tests.distributions.cases import made
from tests.oracle import needs_oracle
from tests.oracle import torch as pytorch
from tests.same import same_as_pytorch
from tinytorch.distributions import kl

# More parameters for the second distribution of a pair; the first comes from the cases.
SECOND: dict[str, list[str]] = {
    "Normal": ["[0.9, -0.2]", "[1.5, 0.7]"],
    "Uniform": ["[-3.0, -2.0]", "[3.0, 5.0]"],
    "Bernoulli": ["[0.3, 0.0, 1.0]"],
    "ContinuousBernoulli": ["[0.7, 0.4]"],
    "Binomial": ["12", "[0.3, 0.4, 0.6]"],
    "Categorical": ["[[0.7, 0.5, 0.2], [2.0, 1.0, 0.0]]"],
    "OneHotCategorical": ["[[0.7, 0.5, 0.2], [2.0, 1.0, 0.5]]"],
    "Exponential": ["[1.3, 0.7]"],
    "Laplace": ["[0.9, -0.2]", "[1.5, 0.7]"],
    "Gamma": ["[1.3, 0.6]", "[0.9, 2.2]"],
    "Beta": ["[1.3, 0.6]", "[0.9, 2.2]"],
    "Dirichlet": ["[[1.3, 0.5, 2.0], [0.9, 1.2, 0.7]]"],
    "Poisson": ["[1.3, 2.5]"],
    "Geometric": ["[0.6, 0.2]"],
    "Cauchy": ["[0.9, -0.2]", "[1.5, 0.7]"],
    "Gumbel": ["[0.9, -0.2]", "[1.5, 0.7]"],
    "HalfNormal": ["[1.5, 0.7]"],
    "Pareto": ["[0.2, 1.5]", "[1.5, 3.7]"],
    "MultivariateNormal": ["[0.3, 0.0, 1.0]", "[[1.0, 0.2, 0.0], [0.2, 2.0, 0.1], [0.0, 0.1, 3.0]]"],
    "Wishart": ["5.5", "[[1.0, 0.2, 0.0], [0.2, 2.0, 0.1], [0.0, 0.1, 3.0]]"],
    "LowRankMultivariateNormal": ["[0.0, 0.0, 1.0]", "[[1.0], [0.3], [0.2]]", "[1.0, 0.5, 2.0]"],
}
FIRST: dict[str, list[str]] = {
    **SECOND,
    "Normal": ["[0.3, -1.2]", "[0.5, 2.0]"],
    "Uniform": ["[0.25, 0.5]", "[0.75, 4.0]"],
    "Bernoulli": ["[0.0, 0.4, 1.0]"],
    "ContinuousBernoulli": ["[0.2, 0.5]"],
    "Binomial": ["12", "[0.2, 0.5, 0.9]"],
    "Categorical": ["[[0.2, 0.5, 0.9], [1.0, 3.0, 0.1]]"],
    "OneHotCategorical": ["[[0.2, 0.5, 0.9], [1.0, 3.0, 0.1]]"],
    "Exponential": ["[0.3, 2.0]"],
    "Laplace": ["[0.3, -1.2]", "[0.5, 2.0]"],
    "Gamma": ["[0.3, 4.0]", "[0.5, 2.0]"],
    "Beta": ["[0.3, 1.5]", "[0.5, 2.0]"],
    "Dirichlet": ["[[0.3, 1.5, 12.0], [0.5, 0.2, 0.7]]"],
    "Poisson": ["[0.3, 2.0]"],
    "Geometric": ["[0.3, 0.9]"],
    "Cauchy": ["[0.3, -1.2]", "[0.5, 2.0]"],
    "Gumbel": ["[0.3, -1.2]", "[0.5, 2.0]"],
    "HalfNormal": ["[0.5, 2.0]"],
    "Pareto": ["[0.3, 1.2]", "[0.5, 3.0]"],
    "MultivariateNormal": ["[0.3, -1.2, 0.5]", "[[2.0, 0.3, -0.1], [0.3, 1.5, 0.2], [-0.1, 0.2, 0.7]]"],
    "Wishart": ["4.5", "[[2.0, 0.3, -0.1], [0.3, 1.5, 0.2], [-0.1, 0.2, 0.7]]"],
    "LowRankMultivariateNormal": ["[0.3, -1.2, 0.5]", "[[1.0, 0.2], [0.3, -0.5], [0.7, 0.1]]", "[0.4, 1.0, 0.6]"],
}
COMPOSED = {"ExponentialFamily", "TransformedDistribution", "Independent"}
PAIRS = sorted(
    (p.__name__, q.__name__)
    for p, q in kl._KL_REGISTRY
    if not {p.__name__, q.__name__} & COMPOSED and p.__module__.startswith("tinytorch")
)
# Between Bernoulli and the others the shapes differ.
WIDE = {"Bernoulli": "[0.0, 0.4]", "Binomial": "[0.2, 0.5]"}


def instance(torch: Any, name: str, table: dict[str, list[str]], short: bool) -> tuple[Any, list[Any]]:
    values = [eval(each) for each in table[name]]
    if short and name in WIDE:
        values[-1] = eval(WIDE[name])
    params = [
        torch.tensor(each, dtype=torch.float64, requires_grad=True) if isinstance(each, list) else each
        for each in values
    ]
    return getattr(torch.distributions, name)(*params), [each for each in params if not isinstance(each, int)]


@pytest.mark.parametrize(("first", "second"), PAIRS, ids="-".join)
def test_divergence(first: str, second: str) -> None:
    def program(torch: Any) -> Any:
        p, of_p = instance(torch, first, FIRST, first != second)
        q, of_q = instance(torch, second, SECOND, first != second)
        divergence = torch.distributions.kl_divergence(p, q)
        found = [divergence.detach()]
        finite = divergence[divergence.isfinite()]
        if finite.requires_grad and finite.numel():
            weighted = (finite * torch.arange(1.0, finite.numel() + 1, dtype=finite.dtype)).sum()
            gradients = torch.autograd.grad(weighted, of_p + of_q, allow_unused=True)
            # Where the divergence is infinite the gradient is what the formulas happen to make of it.
            if len(finite) == divergence.numel():
                found += [each if each is not None else 0 for each in gradients]
        return found

    same_as_pytorch(program, rtol=1e-7, atol=1e-9)


@needs_oracle
def test_all_pairs_of_pytorch_are_there() -> None:
    ours = {(p.__name__, q.__name__) for p, q in kl._KL_REGISTRY}
    theirs = {(p.__name__, q.__name__) for p, q in pytorch.distributions.kl._KL_REGISTRY}
    assert theirs <= ours


COMPOSITIONS = """
    kl(d.Independent(d.Normal(torch.zeros(2, 3), 1.0), 1), d.Independent(d.Normal(torch.ones(2, 3), 2.0), 1))
    kl(d.Independent(d.Normal(torch.zeros(2, 3), 1.0), 1), d.Independent(d.Normal(torch.ones(2, 3), 2.0), 2))
    kl(d.LogNormal(0.0, 1.0), d.LogNormal(1.0, 2.0))
    kl(d.LogNormal(0.0, 1.0), d.Gumbel(1.0, 2.0))
    kl(d.Chi2(3.0), d.Chi2(5.0))
    kl(d.Chi2(3.0), d.Gamma(5.0, 2.0))
    kl(d.Bernoulli(torch.tensor([0.2])), d.Beta(1.0, 2.0))
    kl(d.Binomial(3, torch.tensor(0.5)), d.Binomial(5, torch.tensor(0.5)))
    kl(d.Binomial(5, torch.tensor(0.5)), d.Binomial(3, torch.tensor(0.5)))
    kl(d.Normal(torch.zeros(3, 1), 1.0), d.Normal(torch.ones(2), 2.0))
    kl(M(torch.zeros(4, 2), torch.eye(2)), M(torch.ones(2), 2 * torch.eye(2).expand(4, 2, 2)))
    kl(M(torch.zeros(2), torch.eye(2)), M(torch.ones(3), torch.eye(3)))
    kl(Low(torch.zeros(4, 2), torch.ones(2, 1), torch.ones(2)), M(torch.ones(2), 2 * torch.eye(2)))
    kl(d.Pareto(0.5, 2.0), d.Pareto(1.0, 2.0))
    kl(d.Uniform(0.0, 1.0), d.Uniform(0.5, 2.0))
    kl(d.ContinuousBernoulli(0.2), d.Uniform(-1.0, 2.0))
    kl(d.OneHotCategoricalStraightThrough(torch.ones(3)), d.OneHotCategorical(torch.ones(3)))
    d.kl.kl_divergence(d.Poisson(2.0), d.Bernoulli(0.5))
""".strip().splitlines()


@pytest.mark.parametrize("expression", [each.strip() for each in COMPOSITIONS])
def test_compositions(expression: str) -> None:
    def program(torch: Any) -> Any:
        d = torch.distributions
        names = {"kl": d.kl_divergence, "M": d.MultivariateNormal, "Low": d.LowRankMultivariateNormal}
        return eval(expression, {"torch": torch, "d": d, **names})

    same_as_pytorch(program)


def test_bregman_divergence() -> None:
    """The general formula of exponential families, against the closed forms."""
    for name in ("Normal", "Exponential", "Gamma", "Poisson", "ContinuousBernoulli"):
        p, _ = instance(tinytorch, name, FIRST, False)
        q, _ = instance(tinytorch, name, SECOND, False)
        assert tinytorch.allclose(kl._family_family(p, q), kl.kl_divergence(p, q))


@pytest.mark.parametrize("name", ["Normal", "Bernoulli", "ContinuousBernoulli", "Exponential", "Gamma", "Chi2"])
def test_entropy_of_the_family(name: str) -> None:
    d, _ = made(tinytorch, name)
    general = tinytorch.distributions.ExponentialFamily.entropy(d).detach()
    own = d.entropy().detach()
    assert tinytorch.allclose(own, general)


def test_the_nearest_classes_decide() -> None:
    def program(torch: Any) -> Any:
        d = torch.distributions

        class One(d.Normal):
            pass

        class Two(One):
            pass

        found = []

        @d.register_kl(One, d.Normal)
        def one_normal(p: Any, q: Any) -> str:
            return "one, normal"

        found.append(d.kl_divergence(Two(0.0, 1.0), Two(0.0, 1.0)))

        @d.register_kl(d.Normal, One)
        def normal_one(p: Any, q: Any) -> str:
            return "normal, one"

        found.append(d.kl_divergence(One(0.0, 1.0), d.Normal(0.0, 1.0)))
        found.append(d.kl_divergence(Two(0.0, 1.0), Two(0.0, 1.0)))  # ambiguous
        for pair in [(One, d.Normal), (d.Normal, One)]:
            del d.kl._KL_REGISTRY[pair]
        d.kl._KL_MEMOIZE.clear()
        return found

    same_as_pytorch(program)


def test_wisharts_whose_batches_broadcast() -> None:
    """PyTorch's is negative there."""
    root = tinytorch.tensor([[1.0, 0.0], [0.3, 0.8]])
    df = tinytorch.tensor([[4.0], [5.0]])
    p = tinytorch.distributions.Wishart(df, scale_tril=root.expand(2, 1, 2, 2))
    q = tinytorch.distributions.Wishart(tinytorch.tensor([5.0, 6.0, 7.0]), scale_tril=(2 * root).expand(3, 2, 2))
    expected = tinytorch.distributions.kl_divergence(p.expand((2, 3)), q.expand((2, 3)))
    found = tinytorch.distributions.kl_divergence(p, q)
    tinytorch.testing.assert_close(found, expected)
    assert (found > 0).all()
