"""Hooks of tensors and nodes: which run, in which order, and what they may return. Programs run by both libraries."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest

from tests.autograd.programs import Program, Programs, leaf, listed, made, tried
from tests.same import same_as_pytorch

PROGRAMS = Programs()


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_as_pytorch(program: Program) -> None:
    same_as_pytorch(program)


class Log(list[Any]):
    """What ran, in order."""

    def hook(self, name: str) -> Callable[..., None]:
        """Return a hook that notes its name."""
        return lambda *args: self.append(name)

    def watch(self, **tensors: Any) -> None:
        """Put a hook on tensors, and on leaves another for after accumulation."""
        for name, tensor in tensors.items():
            tensor.register_hook(self.hook(name))
            if tensor.is_leaf:
                tensor.register_post_accumulate_grad_hook(self.hook(f"{name} accumulated"))
            else:
                tensor.grad_fn.register_prehook(self.hook(f"{name} before"))
                tensor.grad_fn.register_hook(self.hook(f"{name} after"))


@PROGRAMS
class Order:
    def leaves_are_served_as_soon_as_they_are_complete(torch):
        log = Log()
        x, y, w = leaf(torch), leaf(torch), leaf(torch)
        z = x * y
        u = z * w
        log.watch(x=x, y=y, w=w, z=z, u=u)
        u.sum().backward()
        return log

    def a_leaf_waits_for_its_last_gradient(torch):
        log = Log()
        x, y = leaf(torch), leaf(torch)
        a, b, c = x * 2, y * 3, x * 5
        log.watch(x=x, y=y, a=a, b=b, c=c)
        x.register_hook(lambda g: log.append(g.tolist()))
        (a + b + c).sum().backward()
        return log

    def a_leaf_that_another_graph_used_before(torch):
        log = Log()
        x = leaf(torch)
        kept = x * 1
        y = leaf(torch)
        b, c = y * 3, x * 5
        log.watch(x=x, y=y, b=b, c=c)
        (b + c).sum().backward()
        return log, kept.requires_grad

    def leaves_of_layers_free_memory_during_backward(torch):
        log = Log()
        weights = [leaf(torch) for _ in range(4)]

        def step(number, p):
            log.append((number, [each.grad is not None for each in weights]))
            with torch.no_grad():
                p -= 0.1 * p.grad
            p.grad = None

        for number, weight in enumerate(weights):
            weight.register_post_accumulate_grad_hook(functools.partial(step, number))
        for _ in range(2):  # in the second round the leaves are known to a graph that still lives
            x = torch.ones(2)
            for weight in weights:
                x = (x * weight).tanh()
            x.sum().backward()
        return log, [weight.detach() for weight in weights], [weight.grad for weight in weights]

    def each_sees_what_the_one_before_returned(torch):
        x = torch.tensor(2.0, requires_grad=True)
        y = x * 3
        log = Log()

        def times(k):
            return lambda g: (log.append((k, g.item(), y.grad is None)), g * k)[1]

        y.register_hook(times(2.0))
        y.register_hook(times(3.0))
        y.grad_fn.register_prehook(lambda g: (log.append(("pre", g[0].item(), y.grad is None)), (g[0] * 5,))[1])
        y.retain_grad()
        y.register_hook(times(7.0))
        y.grad_fn.register_hook(lambda a, b: (log.append((listed(a), listed(b))), (a[0] * 11, *a[1:]))[1])
        y.backward()
        return log, y.grad, x.grad

    def of_a_leaf(torch):
        x = torch.tensor(2.0, requires_grad=True)
        log = Log()
        x.register_post_accumulate_grad_hook(lambda p: log.append((p is x, p.grad.item())))
        x.register_post_accumulate_grad_hook(lambda p: log.append(("second", torch.is_grad_enabled())))
        x.register_hook(lambda g: log.append(("tensor", g.item(), x.grad is None)))
        node = (x * 1).grad_fn.next_functions[0][0]
        node.register_prehook(lambda g: log.append(("pre", g[0].item(), x.grad is None)))
        node.register_hook(lambda a, b: log.append(("post", len(a), b[0].item(), x.grad is None)))
        for _ in range(2):
            (x * 3).backward()
        return log, x.grad

    def of_a_leaf_that_is_a_root(torch):
        v = leaf(torch)
        handle = v.register_hook(lambda g: g * 2)
        v.backward(torch.tensor([1.0, 2.0]))
        handle.remove()
        v.backward(torch.tensor([1.0, 2.0]))
        return v.grad

    def of_several_outputs(torch):
        def run(root):
            log = Log()
            x = torch.arange(4.0, requires_grad=True)
            a, b = x.split(2)
            b.register_hook(lambda g: log.append(("b", g)))
            a.register_hook(log.hook("a"))
            a.grad_fn.register_prehook(lambda gs: log.append(listed(gs)))
            root(a, b).sum().backward()
            return log, x.grad

        return [run(root) for root in (lambda a, b: a + b, lambda a, b: a, lambda a, b: b)]

    def whether_they_are_recorded(torch):
        log = Log()
        x = leaf(torch)
        x.register_hook(lambda g: log.append((torch.is_grad_enabled(), g.requires_grad)))
        x.register_post_accumulate_grad_hook(lambda p: log.append(torch.is_grad_enabled()))
        (x * x).sum().backward()
        y = x * x
        y.register_hook(lambda g: g * y)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return log, g, torch.autograd.grad(g.sum(), x)

    def backward_inside_hooks(torch):
        log = Log()
        w, x = leaf(torch), leaf(torch)

        def inner(g):
            with torch.enable_grad():
                (w * w).sum().backward()

        y = x * 2
        y.register_hook(inner)
        log.watch(w=w, x=x)
        (y * w).sum().backward()
        return log, w.grad, x.grad, torch.is_grad_enabled()


def chain(call: Callable[[Any, Any, Any, Any], Any]) -> Program:
    """Return a program that calls with a leaf, a result of it, and the sum of that, with hooks of each kind."""

    def program(torch):
        log = Log()
        x = leaf(torch)
        h = x * 2
        y = (h * 3).sum()
        log.watch(h=h, x=x, y=y)
        accumulator = x.view_as(x).grad_fn.next_functions[0][0]
        accumulator.register_prehook(log.hook("accumulator before"))
        accumulator.register_hook(log.hook("accumulator after"))
        return call(torch, x, h, y), log, x.grad, h.retains_grad, y.retains_grad, h.grad, y.grad

    return program


PROGRAMS.add(
    "which run",
    chain,
    backward=lambda torch, x, h, y: y.backward(),
    grad_of_a_leaf=lambda torch, x, h, y: torch.autograd.grad(y, x),
    grad_of_a_result=lambda torch, x, h, y: torch.autograd.grad(y, h),
    grad_of_both=lambda torch, x, h, y: torch.autograd.grad(y, [h, x]),
    grad_of_the_root=lambda torch, x, h, y: torch.autograd.grad(y, y),
    grad_where_retained=lambda torch, x, h, y: (h.retain_grad(), torch.autograd.grad(y, x)),
    backward_into_a_leaf=lambda torch, x, h, y: y.backward(inputs=[x]),
    backward_into_a_result=lambda torch, x, h, y: y.backward(inputs=[h]),
    backward_into_the_root=lambda torch, x, h, y: y.backward(inputs=[y]),
    past_a_leaf=lambda torch, x, h, y: (h.detach() * leaf(torch)).sum().backward(),
)
PROGRAMS.add(
    "refused",
    on_a_constant=lambda torch: torch.ones(2).register_hook(lambda g: g),
    on_a_constant_after=lambda torch: torch.ones(2).register_post_accumulate_grad_hook(lambda p: None),
    on_a_result_after=lambda torch: (leaf(torch) * 2).register_post_accumulate_grad_hook(lambda p: None),
    retained_constant=lambda torch: torch.ones(2).retain_grad(),
)


@PROGRAMS
class Which:
    def grads_of_inputs_with_hooks(torch):
        found = []
        for inputs in ("h", "x", "hx"):
            x = leaf(torch)
            h = x * 2
            h.register_hook(lambda g: g * 10)
            x.register_hook(lambda g: g * 100)
            found += torch.autograd.grad((h * 3).sum(), [{"h": h, "x": x}[each] for each in inputs], retain_graph=True)
        return found

    def a_gradient_given_for_an_output_that_nobody_used(torch):
        a, b = leaf(torch).split(1)
        a.register_hook(lambda g: torch.ones(1))
        b.sum().backward()

    def nodes_without_a_gradient_are_visited(torch):
        log = Log()
        x = leaf(torch)
        y = x * 2
        y.retain_grad()
        y.register_hook(log.append)
        y.grad_fn.register_prehook(lambda gs: log.append(("before", listed(gs))))
        y.grad_fn.register_hook(lambda gi, go: log.append(("after", listed(gi), listed(go))))
        x.register_hook(log.append)
        x.register_post_accumulate_grad_hook(lambda p: log.append(p is x))
        made(torch, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: None).apply(y).sum().backward()
        return log, x.grad, y.grad

    def a_prehook_that_takes_the_gradient_away(torch):
        x, w = leaf(torch), leaf(torch)
        y = x * 2
        y.grad_fn.register_prehook(lambda gs: (None,))
        (y * w).sum().backward()
        return x.grad, w.grad


@PROGRAMS
class Whose:
    """Which tensor hooks belong to."""

    def a_leaf_that_becomes_a_result(torch):
        log = Log()
        w, x, t = leaf(torch), leaf(torch), leaf(torch)
        log.watch(leaf=x, t=t)
        x.requires_grad_(False)
        x.mul_(w)
        x.retain_grad()
        log.watch(x=x)
        with torch.no_grad():
            t.mul_(3)
        (x + t).sum().backward()
        return log, w.grad, x.grad, t.grad

    def a_tensor_written_to_keeps_hooks_where_they_were_put(torch):
        log = Log()
        x, w = torch.ones(2), leaf(torch)
        x.mul_(w)
        x.register_hook(lambda g: log.append(("first", g.tolist())))
        edge = torch.autograd.graph.get_gradient_edge(x)
        x.mul_(3)
        x.register_hook(lambda g: log.append(("second", g.tolist())))
        x.sum().backward(retain_graph=True)
        return log, w.grad, torch.autograd.grad(x.sum(), [edge, w])

    def retain_grad_moves_with_the_tensor(torch):
        log = Log()
        x = leaf(torch)
        y = x * 2
        y.retain_grad()
        y.register_hook(lambda g: log.append(g.tolist()))
        y.mul_(3)
        y.retain_grad()
        y.register_hook(lambda g: g * 7)
        y.cos_()
        y.sum().backward()
        return log, y.grad, x.grad, y.retains_grad

    def retain_grad_of_a_view_and_its_base(torch):
        x = leaf(torch)
        y = x * 2
        v = y[:1]
        v.retain_grad()
        y.retain_grad()
        v.mul_(2)
        (y.sum() + v.sum()).backward()
        return x.grad, v.grad, y.grad

    def hooks_outlive_requires_grad_off_and_on(torch):
        log = Log()
        x = leaf(torch)
        log.watch(x=x)
        x.requires_grad_(False)
        x.requires_grad_()
        x.sum().backward()
        x.detach_()
        x.requires_grad_()
        x.sum().backward()
        x.data = torch.zeros(2)
        x.sum().backward()
        return log

    def hooks_of_a_result_outlive_its_detachment(torch):
        log = Log()
        x = leaf(torch)
        cut, dropped, written = x * 2, x * 3, x * 4
        log.watch(cut=cut)
        handle = dropped.register_hook(lambda g: log.append("dropped"))
        log.watch(written=written)
        before = cut * 5
        for each in (cut, dropped, written):
            each.detach_()
        handle.remove()
        written.mul_(x)  # a result again: with no hooks
        log.watch(again=written)
        for each in (cut, dropped):
            each.requires_grad_()
        log.watch(later=cut)  # the node that made it has this one too
        (cut.sum() + dropped.sum() + written.sum()).backward()
        before.sum().backward()
        written.detach_()
        written.requires_grad_()
        written.sum().backward()
        return log, x.grad, cut.grad

    def hooks_are_not_copied(torch):
        log = Log()
        x = leaf(torch)
        log.watch(x=x)
        copied = copy.deepcopy(x)
        copied.sum().backward()
        return log, copied.grad

    def hooks_of_an_accumulator_die_with_it(torch):
        log = Log()
        x = leaf(torch)
        x.view_as(x).grad_fn.next_functions[0][0].register_hook(log.hook("lost"))
        (x * 2).sum().backward()
        accumulator = x.view_as(x).grad_fn.next_functions[0][0]
        accumulator.register_hook(lambda gi, go: log.append((listed(gi), listed(go))))
        accumulator.register_prehook(lambda gs: (gs[0] * 3,))
        x.register_hook(lambda g: g * 10)
        (x * 2).sum().backward()
        same = accumulator is x.view_as(x).grad_fn.next_functions[0][0]
        return log, x.grad, same, accumulator.variable is x

    def a_leafs_hooks_put_on_after_its_use(torch):
        log = Log()
        x = leaf(torch)
        y = (x * 2).sum()
        log.watch(x=x)
        y.backward()
        return log


@PROGRAMS
class ComingAndGoing:
    def taken_away_during_the_run(torch):
        log = Log()
        x = leaf(torch)
        handles = []
        x.register_hook(lambda g: handles[0].remove())
        handles += [x.register_hook(log.hook("second"))]
        handles += [x.register_hook(lambda g: (log.append("by itself"), handles[1].remove())[1])]
        for _ in range(2):
            x.sum().backward()
            log.append("again")
        return log

    def put_on_during_the_run(torch):
        log = Log()
        x = leaf(torch)
        y = x * 2
        x.register_hook(lambda g: x.register_hook(log.hook("new")) and None)
        y.register_hook(lambda g: x.register_hook(log.hook("further on")) and None)
        for _ in range(2):
            y.sum().backward(retain_graph=True)
            log.append("again")
        return log

    def handles(torch):
        log = Log()
        x = leaf(torch)
        y = x * 2
        total = y.sum()
        with y.register_hook(log.hook("inside")) as handle:
            total.backward(retain_graph=True)
        total.backward(retain_graph=True)
        handle.remove()  # nothing happens
        several = [
            y.register_hook(lambda g: g * 10), x.register_hook(log.hook("leaf")),
            y.grad_fn.register_hook(log.hook("after")), y.grad_fn.register_prehook(log.hook("before")),
            x.register_post_accumulate_grad_hook(log.hook("accumulated")),
        ]  # fmt: skip
        y.register_hook(lambda g: g * 3)
        for each in several:
            each.remove()
        total.backward()
        return log, x.grad

    def a_hook_that_raises_leaves_everything_usable(torch):
        log = Log()

        def bad(*args):
            raise KeyError("mine")

        for put in range(5):
            x = leaf(torch)
            y = x * x
            handle = [
                y.register_hook, x.register_hook, y.grad_fn.register_prehook, y.grad_fn.register_hook,
                x.register_post_accumulate_grad_hook,
            ][put](bad)  # fmt: skip
            log += tried(lambda y=y: y.sum().backward(retain_graph=True))
            handle.remove()
            x.grad = None
            y.sum().backward()
            log.append((torch.is_grad_enabled(), x.grad.tolist()))
        return log


# What they return -------------------------------------------------------------------------------------


class Callback:
    """A hook without a name."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def __call__(self, *args: Any) -> Any:
        return self.result


