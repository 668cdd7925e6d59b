"""Every distribution against PyTorch's: samples of one seed, gradients, densities, moments, entropy, expand, repr."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tinytorch
from tests.distributions.cases import CASES, made
from tests.oracle import needs_oracle
from tests.same import Raised, raised, same_as_pytorch

NAMES = list(CASES)
SINGLE = {"GeneralizedPareto"}  # PyTorch's compares the parameters with a float32
NO_ENTROPY_AFTER_EXPAND = {"Multinomial", "Multinomial logits"}  # PyTorch's loses an attribute
# PyTorch approximates gradients through these samples to 3 or 4 digits.
IMPLICIT = {"Gamma", "InverseGamma", "Chi2", "Beta", "Dirichlet", "StudentT", "FisherSnedecor"}


def tolerance(name: str) -> float:
    return 2e-5 if name in SINGLE else 1e-7


def attempt(function: Callable[[], Any]) -> Any:
    """Return what a function returns, or the error, which `compare` compares too."""
    try:
        return function()
    except Exception as error:
        return raised(error)


def plain(value: Any) -> Any:
    return value.detach() if hasattr(value, "detach") else value


def gradients(torch: Any, result: Any, params: list[Any]) -> list[Any]:
    """Return the gradients by the parameters, of the result with a weight for each element."""
    if not result.requires_grad:
        return []
    weights = torch.arange(1.0, result.numel() + 1, dtype=result.dtype).reshape(result.shape).sin()
    found = torch.autograd.grad((result * weights).sum(), params, allow_unused=True)
    return [each if each is not None else 0 for each in found]


@pytest.mark.parametrize("single", [False, True], ids=["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_samples(name: str, single: bool) -> None:
    def program(torch: Any) -> Any:
        d, _ = made(torch, name, single)
        samples = [d.sample(), d.sample((2, 3)), d.sample(torch.Size([20]))]
        assert not any(each.requires_grad for each in samples)
        return [samples, torch.get_rng_state()]

    same_as_pytorch(program, rtol=2e-5 if single else 1e-12, atol=1e-6 if single else 1e-13)


@pytest.mark.filterwarnings("ignore:Singular sample")
@pytest.mark.parametrize("name", NAMES)
def test_gradients_through_samples(name: str) -> None:
    def program(torch: Any) -> Any:
        d, params = made(torch, name, name in SINGLE)
        if not d.has_rsample:
            return attempt(lambda: plain(d.rsample((4,))))
        sample = d.rsample((4,))
        return [plain(sample), gradients(torch, sample, params)]

    if name.startswith("Wishart"):  # PyTorch's write in place, past the graph, makes its backward raise
        d, params = made(tinytorch, name)
        for each in gradients(tinytorch, d.rsample((4,)), params):
            assert bool(each.isfinite().all())
        return
    limit = 5e-3 if name in IMPLICIT else tolerance(name)
    same_as_pytorch(program, rtol=limit, atol=limit * 0.1)


@pytest.mark.parametrize("name", NAMES)
def test_log_prob(name: str) -> None:
    def program(torch: Any) -> Any:
        d, params = made(torch, name, name in SINGLE)
        log_prob = d.log_prob(d.sample((5,)))
        return [plain(log_prob), gradients(torch, log_prob, params)]

    same_as_pytorch(program, rtol=tolerance(name), atol=1e-9)


@pytest.mark.parametrize("attribute", ["mean", "variance", "stddev", "mode"])
@pytest.mark.parametrize("name", NAMES)
def test_moments(name: str, attribute: str) -> None:
    def program(torch: Any) -> Any:
        d, params = made(torch, name, name in SINGLE)
        value = attempt(lambda: getattr(d, attribute))
        if isinstance(value, Raised):
            return value
        return [plain(value), gradients(torch, value, params)]

    if (name, attribute) == ("Kumaraswamy", "mode"):
        # PyTorch takes the logarithm of a negative number. The density is stationary at the mode.
        one = tinytorch.distributions.Kumaraswamy(2.0, 3.0)
        x = one.mode.clone().requires_grad_()
        one.log_prob(x).backward()
        assert abs(x.grad.item()) < 1e-5
        return
    same_as_pytorch(program, rtol=tolerance(name), atol=tolerance(name) / 10)


@pytest.mark.parametrize("function", ["entropy", "perplexity"])
@pytest.mark.parametrize("name", NAMES)
def test_entropy(name: str, function: str) -> None:
    def program(torch: Any) -> Any:
        d, params = made(torch, name, name in SINGLE)
        value = attempt(lambda: getattr(d, function)())
        if isinstance(value, Raised):
            return value
        return [plain(value), gradients(torch, value, params)]

    same_as_pytorch(program, rtol=tolerance(name), atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_cdf_and_icdf(name: str) -> None:
    def program(torch: Any) -> Any:
        d, _ = made(torch, name, name in SINGLE)
        values = torch.linspace(0.05, 0.95, 4, dtype=d.sample().dtype)
        shape = (4,) + (1,) * (len(d.batch_shape) + len(d.event_shape))
        values = values.reshape(shape).expand((4, *d.batch_shape, *d.event_shape))
        return [attempt(lambda: plain(d.cdf(d.sample((3,))))), attempt(lambda: plain(d.icdf(values)))]

    same_as_pytorch(program, rtol=tolerance(name), atol=tolerance(name) / 10)


@pytest.mark.parametrize("name", NAMES)
def test_facts(name: str) -> None:
    def program(torch: Any) -> Any:
        d, _ = made(torch, name)
        return [
            tuple(d.batch_shape),
            tuple(d.event_shape),
            bool(d.has_rsample),
            bool(d.has_enumerate_support),
            str(d),
            d.support.event_dim,
            d.support.is_discrete,
            type(d.support).__name__,
            list(d.arg_constraints),
            [str(each) for each in d.arg_constraints.values()],
            attempt(lambda: d.enumerate_support()),
            attempt(lambda: d.enumerate_support(expand=False)),
        ]

    same_as_pytorch(program)


@pytest.mark.parametrize("name", NAMES)
def test_expand(name: str) -> None:
    def program(torch: Any) -> Any:
        d, params = made(torch, name, name in SINGLE)
        wide = d.expand((3, *d.batch_shape))
        sample = wide.sample()
        log_prob = wide.log_prob(sample)
        return [
            str(wide),
            tuple(wide.batch_shape),
            tuple(wide.event_shape),
            sample,
            plain(log_prob),
            gradients(torch, log_prob, params),
            attempt(lambda: plain(wide.mean)),
            0 if name in NO_ENTROPY_AFTER_EXPAND else attempt(lambda: plain(wide.entropy())),
        ]

    same_as_pytorch(program, rtol=tolerance(name), atol=tolerance(name) / 10)


@pytest.mark.parametrize("name", [each for each in NAMES if each not in {*SINGLE, "VonMises"}])  # (PyTorch's raise)
def test_expand_of_a_subclass_with_constraints_of_its_own(name: str) -> None:
    def program(torch: Any) -> Any:
        d, _ = made(torch, name)
        base, own = type(d), {"mine": torch.distributions.constraints.real}

        def expand(self: Any, batch_shape: Any, _instance: Any = None) -> Any:
            return base.expand(self, batch_shape, self._get_checked_instance(type(d), _instance))

        d.__class__ = type("Mine", (base,), {"arg_constraints": own, "expand": expand})
        wide = d.expand((3, *d.batch_shape))
        sample = wide.sample()
        return [str(wide), sample, plain(wide.log_prob(sample))]

    same_as_pytorch(program, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", [each for each in NAMES if "Wishart" not in each])  # (whose support reads elements)
def test_log_prob_inside_of_vmap(name: str) -> None:
    d, params = made(tinytorch, name)
    samples = d.sample((2, 3))
    expected = d.log_prob(samples)
    assert tinytorch.vmap(tinytorch.vmap(d.log_prob))(samples).allclose(expected)
    if not name.startswith(
        ("Geometric", "Multivariate", "LowRank")
    ):  # (whose constructors read elements, as PyTorch's)
        stacked = [tinytorch.stack([each, each]) for each in params]
        by_param = tinytorch.vmap(lambda x, *params: CASES[name][1](tinytorch.distributions, *params).log_prob(x))
        assert by_param(samples, *stacked).allclose(expected)
    with pytest.raises(ValueError, match="Expected value argument"):
        tinytorch.vmap(d.log_prob)(samples * float("nan"))


ERRORS = """
    d.Normal(0.0, -1.0)
    d.Normal(torch.tensor([0.0, float("nan")]), 1.0)
    d.Normal("a", 1.0)
    d.Normal(torch.zeros(2), torch.ones(3))
    d.Normal(0.0, 1.0).log_prob(3.0)
    d.Normal(torch.zeros(3), 1.0).log_prob(torch.zeros(2))
    d.Normal(0.0, 1.0).log_prob(torch.tensor(float("nan")))
    d.Normal(0.0, 1.0).enumerate_support()
    d.Uniform(1.0, 1.0)
    d.Uniform(0.0, 1.0).log_prob(torch.tensor(2.0))
    d.Bernoulli()
    d.Bernoulli(0.5, 0.5)
    d.Bernoulli(1.5)
    d.Bernoulli(0.5).log_prob(torch.tensor(0.5))
    d.Categorical()
    d.Categorical(torch.tensor(1.0))
    d.Categorical(logits=torch.tensor(1.0))
    d.Categorical(torch.tensor([-1.0, 2.0]))
    d.Categorical(torch.ones(3)).log_prob(torch.tensor(3))
    d.Categorical(torch.ones(3)).rsample()
    d.OneHotCategorical(torch.ones(3)).log_prob(torch.tensor([1.0, 1.0, 0.0]))
    d.Multinomial(torch.tensor(3), torch.ones(3))
    d.Multinomial(3, torch.ones(3)).log_prob(torch.tensor([2.0, 2.0, 0.0]))
    d.Binomial(3, torch.tensor(0.5)).log_prob(torch.tensor(4.0))
    d.Binomial(torch.tensor([3.0, 4.0]), torch.tensor([0.5, 0.5])).enumerate_support()
    d.Binomial(torch.tensor([3.0, 4.0]), torch.tensor([0.5, 0.5])).entropy()
    d.Exponential(0.0)
    d.Gamma(-1.0, 1.0)
    d.Gamma(1.0, 1.0).log_prob(torch.tensor(-1.0))
    d.Beta(0.0, 1.0)
    d.Beta(1.0, 1.0).log_prob(torch.tensor(1.5))
    d.Dirichlet(torch.tensor(1.0))
    d.Dirichlet(torch.tensor([1.0, -1.0]))
    d.Dirichlet(torch.ones(2)).log_prob(torch.tensor([0.5, 0.6]))
    d.Poisson(-1.0)
    d.Poisson(1.0).log_prob(torch.tensor(0.5))
    d.Geometric(0.0)
    d.MultivariateNormal(torch.tensor(0.0), torch.eye(1))
    d.MultivariateNormal(torch.zeros(2))
    d.MultivariateNormal(torch.zeros(2), torch.eye(2), torch.eye(2))
    d.MultivariateNormal(torch.zeros(2), torch.ones(2))
    d.MultivariateNormal(torch.zeros(2), scale_tril=torch.ones(2))
    d.MultivariateNormal(torch.zeros(2), -torch.eye(2))
    d.MultivariateNormal(torch.zeros(2), scale_tril=torch.ones(2, 2))
    d.MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(3))
    d.LowRankMultivariateNormal(torch.zeros(2), torch.ones(3, 1), torch.ones(2))
    d.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(3))
    d.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2), torch.ones(2))
    d.Wishart(torch.tensor(1.5), torch.eye(3))
    d.Wishart(torch.tensor(2.5), torch.ones(3))
    d.Wishart(torch.tensor(2.5))
    d.Wishart(torch.tensor(5.0), -torch.eye(3))
    d.Independent(d.Normal(0.0, 1.0), 1)
    d.Independent(d.Bernoulli(torch.ones(2) / 2), 1).enumerate_support()
    d.TransformedDistribution(d.Normal(0.0, 1.0), 3)
    d.TransformedDistribution(d.Normal(0.0, 1.0), [3])
    d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform())
    d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(torch.zeros(2), 1.0))
    d.MixtureSameFamily(d.Categorical(torch.ones(2)), 3)
    d.MixtureSameFamily(d.Categorical(torch.ones(2)), d.Normal(torch.zeros(3), 1.0))
    d.MixtureSameFamily(d.Categorical(torch.ones(3, 2)), d.Normal(torch.zeros(2, 2), 1.0))
    d.LKJCholesky(1)
    d.RelaxedBernoulli(torch.tensor(1.0))
    d.ContinuousBernoulli(1.5, validate_args=True)
    d.kl_divergence(d.Normal(0.0, 1.0), d.Poisson(1.0))
    d.kl_divergence(d.Normal(0.0, 1.0), d.Cauchy(0.0, 1.0))
    d.Distribution.set_default_validate_args(3)
    d.Distribution().log_prob(torch.zeros(1))
    d.Distribution().support
    d.AffineTransform(0.0, 1.0, cache_size=2)
    d.transforms.ReshapeTransform((2,), (3,))
    d.biject_to(d.constraints.boolean)
    d.biject_to.register(3, lambda c: c)
    d.constraints.dependent.check(torch.zeros(1))
    d.Weibull(1.0, 2.0).log_prob(torch.tensor(-1.0))
    d.HalfCauchy(1.0).log_prob(1.0)
    d.HalfCauchy(1.0, validate_args=False).log_prob(1.0)
    d.Normal(0.0, -1.0, validate_args=False)
    d.Normal(0.0, 1.0).sample_n(3)
