"""Writes in place: what is refused and noticed, and derivatives through writes to tensors and views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tinytorch as torch
from tests.autograd.programs import Program, Programs, leaf
from tests.same import same_as_pytorch
from tinytorch.autograd import gradcheck, gradgradcheck

PROGRAMS = Programs()


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_as_pytorch(program: Program) -> None:
    same_as_pytorch(program)


def of_one(call: Callable[[Any, Any, Any], Any]) -> Program:
    """Return a program that calls with a leaf and a result of it, and looks at them."""

    def program(lib):
        x = leaf(lib)
        y = x * 2
        before = y.grad_fn.name()
        result = call(lib, x, y)
        return result, x, x._version, x.grad, y, y._version, before, y.grad_fn.name()

    return program


def saved(write: Callable[[Any, Any, Any], Any]) -> Program:
    """Return a program that writes to a tensor after it was saved."""
    return of_one(lambda lib, x, y: (lambda z: (write(lib, x, y), z.backward()))((y * y).sum()))


PROGRAMS.add(
    "writes",
    of_one,
    to_a_leaf=lambda lib, x, y: x.add_(1),
    to_a_leaf_by_operator=lambda lib, x, y: x.__iadd__(1),
    to_a_view_of_a_leaf=lambda lib, x, y: x[0].add_(1),
    to_an_index_of_a_leaf=lambda lib, x, y: x.__setitem__(0, 1.0),
    to_a_constant=lambda lib, x, y: (lambda c: (c.mul_(x).sum().backward(), c, c.is_leaf))(lib.ones(2)),
    to_a_part_of_a_constant=lambda lib, x, y: (
        lambda c: (c.__setitem__((0, slice(2)), x), c.__setitem__(1, x.sum()), (c * c).sum().backward(), c, c.is_leaf)
    )(lib.zeros(2, 3)),
    to_a_part_of_split=lambda lib, x, y: y.split(1)[0].mul_(2),
    to_a_part_of_chunk=lambda lib, x, y: y.chunk(2)[0].zero_(),
    to_all_of_unbind=lambda lib, x, y: [row.add_(1) for row in y],
    to_expanded=lambda lib, x, y: y[:1].expand(3).add_(1),
    to_a_copy_of_expanded=lambda lib, x, y: x[:1].expand(3).clone().add_(1),
    to_expanded_constants=lambda lib, x, y: lib.ones(1).expand(3).add_(1),
    of_a_wrong_shape=lambda lib, x, y: y.add_(lib.ones(2, 2)),
    of_a_wrong_shape_to_constants=lambda lib, x, y: lib.ones(3).add_(lib.ones(2, 3)),
    of_a_wrong_dtype=lambda lib, x, y: lib.ones(2, dtype=lib.int64).add_(0.5),
    several=lambda lib, x, y: y.add_(1).mul_(x).exp_().sum().backward(),
    to_a_view=lambda lib, x, y: (y[1:].mul_(x[0]), (y * y).sum().backward()),
    by_broadcasting=lambda lib, x, y: (
        lambda z: (z.mul_(x[:, None]), z.sum().backward(), z)
    )(y * lib.ones(2, 2)),
    by_relu=lambda lib, x, y: (y - 3).relu_().sum().backward(),
    before_it_is_saved=lambda lib, x, y: (y.add_(1), (y * y).sum().backward()),
    after_backward=lambda lib, x, y: ((y * y).sum().backward(), y.add_(1)),
    where_nothing_is_saved=lambda lib, x, y: (lambda z: (y.zero_(), z.backward()))((y + 1).sum()),
    to_a_result=lambda lib, x, y: (x + 1).add_(1).sum().backward(),
    to_a_saved_result=lambda lib, x, y: x.exp().mul_(2).sum().backward(),
    to_the_result_of_tanh=lambda lib, x, y: lib.nn.functional.relu(x.tanh(), inplace=True).sum().backward(),
    by_itself=lambda lib, x, y: y.mul_(y).sum().backward(),
)  # fmt: skip

PROGRAMS.add(
    "saved",
    saved,
    written_to=lambda lib, x, y: y.add_(1),
    written_to_twice=lambda lib, x, y: y.add_(1).add_(1),
    through_a_view=lambda lib, x, y: y.__setitem__(0, 0),
    through_detach=lambda lib, x, y: y.detach().zero_(),
    through_data=lambda lib, x, y: y.data.zero_(),
    another=lambda lib, x, y: (x * 3).zero_(),
)


@PROGRAMS
class Counted:
    def versions(lib):
        x = lib.ones(2)
        v = x[:1]
        found = []
        for write in (
            lambda: x.add_(1), lambda: x.__setitem__(0, 5), lambda: v.mul_(2), lambda: x.detach().zero_(),
            lambda: x.data.add_(1), lambda: lib.no_grad()(x.copy_)(lib.zeros(2)), x.requires_grad_,
        ):  # fmt: skip
            write()
            found.append((x._version, v._version))
        return found

    def the_message(lib):
        y = lib.ones(2, 3, requires_grad=True).sigmoid()
        y += 1
        try:
            y.sum().backward()
        except RuntimeError as error:
            text = str(error)
            return [w in text for w in ("[torch.FloatTensor [2, 3]]", "output 0 of Sigmoid", "version 1", "version 0")]

    def the_optimizer_wrote_between(lib):
        w = leaf(lib)
        loss = (w * w).sum()
        loss.backward(retain_graph=True)
        lib.optim.SGD([w], lr=0.1).step()
        loss.backward()

    def a_base_that_gets_a_gradient_later(lib):
        base = lib.zeros(3)
        other, view = base[0], base[1:]
        view.copy_(leaf(lib))
        return base, other, view, other.requires_grad

    def second_derivatives_through_written_views(lib):
        x = leaf(lib, 1.0, 2.0, 3.0)
        y = x * x
        y[0] = x[1] ** 3
        y[1:].mul_(x[0])
        (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        return g, lib.autograd.grad(g.pow(2).sum(), x)

    def neighbours_in_memory_are_no_overlap(lib):
        x = lib.arange(6.0)
        x[2:4].add_(x[:2])
        x[:2].add_(x[2:4])
        return x

    def other_views_follow(lib):
        x = leaf(lib, 1.0, 2.0, 3.0)
        y = x * 2
        a, b = y[:2], y.view(3, 1)
        a.mul_(10)
        (b * b).sum().backward()
        return x.grad, b.grad_fn.name(), a._base is y


def assigned(x: Any, y: Any) -> Any:
    z = x * 2
    z[1] = y[0] * y[1]
    z[:, 1:] *= y[:, :2]
    return z * z


def copied(x: Any, y: Any) -> Any:
    z = torch.zeros(2, 3, dtype=torch.float64)
    z.copy_(x)
    z[0].copy_(y[1])
    return z.exp()


def filled(x: Any, y: Any) -> Any:
    z = x * y
    z[0].fill_(y.sum())
    z[1, 1:].zero_()
    return z * x


def views_of_views(x: Any, y: Any) -> Any:
    z = (x * 1).reshape(6)
    z.view(2, 3).t()[1].mul_(y[:, 0])
    z.view(3, 2)[0].add_(y[0, :2]).sin_()
    return z * z


def transposed_base(x: Any, y: Any) -> Any:
    z = (x * y).t().clone()
    w = z.t()
    w[1].mul_(y[0])
    return z.tanh() * w.t()


def read_before_and_after(x: Any, y: Any) -> Any:
    z = x * 1
    row = z[0]
    before = row * 2  # saves nothing of row
    z.mul_(y)
    return before * row + z.sum(0)


def masked(x: Any, y: Any) -> Any:
    z = x * 1
    z[x > 0] = y.sum()
    z[torch.tensor([1]), torch.tensor([2])] = y[0, 0]
    z.masked_fill_(y > 0.5, 0.25)
    return z * z


def clamped(x: Any, y: Any) -> Any:
    z = x * y
    z.clamp_(-0.5, 0.5).add_(y, alpha=3).div_(2 + y * y)
    return z


WRITES = [assigned, copied, filled, views_of_views, transposed_base, read_before_and_after, masked, clamped]


@pytest.mark.parametrize("write", WRITES, ids=lambda each: each.__name__)
def test_derivatives_through_writes(write: Callable[[Any, Any], Any]) -> None:
    torch.manual_seed(3)
    x, y = (torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert gradcheck(write, (x, y))
    assert gradgradcheck(write, (x, y))


def test_random_results_of_tensors_have_zero_gradients() -> None:
    p = torch.full((3,), 0.5, requires_grad=True)
    torch.bernoulli(p).sum().backward()
    assert p.grad.tolist() == [0, 0, 0]
    mean = torch.zeros(3, requires_grad=True)
    torch.normal(mean, torch.ones(3)).sum().backward()
    assert mean.grad.tolist() == [0, 0, 0]


def test_floor_divide_has_no_derivative() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        (x // 2).sum().backward()


# What may be written to memory in which several elements share a place, and what a write may read of it.

ON_EXPANDED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "zero_": lambda lib, e, b: e.zero_(),
    "fill_": lambda lib, e, b: e.fill_(3),
    "fill_ tensor": lambda lib, e, b: e.fill_(lib.tensor(3.0)),
    "add_": lambda lib, e, b: e.add_(1),
    "clamp_": lambda lib, e, b: e.clamp_(0, 1),
    "sin_": lambda lib, e, b: e.sin_(),
    "copy_ itself": lambda lib, e, b: e.copy_(e),
    "copy_ the same": lambda lib, e, b: e.copy_(b[:1].expand(3)),
    "copy_": lambda lib, e, b: e.copy_(lib.ones(3)),
    "masked_fill_": lambda lib, e, b: e.masked_fill_(e > 0, 5),
    "index_fill_": lambda lib, e, b: e.index_fill_(0, lib.tensor([0]), 5),
    "index_copy_": lambda lib, e, b: e.index_copy_(0, lib.tensor([0]), lib.ones(1)),
    "index_add_": lambda lib, e, b: e.index_add_(0, lib.tensor([0]), lib.ones(1)),
    "index_put_": lambda lib, e, b: e.index_put_((lib.tensor([0]),), lib.ones(1)),
    "scatter_": lambda lib, e, b: e.scatter_(0, lib.tensor([0]), 1.0),
    "set one": lambda lib, e, b: e.__setitem__(0, 5.0),
    "set all": lambda lib, e, b: e.__setitem__(slice(None), 5.0),
    "set some": lambda lib, e, b: e.__setitem__(slice(0, 2), lib.ones(2)),
    "set mask": lambda lib, e, b: e.__setitem__(e > 0, 5.0),
    "set index": lambda lib, e, b: e.__setitem__(lib.tensor([0, 2]), lib.ones(2)),
}


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("write", ON_EXPANDED.values(), ids=list(ON_EXPANDED))
def test_writes_to_expanded_memory(write: Callable[[Any, Any, Any], Any], recorded: bool) -> None:
    def program(lib: Any) -> Any:
        x = lib.arange(1.0, 5, requires_grad=recorded)
        base = x * 2
        part = base[:1].expand(3)
        write(lib, part, base)
        seen = [base.tolist(), base._version, part.grad_fn and part.grad_fn.name()]
        if recorded:
            base.sum().backward()
            seen.append(x.grad)
        return seen

    same_as_pytorch(program)


I4 = [0, 1, 2, 3]
ON_ITSELF: dict[str, Callable[[Any, Any], Any]] = {
    "mul_": lambda lib, x: x.mul_(x),
    "mul_ element": lambda lib, x: x.mul_(x[3]),
    "mul_ neighbours": lambda lib, x: x[1:].mul_(x[:-1]),
    "mul_ others": lambda lib, x: x[::2].mul_(x[1::2]),
    "copy_ element": lambda lib, x: x.copy_(x[3]),
    "copy_ transposed": lambda lib, x: x.view(2, 2).copy_(x.view(2, 2).t()),
    "fill_": lambda lib, x: x.fill_(x[3]),
    "masked_fill_": lambda lib, x: x.masked_fill_(x > -1, x[3]),
    "index_fill_": lambda lib, x: x.index_fill_(0, lib.tensor(I4), x[3]),
    "index_copy_": lambda lib, x: x.index_copy_(0, lib.tensor(I4), x),
    "index_add_": lambda lib, x: x.index_add_(0, lib.tensor(I4), x),
    "scatter_": lambda lib, x: x.scatter_(0, lib.tensor(I4), x),
    "put_": lambda lib, x: x.put_(lib.tensor(I4), x),
    "masked_scatter_": lambda lib, x: x.masked_scatter_(x > -1, x),
    "set": lambda lib, x: x.__setitem__(0, x[3]),
    "set all": lambda lib, x: x.__setitem__(..., x[3]),
    "set neighbours": lambda lib, x: x.__setitem__(slice(1, None), x[:-1]),
    "set index": lambda lib, x: x.__setitem__(lib.tensor(I4), x),
    "set index of a part": lambda lib, x: x.__setitem__(lib.tensor(I4[:3]), x[1:]),
    "set mask": lambda lib, x: x.__setitem__(x > -1, x),
    "set mask to an element": lambda lib, x: x.__setitem__(x > -1, x[3]),
    "set none": lambda lib, x: x.__setitem__(None, x),
}


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("write", ON_ITSELF.values(), ids=list(ON_ITSELF))
def test_writes_that_read_their_own_memory(write: Callable[[Any, Any], Any], inference: bool) -> None:
    def program(lib: Any) -> Any:
        with lib.inference_mode(inference):
            x = lib.arange(4.0)
            write(lib, x)
            return x.tolist()

    same_as_pytorch(program)


@pytest.mark.parametrize("value", [0.5, [0.5], [[[0.5]]], [1.0, 2.0, 3.0]], ids=str)
@pytest.mark.parametrize(
    "key",
    [..., None, True, 0, slice(None), slice(0, 2), slice(1, None), (), (slice(None), slice(0, 3)), (0, ...), (..., 1)],
    ids=str,
)
def test_nodes_of_set_items(key: Any, value: Any) -> None:
    """A key that takes everything writes straight into the tensor, others into a view of it."""

    def program(lib: Any) -> Any:
        x = lib.ones(2, 3, requires_grad=True)
        y = lib.tensor(value, requires_grad=True)
        z = x * 1
        z[key] = y
        (z * z).sum().backward()
        w = x * 1
        w[key] = 0.25
        return z.tolist(), z.grad_fn.name(), w.grad_fn.name(), x.grad, y.grad

    same_as_pytorch(program)


def test_inference_tensors_are_refused_after_the_write() -> None:
    def program(lib: Any) -> Any:
        seen = []
        with lib.inference_mode():
            x = lib.ones(3)
        for write in (
            lambda: x.mul_(3),
            lambda: x.__setitem__(0, 5.0),
            lambda: x.copy_(lib.ones(3) * 7),
            lambda: x.fill_(2),
            lambda: x.zero_(),
        ):
            try:
                write()
            except RuntimeError as error:
                seen.append((x.tolist(), str(error)[:60]))
        return seen

    same_as_pytorch(program)


def test_what_must_not_be_saved_is_refused_before_the_write() -> None:
    def program(lib: Any) -> Any:
        with lib.inference_mode():
            y = lib.full((3,), 2.0)
        x = lib.ones(3, requires_grad=True) * 1
        seen = [x.add_(y).tolist()]
        try:
            x.mul_(y)
        except RuntimeError as error:
            seen += [x.tolist(), x._version, str(error)[:60]]
        return seen

    same_as_pytorch(program)


@pytest.mark.parametrize("text", ["var_mean(x, 0)", "std_mean(x, 0)", "max(x, 0)", "linalg.qr(x)", "linalg.eigh(x)"])
def test_writes_to_one_of_several_outputs(text: str) -> None:
    def program(lib: Any) -> Any:
        x = (lib.ones(3, 3) / 7 + lib.arange(3.0).diag()).requires_grad_()
        outs = eval(f"torch.{text}", {"torch": lib, "x": x})
        outs[text.startswith("linalg")].mul_(2)
        sum((out * out).sum() for out in outs if out.requires_grad).backward()
        return x.grad

    same_as_pytorch(program, rtol=1e-3, atol=1e-3)
