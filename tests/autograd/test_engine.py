"""backward and grad, `.grad` and its layout, leaves, retain_grad, detach: programs run by both libraries."""

from __future__ import annotations

import copy
import gc
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.autograd.programs import Program, Programs, leaf, tried, with_create_graph
from tests.oracle import needs_oracle, torch
from tests.same import same_as_pytorch
from tinytorch.autograd.gradcheck import GradcheckError

PROGRAMS = Programs()


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_as_pytorch(program: Program) -> None:
    same_as_pytorch(program)


def of_one(call: Callable[[Any, Any], Any]) -> Program:
    """Return a program that calls with a leaf, and looks at its `.grad` too."""
    return lambda torch: (lambda x: (call(torch, x), x.grad))(leaf(torch))


def of_two(call: Callable[[Any, Any, Any], Any]) -> Program:
    """Return a program that calls with two leaves, and looks at their `.grad` too."""

    def program(torch):
        a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
        return call(torch, a, b), a.grad, b.grad

    return program


def twice(run: Callable[[], Any]) -> tuple[Any, Any]:
    return run(), run()


PROGRAMS.add(
    "backward",
    of_one,
    of_several=lambda torch, x: torch.autograd.backward([x * 2, (x * 3).sum()], [torch.tensor([1.0, 10.0]), None]),
    of_a_tuple=lambda torch, x: torch.autograd.backward((x.sum(), x.prod())),
    of_an_iterator=lambda torch, x: torch.autograd.backward(iter([x.sum(), x.prod()])),
    of_one_that_leads_to_another=lambda torch, x: (
        lambda y: torch.autograd.backward([y, (y * 3).sum()], [torch.ones(2), None])
    )(x * x),
    of_nothing=lambda torch, x: torch.autograd.backward([]),
    of_many_elements=lambda torch, x: (x * 2).backward(),
    of_many_elements_by_function=lambda torch, x: torch.autograd.backward(x * 2),
    of_one_element=lambda torch, x: (x[:1, None] * 2).backward(),
    of_what_does_not_require_grad=lambda torch, x: torch.ones(2).sum().backward(),
    of_that_by_function=lambda torch, x: torch.autograd.backward(torch.ones(2).sum()),
    of_a_leaf=lambda torch, x: (x.backward(torch.ones(2)), x.backward(torch.full((2,), 5.0))),
    of_integers=lambda torch, x: x.argmax().backward(),
    a_wrong_shape=lambda torch, x: (x * 2).backward(torch.ones(3)),
    a_shape_that_could_be_broadcast=lambda torch, x: torch.autograd.backward(x * 2, torch.tensor(1.0)),
    too_many_gradients=lambda torch, x: torch.autograd.backward(x * 2, [torch.ones(2), torch.ones(2)]),
    another_dtype=lambda torch, x: (x * 2).backward(torch.ones(2, dtype=torch.float64)),
    integers_as_gradient=lambda torch, x: torch.autograd.backward(x * 2, torch.ones(2, dtype=torch.int64)),
    a_number_as_gradient=lambda torch, x: torch.autograd.backward(x.sum(), 2.0),
    a_number_as_gradient_of_many=lambda torch, x: (x * 2).backward(3.0),
    a_list_as_gradient=lambda torch, x: (x * 2).backward([1.0, 2.0]),
    keywords=lambda torch, x: (x * 2).backward(gradient=torch.tensor([1.0, 2.0]), retain_graph=True),
    grad_variables=lambda torch, x: torch.autograd.backward(x * 2, grad_variables=torch.ones(2)),
    grad_variables_too=lambda torch, x: torch.autograd.backward(x * 2, torch.ones(2), grad_variables=torch.ones(2)),
    adds_up=lambda torch, x: [(x * x).sum().backward() for _ in range(3)],
    twice=lambda torch, x: twice((x * x).sum().backward),
    twice_where_nothing_is_saved=lambda torch, x: (twice((x + x).sum().backward), twice((x + 1).sum().backward)),
    retained=lambda torch, x: (lambda y: (y.backward(retain_graph=True), y.backward()))((x * x).sum()),
    a_shared_part_is_freed=lambda torch, x: (lambda h: (h.sum().backward(), (h * h).sum().backward()))(x.exp()),
    a_shared_part_is_retained=lambda torch, x: (
        lambda h: (h.sum().backward(retain_graph=True), (h * h).sum().backward())
    )(x.exp()),
    a_saved_index_is_freed=lambda torch, x: twice(x[[0, 1]].sum().backward),
)

