"""`autograd.Function`: small programs run by both libraries."""

from __future__ import annotations

import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.autograd.programs import Program, Programs, leaf, made
from tests.same import same_as_pytorch

PROGRAMS = Programs()


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_as_pytorch(program: Program) -> None:
    same_as_pytorch(program)


def first(ctx: Any, *gs: Any) -> Any:
    return gs[0]


def twice(ctx: Any, x: Any) -> Any:
    return x * 2


def times(ctx: Any, x: Any, factor: Any) -> Any:
    return x * factor


def make(torch: Any, forward: Any = twice, backward: Any = first, **members: Any) -> Any:
    """Return a Function of these static methods."""
    rules = {"forward": forward, "backward": backward, **members}
    return made(torch, **{name: each for name, each in rules.items() if each is not None})


def run(torch: Any, forward: Any = twice, backward: Any = first, *args: Any, **members: Any) -> Any:
    """Return the gradient of a leaf that goes through such a Function, and the result."""
    x = leaf(torch)
    result = make(torch, forward, backward, **members).apply(x, *args)
    several = result if isinstance(result, tuple) else (result,)
    total = sum(each.sum() for each in several if isinstance(each, torch.Tensor) and each.requires_grad)
    total.backward()
    return x.grad, result


# What forward gets and gives --------------------------------------------------------------------------

PROGRAMS.add(
    "function",
    other_outputs=lambda torch: run(
        torch, lambda ctx, x: (x * 2, 5, "s", None, x * 3), lambda ctx, *gs: gs[0] * 2 + gs[4]
    ),
    a_list_is_no_tuple=lambda torch: make(torch, lambda ctx, x: [x * 2]).apply(leaf(torch)),
    with_another_rule=lambda torch: run(torch, lambda ctx, x: (x * 2,), fivefold),
    nothing=lambda torch: make(torch, lambda ctx, x: None).apply(leaf(torch)),
    a_number=lambda torch: make(torch, lambda ctx, x: 3).apply(leaf(torch)),
    an_empty_tuple=lambda torch: make(torch, lambda ctx, x: ()).apply(leaf(torch)),
    a_tuple_of_one=lambda torch: make(torch, lambda ctx, x: (x * 2,)).apply(leaf(torch)),
    tuples_are_not_looked_into=lambda torch: make(torch, lambda ctx, x: ((x * 2,), x * 3)).apply(leaf(torch)),
    nor_are_lists_of_arguments=lambda torch: make(torch, lambda ctx, xs: xs[0] * 2).apply([leaf(torch)]),
    integers=lambda torch: run(torch, lambda ctx, x: (x * 2, x.long())),
    keywords=lambda torch: make(torch, times).apply(leaf(torch), factor=3),
    keywords_of_defaults=lambda torch: make(torch, lambda ctx, x, f=2: x * f).apply(leaf(torch), f=3),
    keywords_over_a_gap=lambda torch: make(torch, lambda ctx, x, a=1, b=2: x).apply(leaf(torch), b=3),
    keywords_unknown=lambda torch: make(torch).apply(leaf(torch), y=3),
    keywords_given_twice=lambda torch: make(torch).apply(leaf(torch), x=3),
    keywords_only=lambda torch: make(torch, lambda ctx, x, *, f: x).apply(leaf(torch), f=3),
    too_many_arguments_with_a_keyword=lambda torch: make(torch, times).apply(leaf(torch), 1, 2, factor=3),
    too_few_arguments=lambda torch: make(torch, times).apply(leaf(torch)),
    defaults=lambda torch: run(torch, lambda ctx, x, f=2: x * f),
    a_plain_function=lambda torch: type("Mine", (torch.autograd.Function,), {"forward": twice}).apply(leaf(torch)),
    a_class_method=lambda torch: type(
        "Mine", (torch.autograd.Function,), {"forward": classmethod(lambda cls, ctx, x: x * 2)}
    ).apply(leaf(torch)),
)


@PROGRAMS
class Forward:
    def recording_is_off_inside(torch):
        seen = []

        def forward(ctx, x):
            seen.append((torch.is_grad_enabled(), ctx.needs_input_grad, x.requires_grad))
            with torch.enable_grad():
                return x * 2

        def backward(ctx, g):
            seen.append(torch.is_grad_enabled())
            return g * 5

        torch.autograd.grad(make(torch, forward, backward).apply(x := leaf(torch)).sum(), x, create_graph=True)
        return run(torch, forward, backward), seen, torch.is_grad_enabled()

    def an_error_in_forward(torch):
        def forward(ctx, x):
            raise ValueError("mine")

        try:
            make(torch, forward).apply(leaf(torch))
        except ValueError:
            return torch.is_grad_enabled()

    def without_recording(torch):
        boxes = []

        def forward(ctx, x):
            boxes.append(ctx)
            ctx.save_for_backward(x)
            return x * 2

        y = make(torch, forward).apply(torch.ones(2))
        with torch.no_grad():
            z = make(torch, forward).apply(leaf(torch))
        seen = [(ctx.needs_input_grad, ctx.next_functions, ctx.saved_tensors) for ctx in boxes]
        return y, z, seen

    def one_result_twice(torch):
        def forward(ctx, x):
            y = x * 2
            return y, y

        x = leaf(torch)
        a, b = make(torch, forward, lambda ctx, g, h: g * 2 + h * 20).apply(x)
        (a + b * 3).sum().backward()
        return a is b, a.output_nr, a, x.grad


