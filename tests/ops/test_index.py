"""What samples cannot say of indexing: errors, warnings, writes by `x[...] = y`, versions, gradients of both sides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import compared, of_each, programs, same_as_pytorch

Program = Callable[[Any], Any]


def block(torch: Any) -> Any:
    """Return 0 … 23 as (2, 3, 4)."""
    return torch.arange(24.0).view(2, 3, 4)


def index(torch: Any, *numbers: int, dtype: Any = None) -> Any:
    return torch.tensor(numbers, dtype=torch.long if dtype is None else dtype)


def assigned(key: Callable[[Any, Any], Any], value: Callable[[Any], Any]) -> Program:
    """Return the program `x[key] = value`."""

    def program(torch: Any) -> Any:
        x = block(torch)
        x[key(torch, x)] = value(torch)
        return x, x._version

    return program


def plain(key: Any) -> Callable[[Any, Any], Any]:
    return lambda torch, x: key


#: Each must raise the same class with the same words as PyTorch.
ERRORS = {
    **programs("""
    # x[...]
    x[5]; x[-3]; x[0, 5]; x[0, 0, 0, 0]; x[:, :, :, :]; torch.tensor(1.0)[0]; torch.tensor(1.0)[:]
    torch.tensor(1.0)[index(0)]; torch.zeros(3)[0, 0]; x[1.0]; x[0, 1.5]; x[object()]; x[{}]; x[::-1]; x[::0]
    x[:, ::-2]; x[slice(0, "a")]; x[index(0, 1) :]; x[torch.tensor(1.0) :]; x[index(5)]; x[:, index(5)]
    x[:, :, index(-5)]; x[index(0, 1), index(0, 1, 2)]; x[index(0), index(0), index(0), index(0)]
    x[torch.tensor([1.0])]; x[index(1, dtype=torch.int8)]; x[index(1, dtype=torch.int16)]
    x[torch.tensor([True, False, True])]; x[:, torch.tensor([True, False])]; x[x[0] > 5]; x[[True]]
    x[torch.zeros(2, 3, 4, 1, dtype=torch.bool)]; x[torch.zeros(0, dtype=torch.bool)]; x[index(0, 1), False]
    x[["a"], 0]; x.__delitem__(0)
    # x[...] = y
    # fill_, copy_
    x.fill_(torch.zeros(3)); torch.zeros(3, dtype=torch.uint8).fill_(300); x.copy_(torch.zeros(3))
    torch.zeros(3).copy_(torch.zeros(2, 3)); [x.copy_(x[0]) for x in [torch.ones(3, 4)]]
    [x.copy_(x.t()) for x in [torch.ones(3, 3)]]
    # index_put
    x.index_put((index(0, 1),), torch.zeros(5)); x.index_put((index(0, 1),), torch.zeros(4).double())
    x.index_put((index(0, 1).float(),), torch.zeros(4)); x.index_put(index(0, 1), torch.zeros(4))
    x.index_put((None, index(0)), torch.zeros(4)); x.index_put((index(0),) * 4, torch.zeros(4))
    x.index_put((index(0, 1),), torch.zeros(5), accumulate=True)
    # Rows.
    x.index_select(0, torch.tensor([[0]])); x.index_select(0, index(5)); x.index_select(0, index(-1))
    x.index_select(0, torch.tensor([1.0])); x.index_select(0, index(1, dtype=torch.int16)); x.index_select(3, index(1))
    torch.tensor(1.0).index_select(0, index(0, 0)); torch.tensor(1.0).index_select(0, index(1))
    x.index_add(0, index(0, 1), x[:1]); x.index_add(0, index(0, 1), x.double()); x.index_add(0, index(0, 1), x[:, :1])
    x.index_add(0, index(5, 0), x); x.index_add(0, index(-1, 0), x); x.index_add(0, torch.tensor([[0, 1]]), x)
    x.index_add(0, torch.tensor([0.0, 1]), x); x.index_copy(0, index(0, 1), x[:1])
    x.index_copy(0, index(0, 1), x.double()); x.index_copy(0, index(0, 1), x[:, :1]); x.index_copy(0, index(5, 0), x)
    x.index_copy(0, index(0, 1).int(), x); x.index_copy(0, index(0, 1), torch.tensor(1.0))
    x.index_copy(0, index(0), x[0]); x.index_copy(0, torch.tensor([[0, 1]]), x); x.index_fill(0, index(5), 1.0)
    x.index_fill(0, index(0).int(), 1.0); x.index_fill(0, index(0), torch.zeros(3))
    x.index_fill(0, torch.tensor([[0]]), 1.0)
    # Gather and scatter.
    x.gather(0, torch.zeros(1, 3, 4)); x.gather(0, torch.zeros(1, 3, dtype=torch.long))
    x.gather(0, torch.full((1, 3, 4), 2)); x.gather(0, torch.full((1, 3, 4), -1))
    x.gather(0, torch.zeros(1, 4, 4, dtype=torch.long)); x.gather(3, torch.zeros(1, 3, 4, dtype=torch.long))
    x.scatter(0, torch.zeros(1, 3, 4, dtype=torch.long), x.double())
    x.scatter(0, torch.zeros(1, 3, 4, dtype=torch.long), torch.zeros(1, 2, 4))
    x.scatter(0, torch.zeros(1, 4, 4, dtype=torch.long), torch.zeros(1, 4, 4))
    x.scatter(0, torch.zeros(1, 4, 4, dtype=torch.long), 1.0)
    x.scatter(0, torch.zeros(3, dtype=torch.long), torch.zeros(3)); x.scatter(0, torch.full((1, 3, 4), 5), 1.0)
    x.scatter(0, torch.zeros(1, 3, 4), 1.0); x.scatter(0, torch.zeros(1, 3, 4, dtype=torch.long), 1.0, reduce="foo")
    x.scatter_add(0, torch.zeros(1, 3, 4, dtype=torch.long), x.double())
    x.scatter_add(0, torch.zeros(1, 2, 4, dtype=torch.long), x[:1, :1])
    x.scatter_reduce(0, torch.zeros(1, 3, 4, dtype=torch.long), x, "foo")
    torch.ones(3, requires_grad=True).scatter(0, index(0), 2.0, reduce="multiply").sum().backward()
    torch.take(x, index(30)); torch.take(x, index(-30)); torch.take(x, index(0).int())
    torch.take(torch.zeros(0), index(0)); x.put(index(0, 1), torch.zeros(3))
    x.put(index(0, 1), torch.zeros(2).double()); x.put(index(0, 99), torch.zeros(2))
    torch.take_along_dim(x, torch.zeros(4, dtype=torch.long), 1); torch.take_along_dim(x, torch.zeros(1, 1, 4), 1)
    # Masks.
    x.masked_fill(x > 0, torch.zeros(2)); x.masked_fill(x, 1.0)
    x.masked_fill(index(1, 0, 1, 0, dtype=torch.uint8), 1.0); x.masked_fill(torch.tensor([True, False]), 1.0)
    torch.zeros(3).masked_fill_(torch.ones(2, 3).bool(), 1.0); x.masked_select(x)
    x.masked_select(torch.tensor([True, False])); x.masked_scatter(x > 5, torch.zeros(3))
    x.masked_scatter(x > 5, torch.zeros(30).double()); torch.where(x, x, x); torch.where(x > 0, torch.zeros(3), 1)
    torch.where(x > 0, x); torch.where(True, x, x)
    # Sorting, counting, searching.
    x.topk(5); x.topk(-1); x.topk(2, dim=5); torch.tensor(1.0).topk(2); x.sort(5); torch.tensor(1.0).sort(1)
    torch.unique(torch.zeros(3, 0), dim=0); torch.unique(torch.zeros(3), dim=5); torch.bincount(torch.tensor([0, -1]))
    torch.bincount(torch.zeros(3)); torch.bincount(torch.zeros(2, 2, dtype=torch.long))
    torch.bincount(index(0, 1), weights=torch.zeros(1)); torch.bincount(index(0, 1), minlength=-1)
    torch.searchsorted(torch.arange(3.0), torch.zeros(1), side="foo")
    torch.searchsorted(torch.arange(3.0), torch.zeros(1), side="left", right=True)
    torch.searchsorted(torch.zeros(3, 4), torch.zeros(2, 2)); torch.searchsorted(torch.tensor(1.0), torch.zeros(2))
    torch.bucketize(torch.zeros(3), torch.zeros(3, 4))