PROGRAMS.add(
    "inputs",
    of_two,
    a_list=lambda torch, a, b: torch.autograd.backward(a * b, inputs=[a]),
    one=lambda torch, a, b: torch.autograd.backward(a * b, inputs=b),
    keyword=lambda torch, a, b: (a * b).backward(inputs=[a]),
    none=lambda torch, a, b: torch.autograd.backward(a * a, inputs=[]),
    not_leaves=lambda torch, a, b: (lambda h: ((h * h).backward(inputs=[b, h]), h.grad, h.retains_grad))(a * b),
    that_do_not_require_grad=lambda torch, a, b: torch.autograd.backward(a * a, inputs=[torch.tensor(1.0)]),
    one_that_does_not_require_grad=lambda torch, a, b: (a * b).backward(inputs=[a, torch.tensor(1.0)]),
    outside_the_graph=lambda torch, a, b: torch.autograd.backward(a * a, inputs=[b]),
)

PROGRAMS.add(
    "grad",
    of_two,
    one=lambda torch, a, b: torch.autograd.grad(a * a, a),
    several=lambda torch, a, b: torch.autograd.grad([a * b, a + b], [a, b], [torch.tensor(1.0), torch.tensor(10.0)]),
    intermediates=lambda torch, a, b: (lambda h: (lambda y: torch.autograd.grad(y, [y, h, a]))(h * h))(a * 3),
    an_intermediate=lambda torch, a, b: (lambda h: torch.autograd.grad(h * h, h))(a * 3),
    given_twice=lambda torch, a, b: torch.autograd.grad(a * a, [a, a]),
    unused=lambda torch, a, b: torch.autograd.grad(a * a, [a, b]),
    unused_and_allowed=lambda torch, a, b: torch.autograd.grad(a * a, [a, b], allow_unused=True),
    materialized=lambda torch, a, b: torch.autograd.grad(a * a, [a, b, leaf(torch)], materialize_grads=True),
    materialized_but_not_allowed=lambda torch, a, b: torch.autograd.grad(
        a * a, [a], allow_unused=False, materialize_grads=True
    ),
    materialized_with_a_graph=lambda torch, a, b: torch.autograd.grad(
        a * a, [a, leaf(torch)], create_graph=True, materialize_grads=True
    ),
    of_what_does_not_require_grad=lambda torch, a, b: torch.autograd.grad(torch.tensor(1.0), a),
    to_what_does_not_require_grad=lambda torch, a, b: torch.autograd.grad(a * a, torch.tensor(1.0)),
    to_nothing=lambda torch, a, b: torch.autograd.grad(a * a, []),
    only_inputs=lambda torch, a, b: torch.autograd.grad(a * a, a, only_inputs=False),
    of_many_elements=lambda torch, a, b: torch.autograd.grad(a * leaf(torch), a),
    twice=lambda torch, a, b: (lambda y: twice(lambda: torch.autograd.grad(y, a)))(a * a),
    without_a_graph=lambda torch, a, b: torch.autograd.grad(a * a, a)[0].grad_fn,
    of_a_constant_slope=lambda torch, a, b: torch.autograd.grad(a * 2, a, create_graph=True)[0].requires_grad,
)


