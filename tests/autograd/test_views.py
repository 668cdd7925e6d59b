"""Views: what they share with their base, and their place in the graph after the memory was written to."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import tinytorch
from tests.autograd.programs import Program, Programs, tried
from tests.same import same_as_pytorch
from tinytorch.autograd import gradcheck, gradgradcheck

VIEWS: dict[str, Callable[[Any], Any]] = {
    "index": lambda x: x[1],
    "slice": lambda x: x[1:],
    "slice of all": lambda x: x[:],
    "slices": lambda x: x[:, 1:3],
    "steps": lambda x: x[..., ::2],
    "none": lambda x: x[None],
    "ellipsis": lambda x: x[...],
    "empty tuple": lambda x: x[()],
    "mixed": lambda x: x[0, :, None, 1:],
    "view": lambda x: x.view(-1),
    "view_as": lambda x: x.view_as(x),
    "reshape": lambda x: x.reshape(6, 4),
    "reshape with gaps": lambda x: x[:, 1].reshape(8, 1),
    "flatten": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "ravel": lambda x: x.ravel(),
    "squeeze": lambda x: x[:1].squeeze(),
    "squeeze dim": lambda x: x[:1].squeeze(0),
    "squeeze dims": lambda x: x[:1].squeeze((0, 1)),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "transpose": lambda x: x.transpose(0, 2),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "t": lambda x: x[0].t(),
    "T": lambda x: x[0].T,
    "mT": lambda x: x.mT,
    "H": lambda x: x[0].H,
    "adjoint": lambda x: x.adjoint(),
    "permute": lambda x: x.permute(2, 0, 1),
    "movedim": lambda x: x.movedim(0, 2),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "select": lambda x: x.select(2, -1),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "expand": lambda x: x.expand(2, 2, 3, 4),
    "expand_as": lambda x: x[0].expand_as(x),
    "broadcast_to": lambda x: x.broadcast_to(1, 2, 3, 4),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "as_strided": lambda x: x.as_strided((2, 2), (3, 1), 5),
    "tensor_split": lambda x: x.tensor_split(2, 2)[1],
    "hsplit": lambda x: x.hsplit([1])[1],
    "vsplit": lambda x: x.vsplit(2)[1],
    "dsplit": lambda x: x.dsplit(2)[0],
    "unbind": lambda x: x.unbind(1)[2],
    "split": lambda x: x.split(2, 1)[1],
    "split sizes": lambda x: x.split([1, 3], 2)[1],
    "chunk": lambda x: x.chunk(2, 2)[1],
    "detach": lambda x: x.detach(),
    "view dtype": lambda x: x.view(x.dtype),
    "real": lambda x: x.real,
    "contiguous": lambda x: x.contiguous(),
}


def facts(x: Any) -> Any:
    """Return what can be seen of a tensor, where it is a view."""
    return [
        x.detach(), x._version, x._is_view(), x.is_leaf, x.requires_grad, x.output_nr, x.grad_fn and x.grad_fn.name(),
    ]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS.values(), ids=list(VIEWS))
def test_a_view_shares_memory_version_and_base(view: Callable[[Any], Any]) -> None:
    def program(torch: Any) -> Any:
        x = torch.arange(24.0).view(2, 3, 4).clone().requires_grad_()
        base = x * 1
        seen = []
        for source in (base, base[:], x, torch.zeros(2, 3, 4)):
            v = view(source)
            whole = source if source._base is None else source._base
            seen.append([facts(v), v is source, v._base is whole, v._view_func(x), v._view_func(x[0])])
            with torch.no_grad():
                whole.mul_(2)
            seen.append([v.detach(), v._version])
            if v._is_view() and v.output_nr == 0 and v.grad_fn is not None:
                seen.append(facts(v))  # by now a step from the base
        return seen

    same_as_pytorch(program)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.unfold(1, 2, 1),
        lambda x: x.t().diagonal(),
        lambda x: x.t()[1:].reshape(-1),
        lambda x: x[:, None, ::2].expand(-1, 3, 2),
        lambda x: x.as_strided((2, 2), (1, 2), 1),
    ],
    ids=["unfold", "diagonal", "copy", "expand", "as_strided"],
)
def test_derivatives_of_views_that_follow_a_write(view: Callable[[Any], Any]) -> None:
    def follow(x: Any, y: Any) -> Any:
        base = x * 1
        v = view(base)
        base[0].mul_(y)
        return v.sin() * v

    tinytorch.manual_seed(0)
    x = tinytorch.randn(2, 3, dtype=tinytorch.float64, requires_grad=True)
    y = tinytorch.randn(3, dtype=tinytorch.float64, requires_grad=True)
    assert gradcheck(follow, (x, y))
    assert gradgradcheck(follow, (x, y))


def test_the_gradient_of_shared_places() -> None:
    x = tinytorch.randn(2, 3, dtype=tinytorch.float64, requires_grad=True)
    assert gradcheck(lambda x: x[0].expand(2, 3).as_strided((2, 2), (1, 1)), x)


PROGRAMS = Programs()


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_as_pytorch(program: Program) -> None:
    same_as_pytorch(program)


def base_and_view(torch: Any) -> tuple[Any, Any, Any]:
    x = torch.arange(4.0, requires_grad=True)
    base = x * 2
    return x, base, base[1:3]


@PROGRAMS
class WrittenTo:
    def hooks_before_and_after_a_write_to_a_view(torch):
        _, base, v = base_and_view(torch)
        seen: dict[str, Any] = {}
        for name, each in (("view", v), ("base", base)):
            each.register_hook(lambda g, name=name: seen.setdefault(f"{name} before", g.tolist()) and None)
        v.mul_(3)
        for name, each in (("view", v), ("base", base)):
            each.register_hook(lambda g, name=name: seen.setdefault(f"{name} after", g.tolist()) and None)
        (base.sum() + v.sum()).backward()
        return dict(sorted(seen.items()))

    def retained_gradients_follow_a_write_to_a_view(torch):
        x, base, v = base_and_view(torch)
        base.retain_grad()
        v.retain_grad()
        v.mul_(3)
        (base.sum() + 2 * v.sum()).backward()
        return x.grad, base.grad, v.grad, base.retains_grad, v.retains_grad

    def retained_gradients_follow_a_write_to_the_base(torch):
        x, base, v = base_and_view(torch)
        base.retain_grad()
        v.retain_grad()
        base.mul_(3)
        (base.sum() + 2 * v.sum()).backward()
        return x.grad, base.grad, v.grad

    def gradients_of_inputs_behind_a_write(torch):
        x, base, v = base_and_view(torch)
        y = torch.ones(2, requires_grad=True)
        v.mul_(y)
        out = (base * base).sum()
        found = [torch.autograd.grad(out, inputs, retain_graph=True) for inputs in ([x], [y], [x, y], [base])]
        (first,) = torch.autograd.grad(out, y, create_graph=True)
        return found, torch.autograd.grad(first.sum(), [x, y])

    def a_graph_with_a_write_to_a_view_is_freed(torch):
        _, base, v = base_and_view(torch)
        v.zero_()
        base.sum().backward(retain_graph=True)
        base.sum().backward()
        base.sum().backward()

    def a_view_without_grad_of_what_requires_grad(torch):
        x = torch.ones(3, requires_grad=True)
        with torch.no_grad():
            v = x[:2]
        y = v * 3
        y.sum().backward()
        return facts(v), facts(y), x.grad, v.grad

    def a_view_requires_grad_when_its_base_comes_to(torch):
        base = torch.zeros(3)
        v = base[:2]
        before = v.requires_grad
        base.requires_grad_()
        y = v * 3
        found = [before, v.requires_grad, y.requires_grad, v.is_leaf]
        base.requires_grad_(False)
        return found, v.requires_grad, (v * 3).requires_grad

    def a_view_that_requires_grad_itself(torch):
        base = torch.zeros(3)
        v = base[:2].requires_grad_()
        (v * 3).sum().backward()
        w = torch.ones(3, requires_grad=True)
        grad = v.grad
        base.mul_(w)
        return grad, facts(v), base.grad_fn.name()

    def a_view_of_a_leaf_cannot_be_written_to(torch):
        torch.ones(3, requires_grad=True)[:2].add_(1)

    def a_stale_view_of_something_recorded_later_is_taken_for_a_leaf(torch):
        base = torch.zeros(3)
        v = base[:2]
        base.mul_(torch.ones(3, requires_grad=True))
        v.add_(1)

    def the_same_once_it_was_looked_at(torch):
        base = torch.zeros(3)
        v = base[:2]
        base.mul_(torch.ones(3, requires_grad=True))
        seen = v.is_leaf
        v.add_(1)
        return seen, facts(v), facts(base)

    def a_base_that_was_detached(torch):
        _, base, v = base_and_view(torch)
        base.detach_()
        base.add_(1)
        seen = [v.requires_grad, v.is_leaf, v.grad_fn.name()]
        v.retain_grad()
        v.register_hook(lambda g: seen.append(g.tolist()))
        (v * v).sum().backward()
        return seen, v.grad

    def views_cannot_be_detached_in_place(torch):
        _, _, v = base_and_view(torch)
        with torch.inference_mode():
            v.detach_()  # does nothing there
        assert v.requires_grad
        v.detach_()

    def only_leaves_change_their_flag(torch):
        _, _, v = base_and_view(torch)
        v.requires_grad_()
        v.requires_grad = True

    def several_views_after_a_write(torch):
        def result():
            return torch.arange(6.0).view(2, 3).clone().requires_grad_() * 1

        base, other, third, fourth = (result() for _ in range(4))
        rows = base.split(1)
        parts = [other.unbind(0)[0]]
        with torch.no_grad():
            base.add_(1)
            parts += [parts[0][1:], other[0]]
        with torch.inference_mode():
            parts.append(third[0])
            parts[-1].add_(1)
        parts.append(fourth.unbind(0)[0])
        found = [row.requires_grad for row in rows], rows[1].output_nr, third._version, parts[3].is_inference()
        writes = [lambda part=part: part.add_(1) for part in parts] + [lambda: parts[2][1:].add_(1)]
        return found, tried(lambda: rows[1].is_leaf, *writes)


def test_written_views_leave_no_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        x = tinytorch.ones(4, requires_grad=True)
        base = x * 2
        v = base[:2]
        v.mul_(3)
        v[0] = 5.0
        w = base.unfold(0, 2, 1)
        out = (base.sum() + v.sum() + w.sum()).sum()
        alive = [weakref.ref(each) for each in (base, v, w, base.grad_fn, v.grad_fn, base._array)]
        out.backward()
        del base, v, w, out
        assert [each() for each in alive] == [None] * len(alive)
    finally:
        gc.enable()


def test_views_made_without_grad_as_roots() -> None:
    def changed(torch: Any) -> Any:
        x, w = torch.ones(3), torch.ones(3, requires_grad=True)
        with torch.no_grad():
            view = x.view(3)
        x.mul_(w)
        return view

    def of_a_result(torch: Any) -> Any:
        y = torch.ones(3, requires_grad=True) * 2
        with torch.no_grad():
            return y.view(3)

    same_as_pytorch(lambda torch: of_a_result(torch).backward(torch.ones(3)))
    same_as_pytorch(lambda torch: changed(torch).backward(torch.ones(3)))
    same_as_pytorch(lambda torch: torch.autograd.graph.get_gradient_edge(changed(torch)))
