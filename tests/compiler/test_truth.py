"""Truth values of tensors: a program looks whether they are as they were, and is left where they are not."""

from __future__ import annotations

import importlib
import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tinytorch as torch
from tinytorch.compiler.compiled import Compiled

D = torch.distributions


def alike(function: Callable[..., Any], *calls: Any, programs: int | None = 1) -> Compiled:
    """Run a function on each of some arguments, compiled and not, from one seed; return it compiled."""
    compiled = Compiled(function)
    seen = []
    for run in (function, compiled):
        torch.manual_seed(0)
        results = [run(*(x.clone() if isinstance(x, torch.Tensor) else x for x in args)) for args in calls]
        seen.append(([x.tolist() if isinstance(x, torch.Tensor) else x for x in results], torch.rand(3).tolist()))
    assert repr(seen[0]) == repr(seen[1])
    if programs is not None:
        assert len(compiled.variants) == programs, compiled.explain()
    return compiled


def test_the_same_goes_on() -> None:
    def f(x: Any) -> Any:
        assert torch.isfinite(x).all()
        return x.sin() * 2

    compiled = alike(f, *[(torch.randn(3),) for _ in range(4)])
    assert "holds(" in compiled.source
    with pytest.raises(AssertionError):
        compiled(torch.tensor([1.0, torch.nan, 0.0]))
    assert compiled(torch.zeros(3)).tolist() == [0, 0, 0]
    assert len(compiled.variants) == 1


def test_another_runs_as_it_is() -> None:
    def f(x: Any) -> Any:
        y = x.exp()
        return y * 2 if y.sum() > 3 else y - 1

    alike(f, *[(torch.full((3,), float(k % 2)),) for k in range(6)])
    many = alike(f, *[(torch.full((3,), float(k % 2)),) for k in range(30)], programs=0)
    assert "another than before" in many.explain()


def test_random_numbers_are_put_back() -> None:
    def f(x: Any) -> Any:
        noise = torch.randn(5) + torch.randn(3).sum()
        if (x + noise).max() > 1:
            return noise * x
        return torch.rand(2)

    alike(f, *[(torch.full((5,), k / 10),) for k in range(7)])


def test_nothing_was_written_before() -> None:
    x = torch.zeros(3)

    def f(y: Any) -> Any:
        x.add_(y)
        if y.sum() > 0:
            return x * 2
        return x * 3

    compiled = Compiled(f)
    assert [compiled(torch.full((3,), k)).tolist() for k in (1.0, -1.0, 2.0)] == [[2.0] * 3, [0.0] * 3, [4.0] * 3]
    assert "after something was written" in compiled.explain()


def test_a_profile_has_the_lines_of_the_program() -> None:
    compiled = alike(lambda x: (x.sin() + 1).sum(), *[(torch.randn(3),) for _ in range(3)])
    lines = compiled.profile(torch.ones(3)).splitlines()
    texts = [line.partition(" us  ")[2] for line in lines]
    assert texts[-1].startswith("return (")
    assert len(texts) > 1
    assert all(text in compiled.source for text in texts)
    assert "bytes at most; ran 3 times" in compiled.explain()