@PROGRAMS
class HigherOrders:
    def powers(torch):
        x = torch.tensor(1.5, requires_grad=True)
        y = (x.sin() * x.exp() / (1 + x**2)).tanh() + x**5
        found = []
        for _ in range(5):
            (y,) = torch.autograd.grad(y, x, create_graph=True)
            found.append(y.detach())
        return found

    def by_backward(torch):
        x = leaf(torch)
        with_create_graph((x**3).sum())
        first, x.grad = x.grad, None
        first.sum().backward()
        found = first.requires_grad, first.detach(), x.grad
        x.grad = None
        return found

    def a_graph_that_is_made_but_not_kept(torch):
        y = (leaf(torch) ** 3).sum()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y.backward(create_graph=True, retain_graph=False)
        y.backward()

    def a_gradient_that_requires_grad(torch):
        x, v = leaf(torch), leaf(torch, 3.0, 4.0)
        (x * 2).backward(v)
        (g,) = torch.autograd.grad(x * x, x, v, create_graph=True)
        return x.grad, v.grad, torch.autograd.grad(g.sum(), [x, v])

    def hessian_and_jacobian_by_rows(torch):
        x = leaf(torch, 1.0, 2.0, 3.0)
        y = torch.stack([x.sum(), (x**3).sum(), x.prod()])
        rows = torch.stack([torch.autograd.grad(each, x, retain_graph=True)[0] for each in y])
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return rows, torch.stack([torch.autograd.grad(each, x, retain_graph=True)[0] for each in g])

    def gradient_penalty_and_adversarial_step(torch):
        w = torch.tensor([[0.5, -1.0], [2.0, 0.3]], requires_grad=True)
        x = torch.tensor([[1.0, 2.0]], requires_grad=True)
        (g,) = torch.autograd.grad((x @ w).tanh().sum(), x, create_graph=True)
        ((g.norm(2) - 1) ** 2).backward()
        first, w.grad = w.grad, None
        moved = (x + 0.1 * g.sign()).detach()
        (moved @ w).sum().backward()
        return first, moved, x.grad, w.grad

    def of_a_computation_of_unknown_length(torch):
        x = leaf(torch, 0.3, -0.2, 0.1)
        y = x * 2
        while y.detach().norm() < 1000:
            y = y * 2
        y.backward(torch.tensor([0.1, 1.0, 0.0001]), retain_graph=True)
        return y, x.grad

    def broadcast_and_mixed_dtypes(torch):
        x = torch.tensor([[1.0], [2.0]], requires_grad=True)
        y = leaf(torch, 3.0, 4.0, 5.0, dtype="float64")
        s = torch.tensor(2.0, requires_grad=True)
        z = (x * y + s).pow(2).sum()
        z.backward()
        return z, x.grad, y.grad, s.grad

    def backward_inside_a_hook(torch):
        w, x = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)

        def hook(g):
            with torch.enable_grad():
                (w * w).backward()
            return g

        y = x * x
        y.register_hook(hook)
        y.backward()
        return w.grad, x.grad

    def roots_that_lead_to_no_input_have_their_hooks_run(torch):
        x = leaf(torch)
        y, other = x * 3, x.exp()
        y.retain_grad()
        seen = []
        y.register_hook(lambda g: seen.append(g.clone()))
        first, rest = (x * 2).split(1)
        first.retain_grad()
        torch.autograd.grad(y.sum(), other, allow_unused=True)
        torch.autograd.grad(y, other, torch.ones(2), allow_unused=True)
        torch.autograd.grad(first, other, torch.ones(1), allow_unused=True)
        torch.autograd.grad([y, first], other, [torch.ones(2), torch.ones(1)], allow_unused=True)
        y.backward(torch.ones(2), inputs=[other])
        return y.grad, seen, first.grad, rest.requires_grad, x.grad


def strides_of_grad(torch: Any, parameter: Any, *gradients: Any) -> Any:
    """Return the strides of `.grad` after these gradients arrived, one by one."""
    p = parameter.detach().requires_grad_()
    found = [p.stride()]
    for g in gradients:
        p.backward(g)
        found.append((p.grad.stride(), p.grad.clone(memory_format=torch.contiguous_format)))
    return found


