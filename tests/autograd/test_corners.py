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
from tests.autograd.programs import Program, Programs, made
from tests.oracle import torch
from tests.same import same_as_pytorch

PROGRAMS = Programs()


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """PyTorch's first dual tensor gives warnings of its own."""
    if torch is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            forward_ad(torch, lambda fw: fw.make_dual(torch.ones(1), torch.ones(1)) * 2)


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_as_pytorch(program: Program) -> None:
    same_as_pytorch(program)


def attempt(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # every class: it is compared
        return f"{type(error).__name__}: {' '.join(str(error).split())[:60]}"


def forward_ad(torch: Any, run: Callable[[Any], Any]) -> Any:
    """Return `run(forward_ad)` inside a level."""
    module = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
    with module.dual_level():
        return run(module)


# Writes in place ----------------------------------------------------------------------------------


@PROGRAMS
class Writes:
    def second_order_through_a_write_to_a_view(torch):
        # The inner step of the write is in the second graph too: freeing the first must leave it its tensors.
        x = torch.tensor([[1.0, -2.0, 3.0]], dtype=torch.float64, requires_grad=True)
        y = (x * 2).view(3)
        y.sigmoid_()
        (g,) = torch.autograd.grad(y.pow(2).sum(), x, create_graph=True)
        return g, torch.autograd.grad(g.sum(), x)

    def a_leaf_on_other_memory_starts_anew(torch):
        x = torch.ones(2, requires_grad=True)
        edge = torch.autograd.graph.get_gradient_edge(x)
        y = x * 3
        with torch.no_grad():
            x.set_(torch.zeros(2))
        return (attempt(lambda: torch.autograd.grad(y.sum(), x, retain_graph=True)), torch.autograd.grad(y.sum(), edge))

    def a_view_that_cannot_follow_is_shown(torch):
        x = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            y = x[:]
            y *= 2
        return repr(y)

    def filling_new_tensors_is_no_write(torch):
        x = torch.ones(2)
        new = (
            torch.rand(2), torch.randn(2), torch.randint(3, (2,)), torch.normal(0.0, 1.0, (2,)), torch.rand_like(x),
            torch.randn_like(x), torch.randint_like(x, 3),
        )  # fmt: skip
        return [each._version for each in new], torch.rand(2).resize_(1, 2)._version


# Custom functions ---------------------------------------------------------------------------------


@PROGRAMS
class Functions:
    def once_differentiable_shows_all_arguments(torch):
        once = torch.autograd.function.once_differentiable
        function = made(
            torch, forward=lambda ctx, x, factor, y: x * factor * y, backward=once(lambda ctx, g: (g * 2, None, g * 3))
        )
        x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function.apply(x, 2, y).sum().backward(create_graph=True)

        def described(node):
            return node and (type(node).__name__, *[described(each) for each, _ in node.next_functions])

        return described(x.grad.grad_fn), described(y.grad.grad_fn)

    def messages_name_an_output_by_the_function(torch):
        function = made(torch, forward=lambda ctx, x: x.view(-1), backward=lambda ctx, g: g)
        return attempt(lambda: function.apply(torch.ones(2, requires_grad=True)).add_(1))

    def gradients_of_constant_outputs_need_not_be_made(torch):
        seen = []

        def forward(ctx, x):
            a, b = x.clone(), x.clone()
            ctx.mark_non_differentiable(b)
            ctx._materialize_non_diff_grads = False
            return a, b

        def backward(ctx, g, h):
            seen.append(h)
            return g

        made(torch, forward=forward, backward=backward).apply(torch.ones(2, requires_grad=True))[0].sum().backward()
        return seen

    def a_view_of_what_forward_wrote_to(torch):
        def forward(ctx, x):
            view = x.clone()[:2]
            view += 2
            return view

        y = made(torch, forward=forward, backward=lambda ctx, g: g).apply(torch.zeros(3, requires_grad=True))
        return y, y.grad_fn.name()

    def a_dirty_view_that_is_no_input(torch):
        def forward(ctx, x):
            out = x.clone().view_as(x)
            ctx.mark_dirty(out)
            return out

        function = made(torch, forward=forward, backward=lambda ctx, g: g)
        return attempt(lambda: function.apply(torch.ones(1, requires_grad=True).clone()))

    def faces_of_nodes_are_nodes(torch):
        function = made(torch, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: g)
        node, Node = (function.apply(torch.ones(1, requires_grad=True)).grad_fn, torch.autograd.graph.Node)
        return (
            isinstance(node, Node), issubclass(type(node), Node), node.__class__ is function._backward_cls,
            issubclass(torch.autograd.function.BackwardCFunction, Node), isinstance(Node, Node), isinstance(3, Node),
            issubclass(Node, Node), issubclass(int, Node),
        )  # fmt: skip


# Forward mode -------------------------------------------------------------------------------------


@PROGRAMS
class ForwardMode:
    def what_jvp_may_return_for_a_view(torch):
        answers = {
            "a view": lambda t: t[:2],
            "a copy": lambda t: t[:2].clone(),
            "a view of a copy": lambda t: t[:2].clone().view(2),
        }
        found = []
        for answer in answers.values():
            function = made(torch, forward=lambda ctx, x: x[:2], jvp=lambda ctx, t, answer=answer: answer(t))
            for of_view in (False, True):

                def run(fw, function=function, of_view=of_view):
                    x = fw.make_dual(torch.zeros(3), torch.ones(3))
                    return fw.unpack_dual(function.apply(x.view_as(x) if of_view else x)).tangent

                found.append(attempt(lambda run=run: forward_ad(torch, run)))
        return found

    def jvp_has_to_write_where_forward_does(torch):
        found = []
        for rule in (lambda ctx, t: t, lambda ctx, t: t * 2, lambda ctx, t: t.mul_(2)):

            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)

            function = made(torch, forward=forward, jvp=rule)

            def run(fw, function=function):
                tangent = torch.ones(2)
                out = function.apply(fw.make_dual(torch.ones(2), tangent))
                return fw.unpack_dual(out).tangent is tangent, tangent

            found.append(attempt(lambda run=run: forward_ad(torch, run)))
        return found

    def what_jvp_is_given(torch):
        seen = []

        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            out = x.clone()
            ctx.mark_non_differentiable(out)
            return x * 2, k.clone(), out

        def jvp(ctx, t, of_integers):
            seen.append((ctx.saved_tensors, of_integers))
            return t * 2, None, t

        function = made(torch, forward=forward, jvp=jvp)
        error = attempt(
            lambda: forward_ad(
                torch, lambda fw: function.apply(fw.make_dual(torch.ones(2), torch.ones(2)), torch.tensor(3))
            )
        )
        return seen, error

    def an_op_without_forward_mode(torch):
        return attempt(
            lambda: forward_ad(
                torch, lambda fw: torch.igamma(fw.make_dual(torch.ones(1), torch.ones(1)), torch.ones(1))
            )
        )[:40]


# Modes, hooks, handles ----------------------------------------------------------------------------


@PROGRAMS
class Modes:
    def handles_of_hooks(torch):
        x = torch.nn.Sigmoid()
        handle = x.register_forward_hook(lambda *args: None)
        before = handle.id in handle.hooks_dict_ref()
        handle.remove()
        kind = importlib.import_module(f"{torch.__name__}.utils.hooks").RemovableHandle
        return before, len(handle.hooks_dict_ref()), isinstance(handle, kind)


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


@pytest.mark.parametrize("own", [lambda x: x, lambda x: x.data, lambda x: x.detach()])
def test_a_write_of_values_that_lie_in_the_memory_written_to(own):
    def program(torch):
        x = torch.arange(12.0).reshape(3, 4)
        x[x > -99] = own(x).reshape(-1)

    same_as_pytorch(program)
