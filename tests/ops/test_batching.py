"""Batches of samples inside of `vmap`: every op equals a loop over the examples, and nearly all have a rule for it."""

from __future__ import annotations

import functools
import gc
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
import tinytorch.ops
import tinytorch.sparse
from tests.samples import Sample, all_samples
from tests.turns import in_turn
from tinytorch.core.declaration import Op
from tinytorch.core.node import OpNode
from tinytorch.ops import batch_rules, batching

ROOT = Path(__file__).resolve().parents[2]
SAMPLES: dict[str, list[Sample]] = {}
for _sample in in_turn(all_samples()):
    SAMPLES.setdefault(_sample.name, []).append(_sample)


def tensors_of(tree: Any) -> list[Any]:
    """Return the tensors in a tree of containers."""
    if isinstance(tree, tinytorch.Tensor):
        return [tree]
    if isinstance(tree, dict):
        tree = list(tree.values())
    return [each for part in tree for each in tensors_of(part)] if isinstance(tree, (list, tuple)) else []


def mapped(tree: Any, function: Callable[[Any], Any]) -> Any:
    """Return a tree of containers with a function applied to its leaves."""
    if type(tree) in (list, tuple):
        return type(tree)([mapped(each, function) for each in tree])
    if type(tree) is dict:
        return {key: mapped(each, function) for key, each in tree.items()}
    return function(tree)