@PROGRAMS
class Layouts:
    """The section "Default gradient layouts" of PyTorch's page on autograd."""

    def of_dense_parameters_and_of_others(torch):
        x, two = torch.arange(24.0), torch.tensor(2.0)
        rows, columns = x.view(4, 6), x.view(4, 6).t()
        return [
            strides_of_grad(torch, parameter, *gradients)
            for parameter, *gradients in [
                (rows, rows), (columns, x.view(6, 4)), (x.view(2, 3, 4).permute(2, 0, 1), x.view(4, 2, 3)),
                (x.view(2, 3, 4).permute(1, 2, 0), x.view(3, 4, 2)),
                (rows, x.view(6, 4).t()), (columns, columns), (rows, two.expand(4, 6)), (columns, two.expand(6, 4)),
                (rows, torch.ones(8, 12)[::2, ::2]),
                (x[::2], torch.ones(12)), (rows[:, :3], torch.ones(4, 3)), (rows[:, :3].t(), torch.ones(3, 4)),
                (x[:1].expand(3), torch.ones(3)), (x[:4].view(4, 1).expand(4, 3), torch.ones(4, 3)),
                (rows, torch.ones(4, 6), torch.ones(6, 4).t()), (columns, torch.ones(6, 4), torch.ones(6, 4)),
            ]
        ]  # fmt: skip

    def of_weights_used_transposed_and_of_sums(torch):
        w = torch.arange(6.0).view(2, 3).requires_grad_()
        v = torch.arange(6.0).view(2, 3).t().requires_grad_()
        ((torch.ones(4, 3) @ w.t()).sum() + (torch.ones(4, 3) @ v).sum()).backward()
        x, y = torch.ones(3, 4, requires_grad=True), torch.ones(4, 3).t().requires_grad_()
        x.sum().backward()
        y.sum().backward()
        return [(each.stride(), each.grad.stride(), each.grad, each.grad.is_contiguous()) for each in (w, v, x, y)]

    def adding_up_is_in_place(torch):
        x = leaf(torch)
        (x * 2).sum().backward()
        old, pointer = x.grad, x.grad.data_ptr()
        (x * 3).sum().backward()
        return x.grad is old, x.grad.data_ptr() == pointer, old, old._version, old.grad_fn

    def with_create_graph_it_is_replaced(torch):
        x = leaf(torch)
        (x * x).sum().backward()
        old = x.grad
        with_create_graph((x**3).sum())
        new = x.grad
        (x * x).sum().backward()
        last, x.grad = x.grad, None
        return old is new, new is last, [(g.detach(), g.stride(), g.requires_grad) for g in (old, new, last)]

    def with_a_graph_it_has_one_from_the_first_time_on(torch):
        x = leaf(torch)
        with_create_graph((x**3).sum())
        old = x.grad
        (x * x).sum().backward()
        new, x.grad = x.grad, None
        return new is old, old.grad_fn is not None, new.requires_grad, new.detach()

    def gradients_are_shared_with_nobody(torch):
        a, b, v = leaf(torch), leaf(torch), torch.tensor([1.0, 2.0])
        (a + b).sum().backward()
        a.grad.mul_(5)
        found = a.grad.clone(), b.grad
        for root in (a, a + 0):
            a.grad = None
            root.backward(v)
            a.grad.zero_()
        return found, v

    def zero_grad(torch):
        model, w = torch.nn.Linear(2, 1), torch.ones(4, 6).t().requires_grad_()
        optimizer = torch.optim.SGD([w], lr=0.1)
        found = []
        for owner, p in ((model, model.weight), (optimizer, w)):
            for options in ({}, {"set_to_none": False}):
                (model(torch.ones(1, 2)).sum() + w.sum()).backward()
                old = p.grad
                owner.zero_grad(**options)
                found.append((p.grad is old, p.grad, old.stride()))
        return found


def assigned(grad: Callable[[Any, Any], Any]) -> Program:
    """Return a program that assigns to `.grad`, and adds to that."""

    def program(torch):
        x = leaf(torch)
        x.grad = mine = grad(torch, x)
        x.sum().backward()
        return x.grad is mine, x.grad.requires_grad, x.grad.detach()

    return program


PROGRAMS.add(
    "assigned",
    assigned,
    right=lambda torch, x: torch.tensor([5.0, 5.0]),
    requires_grad=lambda torch, x: torch.ones(2, requires_grad=True),
    another_shape=lambda torch, x: torch.ones(3),
    another_dtype=lambda torch, x: torch.ones(2, dtype=torch.float64),
    no_tensor=lambda torch, x: 5,
    itself=lambda torch, x: x,
)