def test_full_graph() -> None:
    @torch.compile(fullgraph=True)
    def f(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x

    with pytest.raises(RuntimeError, match=r"test_truth.py:\d+: a tensor's value decides"):
        f(torch.ones(2))


def policy(loc: Any) -> Any:
    d = D.Normal(loc, 0.5)
    action = d.sample()
    return d.log_prob(action).sum() + d.entropy().sum()


DISTRIBUTIONS: dict[str, Callable[[Any], Any]] = {
    "normal": policy,
    "rsample": lambda x: D.Normal(x, torch.ones(4)).rsample((3,)).sum(0),
    "categorical": lambda x: D.Categorical(logits=x).sample((5,)),
    "probabilities": lambda x: D.Categorical(probs=x.softmax(-1)).log_prob(torch.tensor(2)),
    "bernoulli": lambda x: D.Bernoulli(logits=x).log_prob(D.Bernoulli(x.sigmoid()).sample()),
    "independent": lambda x: D.Independent(D.Normal(x, 1.0), 1).log_prob(x + 1),
    "divergence": lambda x: D.kl_divergence(D.Normal(x, 1.0), D.Normal(0.0, 2.0)),
    "transformed": lambda x: D.TransformedDistribution(D.Normal(x, 1.0), [D.TanhTransform()]).rsample(),
    "uniform": lambda x: D.Uniform(x - 1, x + 1).sample(),
    "exponential": lambda x: D.Exponential(x.exp()).rsample(),
    "laplace": lambda x: D.Laplace(x, 1.0).log_prob(x * 2),
    "unchecked": lambda x: D.Normal(x, 1.0, validate_args=False).log_prob(x * 2),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions(name: str) -> None:
    torch.manual_seed(3)
    alike(DISTRIBUTIONS[name], *[(torch.randn(4),) for _ in range(5)])


@pytest.mark.parametrize("name", ["gamma", "von mises", "dirichlet"])
def test_distributions_that_reject(name: str) -> None:
    function: dict[str, Callable[[Any], Any]] = {
        "gamma": lambda x: D.Gamma(x.exp(), 1.0).rsample(),
        "von mises": lambda x: D.VonMises(x, 1.0).sample(),
        "dirichlet": lambda x: D.Dirichlet(x.exp()).rsample(),
    }
    alike(function[name], *[(torch.randn(4),) for _ in range(12)], programs=None)


def test_a_distribution_checks_its_values() -> None:
    compiled = alike(policy, *[(torch.randn(4),) for _ in range(3)])
    with pytest.raises(ValueError, match="to satisfy the constraint"):
        compiled(torch.full((4,), torch.nan))
    assert compiled(torch.zeros(4)).shape == ()
    before = torch.get_rng_state().tolist()
    with pytest.raises(ValueError, match="constraint"):
        compiled(torch.full((4,), torch.nan))
    assert torch.get_rng_state().tolist() == before


def test_whether_distributions_check_is_guarded() -> None:
    compiled = alike(policy, *[(torch.randn(4),) for _ in range(3)])
    D.Distribution.set_default_validate_args(False)
    try:
        assert torch.isnan(compiled(torch.full((4,), torch.nan)))
    finally:
        D.Distribution.set_default_validate_args(True)


def test_methods_of_distributions_that_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = alike(policy, *[(torch.randn(4),) for _ in range(3)])
    monkeypatch.setattr(D.Normal, "log_prob", lambda self, value: value * 0 + 7)
    monkeypatch.setattr(D.Normal, "entropy", lambda self: self.loc * 0)
    assert compiled(torch.zeros(4)).item() == 28


def test_divergences_that_are_registered() -> None:
    class Own(D.Normal):
        pass

    def f(x: Any) -> Any:
        return D.kl_divergence(D.Normal(x, 1.0), D.Normal(0.0, 2.0))

    compiled = alike(f, *[(torch.randn(4),) for _ in range(3)])
    kl = importlib.import_module("tinytorch.distributions.kl")
    before = dict(kl._KL_REGISTRY)
    try:
        D.register_kl(Own, Own)(lambda p, q: p.loc * 0)
        D.register_kl(D.Normal, D.Normal)(lambda p, q: p.loc * 0 + 5)
        assert [compiled(torch.ones(2)).tolist() for _ in range(3)] == [[5, 5]] * 3
    finally:
        kl._KL_REGISTRY.clear()
        kl._KL_REGISTRY.update(before)
        kl._KL_MEMOIZE.clear()


def test_a_distribution_from_outside() -> None:
    d = D.Normal(torch.zeros(2), 1.0)

    def f(x: Any) -> Any:
        return d.log_prob(x).sum()

    compiled = Compiled(f)
    x = torch.ones(2)
    first = [compiled(x).item() for _ in range(3)]
    d.scale = torch.full((2,), 2.0)
    assert compiled(x).item() == f(x).item() != first[0]


def test_a_step_of_an_actor_and_a_critic() -> None:
    def train(wrap: Callable[[Any], Any]) -> tuple[list[Any], int]:
        torch.manual_seed(0)
        body, head, value = torch.nn.Linear(4, 16), torch.nn.Linear(16, 3), torch.nn.Linear(16, 1)
        params = [p for each in (body, head, value) for p in each.parameters()]
        optimizer = torch.optim.Adam(params, lr=1e-2)
        states, rewards = torch.randn(6, 4), torch.randn(6)

        def step() -> Any:
            total: Any = 0
            for state, reward in zip(states, rewards, strict=True):
                hidden = body(state).relu()
                choice = D.Categorical(logits=head(hidden))
                action, worth = choice.sample(), value(hidden)[0]
                total = total - choice.log_prob(action) * (reward - worth.detach()) + (worth - reward) ** 2
            optimizer.zero_grad()
            total.backward()
            optimizer.step()
            return total.item()

        run = wrap(step)
        losses = [run() for _ in range(20)]
        programs = len(run.variants) if isinstance(run, Compiled) else 0
        return [losses, [p.tolist() for p in params], torch.rand(2).tolist()], programs

    eager, _ = train(lambda f: f)
    compiled, programs = train(Compiled)
    assert compiled == eager
    assert programs == 1


def test_operators_of_other_classes_are_not_followed() -> None:
    class Factor:
        k = 2.0

        def __radd__(self, x: Any) -> Any:
            return x * self.k

    factor = Factor()
    compiled = Compiled(lambda x: x + factor)
    seen = []
    for k in (2.0, 3.0, 4.0):
        factor.k = k
        seen.append(compiled(torch.ones(1)).item())
    assert seen == [2.0, 3.0, 4.0]


def test_a_file_that_has_been_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "edited_later.py"
    file.write_text("def f(x):\n    return x * 2\n\n\ng = lambda x: x + 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("edited_later")
    file.write_text("def f(x):\n    return x * 3\n\n\ng = lambda x: x + 3\n")
    linecache.checkcache()
    for function, expected in ((module.f, 2), (module.g, 3)):
        compiled = Compiled(function)
        assert [compiled(torch.ones(1)).item() for _ in range(3)] == [expected] * 3
        assert "has changed" in compiled.explain()


def test_classes_derived_from_tensor_elsewhere() -> None:
    class Loud(torch.Tensor):
        pass

    alike(lambda x: (x.sin() + x.relu()).sum(), *[(torch.randn(4),) for _ in range(3)])
    compiled = Compiled(lambda x: x * 2)
    plain = [type(compiled(torch.ones(2))) for _ in range(3)]
    loud = [type(compiled(torch.ones(2).as_subclass(Loud))) for _ in range(3)]
    assert plain == [torch.Tensor] * 3
    assert loud == [Loud] * 3