# The context ------------------------------------------------------------------------------------------


@PROGRAMS
class Context:
    def attributes_of_any_name(torch):
        names = "shape dtype saved edges number hooks plan op outputs name saved_by backward release".split()

        def forward(ctx, x):
            for k, name in enumerate(names):
                setattr(ctx, name, k)
            return x.sum()

        def backward(ctx, g):
            return g.expand(2) * sum(getattr(ctx, name) for name in names)

        x = leaf(torch)
        y = make(torch, forward, backward).apply(x)
        y.backward()
        return x.grad, [getattr(y.grad_fn, name) for name in names]

    def the_context_is_the_node(torch):
        boxes = []
        x = leaf(torch)

        def forward(ctx, x):
            boxes.append(ctx)
            ctx.mine = 1
            return x * 2

        def backward(ctx, g):
            boxes.append(ctx)
            return g * ctx.mine * ctx.later

        y = make(torch, forward, backward).apply(x)
        node = y.grad_fn
        node.later = 3
        y.sum().backward()
        function = torch.autograd.function
        return (
            node is boxes[0], boxes[1] is node, type(node).__name__, node.name(), x.grad, node.__dict__,
            isinstance(node, torch.autograd.graph.Node), isinstance(node, function.FunctionCtx),
            isinstance(node, function.BackwardCFunction), node._forward_cls.__name__, repr(y),
        )  # fmt: skip

    def the_node_alone(torch):
        x = leaf(torch)
        node = make(torch, times).apply(x, 3).grad_fn
        return (
            node.metadata, node.requires_grad, node.next_functions[0][0].variable is x, len(node.next_functions),
            node._input_metadata[0].shape, node.to_save, node.dirty_tensors, node.non_differentiable,
            node.saved_for_forward, node.needs_input_grad,
        )  # fmt: skip

    def arguments_of_the_node(torch):
        def forward(ctx, *args):
            return args[0] * 2

        node = make(torch, forward).apply(leaf(torch), 3, torch.ones(2), leaf(torch)).grad_fn
        return [None if n is None else n.name() for n, _ in node.next_functions], node.needs_input_grad

    def attributes_that_cannot_be_set(torch):
        node = make(torch).apply(leaf(torch)).grad_fn
        found = []
        for name in ("saved_tensors", "next_functions", "metadata", "requires_grad"):
            try:
                setattr(node, name, 3)
            except AttributeError:
                found.append(name)
        return found

    def hooks_of_the_node(torch):
        log = []
        x = leaf(torch)
        y = make(torch).apply(x)
        y.grad_fn.register_hook(lambda gi, go: log.append((gi[0].tolist(), go[0].tolist())))
        y.grad_fn.register_prehook(lambda gs: (gs[0] * 3,))
        y.sum().backward()
        return log, x.grad

    def asking_the_node_for_its_rule(torch):
        y = make(torch, twice, lambda ctx, g: g * 7).apply(leaf(torch))
        return y.grad_fn.apply(torch.ones(2))

    def the_context_within_forward(torch):
        seen = []

        def forward(ctx, x):
            seen.append((ctx.to_save, ctx.saved_tensors, ctx.metadata, ctx.name(), ctx.dirty_tensors))
            ctx.save_for_backward(x, x)
            ctx.save_for_backward(x)
            seen.append(len(ctx.to_save))
            ctx.needs_input_grad = (False,)
            return x * 2

        return run(torch, forward, lambda ctx, g: (seen.append(ctx.needs_input_grad), g)[1]), seen


PROGRAMS.add(
    "function",
    an_unknown_attribute=lambda torch: run(torch, twice, lambda ctx, g: ctx.nothing),
    set_materialize_grads_to_a_number=lambda torch: run(torch, lambda ctx, x: ctx.set_materialize_grads(3)),
    shared_storage=lambda torch: run(torch, lambda ctx, x: (ctx.mark_shared_storage((x, x)), x * 2)[1]),
)


# Saved tensors ----------------------------------------------------------------------------------------