@PROGRAMS
class Assigned:
    def strides_are_kept(torch):
        x = torch.ones(4, 6, requires_grad=True)
        x.grad = mine = torch.zeros(6, 4).t()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch finds that slow, and says so once
            (x * 2).sum().backward()
        return x.grad is mine, x.grad.stride(), x.grad.contiguous()

    def views_of_one_memory(torch):
        everything = torch.zeros(5)
        a, b = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
        a.grad, b.grad = everything[:2], everything[2:]
        (a.sum() * 2 + b.sum() * 3).backward()
        return everything

    def deleted_reset_and_without_requires_grad(torch):
        x, y = leaf(torch), torch.ones(2)
        x.grad, y.grad = torch.ones(2), torch.ones(2)
        kept = x.grad
        torch.autograd.grad((x * x).sum(), x)
        found = x.grad is kept, x.grad.clone(), y.grad, y.requires_grad, x.grad.detach_().zero_()
        del x.grad
        return *found, x.grad, torch.ones(2).grad


# Leaves and results ---------------------------------------------------------------------------------


def facts(*tensors: Any) -> list[Any]:
    return [(t.is_leaf, t.requires_grad, t.retains_grad, t.output_nr, t.grad_fn and t.grad_fn.name()) for t in tensors]


def network(torch: Any) -> Any:
    x, y = torch.ones(1, 3), torch.ones(1, 2)
    w, b = torch.ones(3, 2, requires_grad=True), torch.ones(1, 2, requires_grad=True)
    z = (x @ w) + b
    predicted = torch.nn.functional.relu(z)
    return x, y, w, b, z, predicted, torch.nn.functional.mse_loss(predicted, y)


PROGRAMS.add(
    "leaves",
    default=lambda torch: (torch.ones(2).requires_grad, torch.nn.Parameter(torch.ones(2)).requires_grad),
    kinds=lambda torch: facts(
        leaf(torch), leaf(torch) * 2, torch.ones(2) * 3, torch.ones(2) + leaf(torch), leaf(torch).double(),
        torch.rand(2).double().requires_grad_(), leaf(torch).to("cpu"), (torch.ones(2) * 2).requires_grad_(),
        leaf(torch).split(1)[1],
    ),
    conversions_to_integers=lambda torch: (
        lambda x: (x.long(), x.int(), x.bool(), x.to(torch.int8), x.double(), x.shape, x.numel())
    )(leaf(torch)),
    off_by_attribute=lambda torch: setattr(leaf(torch) * 2, "requires_grad", False),
    off_by_method=lambda torch: (leaf(torch) * 2).requires_grad_(False),
    on_where_it_is=lambda torch: setattr(leaf(torch) * 2, "requires_grad", True),
    integers=lambda torch: torch.ones(2, dtype=torch.int64).requires_grad_(),
    integers_by_constructor=lambda torch: torch.tensor([1, 2], requires_grad=True),
    integers_off=lambda torch: setattr(torch.tensor([1, 2]), "requires_grad", False),
    integers_by_attribute=lambda torch: setattr(torch.tensor([1, 2]), "requires_grad", True),
    factories=lambda torch: [
        make(requires_grad=True)
        for make in (
            lambda **k: torch.zeros(2, **k), lambda **k: torch.ones(2, **k), lambda **k: torch.full((2,), 3.0, **k),
            lambda **k: torch.arange(2.0, **k), lambda **k: torch.linspace(0, 1, 3, **k), lambda **k: torch.eye(2, **k),
            lambda **k: torch.randn((2, 3), **k), lambda **k: torch.rand(2, **k),
            lambda **k: torch.zeros_like(torch.ones(2), **k), lambda **k: torch.ones(2).new_zeros(3, **k),
            lambda **k: torch.ones(2).new_tensor([1.0], **k),
        )
    ],
    likes=lambda torch: (
        lambda x: (torch.zeros_like(x), torch.empty_like(x).requires_grad, x.new_ones(2), torch.rand_like(x))
    )(leaf(torch)),
    numpy=lambda torch: leaf(torch).numpy(),
    numpy_of_a_result=lambda torch: (leaf(torch) * 2).numpy(),
    copied=lambda torch: copy.deepcopy(leaf(torch) * 2),
    printed=lambda torch: [
        repr(t) for a in [leaf(torch)] for t in (a, a.sin(), 2 * a, a + 1, a.sum(), a.detach(), a[0], a.view(2, 1))
    ],
    variable=lambda torch: (
        lambda x, y: (type(x) is torch.Tensor, x, y, isinstance(y, torch.autograd.Variable), y.detach())
    )(torch.autograd.Variable(torch.ones(2)), torch.autograd.Variable(torch.ones(2), requires_grad=True)),
)  # fmt: skip