class Call:
    """A sample as a function of its tensors, and the tensors."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        made = functools.partial(mapped, function=lambda x: tinytorch.tensor(x) if isinstance(x, np.ndarray) else x)
        self.args, self.kwargs = made(sample.args), made(sample.kwargs)
        self.tensors = tensors_of((self.args, self.kwargs))

    def __call__(self, *tensors: Any) -> tuple[Any, ...]:
        """Return the tensors in the result of the call with other tensors."""
        given = iter(tensors)
        args, kwargs = mapped((self.args, self.kwargs), lambda x: next(given) if isinstance(x, tinytorch.Tensor) else x)
        name = self.sample.name
        if name.startswith("Tensor."):
            return tuple(tensors_of(getattr(args[0], name.removeprefix("Tensor."))(*args[1:], **kwargs)))
        function = functools.reduce(getattr, name.split("."), tinytorch)
        return tuple(tensors_of(function(*args, **kwargs)))  # type: ignore[operator]

    def differentiable(self) -> tuple[int, ...]:
        """Return the positions of the tensors that have gradients."""
        return tuple([i for i, x in enumerate(self.tensors) if x.is_floating_point() or x.is_complex()])

    def gradients(self, *tensors: Any) -> tuple[Any, ...]:
        """Return the gradients of a weighted sum of the results."""
        places = self.differentiable()

        def score(*varied: Any) -> Any:
            given = list(tensors)
            for i, x in zip(places, varied, strict=True):
                given[i] = x
            parts = [weighted(out) for out in self(*given) if out.is_floating_point() or out.is_complex()]
            return sum(parts[1:], parts[0]) if parts else sum([weighted(x) for x in varied]) * 0

        found: tuple[Any, ...] = tinytorch.func.grad(score, tuple(range(len(places))))(*[tensors[i] for i in places])
        return found


def weighted(x: Any) -> Any:
    """Return a sum of the elements with different weights."""
    x = tinytorch.view_as_real(x) if x.is_complex() else x
    return (x * tinytorch.cos(tinytorch.arange(x.numel(), dtype=x.dtype)).reshape(x.shape)).sum()


def batches(call: Call) -> Iterator[tuple[list[Any], tuple[Any, ...]]]:
    """Yield arguments for `vmap`: all tensors batched, along the first or the last dimension, and each one alone."""
    count = len(call.tensors)
    places = [[0] * count, [-1] * count]
    places += [[k % (x.ndim + 1) if j == k else None for j in range(count)] for k, x in enumerate(call.tensors)]
    for dims in places if count > 1 else places[:2]:
        if "as_strided" in call.sample.name and (-1 in dims or len(call.args) > 3):
            continue  # (in a loop, the examples share one memory)
        given = []
        for x, dim in zip(call.tensors, dims, strict=True):
            second = x * 0.9 if x.is_floating_point() or x.is_complex() else x.clone()
            given.append(x if dim is None else tinytorch.stack([x, second], dim))
        yield given, tuple(dims)


def check(function: Callable[..., tuple[Any, ...]], given: list[Any], dims: tuple[Any, ...], digits: int) -> None:
    """Compare a function of batches with a loop over the examples."""
    loop = []
    for k in range(2):
        tinytorch.manual_seed(0)
        try:
            loop.append(function(*[x if d is None else x.select(d, k) for x, d in zip(given, dims, strict=True)]))
        except (RuntimeError, NotImplementedError, ValueError, IndexError, TypeError):
            return  # the second example is no sample (a matrix that is not orthogonal …)
    tinytorch.manual_seed(0)
    outs = tinytorch.vmap(function, dims, randomness="same")(*given)
    assert len(outs) == len(loop[0])
    for out, first, second in zip(outs, *loop, strict=True):
        want = tinytorch.stack([first, second])
        assert out.dtype is want.dtype
        assert out.shape == want.shape
        lower = 10 ** (-digits if out.dtype.itemsize == 8 or out.is_complex() else -digits // 2)
        np.testing.assert_allclose(out.detach().numpy(force=True), want.detach().numpy(force=True), lower, lower)


def dynamic(name: str) -> bool:
    """Return whether the shapes of a function's results, or its type, depend on elements: `vmap` refuses it."""
    return name in "nonzero argwhere equal allclose masked_select unique unique_consecutive bincount".split()


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_batch_equals_a_loop(name: str) -> None:
    for number, call in enumerate(map(Call, SAMPLES[name])):
        masks = [x for x in tensors_of(call.args[1:]) if x.dtype is tinytorch.bool]
        if (
            dynamic(name)
            or not call.tensors
            or (name in ("where", "nn.functional.one_hot") and len(call.args) == 1)
            # (a batched index of no dimensions is one of the arrays of indices, as in PyTorch, and selects nothing)
            or (name == "Tensor.__getitem__" and {x.ndim for x in call.tensors[1:]} > {0})
            or (masks and name in ("Tensor.__getitem__", "index_put"))
        ):
            continue
        for k, (given, dims) in enumerate(batches(call)):
            check(call, given, dims, 9)
            if call.sample.backward and call.differentiable() and (number + k) % 4 == 0:
                check(call.gradients, given, dims, 7)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_gradients_for_a_batch_of_vectors_equal_a_loop(name: str) -> None:
    for call in map(Call, SAMPLES[name][::3]):
        places = call.differentiable()
        if not places or not call.sample.backward:
            continue
        tensors = [x.requires_grad_() if i in places else x for i, x in enumerate(call.tensors)]
        tinytorch.manual_seed(0)
        try:
            outs = [out for out in call(*tensors) if out.requires_grad]
        except NotImplementedError:
            continue
        if not outs:
            continue
        vectors = [tinytorch.randn(2, *out.shape, dtype=out.dtype) for out in outs]
        inputs = [tensors[i] for i in places]
        try:
            loop = [
                tinytorch.autograd.grad(outs, inputs, [v[k] for v in vectors], retain_graph=True, allow_unused=True)
                for k in range(2)
            ]
        except (RuntimeError, NotImplementedError):
            continue  # it has no derivative there
        rows = tinytorch.autograd.grad(
            outs, inputs, vectors, is_grads_batched=True, retain_graph=True, allow_unused=True
        )
        for row, first, second in zip(rows, *loop, strict=True):
            assert (row is None) == (first is None)
            if row is not None:
                want = tinytorch.stack([first, second])
                assert (row.shape, row.dtype) == (want.shape, want.dtype)
                lower = 1e-7 if row.dtype.itemsize == 8 or row.is_complex() else 1e-3
                np.testing.assert_allclose(row.numpy(), want.numpy(), rtol=lower, atol=lower)


@pytest.mark.parametrize("name", ["nonzero", "masked_select", "unique", "unique_consecutive"])
def test_results_whose_shape_depends_on_elements_are_refused(name: str) -> None:
    call = Call(next(each for each in all_samples() if each.name == name))
    given = [tinytorch.stack([x, x]) for x in call.tensors]
    with pytest.raises(RuntimeError, match="do not support batching operators that can output dynamic shape"):
        tinytorch.vmap(call)(*given)


# Rules --------------------------------------------------------------------------------------------


def all_ops() -> list[Op]:
    """Return all ops that the package declares."""
    for module in pkgutil.walk_packages(tinytorch.ops.__path__, "tinytorch.ops."):
        importlib.import_module(module.name)
    nodes = [cls for cls in OpNode.__subclasses__() if "op" in vars(cls)]
    ops = [node.op for node in nodes if hasattr(node.op, "caller") and node.op.node_class is node]
    return [op for op in ops if not (getattr(op.kernel, "__module__", None) or "").startswith("tests")]