@PROGRAMS
class Saved:
    def saved_tensors(torch):
        seen = []

        def forward(ctx, x, y):
            out, between = x * 2, x * 3
            ctx.save_for_backward(x, y, out, between, None)
            return out

        def backward(ctx, g):
            a, b = ctx.saved_tensors, ctx.saved_tensors
            seen.append((a[0] is x, a[1] is y, a[2] is out, a[3] is b[3], a[2] is b[2]))
            seen.append((a[2].grad_fn is ctx, a[3].grad_fn, a[4], a[2], a[3]))
            return g, None

        x, y = leaf(torch), torch.ones(2)
        out = make(torch, forward, backward).apply(x, y)
        out.sum().backward()
        return seen


def saving(what: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a forward that saves something of the input and the output."""

    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.save_for_backward(what(x, y))
        return y

    return forward


def using(ctx: Any, g: Any) -> Any:
    (kept,) = ctx.saved_tensors
    return g * kept


@PROGRAMS
class SavedAndUsed:
    def backward_twice(torch):
        y = make(torch, saving(lambda x, y: x), using).apply(leaf(torch))
        y.sum().backward()
        y.sum().backward()

    def saved_tensors_after_backward(torch):
        y = make(torch).apply(leaf(torch))
        before = y.grad_fn.saved_tensors
        y.sum().backward()
        y.sum().backward()  # the rule does not ask for them
        return before, y.grad_fn.saved_tensors

    def saved_input_written_to(torch):
        h = leaf(torch) * 1
        y = make(torch, saving(lambda x, y: x), using).apply(h)
        h.add_(1)
        y.sum().backward()

    def saved_output_written_to(torch):
        y = make(torch, saving(lambda x, y: y), using).apply(leaf(torch))
        y.add_(1)
        y.sum().backward()

    def saved_variables(torch):
        return make(torch, saving(lambda x, y: x)).apply(leaf(torch)).grad_fn.saved_variables


PROGRAMS.add(
    "function",
    save_the_output=lambda torch: run(torch, saving(lambda x, y: y), using),
    save_a_number=lambda torch: run(torch, saving(lambda x, y: 3)),
    save_a_number_without_recording=lambda torch: make(torch, saving(lambda x, y: 3)).apply(torch.ones(2)),
    save_a_list=lambda torch: run(torch, saving(lambda x, y: [x])),
    save_for_forward_a_number=lambda torch: run(torch, lambda ctx, x: (ctx.save_for_forward(3), x * 2)[1]),
    save_for_forward=lambda torch: run(
        torch, lambda ctx, x: (ctx.save_for_forward(x, x), ctx.save_for_backward(x), x * 2)[2], using
    ),
    clear_on_access=lambda torch: run(torch, saving(lambda x, y: x), using, clear_saved_tensors_on_access=True),
    clear_on_access_asked_twice=lambda torch: run(
        torch,
        saving(lambda x, y: x),
        lambda ctx, g: (using(ctx, g), using(ctx, g))[0],
        clear_saved_tensors_on_access=True,
    ),
    clear_on_access_of_a_wrong_type=lambda torch: run(torch, clear_saved_tensors_on_access=3),
    boxed_gradients=lambda torch: run(
        torch, lambda ctx, x: (x * 2, x * 3), lambda ctx, gs: gs.pop() * 3 + gs.pop() * 2, boxed_grads_call=True
    ),
)


# Gradients --------------------------------------------------------------------------------------------

PROGRAMS.add(
    "function",
    more_nones=lambda torch: run(torch, twice, lambda ctx, g: (g, None, None)),
    one_for_two=lambda torch: run(torch, times, first, leaf(torch)),
    a_list_for_two=lambda torch: run(torch, times, lambda ctx, g: [g, g], leaf(torch)),
    a_none_for_a_leaf=lambda torch: run(torch, times, lambda ctx, g: (None, g), leaf(torch)),
    too_many=lambda torch: run(torch, twice, lambda ctx, g: (g, g)),
    too_few=lambda torch: run(torch, times, lambda ctx, g: g, 3),
    one_none_for_two=lambda torch: run(torch, times, lambda ctx, g: None, 3),
    one_for_a_number=lambda torch: run(torch, times, lambda ctx, g: (g, g), 3),
    one_for_a_constant=lambda torch: run(torch, lambda ctx, x, y: x * y, lambda ctx, g: (g, g), torch.ones(2)),
    a_list=lambda torch: run(torch, twice, lambda ctx, g: [g]),
    a_string=lambda torch: run(torch, twice, lambda ctx, g: "a"),
    a_number_as_gradient=lambda torch: run(torch, twice, lambda ctx, g: 3.0),
    a_wrong_shape=lambda torch: run(torch, twice, lambda ctx, g: torch.ones(7)),
    a_small_shape=lambda torch: run(torch, twice, lambda ctx, g: torch.ones(1)),
    a_large_shape_is_summed=lambda torch: run(torch, twice, lambda ctx, g: torch.ones(3, 2)),
    a_dtype_is_converted=lambda torch: run(torch, twice, lambda ctx, g: g.double() * 3),
    integers_are_converted=lambda torch: run(torch, twice, lambda ctx, g: g.long() * 3),
    no_backward=lambda torch: run(torch, twice, None),
    no_forward=lambda torch: run(torch, None),
    vjp=lambda torch: run(torch, twice, None, vjp=lambda ctx, g: g * 9),
    vjp_and_backward=lambda torch: run(torch, vjp=lambda ctx, g: g * 9),
    vjp_is_backward=lambda torch: torch.autograd.Function.vjp is torch.autograd.Function.backward,
    one_of_two_outputs=lambda torch: run(torch, lambda ctx, x: (x * 2, x.detach() * 3), lambda ctx, a, b: a + b),
)


def unused(torch: Any, materialize: bool) -> Any:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(materialize)
        y = x * 4
        ctx.mark_non_differentiable(y)
        return x * 2, x * 3, x > 0, 5, y

    def backward(ctx: Any, *gs: Any) -> Any:
        seen.append(gs)
        return gs[1]

    x = leaf(torch)
    results = make(torch, forward, backward).apply(x)
    results[1].sum().backward()
    shown = [(each.requires_grad, each.output_nr) for each in results if each is not results[3]]
    return seen, x.grad, shown


PROGRAMS.add(
    "function",
    unused_outputs_get_zeros=lambda torch: unused(torch, True),
    unused_outputs_get_none=lambda torch: unused(torch, False),
)


@PROGRAMS
class Gradients:
    def no_gradient_at_all_is_zeros_for_the_next(torch):
        seen = []

        def noting(ctx, g):
            seen.append(g)
            return g

        nothing = make(torch, twice, lambda ctx, g: None)
        x = leaf(torch)
        nothing.apply(make(torch, twice, noting).apply(x) * 2).sum().backward()
        (g,) = torch.autograd.grad(nothing.apply(make(torch, twice, noting).apply(x)).sum(), x)
        y = x * 2
        nothing.apply(y).sum().backward()
        return seen, x.grad, g

    def undefined_gradients(torch):
        seen = []

        def noting(ctx, g):
            seen.append(g)
            return g

        for materialize in (True, False):
            same = make(torch, lambda ctx, x, m=materialize: (ctx.set_materialize_grads(m), x)[1], noting)
            x = leaf(torch)
            torch._C._functions.UndefinedGrad()(same.apply(x)).backward(torch.ones(2))
            seen.append(x.grad)
        return seen

    def second_derivatives(torch):
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return Slope.apply(g, x)

        class Slope(torch.autograd.Function):
            @staticmethod
            def forward(ctx, g, x):
                ctx.save_for_backward(g, x)
                return 2 * g * x

            @staticmethod
            def backward(ctx, gg):
                g, x = ctx.saved_tensors
                return 2 * x * gg, 2 * g * gg

        x = leaf(torch)
        (g,) = torch.autograd.grad(Square.apply(x).sum(), x, create_graph=True)
        (gg,) = torch.autograd.grad((g**2).sum(), x, create_graph=True)
        return g, gg, g.grad_fn.name()

    def backward_inside_backward(torch):
        def backward(ctx, g):
            with torch.enable_grad():
                z = leaf(torch)
                (z * z).sum().backward()
            return g * z.grad

        return run(torch, twice, backward)

    def needs_input_grad_does_not_depend_on_inputs(torch):
        seen = []

        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, g

        x, w = leaf(torch), leaf(torch)
        torch.autograd.grad(make(torch, lambda ctx, x, w: x * w, backward).apply(x, w).sum(), x)
        return seen


# Inputs as outputs, views, writes ---------------------------------------------------------------------


def identity(ctx: Any, x: Any) -> Any:
    return x


def dirty(ctx: Any, x: Any) -> Any:
    x.mul_(3)
    ctx.mark_dirty(x)
    return x


def fivefold(ctx: Any, *gs: Any) -> Any:
    return gs[0] * 5


@PROGRAMS
class Inputs:
    def an_input_returned(torch):
        x, constant = leaf(torch), torch.ones(2)
        y, z = make(torch, identity).apply(x), make(torch, identity).apply(constant)
        view = (leaf(torch) * 1).view(2, 1)
        v = make(torch, identity).apply(view)
        return [
            (each is given, each._is_view(), each._base is (given if given._base is None else given._base), each)
            for each, given in ((y, x), (z, constant), (v, view))
        ]

    def inputs_returned_beside_others(torch):
        x, w = torch.ones(2), leaf(torch)

        def both(ctx, x, w):
            return x, w * 2

        y = make(torch, both, lambda ctx, a, b: (None, b)).apply(x, w)
        z = make(torch, both, lambda ctx, a, b: (a, b)).apply(w, w)
        (z[0] + z[1]).sum().backward()
        return y[0] is x, y[0].requires_grad, x.requires_grad, z[0] is w, w.grad

    def tensors_from_elsewhere_returned(torch):
        kept = [torch.zeros(3), leaf(torch), leaf(torch) * 2]
        x = leaf(torch)
        found = []
        for each in kept:
            y = make(torch, lambda ctx, x, each=each: each, lambda ctx, g: g[:2]).apply(x)
            y.sum().backward()
            found.append((y is each, each.grad_fn.name(), each.is_leaf, x.grad.clone()))
        return found

    def detached_and_data(torch):
        x = leaf(torch)
        y = make(torch, lambda ctx, x: x.detach()).apply(x)
        z = make(torch, lambda ctx, x: x.data).apply(x)
        z.add_(1)
        return y, y._is_view(), z, x

    def marked_non_differentiable(torch):
        def forward(ctx, x):
            with torch.enable_grad():
                y = x * 2
            ctx.mark_non_differentiable(x, y)
            return x, y, x * 3

        x = leaf(torch)
        a, b, c = make(torch, forward, lambda ctx, *gs: gs[2]).apply(x)
        return a is x, a, b, c


def written(torch: Any, forward: Any, where: Callable[[Any, Any], Any]) -> Any:
    """Write to the output of a Function, or to its input."""
    x = leaf(torch) * 1
    y = make(torch, forward).apply(x)
    where(x, y).add_(1)
    return y[0].grad_fn if isinstance(y, tuple) else y.grad_fn


PROGRAMS.add(
    "function",
    write_to_an_input_returned=lambda torch: written(torch, identity, lambda x, y: y),
    write_to_a_view=lambda torch: written(torch, lambda ctx, x: x.view(2, 1), lambda x, y: y),
    write_to_its_base=lambda torch: written(torch, lambda ctx, x: x.view(2, 1), lambda x, y: x),
    write_to_one_of_several_views=lambda torch: written(torch, lambda ctx, x: (x.view(2, 1), x * 2), lambda x, y: y[0]),
    an_input=lambda torch: run(torch, identity, fivefold),
    a_view=lambda torch: run(torch, lambda ctx, x: x[:1], lambda ctx, g: torch.cat([g * 3, torch.zeros(1)])),
    leaf_said_to_be_dirty=lambda torch: run(torch, lambda ctx, x: (ctx.mark_dirty(x), x)[1]),
    dirty_leaf=lambda torch: make(torch, dirty).apply(leaf(torch)),
    dirty_view_of_a_leaf=lambda torch: make(torch, dirty).apply(leaf(torch)[:1]),
    dirty_part_of_several=lambda torch: make(torch, dirty).apply((leaf(torch) * 1).unbind()[0]),
    dirty_view_and_another_output=lambda torch: make(torch, lambda ctx, x: (dirty(ctx, x), x * 2)).apply(
        (leaf(torch) * 1)[:1]
    ),
    dirty_and_not_returned=lambda torch: make(torch, lambda ctx, x: dirty(ctx, x) * 2).apply(leaf(torch) * 1),
    dirty_number=lambda torch: run(torch, lambda ctx, x: (ctx.mark_dirty(3), x * 2)[1]),
    non_differentiable_number=lambda torch: run(torch, lambda ctx, x: (ctx.mark_non_differentiable(3), x * 2)[1]),
)


@PROGRAMS
class Written:
    def dirty_by_numpy(torch):
        def forward(ctx, x):
            array = x.numpy()
            array += 1
            ctx.mark_dirty(x)
            return x

        a = leaf(torch).clone()
        b = a * a
        make(torch, forward).apply(a)  # would lead to a wrong gradient, but the write is detected
        b.sum().backward()

    def dirty_output_that_is_no_input(torch):
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        return run(torch, forward)

    def dirty_view_that_is_no_input(torch):
        base = torch.ones(4)

        def forward(ctx, x):
            view = base[:2]
            ctx.mark_dirty(view)
            return view

        return run(torch, forward)

    def dirty_inputs(torch):
        x, constant = leaf(torch), torch.ones(2)
        y = x * 2
        y.retain_grad()
        z = make(torch, dirty, fivefold).apply(y)
        z.sum().backward()
        made = make(torch, dirty).apply(constant)
        return z is y, y._version, y.grad_fn.name(), x.grad, y.grad, made is constant, constant._version

    def dirty_constant_that_gets_a_gradient(torch):
        def forward(ctx, x, w):
            ctx.mark_dirty(x)
            return x.mul_(w)

        x, w = torch.ones(2), leaf(torch)
        make(torch, forward, lambda ctx, g: (g, g)).apply(x, w).sum().backward()
        return x.requires_grad, x.is_leaf, w.grad

    def dirty_expanded_tensor(torch):
        w = torch.ones((), requires_grad=True)
        made = make(torch, lambda ctx, x, w: (ctx.mark_dirty(x), x)[1], lambda ctx, g: (g * 5, g.sum()))
        y = made.apply(torch.ones(1).expand(3), w)
        y.sum().backward()
        return y, w.grad

    def dirty_view_that_is_written_to_again(torch):
        base, constant, x = leaf(torch) * 1, torch.ones(2), leaf(torch)
        made = make(torch, dirty, fivefold)
        made.apply(base[:1]).add_(x[:1])
        made.apply(constant[:1]).add_(x[1:])
        (base.sum() + constant.sum()).backward()
        return base, constant, x.grad

    def dirty_view(torch):
        x = leaf(torch)
        y = x * 2
        v = y[:1]
        z = make(torch, dirty, fivefold).apply(v)
        y.sum().backward()
        return z is v, y, v, y.grad_fn.name(), x.grad

    def dirty_with_another_output(torch):
        x = leaf(torch)
        y = x * 2
        a, b = make(torch, lambda ctx, x: (dirty(ctx, x), x * 2), lambda ctx, g, h: g * 3 + h * 6).apply(y)
        (a + b).sum().backward()
        return a is y, a.output_nr, b.output_nr, x.grad

    def dirty_with_hooks(torch):
        log = []
        x = leaf(torch)
        y = x * 2
        y.register_hook(lambda g: log.append(("before", g.tolist())))
        z = make(torch, dirty, fivefold).apply(y)
        z.register_hook(lambda g: log.append(("after", g.tolist())))
        z.sum().backward()
        return log

    def dirty_and_saved_elsewhere(torch):
        y = leaf(torch) * 2
        w = y * y
        make(torch, dirty).apply(y)
        w.sum().backward()

    def dirty_and_saved(torch):
        seen = []

        def backward(ctx, g):
            (kept,) = ctx.saved_tensors
            seen.append((kept, kept.grad_fn is ctx))
            return g

        x = leaf(torch)
        for early in (True, False):

            def forward(ctx, x, early=early):
                if early:
                    ctx.save_for_backward(x)
                dirty(ctx, x)
                if not early:
                    ctx.save_for_backward(x)
                return x

            make(torch, forward, backward).apply(x * 2).sum().backward()
        return seen, x.grad


# setup_context ----------------------------------------------------------------------------------------


def keep_inputs(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.inputs = inputs[1:]


def by_kept(ctx: Any, g: Any) -> Any:
    return g * ctx.inputs[0], None


def separate(torch: Any, forward: Any, *args: Any, setup: Any = keep_inputs, **kwargs: Any) -> Any:
    x = leaf(torch)
    y = make(torch, forward, by_kept, setup_context=setup).apply(x, *args, **kwargs)
    y.sum().backward()
    return x.grad, y


def setup_sees(torch: Any, forward: Any) -> Any:
    seen = []

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        seen.append((type(inputs), len(inputs), type(output).__name__, ctx.needs_input_grad))
        if output is inputs[0]:
            ctx.mark_dirty(output)

    x = leaf(torch)
    h = x * 3
    y = make(torch, forward, lambda ctx, g: (g * 2, None), setup_context=setup).apply(h, 2)
    (y[0] if isinstance(y, tuple) else y).sum().backward()
    return seen, y is h, h, h._version, x.grad


PROGRAMS.add(
    "function",
    setup=lambda torch: separate(torch, lambda x, f: x * f, 3),
    setup_with_a_default=lambda torch: separate(torch, lambda x, f=4: x * f),
    setup_with_a_keyword=lambda torch: separate(torch, lambda x, f=4: x * f, f=5),
    setup_with_keywords_only=lambda torch: separate(torch, lambda x, *, f=4: x * f, f=5),
    setup_of_one_and_of_a_tuple_of_one=lambda torch: [
        setup_sees(torch, forward) for forward in (lambda x, k: x * k, lambda x, k: (x * k,), lambda x, k: x.mul_(k))
    ],
    setup_with_too_few=lambda torch: separate(torch, lambda x, f: x * f),
    setup_saves_what_is_returned=lambda torch: separate(
        torch, lambda x: x, setup=lambda ctx, inputs, output: ctx.save_for_backward(output)
    ),
    setup_saves_for_forward_what_is_returned=lambda torch: separate(
        torch, lambda x: x, setup=lambda ctx, inputs, output: ctx.save_for_forward(output)
    ),
    setup_saves_what_is_returned_without_recording=lambda torch: make(
        torch, lambda x: x, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output)
    ).apply(torch.ones(2)),
)


# The class --------------------------------------------------------------------------------------------

PROGRAMS.add(
    "function",
    an_instance=lambda torch: type(make(torch)()).__name__,
    a_call_of_an_instance=lambda torch: make(torch)()(leaf(torch)),
    call_setup_context=lambda torch: torch.autograd.Function.setup_context(None, None, None),
    call_backward=lambda torch: torch.autograd.Function.backward(None, None),
    call_jvp=lambda torch: torch.autograd.Function.jvp(None, None),
    call_vmap=lambda torch: torch.autograd.Function.vmap(None, None),
    a_vmap_rule=lambda torch: run(torch, generate_vmap_rule=True),
    a_vmap_method=lambda torch: run(torch, vmap=lambda info, dims, x: None),
    classes=lambda torch: (
        type(torch.autograd.Function).__name__,
        issubclass(torch.autograd.Function, torch.autograd.function.FunctionCtx),
        make(torch)._backward_cls.__name__,
        torch.autograd.Function.generate_vmap_rule,
    ),
    an_in_place_function=lambda torch: torch.autograd.function.InplaceFunction(True).inplace,
    an_in_place_function_applied=lambda torch: (
        lambda x: (
            type("Mine", (torch.autograd.function.InplaceFunction,), vars(make(torch, dirty, fivefold)))
            .apply(x * 1)
            .sum()
            .backward(),
            x.grad,
        )
    )(leaf(torch)),
)


# once_differentiable ----------------------------------------------------------------------------------


def once(torch: Any, backward: Any) -> Any:
    return torch.autograd.function.once_differentiable(backward)


@PROGRAMS
class Once:
    def once_differentiable(torch):
        def forward(ctx, x, y):
            return x * y

        x, y = leaf(torch), leaf(torch)
        both = make(torch, forward, once(torch, lambda ctx, g: (g * 2, g * 3)))
        one = make(torch, forward, once(torch, lambda ctx, g: (g * 2, None)))
        a, b = torch.autograd.grad(both.apply(x, y), [x, y], leaf(torch), create_graph=True)
        (c,) = torch.autograd.grad(one.apply(x, y), x, leaf(torch), create_graph=True)
        (d,) = torch.autograd.grad(both.apply(x, y), x, torch.ones(2), create_graph=True)
        return a, b, a.grad_fn is b.grad_fn, a.grad_fn.name(), type(a.grad_fn).__name__, c, d

    def once_differentiable_used_once(torch):
        return run(torch, saving(lambda x, y: x), once(torch, using))

    def once_differentiable_twice(torch):
        x = leaf(torch)
        y = make(torch, twice, once(torch, lambda ctx, g: g * 2)).apply(x)
        (g,) = torch.autograd.grad((y * x).sum(), x, create_graph=True)
        g.sum().backward()


# PyTorch's notes on extending autograd, and its tutorial on double backward -----------------------------


def linear(ctx: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    ctx.save_for_backward(x, weight, bias)
    y = x.mm(weight.t())
    if bias is not None:
        y += bias.unsqueeze(0).expand_as(y)
    return y


def linear_backward(ctx: Any, g: Any) -> Any:
    x, weight, bias = ctx.saved_tensors
    of_x = g.mm(weight) if ctx.needs_input_grad[0] else None
    of_weight = g.t().mm(x) if ctx.needs_input_grad[1] else None
    of_bias = g.sum(0) if bias is not None and ctx.needs_input_grad[2] else None
    return of_x, of_weight, of_bias  # more than there were inputs, if None


@PROGRAMS
class Extending:
    def the_linear_function(torch):
        torch.manual_seed(0)
        together = make(torch, linear, linear_backward)
        apart = make(
            torch, lambda x, w, b: x.mm(w.t()) if b is None else x.mm(w.t()) + b, linear_backward,
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        )  # fmt: skip
        x, w, b = (torch.randn(*s, dtype=torch.double, requires_grad=True) for s in ((4, 3), (2, 3), (2,)))
        found = [torch.autograd.grad(f.apply(x, w, b).pow(2).sum(), [x, w, b]) for f in (together, apart)]
        found += [torch.autograd.grad(f.apply(x, w, *none).sum(), [x, w]) for f, *none in ((together,), (apart, None))]
        checks = (
            check(together.apply, (x, w, b)) for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck)
        )
        w.requires_grad_(False)
        together.apply(x, w, b).sum().backward()
        return found, *checks, x.grad, w.grad, b.grad


def second(torch: Any, function: Callable[[Any], Any]) -> Any:
    """Return value, first and second derivative, and whether both checks pass."""
    x = torch.tensor([[0.25, -0.5], [1.0, 2.0]], dtype=torch.double, requires_grad=True)
    y = function(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    if not g.requires_grad:
        return y, g
    checks = torch.autograd.gradcheck(function, x), torch.autograd.gradgradcheck(function, x)
    return y.detach(), g.detach(), torch.autograd.grad(g.sum(), x), checks


def sinh(ctx: Any, x: Any) -> Any:
    up, down = ctx.parts = x.exp(), (-x).exp()
    ctx.save_for_backward(up, down)
    return (up - down) / 2, up, down


def sinh_backward(ctx: Any, g: Any, of_up: Any, of_down: Any) -> Any:
    up, down = ctx.saved_tensors
    return g * (up + down) / 2 + of_up * up - of_down * down


PROGRAMS.add(
    "function",
    twice_by_inputs=lambda torch: second(
        torch, make(torch, lambda ctx, x: (ctx.save_for_backward(x), x**2)[1], lambda ctx, g: using(ctx, g * 2)).apply
    ),
    twice_by_outputs=lambda torch: second(torch, make(torch, exp, using).apply),
    twice_by_intermediates=lambda torch: second(torch, lambda x: make(torch, sinh, sinh_backward).apply(x)[0]),
    cut_by_intermediates_on_the_context=lambda torch: second(
        torch, make(torch, lambda ctx, x: sinh(ctx, x)[0], lambda ctx, g: g * sum(ctx.parts) / 2).apply
    ),
    twice_by_numpy=lambda torch: second(torch, cube_by_numpy(torch)),
    with_gradient_rules_of_its_own=lambda torch: [
        f(torch.tensor(2.0))
        for g in [torch.func.grad]
        for cube in [lambda x: cube_and_slope(torch).apply(x)[0]]
        for f in (g(cube), g(g(cube)))
    ],
)


def exp(ctx: Any, x: Any) -> Any:
    y = x.exp()
    ctx.save_for_backward(y)
    return y


def cube_by_numpy(torch: Any) -> Any:
    """Return a Function that leaves the library, as does its derivative, which is one too."""

    def slope(ctx: Any, g: Any, x: Any) -> Any:
        ctx.save_for_backward(g, x)
        return torch.from_numpy(g.detach().numpy() * 3 * x.detach().numpy() ** 2)

    def of_slope(ctx: Any, gg: Any) -> Any:
        g, x = ctx.saved_tensors
        return gg * 3 * x**2, gg * g * 6 * x

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return torch.from_numpy(x.detach().numpy() ** 3)

    return make(
        torch, forward, lambda ctx, g: make(torch, slope, of_slope).apply(g, *ctx.saved_tensors)
    ).apply  # fmt: skip


def cube_and_slope(torch: Any) -> Any:
    return make(
        torch, lambda x: (x**3, 3 * x**2), lambda ctx, g, h: g * ctx.saved_tensors[1] + h * 6 * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0], output[1]),
    )  # fmt: skip


@PROGRAMS
class Sorting:
    def a_sort_that_leaves_the_library(torch):
        def sort(x):
            array = x.numpy()
            order = np.argsort(array, axis=-1)
            back = np.argsort(order, axis=-1)
            return tuple(torch.tensor(a) for a in (np.take_along_axis(array, order, -1), order, back))

        def keep_order(ctx, inputs, output):
            ctx.mark_non_differentiable(*output[1:])
            ctx.save_for_backward(*output[1:])

        take = make(
            torch, lambda x, order, back: torch.tensor(np.take_along_axis(x.numpy(), order.numpy(), -1)),
            setup_context=lambda ctx, inputs, output: None,
        )  # fmt: skip
        function = make(
            torch, sort, lambda ctx, g, *_: take.apply(g, *ctx.saved_tensors[::-1]), setup_context=keep_order
        )
        x = torch.tensor([[3.0, 1.0, 2.0], [0.5, 2.5, -1.0]])
        return torch.func.grad(lambda x: (function.apply(x)[0] * torch.arange(6.0).view(2, 3)).sum())(x)


class Module(tinytorch.autograd.Function):
    """A Function that can be found by its name."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.save_for_backward(x, y)
        ctx.factor = 2
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.factor


def test_a_function_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Module)) is Module