@PROGRAMS
class Leaves:
    def which_get_a_gradient(torch):
        tensors = network(torch)
        found = facts(*tensors)
        tensors[-1].backward()
        return found, [t.grad for t in tensors[:4]], tensors[4].grad  # the last one with a warning

    def which_get_a_gradient_when_retained(torch):
        tensors = network(torch)
        for t in tensors[2:]:
            t.retain_grad()
        tensors[-1].backward()
        return [(t.grad, t.retains_grad) for t in tensors]

    def what_can_be_done_to_each_kind(torch):
        """By (is_leaf, requires_grad, retains_grad): what requires_grad_ and retain_grad do."""

        def retained():
            t = leaf(torch) * 2
            return t.retain_grad() or t

        return [
            tried(lambda make=make, act=act: (lambda t: (act(t), facts(t))[1])(make()))
            for make in (lambda: torch.ones(2), lambda: leaf(torch), lambda: leaf(torch) * 2, retained)
            for act in (lambda t: t.requires_grad_(), lambda t: t.requires_grad_(False), lambda t: t.retain_grad())
        ]

    def frozen(torch):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
        returned = model[0].requires_grad_(False) is model[0]
        model(torch.ones(5, 3)).sum().backward()
        a = leaf(torch)
        before = 2 * a
        a.requires_grad = False
        return returned, [(p.requires_grad, p.grad) for p in model.parameters()], before, 2 * a, a

    def frozen_after_its_use(torch):
        w = leaf(torch)
        h = w * 3
        w.requires_grad_(False)  # the graph stays, but the leaf ...
        h.sum().backward()
        return w.grad

    def retained_gradients(torch):
        x = leaf(torch)
        y = x * 2
        y.retain_grad()
        y.retain_grad()
        (y * y).sum().backward(retain_graph=True)
        first = y.grad
        y.sum().backward(retain_graph=True)
        torch.autograd.grad((y * x).sum(), x)  # which retains too
        return y.retains_grad, y.grad is first, first, y.grad, x.retains_grad

    def copied(torch):
        x = leaf(torch)
        x.sum().backward()
        y = copy.deepcopy(x)
        y.data.add_(1)
        return x, y, y.grad


PROGRAMS.add(
    "detach",
    of_one,
    shares_memory=lambda torch, x: (
        lambda y: (y.__setitem__(0, 5), y, x, y.data_ptr() == x.data_ptr(), x._version, y._version, y._base is None)
    )(x.detach()),
    of_a_result=lambda torch, x: (lambda y: (y, y.grad_fn))((x * 2).detach()),
    in_the_middle=lambda torch, x: (lambda y: (y * y.detach()).sum().backward())(x * x),
    a_write_is_noticed=lambda torch, x: (lambda y: (y.detach().zero_(), y.sum().backward()))(x.exp()),
    a_write_to_data_is_not=lambda torch, x: (
        lambda y: (lambda z: (y.data.zero_(), z.sum().backward(), y._version))(y * y)
    )(x * 1),
    a_view_of_it=lambda torch, x: x.detach().unsqueeze(0).add_(1),
    in_place=lambda torch, x: (lambda y: (y.detach_() is y, y, y.grad_fn))(x * 2),
    in_place_of_a_leaf=lambda torch, x: (x.detach_(), x.requires_grad),
    in_place_of_a_view=lambda torch, x: (x * 1)[0].detach_(),
    in_place_of_a_view_of_a_constant=lambda torch, x: torch.ones(2)[0].detach_(),
    in_place_after_its_use=lambda torch, x: (lambda y: (lambda z: (y.detach_(), z.sum().backward(), z))(y * 3))(x * 2),
    data_replaced=lambda torch, x: (
        lambda y: (x.data_ptr() == x.data.data_ptr(), setattr(x, "data", torch.full((2,), 5.0)), y.backward(), x,
                   x._version, (x * x).sum().backward())
    )((x * x).sum()),
    data_of_another_shape=lambda torch, x: (setattr(x, "data", torch.zeros(3)), x, x.data.requires_grad),
)  # fmt: skip


