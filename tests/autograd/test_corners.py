"""Corners of autograd that programs written for PyTorch rely on: each program gives the same with both libraries."""

from __future__ import annotations

import importlib
import io
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import same_as_pytorch

PROGRAMS: list[Callable[[Any], Any]] = []


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """PyTorch's first dual tensor gives warnings of its own."""
    if torch is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forward_ad(torch, lambda fw: fw.make_dual(torch.ones(1), torch.ones(1)) * 2)


def program(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS.append(function)
    return function


@needs_oracle
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_as_pytorch(function: Any) -> None:
    same_as_pytorch(function)


def attempt(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # every class: it is compared
        return f"{type(error).__name__}: {' '.join(str(error).split())[:60]}"


def made(torch: Any, **rules: Any) -> Any:
    """Return a `Function` of these rules."""
    return type("Custom", (torch.autograd.Function,), {name: staticmethod(rule) for name, rule in rules.items()})


def forward_ad(torch: Any, run: Callable[[Any], Any]) -> Any:
    """Return `run(forward_ad)` inside a level."""
    module = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
    with module.dual_level():
        return run(module)


# Writes in place ----------------------------------------------------------------------------------


@program
def second_order_through_a_write_to_a_view(torch: Any) -> Any:
    # The inner step of the write is in the second graph too: freeing the first must leave it its tensors.
    x = torch.tensor([[1.0, -2.0, 3.0]], requires_grad=True)
    y = (x * 2).view(3)
    y.sigmoid_()
    (g,) = torch.autograd.grad(y.pow(2).sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


@program
def a_leaf_on_other_memory_starts_anew(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    edge = torch.autograd.graph.get_gradient_edge(x)
    y = x * 3
    with torch.no_grad():
        x.set_(torch.zeros(2))
    return (attempt(lambda: torch.autograd.grad(y.sum(), x, retain_graph=True)), torch.autograd.grad(y.sum(), edge))


@program
def a_view_that_cannot_follow_is_shown(torch: Any) -> Any:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        y = x[:]
        y *= 2
    return repr(y)


@program
def filling_new_tensors_is_no_write(torch: Any) -> Any:
    x = torch.ones(2)
    new = (
        torch.rand(2), torch.randn(2), torch.randint(3, (2,)), torch.normal(0.0, 1.0, (2,)), torch.rand_like(x),
        torch.randn_like(x), torch.randint_like(x, 3),
    )  # fmt: skip
    return [each._version for each in new], torch.rand(2).resize_(1, 2)._version


@program
def resizing_inside_inference_mode(torch: Any) -> Any:
    with torch.inference_mode():
        return torch.ones(4, requires_grad=True).resize_(2, 2).shape


@program
def an_index_is_freed(torch: Any) -> Any:
    x = torch.ones(3, requires_grad=True)
    y = x[[0, 2]].sum()
    y.backward()
    return attempt(y.backward)


@program
def writes_past_the_ops_while_mutation_is_allowed(torch: Any) -> Any:
    found = []
    for write in (
        lambda b: torch.sin(torch.full((1,), 2.0), out=b), lambda b: b.__setitem__(0, 5.0), lambda b: b.fill_(5.0),
        lambda b: b.normal_(), lambda b: b.zero_(),
    ):  # fmt: skip
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            a, b = torch.ones(1, requires_grad=True), torch.ones(1)
            y = a * b
            write(b)
            y.backward()
            found.append(a.grad)
    return found


# Custom functions ---------------------------------------------------------------------------------


@program
def once_differentiable_shows_all_arguments(torch: Any) -> Any:
    once = torch.autograd.function.once_differentiable
    function = made(
        torch, forward=lambda ctx, x, factor, y: x * factor * y, backward=once(lambda ctx, g: (g * 2, None, g * 3))
    )
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function.apply(x, 2, y).sum().backward(create_graph=True)

    def described(node: Any) -> Any:
        return node and (type(node).__name__, *[described(each) for each, _ in node.next_functions])

    return described(x.grad.grad_fn), described(y.grad.grad_fn)


@program
def gradients_of_constant_outputs_need_not_be_made(torch: Any) -> Any:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        a, b = x.clone(), x.clone()
        ctx.mark_non_differentiable(b)
        ctx._materialize_non_diff_grads = False
        return a, b

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        seen.append(h)
        return g

    made(torch, forward=forward, backward=backward).apply(torch.ones(2, requires_grad=True))[0].sum().backward()
    return seen


@program
def a_view_of_what_forward_wrote_to(torch: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        view = x.clone()[:2]
        view += 2
        return view

    y = made(torch, forward=forward, backward=lambda ctx, g: g).apply(torch.zeros(3, requires_grad=True))
    return y, y.grad_fn.name()


@program
def a_dirty_view_that_is_no_input(torch: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        out = x.clone().view_as(x)
        ctx.mark_dirty(out)
        return out

    function = made(torch, forward=forward, backward=lambda ctx, g: g)
    return attempt(lambda: function.apply(torch.ones(1, requires_grad=True).clone()))


@program
def faces_of_nodes_are_nodes(torch: Any) -> Any:
    function = made(torch, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g)
    node, Node = (function.apply(torch.ones(1, requires_grad=True)).grad_fn, torch.autograd.graph.Node)
    return (
        isinstance(node, Node), issubclass(type(node), Node), node.__class__ is function._backward_cls,
        issubclass(torch.autograd.function.BackwardCFunction, Node), isinstance(Node, Node), isinstance(3, Node),
        issubclass(Node, Node), issubclass(int, Node),
    )  # fmt: skip


# Forward mode -------------------------------------------------------------------------------------


@program
def what_jvp_may_return_for_a_view(torch: Any) -> Any:
    answers = {
        "a view": lambda t: t[:2],
        "a copy": lambda t: t[:2].clone(),
        "a view of a copy": lambda t: t[:2].clone().view(2),
    }
    found = []
    for answer in answers.values():
        function = made(torch, forward=lambda ctx, x: x[:2], jvp=lambda ctx, t, answer=answer: answer(t))
        for of_view in (False, True):

            def run(fw: Any, function: Any = function, of_view: bool = of_view) -> Any:
                x = fw.make_dual(torch.zeros(3), torch.ones(3))
                return fw.unpack_dual(function.apply(x.view_as(x) if of_view else x)).tangent

            found.append(attempt(lambda run=run: forward_ad(torch, run)))
    return found


@program
def jvp_has_to_write_where_forward_does(torch: Any) -> Any:
    found = []
    for rule in (lambda ctx, t: t, lambda ctx, t: t * 2, lambda ctx, t: t.mul_(2)):

        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        function = made(torch, forward=forward, jvp=rule)

        def run(fw: Any, function: Any = function) -> Any:
            tangent = torch.ones(2)
            out = function.apply(fw.make_dual(torch.ones(2), tangent))
            return fw.unpack_dual(out).tangent is tangent, tangent

        found.append(attempt(lambda run=run: forward_ad(torch, run)))
    return found


@program
def what_jvp_is_given(torch: Any) -> Any:
    seen = []

    def forward(ctx: Any, x: Any, k: Any) -> Any:
        ctx.save_for_backward(x)
        out = x.clone()
        ctx.mark_non_differentiable(out)
        return x * 2, k.clone(), out

    def jvp(ctx: Any, t: Any, of_integers: Any) -> Any:
        seen.append((ctx.saved_tensors, of_integers))
        return t * 2, None, t

    function = made(torch, forward=forward, jvp=jvp)
    error = attempt(
        lambda: forward_ad(
            torch, lambda fw: function.apply(fw.make_dual(torch.ones(2), torch.ones(2)), torch.tensor(3))
        )
    )
    return seen, error


@program
def tangents(torch: Any) -> Any:
    def run(fw: Any) -> Any:
        x, tangent = torch.ones(2), torch.ones(2)
        dual, copied, cut = (fw.make_dual(x, tangent), torch.zeros(2), fw.make_dual(x, tangent).clone())
        copied.copy_(dual)
        cut.detach_()
        return (
            fw._current_level, fw.unpack_dual(copied).tangent is tangent, fw.unpack_dual(cut).tangent,
            attempt(lambda: fw.make_dual(torch.ones(2), dual)),
        )  # fmt: skip

    module = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
    return forward_ad(torch, run), module._current_level


@program
def an_op_without_forward_mode(torch: Any) -> Any:
    return attempt(
        lambda: forward_ad(torch, lambda fw: torch.igamma(fw.make_dual(torch.ones(1), torch.ones(1)), torch.ones(1)))
    )[:40]


# Modes, hooks, handles ----------------------------------------------------------------------------


@program
def decorating_a_class(torch: Any) -> Any:
    @torch.no_grad()
    class Seen:
        def __init__(self) -> None:
            self.made = torch.is_grad_enabled()

        def asked(self) -> bool:
            return torch.is_grad_enabled()

    return Seen().made, Seen().asked()


@program
def multithreading(torch: Any) -> Any:
    switch, asked = (torch.autograd.set_multithreading_enabled, torch.autograd.is_multithreading_enabled)
    seen = [asked()]
    with switch(False):
        seen.append(asked())
        switch(True)
        seen.append(asked())
    switch(False)
    seen.append(asked())
    switch(True)
    return [*seen, asked()]


@program
def handles_of_hooks(torch: Any) -> Any:
    x = torch.nn.Sigmoid()
    handle = x.register_forward_hook(lambda *args: None)
    before = handle.id in handle.hooks_dict_ref()
    handle.remove()
    kind = importlib.import_module(f"{torch.__name__}.utils.hooks").RemovableHandle
    return before, len(handle.hooks_dict_ref()), isinstance(handle, kind)


@program
def what_a_saved_tensor_holds(torch: Any) -> Any:
    def unpack(x: Any) -> Any:
        return x

    x = torch.tensor(2.0, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        y = x**2
    z = y.exp()
    packed, result = y.grad_fn._raw_saved_self, z.grad_fn._raw_saved_result
    return (
        packed.data is x, packed.unpack_hook is unpack, result.data is z, result.unpack_hook,
        attempt(lambda: result.register_hooks(unpack))[:9],
    )  # fmt: skip


def test_anomalies_are_printed_where_warnings_are_errors(monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tinytorch.autograd.detect_anomaly():
            warnings.simplefilter("error")
            x = tinytorch.ones(2, requires_grad=True) + 1
            y = x**2
            x += 1
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.sum().backward()
    assert "Error detected in PowBackward0" in sys.stderr.getvalue()  # type: ignore[attr-defined]


@needs_oracle
@pytest.mark.parametrize(
    "make",
    [
        lambda torch, x: torch.nn.functional.linear(x, torch.ones(4, 3).requires_grad_()),
        lambda torch, x: torch.nn.Linear(3, 4)(x.relu()),
        lambda torch, x: torch.nn.functional.cross_entropy(x, torch.tensor([0, 2])),
        lambda torch, x: torch.nn.functional.nll_loss(x.log_softmax(1), torch.tensor([0, 2])),
        lambda torch, x: torch.nn.functional.mse_loss(torch.nn.Linear(3, 3)(x).tanh(), x),
        lambda torch, x: x**2 + 2**x + x**x + x * 3,
        lambda torch, x: x.masked_fill(x > 0, 1.0).clone().fill_(2.0),
        lambda torch, x: x.scatter(1, torch.tensor([[0], [1]]), 3.0),
        lambda torch, x: x.scatter_reduce(1, torch.tensor([[0], [1]]), x[:, :1], "amax"),
        lambda torch, x: torch.nn.functional.batch_norm(x, x[0].detach(), x[0].detach() + 1),
    ],
)
def test_a_walk_along_next_functions_sees_pytorchs_graph(make):
    def walk(node):
        return node and (node.name(), [(walk(each), k) for each, k in node.next_functions])

    def program(torch):
        x = torch.tensor([[1.0, -2.0, 3.0], [0.5, 1.5, 2.5]], requires_grad=True)
        return walk(make(torch, x).grad_fn)

    same_as_pytorch(program)


def test_a_step_within_an_op_is_the_same_one_each_time_and_has_no_hooks():
    weight = tinytorch.ones(2, 2).requires_grad_()
    node = tinytorch.nn.functional.linear(tinytorch.ones(1, 2), weight).grad_fn
    step = node.next_functions[1][0]
    assert step.name() == "TBackward0"
    assert len({step, node.next_functions[1][0]}) == 1
    assert step.next_functions[0][0].variable is weight
    with pytest.raises(NotImplementedError, match="a part of MmBackward0"):
        step.register_hook(print)


@needs_oracle
@pytest.mark.parametrize("own", [lambda x: x, lambda x: x.data, lambda x: x.detach()])
def test_a_write_of_values_that_lie_in_the_memory_written_to(own):
    def program(torch):
        x = torch.arange(12.0).reshape(3, 4)
        x[x > -99] = own(x).reshape(-1)

    same_as_pytorch(program)
