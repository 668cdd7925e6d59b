"""The twins in C of the call of an op and of the walk backward; tests/faces/native.py compares them with Python's."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import random
import sys
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
from tests.faces.native import in_python, seen
from tinytorch.core import native

pytestmark = pytest.mark.skipif(native.library is None, reason="calls are Python's here")
F = torch.nn.functional


def test_a_slot_more_in_python_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "__slots__", (*torch.Tensor.__slots__, "_more"))
    with pytest.raises(ValueError, match="differ"):
        native._configured()


def test_the_library_serves_one_interpreter() -> None:
    assert native._configured() is None  # (it knows the classes of another package)


@pytest.mark.parametrize("function", [torch.Tensor.__mul__, torch.Tensor.exp, torch.Tensor.view, torch.Tensor.backward])
def test_pythons_tools_see_functions(function: Any) -> None:
    assert isinstance(function, types.FunctionType) and inspect.isfunction(function)
    assert next(iter(inspect.signature(function).parameters)) in ("self", "input", "x")
    assert function.__get__(torch.ones(1)).__self__.shape == (1,)
    assert weakref.ref(function)() is function


def test_the_collector_sees_nodes() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    node, array = y.grad_fn, y._array
    assert {id(each) for each in (node.edges, node.saved)} <= {id(each) for each in gc.get_referents(node)}
    assert id(array) in {id(each) for each in gc.get_referents(y)}
    node.metadata["the tensor that refers to it"] = y
    freed = weakref.ref(y)
    del y, node
    gc.collect()
    assert freed() is None


X, P = torch.rand(8, 8), torch.rand(8, 8, requires_grad=True)
H, W, ONE = P * 1, torch.nn.Parameter(torch.rand(8, 8)), torch.rand((), requires_grad=True)
LONG = torch.arange(8)


def _fails(call: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> None:
        with pytest.raises(RuntimeError):
            call()

    return run


def _freed_twice() -> None:
    y = (P * P).sum()
    y.backward()
    y.backward()


LAYERS = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8))
OPTIMIZER = torch.optim.AdamW(LAYERS.parameters())


def _step() -> None:
    LAYERS(X[0]).sum().backward()
    OPTIMIZER.step()
    OPTIMIZER.zero_grad()


CALLS = {
    "steps": _step,
    "operands": lambda: (X * X, H * X, H + 1.5, LONG + 1, X > 0.5, H * X[0]),
    "one tensor": lambda: (H.exp(), torch.tanh(H), X.t().exp(), H.sum(1), H.mean(), H.softmax(1)),
    "products": lambda: (H @ W, F.linear(H, W, W[0]), X @ X[0], F.linear(H.view(2, 4, 8), W)),
    "several": lambda: (H.max(1), torch.cat([H, X]), torch.stack([H, H]), H.unbind(), X.sort(1)),
    "views": lambda: (H[0], H[1:3], H[:, 0], H.view(-1), H.reshape((4, 16)), H.detach(), H.transpose(0, 1)),
    "attributes": lambda: (H.shape, H.size(0), H.dim(), H.dtype, H.requires_grad, P.grad),
    "creation": lambda: (torch.zeros(3), torch.full((2,), 0.5), torch.zeros_like(X), X.new_ones(2, 3)),
    "in place": lambda: (X.mul_(1.0), X.add_(0.0), X.__iadd__(0.0)),
    "backward": lambda: ((P * X).backward(X), (W * X).sum().backward(), (ONE * 2).backward()),
    "errors": _fails(lambda: H + torch.rand(3)),
    "errors of views": _fails(lambda: H.view(3)),
    "errors of walks": _fails(_freed_twice),
    "empty": lambda: (X[:0] * 2, X[:0].sum(0)),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_leaks(name: str) -> None:
    def blocks(turns: int) -> int:
        for _ in range(turns):
            CALLS[name]()
        gc.collect()
        return sys.getallocatedblocks()

    blocks(100)
    before = blocks(100)
    assert blocks(1000) - before < 300


@pytest.mark.parametrize("name", ["SGD", "AdamW", "RMSprop"])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_steps_are_those_of_python(name: str, shape: tuple[int, ...]) -> None:
    def trained() -> list[Any]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.SiLU(), torch.nn.Linear(5, 2))
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.rand(shape)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        states = [each for state in optimizer.state.values() for each in state.values()]
        return [seen(each) for each in (*model.parameters(), *states)]

    in_c = trained()
    with in_python():
        assert in_c == trained()


def test_an_error_of_a_walk_leaves_the_state_as_it_was() -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            assert not torch.is_grad_enabled()
            raise ValueError("not today")

    for _ in range(30):  # (more often than walks may run inside of each other)
        with pytest.raises(ValueError, match="not today"):
            Fails.apply(P).sum().backward()
    assert torch.is_grad_enabled()


def test_hooks_of_a_running_walk_are_called() -> None:
    seen: list[Any] = []
    x = torch.ones(2, requires_grad=True)

    class Adds(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, y: Any) -> Any:
            return y * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            middle.grad_fn.register_prehook(lambda grads: (grads[0] * 3,))
            middle.grad_fn.register_hook(lambda inputs, outputs: seen.append(outputs[0].tolist()))
            return g * 2

    middle = x * 5
    Adds.apply(middle).sum().backward()
    assert seen == [[6, 6]] and x.grad.tolist() == [30, 30]


def test_other_threads_have_their_own_state() -> None:
    found: list[Any] = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: found.append((P * 2).requires_grad))
        thread.start()
        thread.join()
        assert not (P * 2).requires_grad
    assert found == [True]


def test_floating_point_errors_are_ignored() -> None:
    with np.errstate(all="raise"):
        big = torch.full((4, 4), 3e38)
        for call in (lambda: big @ big, lambda: F.linear(big, big), lambda: big * big, lambda: big / 0, lambda: big**2):
            assert call().isinf().all()


@pytest.mark.parametrize("like", [torch.empty_like, torch.zeros_like, torch.rand_like, torch.randn_like])
def test_strides_of_dimensions_of_size_1_are_those_of_python(like: Any) -> None:
    sums = torch.arange(24.0).reshape(2, 3, 4).sum(0, keepdim=True).transpose(1, 2)
    for x in (torch.linalg.matrix_norm(torch.rand(2, 3, 4), "nuc", (0, 2), True), torch.ones(3, 1).t(), sums[..., :1]):
        in_c = like(x)._array.strides
        with in_python():
            assert in_c == like(x)._array.strides


def test_keys_select_what_python_selects() -> None:
    draw = random.Random(0)
    bounds = (None, -5, -2, 0, 1, 4, torch.tensor(1))

    def part() -> Any:
        bounded = slice(draw.choice(bounds), draw.choice(bounds), draw.choice((None, None, 1, 2, -1)))
        return draw.choice((draw.randint(-3, 2), draw.randint(-3, 2), slice(None), bounded, bounded, None, ...))

    def found(shape: list[int], key: Any) -> Any:
        x = torch.zeros(shape).exp_().cumsum(0).requires_grad_()
        try:
            y = x[key]
            y.cumsum(0).sum().backward()
        except (IndexError, ValueError) as error:
            return str(error)
        return seen(y), seen(x.grad), y.storage_offset()

    for _ in range(1000):
        shape = [draw.choice((1, 2, 3, 3, 0)) for _ in range(draw.randint(0, 3))]
        key = tuple([part() for _ in range(draw.randint(1, 4))])
        key = key[0] if len(key) == 1 and draw.random() < 0.5 else key
        in_c = found(shape, key)
        with in_python():
            assert in_c == found(shape, key), (shape, key)


def test_members_are_pickled_and_copied() -> None:
    for name in dir(torch.Tensor):
        member = getattr(torch.Tensor, name)
        if callable(member) and not name.startswith("__"):
            assert pickle.loads(pickle.dumps(member)) is copy.deepcopy(member) is member, name