def test_a_graph_of_100000_ops_goes_backward() -> None:
    x = tinytorch.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y * 1.0
    y.backward()
    assert x.grad.item() == 1.0
    (g,) = tinytorch.autograd.grad(x * 2, x)  # freeing the deep graph must not recurse either
    del y
    assert g.item() == 2.0


def tensors_alive() -> int:
    kinds = (tinytorch.Tensor, tinytorch.autograd.graph.Node)
    return sum(issubclass(type(each), kinds) for each in gc.get_objects())


def test_walks_nest_deeper_than_a_stack_of_python() -> None:
    def gradient(torch: Any, depth: int) -> Any:
        with torch.enable_grad(), torch.autocast("cpu", enabled=depth < 40):
            x = torch.ones(2, requires_grad=True)
            x.register_hook(lambda g: gradient(torch, depth - 1) + torch.is_autocast_enabled("cpu") if depth else g * 3)
        return torch.autograd.grad((x * 2).sum(), x)[0] / 2

    same_as_pytorch(lambda torch: gradient(torch, 250))


def test_memory_dies_without_the_garbage_collector() -> None:
    from tinytorch import nn

    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = tinytorch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, labels = tinytorch.randn(5, 4), tinytorch.tensor([0, 1, 2, 0, 1])

    def step() -> None:
        loss = nn.functional.cross_entropy(model(x), labels)
        h = model(x)
        h[0] = h[1] * 2  # views and writes in place, hooks and double backward must not make cycles either
        h.register_hook(lambda g: g * 2)
        (g,) = tinytorch.autograd.grad(h.sum(), model[0].weight, create_graph=True)
        optimizer.zero_grad()
        (loss + (g * g).sum()).backward()
        optimizer.step()

    for _ in range(5):  # in the first steps the optimizer plans, and keeps that
        step()
    gc.collect()
    gc.disable()
    try:
        before = tensors_alive()
        for _ in range(1000):
            step()
        assert tensors_alive() == before
    finally:
        gc.enable()


def test_backward_frees_saved_tensors_as_it_walks() -> None:
    x = tinytorch.ones(3, requires_grad=True)
    h = x.exp()
    saved = weakref.ref(h._array)
    y = (h * h).sum()
    del h
    assert saved() is not None
    y.backward()
    assert saved() is None


def test_threads_have_their_own_mode_and_share_leaves() -> None:
    x = tinytorch.zeros(1000, requires_grad=True)
    found: list[bool] = []

    def work() -> None:
        found.append(tinytorch.is_grad_enabled())
        for _ in range(50):
            (x * 1.0).sum().backward()

    with tinytorch.no_grad():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [True] * 4
    np.testing.assert_array_equal(x.grad.numpy(), np.full(1000, 200.0, np.float32))


def batches(lib: Any) -> dict[str, Any]:
    """Return calls of `grad` with a batch of vectors."""
    x, unused = lib.tensor([1.0, 2.0, 3.0], requires_grad=True), lib.ones(1, requires_grad=True)
    y, eye = x**3, lib.eye(3)

    def grad(outputs: Any, inputs: Any, vectors: Any, **options: Any) -> Any:
        return lambda: lib.autograd.grad(outputs, inputs, vectors, is_grads_batched=True, **options)

    return {
        "rows": grad(y, x, eye),
        "two outputs": grad((y, y.sum()), x, (eye, lib.ones(3))),
        "unused": grad(y, (x, unused), eye, allow_unused=True),
        "materialized": grad(y, (x, unused), eye, materialize_grads=True),
        "second order": lambda: lib.autograd.grad(grad(y, x, eye, create_graph=True)()[0].sum(), x),
        "no batch": grad(y, x, lib.ones(3)),
        "wrong shape": grad(y, x, lib.ones(2, 2)),
        "different sizes": grad((y, y * 2), x, (eye, lib.ones(2, 3))),
        "no vectors": grad(y.sum(), x, None),
    }


