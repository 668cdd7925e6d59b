"""Training steps of all kinds of models, and the examples, compiled and as they are: the same, bit for bit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tinytorch
from benchmarks.work import WORK
from tests.compiler.drawn import defined
from tests.compiler.test_programs import difference, plain, seen, values
from tests.same import expressions
from tests.test_benchmarks import TRAINING
from tests.test_examples import COMPILED, run
from tests.test_train_fashion_mnist import write_data
from tinytorch import nn
from tinytorch.optim.lr_scheduler import LRScheduler

#: What runs as it is: sampling, packed sequences, bags of rows.
AS_IT_IS = {"gru", "recommender"}


def kept(x: Any, found: dict[int, Any]) -> list[Any]:
    """Return the modules, optimizers and tensors that a function closes over."""
    if id(x) in found:
        return []
    found[id(x)] = x
    if isinstance(x, (tinytorch.Tensor, tinytorch.nn.Module, tinytorch.optim.Optimizer)):
        return [x]
    cells = [cell.cell_contents for cell in getattr(x, "__closure__", None) or ()]
    return [each for inner in (x if isinstance(x, (list, tuple)) else cells) for each in kept(inner, found)]


def outcome(name: str, compile_: Any) -> list[Any]:
    """Return all that can be seen of 20 steps: losses, the generator, and at the end weights, gradients and states."""
    tinytorch.manual_seed(0)
    function = WORK[name].make(tinytorch)
    step = compile_(function)
    tinytorch.manual_seed(1)
    found = [(seen(tinytorch.as_tensor(step())), tinytorch.get_rng_state().numpy().tobytes()) for _ in range(20)]
    things = kept(function, {})
    assert any(isinstance(each, tinytorch.optim.Optimizer) for each in things)
    return [found, [seen(each) for each in things]]


@pytest.mark.parametrize("name", TRAINING)
def test_steps_are_the_same_compiled(name: str) -> None:
    made: list[Any] = []

    def compiled(step: Any) -> Any:
        made.append(tinytorch.compile(step))
        return made[0]

    assert not difference(outcome(name, plain), outcome(name, compiled))
    assert bool(made[0].variants) == (name not in AS_IT_IS), made[0].explain()


def test_gradients_last_until_the_step_where_leaves_are_served_early() -> None:
    tinytorch.ones(1, requires_grad=True).register_hook(lambda g: g).remove()  # from then on they are
    assert not difference(outcome("tcn", plain), outcome("tcn", tinytorch.compile))


class Noted:
    """What an example compiles, or does not, and what it was given at each call."""

    def __init__(self, function: Any, compile_: Any) -> None:
        self.step = compile_(function)
        self.given: list[Any] = []

    def __call__(self, *args: Any) -> Any:
        self.given.append(args)
        return self.step(*args)


@pytest.mark.parametrize("name", COMPILED)
def test_examples_are_the_same_compiled(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Twenty steps and more: what is printed, and the models, optimizers and schedulers that the step was given."""
    write_data(tmp_path)
    noted: list[Noted] = []
    outcomes = []
    for compile_ in (plain, tinytorch.compile):
        monkeypatch.setattr(
            tinytorch, "compile", lambda step, how=compile_: noted.append(Noted(step, how)) or noted[-1]
        )
        printed = run(name, capsys, f"{COMPILED[name][0].format(data=tmp_path)} --compile")
        things = [x.state_dict() if isinstance(x, LRScheduler) else x for x in noted[-1].given[-1]]
        assert len(noted[-1].given) >= 20
        outcomes.append([re.sub(r"[\d.]+ s$", "", printed, flags=re.MULTILINE), [seen(x) for x in things]])
    assert not difference(*outcomes)
    assert len(noted[-1].step.variants) == COMPILED[name][1], noted[-1].step.explain()


LAYER = {"d_model": 8, "nhead": 2, "dim_feedforward": 16, "batch_first": True}
#: Attention `a`, an encoder `e` and a decoder `d`, with masks of booleans, of numbers, and made in the call.
MASKED = expressions("""
    a(x, x, x, key_padding_mask=t == 0)[0]; a(x, x, x, attn_mask=m, key_padding_mask=t == 0, need_weights=False)[0]
    e(x, src_key_padding_mask=t == 0); e(x, m, t == 0); e(x, m); e.layers[0](x, src_key_padding_mask=t == 0)
    e(x, nn.Transformer.generate_square_subsequent_mask(x.size(1)))
    e(x, nn.Transformer.generate_square_subsequent_mask(x.size(1)), is_causal=True)
    e.layers[0](x, nn.Transformer.generate_square_subsequent_mask(x.size(1)), is_causal=True)
    d(x, x, m, memory_key_padding_mask=t == 0, tgt_key_padding_mask=t == 0); d(x, x, m, m.T)
""")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("text", MASKED)
def test_masks_are_compiled_and_exported(text: str, train: bool) -> None:
    tinytorch.manual_seed(2)
    a = nn.MultiheadAttention(8, 2, 0.1, batch_first=True).train(train)
    e = nn.TransformerEncoder(nn.TransformerEncoderLayer(**LAYER), 2).train(train)
    d = nn.TransformerDecoder(nn.TransformerDecoderLayer(**LAYER), 2).train(train)
    m = tinytorch.ones(5, 5, dtype=tinytorch.bool).triu(1)
    step = defined(f"def step(x, t):\n    return {text}\n", a=a, e=e, d=d, m=m)
    t = tinytorch.tensor([[1, 2, 3, 0, 0], [1, 1, 1, 1, 1]])
    for grad in (True, False):
        found = []
        for function in (step, tinytorch.compile(step, fullgraph=True)):
            tinytorch.manual_seed(1)
            with tinytorch.set_grad_enabled(grad):
                found.append([values(function(tinytorch.randn(2, 5, 8), t.roll(k, 0))) for k in range(3)])
        assert found[0] == found[1]
    if "is_causal" in text or text.startswith("e.layers[0](x, src"):
        module: Any = nn.Module()
        module.e, module.forward = e, lambda x, t: step(x, t)
        module.eval()
        x = tinytorch.randn(2, 5, 8)
        assert tinytorch.allclose(tinytorch.export.export(module, (x, t)).module()(x, t), step(x, t), atol=1e-6)