""", {}, x=block, index=lambda torch: partial(index, torch)),
    "0": assigned(plain((0, 0)), lambda torch: torch.zeros(5)),
    "1": assigned(plain(0), lambda torch: torch.zeros(2, 3, 4)),
    "2": assigned(plain(0), lambda torch: torch.zeros(3, 5)),
    "3": assigned(plain((0, 0, 0)), lambda torch: torch.zeros(2)), "4": assigned(plain(0), lambda torch: [1, 2, 3, 4]),
    "5": assigned(plain(0), lambda torch: np.zeros(4)), "6": assigned(plain(0), lambda torch: "a"),
    "7": assigned(plain(0), lambda torch: None), "8": assigned(plain(5), lambda torch: 1),
    "9": assigned(plain(slice(None, None, -1)), lambda torch: 1),
    "10": assigned(lambda torch, x: index(torch, 0, 1), lambda torch: torch.zeros(5)),
    "11": assigned(lambda torch, x: index(torch, 0, 5), lambda torch: 1.0),
    "12": assigned(lambda torch, x: index(torch, 0, 1), lambda torch: torch.zeros(2, 3, 4).double()),
    "13": assigned(lambda torch, x: (index(torch, 0, 1), 0, 0), lambda torch: index(torch, 5, 6)),
    "14": assigned(lambda torch, x: x > 3, lambda torch: torch.zeros(3)),
    "15": assigned(lambda torch, x: torch.tensor([True, False, True]), lambda torch: 1),
}  # fmt: skip


@pytest.mark.parametrize("program", ERRORS.values(), ids=ERRORS)
def test_errors_are_pytorchs(program: Program) -> None:
    with pytest.raises(Exception):  # noqa: B017  (which one, the next line says)
        program(tinytorch)
    same_as_pytorch(program)


#: Keys, each with the shape of a value for them.
KEYS: list[tuple[Callable[[Any, Any], Any], tuple[int, ...]]] = [
    (plain(0), (3, 4)), (plain(-1), (4,)), (plain((0, 1)), (4,)), (plain((0, 1, 2)), ()), (plain((0, 1, 2)), (1, 1)),
    (plain(slice(1, 2)), (1, 3, 4)), (plain((slice(None), slice(None, None, 2))), (2, 1, 4)), (plain(...), (2, 3, 4)),
    (plain(()), (4,)), (plain((..., 1)), (2, 3)), (plain((None, 0)), (1, 3, 4)), (plain((0, None, 1)), (1, 4)),
    (plain(True), (2, 3, 4)), (plain(False), (1,)), (plain(slice(5, 9)), (0, 3, 4)), (plain([0, 1]), (2, 3, 4)),
    (plain((slice(0, 1), [0, 1])), (1, 2, 4)), (lambda torch, x: index(torch, 1, 0), (2, 3, 4)),
    (lambda torch, x: index(torch, 1, 0), (1, 1, 2, 3, 4)), (lambda torch, x: (index(torch, 1, 0), 2), (2, 1)),
    (lambda torch, x: (slice(None), index(torch, 2, 0)), (2, 2, 4)),
    (lambda torch, x: (index(torch, 1, 0), slice(None), index(torch, 1, 3)), (2, 3)),
    (lambda torch, x: (index(torch, 1, 0)[:, None], index(torch, 0, 2)), (2, 2, 4)),
    (lambda torch, x: torch.tensor(1), (3, 4)), (lambda torch, x: x > 11, (12,)),
    (lambda torch, x: x[..., 0] > 4, (4, 4)), (lambda torch, x: (x[..., 0] > 4, slice(1, 3)), (4, 2)),
    (lambda torch, x: (slice(None), torch.tensor([True, False, True])), (2, 4)),
    (lambda torch, x: torch.zeros(2, 3, 4, dtype=torch.bool), ()),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["number", "tensor", "other dtype"])
@pytest.mark.parametrize(("key", "shape"), KEYS, ids=range(len(KEYS)))
@compared
def test_writing_by_index(torch: Any, key: Callable[[Any, Any], Any], shape: tuple[int, ...], kind: str) -> Any:
    x = block(torch)
    made = torch.arange(100.0, 100.0 + np.prod(shape, dtype=int)).view(shape)
    x[key(torch, x)] = {"number": -1, "tensor": made, "other dtype": made.long()}[kind]
    return x, x._version


@pytest.mark.parametrize("through_view", [False, True], ids=["itself", "a view"])
@pytest.mark.parametrize(("key", "shape"), KEYS, ids=range(len(KEYS)))
@compared(rtol=1e-4, atol=1e-5)
def test_gradients_of_writing_by_index(
    torch: Any, key: Callable[[Any, Any], Any], shape: tuple[int, ...], through_view: bool
) -> Any:
    x = (block(torch).sin()).requires_grad_()
    value = torch.arange(1.0, 1.0 + np.prod(shape, dtype=int)).view(shape).cos().requires_grad_()
    base = x * 3
    y = base.transpose(0, 2).transpose(2, 0) if through_view else base
    y[key(torch, block(torch))] = value
    first = y.detach().clone()
    y[key(torch, block(torch))] = 2 * value.detach() if value.numel() else 0.5
    y[0, 0] = y[1, 1] * 2
    ((y * y).sum() + base.sin().sum()).backward()
    return first, base, y, y._version, x.grad, value.grad


def test_a_leaf_that_requires_grad_cannot_be_written_to() -> None:
    programs: list[Program] = []
    for key in (0, ..., (slice(None), 1)):

        def program(torch: Any, key: Any = key) -> Any:
            torch.ones(2, 3, requires_grad=True)[key] = 1

        programs.append(program)
    programs.append(lambda torch: torch.ones(2, requires_grad=True).__setitem__(index(torch, 0), 1.0))
    programs.append(lambda torch: torch.ones(2, requires_grad=True).zero_())
    programs.append(lambda torch: torch.ones(2, requires_grad=True).scatter_(0, index(torch, 0), 1.0))
    for each in programs:
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            each(tinytorch)
        same_as_pytorch(each)


@compared
def test_a_leaf_can_be_written_to_unrecorded(torch: Any) -> Any:
    x = torch.ones(2, 3, requires_grad=True)
    with torch.no_grad():
        x[0] = 5
        x[:, 1] = torch.zeros(2)
        x[index(torch, 1)] = 7.0
        x.fill_diagonal_(-1)
    return x, x._version, x.is_leaf


PROGRAMS = {
    **programs("""
    # Warnings.
    x[index(1, 0, dtype=torch.uint8)]; x[[[0, 1], [0, 1]]]; x[[0, slice(None)]]; x[[index(0), index(1)]]
    torch.where(index(1, 0, dtype=torch.uint8), 1, 0); torch.zeros(3).scatter(0, index(0), torch.ones(1), reduce="add")
    # Keys of other kinds.
    x[np.int64(1)]; x[np.array(1)]; x[np.array([0, 1])]; x[np.array([True, False])]; x[np.array([0.5])]; x[[0.5]]
    x[torch.tensor(0) : torch.tensor(1)]; x[(0, 1),]; x[0, (0, 1)]; x[index(0)[0]]; [row.sum() for row in x]
    # Views and copies.
    # Dtypes and numbers written.
    torch.zeros(3, dtype=torch.long).masked_fill(torch.tensor([True, False, True]), 1.5)
    torch.zeros(3, dtype=torch.uint8).fill_(-5); torch.zeros(3, dtype=torch.long).fill_(1.7)
    torch.zeros(3, dtype=torch.bool).fill_(5)
    [torch.zeros(3).fill_(2**64 - 1), torch.zeros(2, 2).bfloat16().fill_diagonal_(2**63).float()]
    torch.zeros(3).fill_(2**64); torch.zeros(3, dtype=torch.int8).fill_(2**64)
    torch.zeros(3).masked_fill(torch.tensor([True, False, True]), -(2**63) - 1)
    torch.zeros(3).index_fill(0, index(0), 2**64); torch.zeros(3, dtype=torch.uint8).__setitem__(0, 2**63)
    torch.zeros(3).half().__setitem__(slice(None), -(2**63) - 1); torch.zeros(3, dtype=torch.bool).fill_("a")
    torch.zeros(3).fill_(None); torch.zeros(2, 2).half().fill_diagonal_(70000)
    torch.zeros(2, 2).copy_(torch.tensor([1, 2])); torch.zeros(2, dtype=torch.long).copy_(torch.tensor([1.7, -1.7]))
    torch.zeros(2).copy_(5); torch.zeros(3).scatter(0, index(0), torch.tensor(5.0)); torch.zeros(3, 3).fill_diagonal_(2)
    torch.zeros(7, 3).fill_diagonal_(2, wrap=True); torch.zeros(7, 3).fill_diagonal_(2)
    torch.zeros(2, 2, 2).fill_diagonal_(2)
    # Scattering what is larger than the index; reductions.
    torch.zeros(2, 3).scatter(1, torch.tensor([[0], [2]]), torch.ones(2, 3))
    torch.ones(2, 3).scatter(1, torch.tensor([[0, 0], [2, 1]]), 3.0, reduce="add")
    torch.ones(2, 3).scatter_(1, torch.tensor([[0, 0], [2, 1]]), 3.0, reduce="multiply")
    # Searching.
    torch.searchsorted(torch.tensor([[1, 3, 5], [2, 4, 6]]), torch.tensor([[3, 6], [0, 4]]))
    torch.searchsorted(torch.tensor([5, 1, 3]), torch.tensor([2]), sorter=torch.tensor([1, 2, 0]))
    torch.searchsorted(torch.arange(3.0), torch.tensor([1]))
    # Names.
    # repr and parts of named results.
    [repr(torch.tensor([3, 1, 2]).sort()), torch.tensor([3, 1, 2]).topk(1).indices]