RETURNED: dict[str, Callable[[Any], Any]] = {
    "a string": lambda torch: "a",
    "a number": lambda torch: 3.0,
    "a tuple": lambda torch: (torch.ones(2) * 5,),
    "a list": lambda torch: [torch.ones(2) * 5],
    "two": lambda torch: (torch.ones(2) * 5, None),
    "two gradients": lambda torch: (torch.ones(2), torch.ones(2)),
    "none of one": lambda torch: (None,),
    "no gradients": lambda torch: (),
    "a shape": lambda torch: torch.ones(3),
    "a dtype": lambda torch: torch.ones(2, dtype=torch.float64),
    "integers": lambda torch: torch.ones(2, dtype=torch.int64),
    "a shape of two": lambda torch: (torch.ones(3), None),
    "a dtype of two": lambda torch: (torch.ones(2, dtype=torch.float64), None),
    "a string of two": lambda torch: ("a", None),
    "a gradient": lambda torch: torch.ones(2) * 5,
}


@pytest.mark.parametrize("returned", RETURNED)
@pytest.mark.parametrize("place", ["tensor", "leaf", "before", "after", "accumulated"])
@pytest.mark.parametrize("named", [True, False])
def test_what_a_hook_returns(place: str, returned: str, named: bool) -> None:
    def run(torch: Any) -> Any:
        result = RETURNED[returned](torch)

        def mine(*args: Any) -> Any:
            return result

        x = leaf(torch)
        y = x * 2
        {
            "tensor": y.register_hook,
            "leaf": x.register_hook,
            "before": y.grad_fn.register_prehook,
            "after": y.grad_fn.register_hook,
            "accumulated": x.register_post_accumulate_grad_hook,
        }[place](mine if named else Callback(result))
        y.sum().backward()
        return x.grad

    same_as_pytorch(run)