def test_contexts_die_without_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = tinytorch.ones(2, requires_grad=True)
        y = Module.apply(x)
        node, ctx = weakref.ref(y._edge[0]), y.grad_fn
        ctx.mine = 3
        face = weakref.ref(ctx)
        del ctx
        assert face() is None
        assert y.grad_fn.mine == 3
        y.sum().backward()
        del y
        assert node() is None
    finally:
        gc.enable()


def test_the_context_keeps_the_graph() -> None:
    x = tinytorch.ones(2, requires_grad=True)
    ctx = Module.apply(x).grad_fn
    assert ctx.next_functions[0][0].variable is x
    assert ctx.saved_tensors[0] is x


def test_classes_of_what_nodes_keep_and_of_leaves_nodes() -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        there = torch._C._WeakTensorRef(torch.ones(2)), torch._C._WeakTensorRef(x)
        enabled = torch._C._autograd._saved_tensors_hooks_is_enabled
        with torch.autograd.graph.disable_saved_tensors_hooks("no"):
            inside = enabled()
        with torch.no_grad():
            recording = torch._C.is_grad_enabled()
        return (
            isinstance(y.grad_fn._raw_saved_result, torch.autograd.SavedTensor),
            isinstance(y.grad_fn._raw_saved_result, torch._C._autograd.SavedTensor),
            isinstance(y.grad_fn.next_functions[0][0], torch._C._functions.AccumulateGrad),
            isinstance(y.grad_fn, torch._C._functions.AccumulateGrad),
            [each.expired() for each in there], enabled(), inside, recording,
        )  # fmt: skip

    same_as_pytorch(program)