""", {"np": np}, x=block, index=lambda torch: partial(index, torch)),
    "0": lambda torch: [
        x[key]._is_view() for x in [block(torch)]
        for key in (0, slice(None), ..., None, (), (0, 1), True, index(torch, 0), [0], x > 3, torch.tensor(1))
    ],
    "1": lambda torch: [
        x[key].is_contiguous() for x in [block(torch)]
        for key in ((slice(None), index(torch, 0, 1)), (..., index(torch, 0, 1)), (0, slice(None), index(torch, 1)),
                    (slice(None), x[0, :, 0] > 2), x > 3)
    ],
    "2": assigned(plain(0), lambda torch: 2**63), "3": assigned(plain(0), lambda torch: 2**63 - 1),
    "4": assigned(lambda torch, x: x > 3, lambda torch: 2**63),
    "5": lambda torch: [
        torch.searchsorted(torch.tensor([1, 3, 5, 7]), values, **options)
        for values in (torch.tensor([[0, 1, 2], [5, 7, 9]]), 4)
        for options in ({}, {"right": True}, {"side": "right"}, {"out_int32": True})
    ],
    "6": lambda torch: [
        torch.bucketize(values, torch.tensor([1.0, 3.0]), **options)
        for values in (torch.tensor([[0.5, 1.0], [3.0, 9.0]]), 2.0)
        for options in ({}, {"right": True}, {"out_int32": True})
    ],
    "7": lambda torch: [
        each.grad_fn.name() for x in [torch.ones(2, 3, 4, requires_grad=True)] for i in [index(torch, 0, 1)]
        for each in (
            x[0], x[:], x[...], x[:, 1], x[None], x[()], x[i], x[x > 0], x[True], x[0, i], x.index_select(0, i),
            x.gather(0, i[:1].view(1, 1, 1)), x.scatter(0, i[:1].view(1, 1, 1), x),
            x.scatter(0, i[:1].view(1, 1, 1), 1.0),
            x.scatter_add(0, i[:1].view(1, 1, 1), x), x.index_add(0, i, x), x.index_copy(0, i, x),
            x.index_fill(0, i, 1.0), x.index_fill(0, i, torch.tensor(1.0)), x.index_put((i,), torch.tensor(1.0)),
            x.masked_fill(x > 0, 1.0), x.masked_fill(x > 0, torch.tensor(1.0)), x.masked_select(x > 0),
            x.masked_scatter(x > 0, x), torch.where(x > 0, x, 1.0), x.take(i), x.take_along_dim(i), x.topk(1)[0],
            x.sort()[0], x.sort(stable=True)[0], x.clone().fill_(1.0), x.clone().fill_(x[0, 0, 0]), x.clone().zero_(),
            x.clone().copy_(x), torch.zeros(2, 3, 4).copy_(x), x.put(i, x[0, 0, :2]),
            x.scatter(0, i[:1].view(1, 1, 1), 2.0, reduce="multiply"),
        )
    ],
}  # fmt: skip


test_behaves_as_pytorch = of_each(PROGRAMS)

WRITES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "copy_": lambda torch, y, z: y.copy_(z[0]), "copy_ of itself": lambda torch, y, z: y.copy_(y.flip(0)),
    "fill_": lambda torch, y, z: y.fill_(2.0), "fill_ a tensor": lambda torch, y, z: y.fill_(z[0, 0, 0]),
    "zero_": lambda torch, y, z: y.zero_(), "index_put_": lambda torch, y, z: y.index_put_((index(torch, 1, 0),), z),
    "index_put_ accumulate": lambda torch, y, z: y.index_put_((index(torch, 1, 1),), z, accumulate=True),
    "index_add_": lambda torch, y, z: y.index_add_(0, index(torch, 1, 1), z, alpha=3),
    "index_add_ of itself": lambda torch, y, z: y.index_add_(0, index(torch, 1, 0), y.clone()),
    "index_copy_": lambda torch, y, z: y.index_copy_(1, index(torch, 2), z[:, :1]),
    "index_fill_": lambda torch, y, z: y.index_fill_(1, index(torch, 2, 0), 1.5),
    "index_fill_ a tensor": lambda torch, y, z: y.index_fill_(1, index(torch, 2, 0), z[0, 0, 0]),
    "scatter_": lambda torch, y, z: y.scatter_(2, torch.tensor([[[3, 0]], [[1, 2]]]), z[:, :1, :2]),
    "scatter_ a number": lambda torch, y, z: y.scatter_(2, torch.tensor([[[3, 0]], [[1, 1]]]), 1.5),
    "scatter_add_": lambda torch, y, z: y.scatter_add_(2, torch.tensor([[[3, 3]], [[1, 1]]]), z[:, :1, :2]),
    "scatter_reduce_": lambda torch, y, z: y.scatter_reduce_(1, torch.zeros(2, 3, 4, dtype=torch.long), z, "amax"),
    "masked_fill_": lambda torch, y, z: y.masked_fill_(block(torch) % 2 == 0, 1.5),
    "masked_fill_ a tensor": lambda torch, y, z: y.masked_fill_(block(torch)[0, 0] > 1, z[0, 0, 0]),
    "masked_scatter_": lambda torch, y, z: y.masked_scatter_(block(torch) % 2 == 0, z),
    "put_": lambda torch, y, z: y.put_(index(torch, 3, 20), z[0, 0, :2]),
    "put_ accumulate": lambda torch, y, z: y.put_(index(torch, 3, 3), z[0, 0, :2], accumulate=True),
}  # fmt: skip


@pytest.mark.parametrize("through_view", [False, True], ids=["itself", "a view"])
@pytest.mark.parametrize("name", WRITES)
def test_writing_in_place(name: str, through_view: bool) -> None:
    def recorded(torch: Any) -> Any:
        x = block(torch).sin().requires_grad_()
        z = block(torch).cos().requires_grad_()
        base = x * 3
        y = base[:, [0, 1, 2]] if not through_view else base.transpose(0, 1).transpose(1, 0)
        result = WRITES[name](torch, y, z * 1)
        ((y * y).sum() + base.sum()).backward()
        return result is y, y, base, y._version, x.grad, z.grad

    def unrecorded(torch: Any) -> Any:
        y = block(torch).sin()
        y = y.transpose(0, 2).clone().transpose(0, 2) if through_view else y
        WRITES[name](torch, y, block(torch).cos())
        return y, y._version

    same_as_pytorch(recorded, rtol=1e-4, atol=1e-5)
    same_as_pytorch(unrecorded)


def test_what_is_saved_is_watched() -> None:
    def index_written(torch: Any) -> Any:
        x = torch.ones(3, requires_grad=True)
        i = index(torch, 0, 2)
        y = x.index_select(0, i)
        i.add_(-1)
        y.sum().backward()

    def mask_written(torch: Any) -> Any:
        x = torch.ones(3, requires_grad=True)
        mask = torch.tensor([True, False, True])
        y = x.masked_fill(mask, 0)
        mask.logical_not_()
        y.sum().backward()

    for program in (index_written, mask_written):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            program(tinytorch)
        same_as_pytorch(program)


def test_a_written_index_of_getitem_does_not_change_the_gradient() -> None:
    x = tinytorch.ones(3, requires_grad=True)
    i = tinytorch.tensor([0, 2])
    y = x[i]
    i.fill_(1)
    y.sum().backward()  # (PyTorch raises an error here; the index was copied instead)
    assert x.grad is not None and x.grad.tolist() == [1, 0, 1]


def test_gradients_where_the_source_is_larger_than_the_index() -> None:
    """PyTorch leaves these out ("returned an invalid gradient")."""
    x = tinytorch.randn(2, 3, dtype=tinytorch.float64, requires_grad=True)
    src = tinytorch.randn(2, 3, dtype=tinytorch.float64, requires_grad=True)
    where = tinytorch.tensor([[0, 2], [1, 0]])
    for function in (
        lambda x, src: tinytorch.scatter(x, 1, where, src), lambda x, src: tinytorch.scatter_add(x, 1, where, src),
        *(lambda x, src, how=how: tinytorch.scatter_reduce(x, 1, where, src, how)
          for how in ("sum", "mean", "prod", "amax", "amin")),
    ):  # fmt: skip
        assert tinytorch.autograd.gradcheck(function, (x, src))


@pytest.mark.parametrize("shape", [(65, 128), (7,), (5, 1, 3)])
def test_rows_named_often_add_up(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    numbers = rng.integers(-shape[0], shape[0], 300)
    weights = rng.standard_normal((300, *shape[1:]), dtype=np.float32)

    def program(torch: Any) -> Any:
        x = torch.zeros(shape, requires_grad=True)
        i = torch.tensor(numbers)
        (x[i] * torch.tensor(weights)).sum().backward()
        first = x.grad.clone()
        (x.index_select(0, i % shape[0]) * torch.tensor(weights)).sum().backward()
        return first, x.grad

    same_as_pytorch(program, rtol=1e-4, atol=1e-4)


def test_random_keys() -> None:
    """Keys of all kinds mixed, as PyTorch places their dimensions."""
    rng = np.random.default_rng(3)
    pieces: list[Callable[[Any, int], Any]] = [
        lambda torch, n: slice(None), lambda torch, n: slice(1, None), lambda torch, n: n - 1,
        lambda torch, n: torch.tensor([0, n - 1]), lambda torch, n: torch.tensor([[0], [-1]]),
        lambda torch, n: torch.tensor([True, *[False] * (n - 2), True]), lambda torch, n: [n - 1, 0],
        lambda torch, n: torch.tensor(0),
    ]  # fmt: skip
    for _ in range(150):
        chosen = rng.integers(0, len(pieces), rng.integers(1, 5))
        new = rng.random() < 0.3, rng.random() < 0.3
        value = float(rng.standard_normal())

        def program(torch: Any, chosen: Any = chosen, new: Any = new, value: float = value) -> Any:
            lengths = (3, 2, 4, 5)
            x = torch.arange(120.0).view(lengths).requires_grad_()
            key = [pieces[k](torch, n) for k, n in zip(chosen, lengths, strict=False)]
            if new[0]:
                key.insert(len(key) // 2, None)
            if new[1]:
                key.append(...)
            y = x[tuple(key)]
            (y * y).sum().backward()
            z = x.detach().clone()
            z[tuple(key)] = value
            return y, y.is_contiguous() or y._is_view(), x.grad, z

        same_as_pytorch(program)


@pytest.mark.parametrize("index", [[1, 0, 1], [[1], [0]], [], 1], ids=str)
@compared
def test_parts_keep_the_order_of_the_axes_in_memory(torch: Any, index: Any) -> Any:
    torch.manual_seed(0)
    picked = torch.tensor(index, dtype=torch.int64)
    pictures = torch.randn(3, 4, 5, 2).permute(0, 3, 1, 2)
    sources = [
        pictures, pictures[:, :, 1:], torch.randn(4, 5, 6).permute(2, 0, 1), torch.randn(4, 3).t(),
        torch.randn(4, 5, 6).permute(2, 1, 0), torch.randn(4, 5, 1).expand(4, 5, 3), torch.randn(6, 4)[::2],
    ]  # fmt: skip
    parts = [source[picked] for source in sources]
    return [(part, part.stride() if part.numel() else None) for part in parts], [
        torch.nn.functional.dropout(part) for part in parts
    ]


@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
@pytest.mark.parametrize("shape", [(1, 7), (9, 1), (40,), (5, 33), (2, 12, 70), (3, 300)], ids=str)
def test_topk_of_ties_and_nan(shape: tuple[int, ...], kind: str) -> None:
    """Rows are read once for a small k, sorted or partitioned otherwise: the same values, laid out in the same way."""
    numbers = np.random.default_rng(0).integers(-4, 5, shape).astype(kind)
    if kind != "int64":
        numbers.flat[0] = np.nan
    for dim, length in enumerate(shape):
        for k in sorted({0, 1, min(8, length), min(9, length), length}):
            for largest in (False, True):

                def program(torch: Any, dim: int = dim, k: int = k, largest: bool = largest) -> Any:
                    x = torch.from_numpy(numbers)
                    values, indices = x.topk(k, dim, largest)
                    return values, values.stride(), indices.stride(), torch.gather(x, dim, indices)

                same_as_pytorch(program)


@pytest.mark.parametrize("make", programs("""
    x.sort(1); x.topk(2, 1); [(x.gather(1, i), i) for i in [torch.tensor([[0], [1], [2]])]][0]
    [(x.index_select(1, i), i) for i in [torch.tensor([1, 2])]][0]
    [(x[None].masked_select(i), i) for i in [torch.tensor([True, False, False, False])]][0]
    [(torch.nn.functional.multilabel_margin_loss(x, i), i) for i in [torch.tensor([[0, 1, -1, 0]] * 3)]][0]
    [(torch.nn.functional.max_unpool2d(x[None], i, 2), i) for i in [torch.arange(12).reshape(1, 3, 4)]][0]
    torch.linalg.lu_factor(x); [(x.gather(0, i), i) for i in [torch.tensor([[0, 1, 2, 2]])]][0]
""", {}, "x").values())  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@compared
def test_backward_by_an_index_that_was_changed(torch: Any, dtype: str, make: Any) -> Any:
    x = (torch.arange(12, dtype=getattr(torch, dtype)) * 5).sin().reshape(3, 4).requires_grad_()
    out, index = make(torch, x)
    index.data.view(-1)[-1] = 99
    return torch.autograd.grad(out.sum(), x)
