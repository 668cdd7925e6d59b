"""Every sample of every op: recorded with some numbers, its program gives with other numbers what the op gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.declared import FUNCTIONS
from tests.faces.calls import converted, function, tensors_in
from tests.samples import Sample, all_samples
from tests.turns import in_turn
from tinytorch.compiler.compiled import Compiled

pytestmark = pytest.mark.filterwarnings("ignore")
KINDS = ("forward", "whole", "module", "out")


def forward(call: Any, args: Any, kwargs: Any, leaves: Any) -> Any:
    """Call an op without a graph."""
    with tinytorch.no_grad():
        out = call(*args, **kwargs)
    return out


def loss_of(outs: Any) -> Any:
    """Return a number that depends on all that requires grad, or None."""
    total = None
    for each in outs:
        if isinstance(each, tinytorch.Tensor) and each.requires_grad:
            part = (each * each).sum()
            total = part if total is None else total + part
    return total


def whole(call: Any, args: Any, kwargs: Any, leaves: Any) -> Any:
    """Call an op, and take the gradients."""
    out = call(*args, **kwargs)
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    total = loss_of(outs)
    grads = ()
    if total is not None:
        grads = tinytorch.autograd.grad(total, leaves, allow_unused=True)
    return [each.detach() if isinstance(each, tinytorch.Tensor) else each for each in outs], grads


def plain(call: Any, args: Any, kwargs: Any) -> Any:
    """Call an op, whose result has a graph."""
    return call(*args, **kwargs)


def out(call: Any, args: Any, kwargs: Any, leaves: Any) -> Any:
    """Call an op that writes into new tensors."""
    with tinytorch.no_grad():
        outs = [tinytorch.empty_like(x) for x in tensors_in([call(*args, **kwargs)], tinytorch)]
        call(*args, out=outs[0] if len(outs) == 1 else tuple(outs), **kwargs)
    return outs


def gradients_of(called: Any) -> Callable[..., Any]:
    """Return `whole` of a function that is called in the op's place."""

    def run(call: Any, args: Any, kwargs: Any, leaves: Any) -> Any:
        return whole(lambda *args, **kwargs: called(call, args, kwargs), args, kwargs, leaves)

    return run


def given(sample: Sample, seed: int, requires_grad: bool) -> tuple[Any, ...]:
    """Return the arguments for `whole`: the sample's own, or with their elements in another order."""
    rng = np.random.default_rng(seed)

    def change(array: Any) -> Any:
        if not seed or array.size < 2 or array.dtype.kind not in "fib":
            return array
        other = array.reshape(-1).copy()
        rng.shuffle(other)
        return other.reshape(array.shape)

    args = [converted(arg, tinytorch, change, requires_grad) for arg in sample.args]
    kwargs = {key: converted(arg, tinytorch, change, requires_grad) for key, arg in sample.kwargs.items()}
    leaves = [x for x in tensors_in([*args, *kwargs.values()], tinytorch) if x.requires_grad]
    return function(tinytorch, sample.name), args, kwargs, leaves


def outcome(run: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return what a call gives, as something to compare: bytes, shapes, strides; or the class of its error."""
    tinytorch.manual_seed(1)
    try:
        result = run(*arguments)
    except Exception as error:
        return type(error)
    return described(result), bytes(tinytorch.get_rng_state().numpy())


def described(x: Any) -> Any:
    if isinstance(x, tinytorch.Tensor):
        return x.dtype, tuple(x.shape), x.stride(), x.requires_grad, x._version, x.detach().numpy(force=True).tobytes()
    if isinstance(x, (tuple, list)):
        return type(x), [described(each) for each in x]
    return repr(x)


SAMPLES: dict[str, list[Sample]] = {}
for _sample in in_turn(all_samples()):
    SAMPLES.setdefault(_sample.family, []).append(_sample)


@pytest.mark.parametrize("family", SAMPLES)
def test_programs_of_samples_are_the_ops(family: str) -> None:
    tried = compiled = 0
    for sample in SAMPLES[family]:
        writes = getattr(FUNCTIONS.get(sample.name), "rule", None)
        for kind in KINDS:
            grads = kind in ("whole", "module")
            if not (given(sample, 0, True)[-1] if grads else kind == "forward" or writes):
                continue
            eager = {"forward": forward, "whole": whole, "module": gradients_of(plain), "out": out}[kind]
            program = Compiled({"forward": forward, "whole": whole, "module": plain, "out": out}[kind])
            run = gradients_of(program) if kind == "module" else program
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for seed in (0, 0, 1, 2):
                    expected = outcome(eager, given(sample, seed, grads))
                    found = outcome(run, given(sample, seed, grads))
                    assert found == expected, f"{sample}, {kind}, {seed}\n{program.source}"
            tried += 1
            compiled += bool(program.variants)
    # The others say why they run as they are: most functions of complex numbers, and those that read elements.
    assert compiled > tried * {"fft": 0.02, "statistics": 0.3}.get(family, 0.5)