""".strip().splitlines()


@pytest.mark.parametrize("expression", [each.strip() for each in ERRORS])
def test_errors(expression: str) -> None:
    def program(torch: Any) -> Any:
        result = eval(expression, {"torch": torch, "d": torch.distributions})
        return str(result)

    same_as_pytorch(program)


def test_parameters_may_be_numbers() -> None:
    def program(torch: Any) -> Any:
        d = torch.distributions
        found = [
            d.Normal(0, 1), d.Uniform(0, 2), d.Bernoulli(0.5), d.Exponential(2), d.Laplace(0, 1),
            d.Gamma(2, 1), d.Chi2(3), d.Beta(1, 2), d.Poisson(3), d.Geometric(0.5), d.StudentT(3),
            d.FisherSnedecor(2, 3), d.HalfNormal(1), d.HalfCauchy(1), d.Cauchy(0, 1), d.Gumbel(0, 1.0),
            d.Pareto(1, 2.0), d.Weibull(1, 2.0), d.Kumaraswamy(1, 2.0), d.LogNormal(0, 1),
            d.Binomial(3, torch.tensor(0.5)), d.VonMises(0.0, 1.0),
        ]  # fmt: skip
        return [[str(each), each.sample((3,)), each.batch_shape == ()] for each in found]

    same_as_pytorch(program, rtol=1e-5, atol=1e-6)


def test_subclasses_need_their_own_expand() -> None:
    def program(torch: Any) -> Any:
        class Mine(torch.distributions.Normal):
            def __init__(self) -> None:
                super().__init__(0.0, 1.0)

        return Mine().expand((3,))

    same_as_pytorch(program)


def test_set_default_validate_args() -> None:
    def program(torch: Any) -> Any:
        distribution = torch.distributions.Distribution
        distribution.set_default_validate_args(False)
        try:
            return plain(torch.distributions.Normal(0.0, -1.0).sample((2,)).isnan())
        except RuntimeError as error:
            return raised(error)
        finally:
            distribution.set_default_validate_args(True)

    same_as_pytorch(program)


@needs_oracle
def test_public_names() -> None:
    from tests.oracle import torch

    missing = set(torch.distributions.__all__) - set(tinytorch.distributions.__all__)
    assert not missing, missing


def test_wishart_takes_a_number_or_a_tensor_of_another_dtype() -> None:
    def program(torch: Any) -> Any:
        v = torch.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=torch.float64).expand(3, 2, 2)
        by_number = torch.distributions.Wishart(3, v)
        whole = torch.distributions.Wishart(torch.tensor(3), v)
        both = [by_number, by_number.expand((2, 3)), whole]
        return [[repr(d), d.df, d.entropy(), d.sample((2,))] for d in both]

    same_as_pytorch(program, rtol=1e-7)


def test_wishart_does_not_warn_without_samples() -> None:
    same_as_pytorch(lambda torch: torch.distributions.Wishart(3.0, torch.eye(2)).sample((0,)))


def test_the_support_of_a_mixture_of_differing_components() -> None:
    def program(torch: Any) -> Any:
        d = torch.distributions
        weights = d.Categorical(torch.ones(2))
        one = d.MixtureSameFamily(weights, d.Uniform(torch.tensor([0.0, 1.0]), 2.0)).support
        values = (torch.tensor(0.5), torch.tensor(1.5), torch.tensor([0.5, 1.5]))
        found = [one.check(value) for value in values]
        simplex = d.constraints.MixtureSameFamilyConstraint(d.constraints.simplex)
        return [found, attempt(lambda: simplex.check(torch.tensor(1.0)))]

    same_as_pytorch(program)


def test_a_stack_of_constraints_may_be_longer_or_shorter() -> None:
    def program(torch: Any) -> Any:
        c = torch.distributions.constraints
        return [c.stack([c.real, c.positive]).check(torch.arange(float(n)) - 1) for n in (1, 2, 3)]

    same_as_pytorch(program)


def test_gradients_of_an_infinite_variance() -> None:
    def program(torch: Any) -> Any:
        df = torch.tensor([1.5, 2.0, 3.0], requires_grad=True)
        scale = torch.ones(3, requires_grad=True)
        variance = torch.distributions.StudentT(df, 0.0, scale).variance
        return [plain(variance), gradients(torch, variance, [scale, df])]

    same_as_pytorch(program)