@needs_oracle
@pytest.mark.parametrize("name", batches(tinytorch))
def test_a_batch_of_vectors(name: str) -> None:
    if name in ("different sizes", "no vectors"):  # PyTorch's words are about vmap
        with pytest.raises(ValueError):
            batches(torch)[name]()
        with pytest.raises(ValueError, match="is_grads_batched=True"):
            batches(tinytorch)[name]()
    else:
        same_as_pytorch(lambda lib: batches(lib)[name]())


def test_gradcheck_finds_a_wrong_gradient() -> None:
    class Wrong(tinytorch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    x = tinytorch.randn(3, dtype=tinytorch.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        tinytorch.autograd.gradcheck(Wrong.apply, x)
    assert not tinytorch.autograd.gradcheck(Wrong.apply, x, raise_exception=False)
    with pytest.raises(ValueError, match="require gradient"):
        tinytorch.autograd.gradcheck(lambda x: x * 2, x.detach())


def hooked(torch: Any, hook: Callable[[Any], Any]) -> Any:
    """Return a leaf, and a sum of it whose backward calls a hook."""
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    return x, y.sum()


CALLBACKS: dict[str, Callable[..., Any]] = {}


def callback(program: Callable[..., Any]) -> Callable[..., Any]:
    CALLBACKS[program.__name__] = program
    return program


@callback
def at_the_end_in_order(torch: Any, queue: Any, log: list[Any]) -> None:
    x, total = hooked(torch, lambda g: (queue(lambda: log.append(x.grad)), queue(lambda: log.append("last")), None)[-1])
    x.register_hook(lambda g: log.append("leaf"))
    total.backward()


@callback
def of_the_walk_inside(torch: Any, queue: Any, log: list[Any]) -> None:
    def outer(g: Any) -> None:
        queue(lambda: log.append("outer"))
        with torch.enable_grad():
            hooked(torch, lambda g: queue(lambda: log.append("inner")))[1].backward()
        log.append("between")

    hooked(torch, outer)[1].backward()


@callback
def from_a_callback(torch: Any, queue: Any, log: list[Any]) -> None:
    hooked(torch, lambda g: queue(lambda: (log.append(1), queue(lambda: log.append(2)))))[1].backward()


@callback
def that_raises(torch: Any, queue: Any, log: list[Any]) -> None:
    def fail() -> None:
        raise ValueError("failed")

    x, total = hooked(torch, lambda g: (queue(fail), queue(lambda: log.append("not called")), None)[-1])
    with pytest.raises(ValueError, match="failed"):
        total.backward()
    (x * 3).sum().backward()
    log.append(x.grad)


@callback
def after_a_hook_that_raises(torch: Any, queue: Any, log: list[Any]) -> None:
    def fail(g: Any) -> None:
        queue(lambda: log.append("not called"))
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        hooked(torch, fail)[1].backward()
    hooked(torch, lambda g: None)[1].backward()
    queue(lambda: None)


@callback
def of_grad_and_its_mode(torch: Any, queue: Any, log: list[Any]) -> None:
    for create_graph in (True, False):
        x, total = hooked(torch, lambda g: queue(lambda: log.append(torch.is_grad_enabled())))
        torch.autograd.grad(total, x, create_graph=create_graph)


@callback
def outside_of_a_walk(torch: Any, queue: Any, log: list[Any]) -> None:
    queue(lambda: None)


@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks_at_the_end_of_a_walk(name: str) -> None:
    def program(torch: Any) -> Any:
        log: list[Any] = []
        CALLBACKS[name](torch, torch.autograd.Variable._execution_engine.queue_callback, log)
        return log

    same_as_pytorch(program)
