"""Functions, indexing, layers and training that are drawn at random, and what draws: the same compiled, bit for bit."""

from __future__ import annotations

import inspect
import random
import re
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.compiler import drawn, indexed, texts
from tests.compiler.test_programs import difference, plain, seen, tried
from tests.declared import FUNCTIONS
from tests.ops.test_random import ERRORS, NUMBERS
from tests.ops.test_random_indexing import Case, cases
from tests.programs.drawn import random_programs
from tests.same import expressions
from tests.turns import quarter
from tinytorch.kernels import parallel


@pytest.fixture(params=["as it is", "everything is large"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let arrays of a few elements be large: what is done in blocks, or computed again, for these alone."""
    if request.param != "as it is":
        monkeypatch.setattr(parallel, "LARGE", 4)
        monkeypatch.setattr(parallel, "CACHED", 8)


@pytest.mark.parametrize("start", quarter(range(0, 1000, 50)))
@pytest.mark.usefixtures("sizes")
def test_drawn_functions_are_the_same_compiled(start: int) -> None:
    for seed in range(start, start + 50):
        text = drawn.function(seed)
        assert not (found := drawn.failure(text)), f"{seed}\n{text}\n{found}"
    assert drawn.counts[True] > drawn.counts[False] / 3  # (the others say why they run as they are)


@pytest.mark.parametrize("start", range(0, 100, 50))
@pytest.mark.parametrize("kind", [texts.of_layers, texts.of_training])
@pytest.mark.usefixtures("sizes")
def test_drawn_layers_and_training_are_the_same_compiled(kind: Any, start: int) -> None:
    made: list[Any] = []
    for seed in range(start, start + 50):
        text = kind(seed)
        (expected, _), (got, compiled) = texts.outcome(text, False), texts.outcome(text, True)
        assert not (found := difference(expected, got)), f"{seed}\n{text}\n{found}"
        made += compiled
    assert sum(bool(each.variants) for each in made) > len(made) / 4


@random_programs(150, cases())
def test_drawn_indexing_is_the_same_compiled(case: Case) -> None:
    for write in indexed.WRITES:
        expected, got = indexed.outcome(case, write, plain), indexed.outcome(case, write, tinytorch.compile)
        assert not (found := difference(expected, got)), f"{write}: {found}"


# What draws random numbers --------------------------------------------------------------------------

#: In addition to the functions of `ops/random.py`: `G` is a generator, `x` four numbers of each call, `W` weights.
DRAWS = expressions("""
    x[torch.randperm(4)[:2]]; x[torch.randperm(4, generator=G)]; [torch.rand(2), x[torch.randperm(4)], torch.rand(2)]
    [*torch.randperm(5)]; torch.randperm(9)[:4].tolist(); torch.randperm(3, out=torch.empty(3, dtype=torch.int64)) + 0
    torch.multinomial(x.exp(), 3, True, generator=G, out=torch.empty(3, dtype=torch.int64)) * 2
    torch.normal(x, 1.0, generator=G, out=torch.empty(4)) * 2; torch.normal(x, x.exp(), out=torch.empty(0))
    torch.func.vmap(lambda y: y[torch.randperm(4)[:2]], randomness="different")(x.expand(3, 4))
    torch.func.vmap(lambda y: y + torch.randperm(4, generator=G), randomness="same")(x.expand(3, 4))
    F.dropout(x); F.alpha_dropout(x); F.feature_alpha_dropout(x.expand(3, 4)); nn.Dropout(0.3)(x); nn.RReLU()(x)
    F.rrelu(x, training=True); F.gumbel_softmax(x, hard=True); F.fractional_max_pool2d(x.expand(1, 1, 4, 4), 2, 2)
    F.scaled_dot_product_attention(*[x.expand(1, 2, 4)] * 3, dropout_p=0.5); nn.Linear(3, 2)(x[:3])
    nn.init.trunc_normal_(W); nn.init.xavier_uniform_(W); nn.init.kaiming_normal_(W); nn.init.orthogonal_(W)
    nn.init.sparse_(W, 0.4); nn.init.sparse_(torch.empty(4, 3), 0.4, generator=G); nn.init.xavier_normal_(W)
    nn.init.kaiming_uniform_(W)
    [*torch.utils.data.RandomSampler(range(5))]; [*torch.utils.data.RandomSampler(range(5), generator=G)]
    [*torch.utils.data.SubsetRandomSampler([3, 1, 2])]; [*torch.utils.data.WeightedRandomSampler([0.2, 0.8], 5)]
    [p.indices for p in torch.utils.data.random_split(range(6), [2, 4])]; torch.quasirandom.SobolEngine(2, True).draw(2)
    [*torch.utils.data.DataLoader(range(6), batch_size=2, shuffle=True)]; torch.distributions.Normal(x, 1.0).sample()
    torch.distributions.Categorical(logits=x).sample((3,)); torch.pca_lowrank(x.expand(3, 4) + torch.eye(3, 4), 2)[1]
    x[np.random.permutation(4)]; x + np.random.rand(); x * np.random.default_rng().random(); x + random.random()
    x[random.sample(range(4), 2)]; random.shuffle(L) or x[L]; x + random.Random().gauss(0, 1)
    x + float(np.random.RandomState().rand()); x[np.random.choice(4, 2)]; torch.tensor(np.random.rand(3)) * 2
    torch.from_numpy(np.random.rand(4)) * x; G.manual_seed(3).initial_seed(), torch.rand(2, generator=G)
    torch.manual_seed(torch.randint(9, (1,)).item()) and torch.randperm(5); x.shape[0], x.sort()[0].tolist()
    torch.empty(3).uniform_(generator=G) + torch.empty(3).exponential_(); torch.bernoulli(x.sigmoid(), generator=G)
""")
_UNSEEDED = ("default_rng()", "Random()", "RandomState()")


def of_seed(text: str, compiles: bool) -> Any:
    """Return what some calls of a function give, from one seed of all generators."""
    scope = {"G": tinytorch.Generator().manual_seed(1), "L": [0, 1, 2, 3], "W": tinytorch.empty(4, 3)}
    function: Any = drawn.defined(f"def step(x):\n    return {text}\n", np=np, random=random, **scope)
    run = tinytorch.compile(function) if compiles else function
    for seed in (tinytorch.manual_seed, random.seed, np.random.seed):
        seed(4)
    given = tinytorch.tensor([0.5, -1.0, 2.0, 0.1])
    found = [(seen(tried(run, given + k)), seen(tinytorch.get_rng_state())) for k in range(3)]
    return [*found, seen(scope["G"].get_state()), random.random(), np.random.rand()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", [*NUMBERS, *DRAWS])
def test_a_draw_is_no_constant(text: str) -> None:
    for each in _UNSEEDED:
        text = text.replace(each, each.replace("()", "(np.random.randint(99))"))
    assert not (found := difference(of_seed(text, False), of_seed(text, True))), found


def test_all_that_draws_is_called() -> None:
    called = set(re.findall(r"\.(\w+)\(", " ".join([*NUMBERS, *ERRORS, *DRAWS])))
    draw = {name for name, made in FUNCTIONS.items() if "generator" in inspect.signature(made.raw).parameters}
    assert "randperm" in draw
    assert {name.rpartition(".")[2] for name in draw} <= called
    assert not [name for name in draw if getattr(FUNCTIONS[name].raw, "__traced_as__", None) == "creates"]