def share_of_ops_with_a_rule() -> float:
    ops = all_ops()
    return 1 - len(batch_rules.without_rule(ops)) / len(ops)


def test_nearly_all_ops_have_a_rule() -> None:
    # (In a process of its own: other tests, and conversions to new dtypes, make further ops.)
    program = "from tests.ops.test_batching import share_of_ops_with_a_rule as share; print(share())"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert float(run.stdout) >= 0.95


def test_rules_are_named_by_declarations() -> None:
    named = {op.batch for op in all_ops() if isinstance(op.batch, str)}
    assert {name for name in named if "->" not in name} == {*batch_rules.RULES, "random"}


def test_an_op_without_a_rule_warns_and_loops() -> None:
    x = tinytorch.rand(3, 4, 4)
    batching.fallen_back.clear()
    with pytest.warns(
        UserWarning, match="There is a performance drop because we have not yet implemented the batching"
    ):
        out = tinytorch.vmap(lambda x: tinytorch.histc(x, 4, 0, 1))(x)
    assert tinytorch.equal(out, tinytorch.stack([tinytorch.histc(each, 4, 0, 1) for each in x]))
    assert batching.fallen_back


# Nodes of the graph -------------------------------------------------------------------------------


def test_a_gradient_inside_of_vmap_is_of_each_example_and_its_sum_outside() -> None:
    w, x = tinytorch.randn(4, 3, dtype=tinytorch.float64), tinytorch.randn(5, 3, dtype=tinytorch.float64)

    def loss(w: Any, x: Any) -> Any:
        return (w @ x).tanh().pow(2).sum()

    each = tinytorch.vmap(tinytorch.func.grad(loss), (None, 0))(w, x)
    assert each.shape == (5, 4, 3)
    total = tinytorch.func.grad(lambda w: tinytorch.vmap(loss, (None, 0))(w, x).sum())(w)
    tinytorch.testing.assert_close(each.sum(0), total)

    def norm(w: Any) -> Any:
        return tinytorch.vmap(tinytorch.func.grad(loss), (None, 0))(w, x).pow(2).sum()

    found = tinytorch.func.grad(norm)(w)  # through the gradients of the examples
    loop = tinytorch.func.grad(lambda w: sum(tinytorch.func.grad(loss)(w, each).pow(2).sum() for each in x))(w)
    tinytorch.testing.assert_close(found, loop)


def test_tensors_of_a_level_die_with_it() -> None:
    import weakref

    x = tinytorch.randn(3, 4)
    seen = []

    def f(x: Any) -> Any:
        y = x * 2
        seen.append(weakref.ref(y._under))
        return y.sum()

    gc.disable()
    try:
        tinytorch.vmap(f)(x)
        assert seen[0]() is None
    finally:
        gc.enable()


def test_one_hot_needs_the_number_of_classes() -> None:
    x = tinytorch.tensor([[0, 1], [2, 0]])
    with pytest.raises(RuntimeError, match="please provide an explicit positive num_classes argument"):
        tinytorch.vmap(tinytorch.nn.functional.one_hot)(x)
    assert tinytorch.vmap(lambda x: tinytorch.nn.functional.one_hot(x, 3))(x).shape == (2, 2, 3)


@pytest.mark.parametrize("name", ["inv", "cholesky", "lu_factor"])
def test_a_singular_example_is_an_error(name):
    x = tinytorch.stack([tinytorch.eye(3), tinytorch.zeros(3, 3)])
    with pytest.raises(RuntimeError, match="Batch element 1"):
        tinytorch.vmap(getattr(tinytorch.linalg, name))(x)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_hooks_see_what_is_saved_of_one_run_for_the_whole_batch(name: str) -> None:
    packed: list[Any] = []
    x = tinytorch.tensor([[3.0, 1.0, 2.0], [0.5, 4.0, tinytorch.nan]], requires_grad=True)
    with tinytorch.autograd.graph.saved_tensors_hooks(packed.append, lambda saved: saved):
        tinytorch.vmap(functools.partial(getattr(tinytorch, name), q=0.5))(x)
        several = len(packed)
        getattr(tinytorch, name)(x[0], 0.5)
    assert several == len(packed) - several