def test_hooks_of_nodes_see_gradients_of_the_inputs_shape_and_dtype() -> None:
    def run(torch: Any) -> Any:
        log = Log()
        x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        y = torch.ones(3, 2, requires_grad=True)
        z = x * y
        z.grad_fn.register_hook(lambda gi, go: log.append([(tuple(g.shape), str(g.dtype)) for g in gi]))
        z.sum().backward()
        return log

    same_as_pytorch(run)


def test_hooks_of_nodes_see_the_inputs_that_pytorchs_have() -> None:
    def run(torch: Any) -> Any:
        log = Log()
        x = leaf(torch)
        y = x.gather(0, torch.tensor([0, 0]))
        y.grad_fn.register_hook(lambda gi, go: (log.append(listed(gi)), (gi[0] * 2,))[1])
        condition = torch.tensor([True, False])
        z = torch.where(condition, y, x)
        z.grad_fn.register_hook(lambda gi, go: (log.append(listed(gi)), (gi[0] * 3, gi[1]))[1])
        z.sum().backward()
        return log, x.grad

    same_as_pytorch(run)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_leaves_get_their_gradients_in_pytorchs_order_whatever_hooks_there_are(elsewhere: bool) -> None:
    def run(torch: Any) -> Any:
        log = Log()
        a, b, c, other = (torch.ones(2, requires_grad=True) for _ in range(4))
        if elsewhere:
            other.register_hook(lambda g: g)

        class Seen(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, label: str) -> Any:
                ctx.label = label
                return x * 1

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                log.append((ctx.label, [x.grad is not None for x in (a, b, c)]))
                return g, None

        first = a * b  # (as long as this lives, so do the nodes of its leaves)
        for _ in range(2):
            x = Seen.apply(b * c, "first")
            x = Seen.apply(x * a, "second")
            x = Seen.apply(x + c, "third")
            (x * b).sum().backward()
            a.grad = b.grad = c.grad = None
        return log, first

    same_as_pytorch(run)


SEVERAL: dict[str, Callable[[Any, Any], Any]] = {
    "sort": lambda torch, x: x.sort(),
    "max": lambda torch, x: x.max(0),
    "topk": lambda torch, x: x.topk(2),
    "inv_ex": lambda torch, x: torch.linalg.inv_ex(x.reshape(2, 2)),
    "slogdet": lambda torch, x: torch.linalg.slogdet(x.reshape(2, 2)),
    "split": lambda torch, x: x.split(2),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_hooks_of_a_node_see_gradients_of_what_is_differentiable(name: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([3.0, 1.0, 2.0, 5.0], requires_grad=True)
        out = SEVERAL[name](torch, x * 1)
        seen: list[Any] = []
        out[0].grad_fn.register_prehook(lambda gs: seen.append(gs))
        out[0].grad_fn.register_hook(lambda ins, outs: seen.append(outs))
        out[0].sum().backward()
        return seen, x.grad

    same_as_pytorch(program, 1e-4, 1e-6)
