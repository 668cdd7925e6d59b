"""What samples cannot say of shapes: errors and warnings, views and their bases, strides, names of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import compared, of_each, programs, same_as_pytorch

Program = Callable[[Any], Any]


def block(torch: Any, **options: Any) -> Any:
    """Return 0 … 23 as (2, 3, 4)."""
    return torch.arange(24.0, **options).view(2, 3, 4)


#: Each must raise the same class with the same words as PyTorch.
ERRORS = programs("""
    x.view(); x.view(5, 5); x.view(-2, 12); x.view(-1, -1); x.view(-1, 5); x.view(2.0, 12); x.view("a")
    torch.zeros(0).view(-1, 0); x.transpose(0, 1).view(24); torch.arange(3.0).view(torch.float64)
    torch.tensor(1.0).view(torch.float64); x.transpose(0, 2).view(torch.float64); x.view_as(5); x.reshape(5, 5)
    x.transpose(0, 1).reshape(5, 5); x.reshape(); torch.reshape(5, (1,)); x.flatten(1, 0); x.flatten(0, 4)
    x.unflatten(2, (2, 3)); x.unflatten(2, ()); x.unflatten(2, (-1, -1)); torch.tensor(1.0).unflatten(0, (1, 1))
    x.squeeze(3); x.squeeze((0, 0)); torch.tensor(1.0).squeeze(1); x.unsqueeze(4); x.unsqueeze(); x.transpose(0, 3)
    x.transpose(0, 1.0); torch.transpose(5, 0, 1); x.t(); torch.arange(3).mT; torch.arange(3).mH; x.H; x.imag
    x.permute(0, 1); x.permute(0, 0, 1); x.permute(0, 1, 3); x.permute(); x.movedim(0, 3); x.movedim((0, 1), 0)
    x.movedim((0, 1), (0,)); x.movedim((0, 0), (0, 1)); x.movedim((0, 1), (0, 0)); x.narrow(3, 0, 1); x.narrow(0, 0, 5)
    x.narrow(0, -5, 1); x.narrow(0, 0, -1); torch.tensor(1.0).narrow(0, 0, 1); x.select(1, 5); x.select(5, 0)
    torch.tensor(1.0).select(0, 0); x.expand(2, 3); x.expand(2, 3, 5); x.expand(-1, 2, 3, 4); x.expand(2, 3, -2)
    x.expand(); torch.broadcast_to(torch.arange(3), (2, 2)); x.diagonal(0, 1, 1); x.diagonal(0, 1, 4); x.unfold(0, 3, 1)
    x.unfold(0, 1, 0); x.unfold(0, -1, 1); x.unfold(4, 1, 1); x.as_strided((2, 2), (100, 1)); x.as_strided((2, 2), (1,))
    x.as_strided((2, 2), (-1, 1)); x.split(0); x.split(-1); x.split(1.5); x.split([1, 2]); x.split([3, -1])
    x.split(2, 5); torch.tensor(1.0).split(1); x.chunk(0); torch.tensor(1.0).chunk(1); x.tensor_split(0)
    torch.tensor(1.0).tensor_split(2); x.hsplit(2); torch.arange(3).vsplit(1); torch.tensor(1.0).unbind(); x.unbind(4)
    torch.cat([]); torch.cat([x, torch.zeros(3, 4)]); torch.cat([torch.zeros(3, 3), torch.zeros(2, 4)], 0)
    torch.cat([torch.zeros(3, 3), torch.zeros(2, 4)], 1); torch.cat([torch.tensor(1.0), torch.tensor(1.0)])
    torch.cat([x, x], 3); torch.cat(x); torch.cat([torch.zeros(1), 5]); torch.stack([])
    torch.stack([torch.zeros(3), torch.zeros(4)]); torch.stack([torch.zeros(3)], 3); torch.stack(torch.zeros(3, 3))
    torch.hstack([torch.zeros(3), torch.zeros(3, 3)]); torch.block_diag(x); x.repeat(2); x.repeat(-1, 1, 1); x.repeat()
    torch.arange(3).repeat_interleave(-1); torch.arange(3).repeat_interleave(torch.tensor([1, 2]))
    torch.arange(3).repeat_interleave(torch.tensor([1.0, 2, 0]))
    torch.arange(3).repeat_interleave(torch.tensor([1, -2, 0]))
    torch.arange(3).repeat_interleave(torch.tensor([1, 2, 0]), output_size=4); x.flip(0, 0); x.flip(3)
    torch.arange(3).fliplr(); torch.tensor(1).flipud(); x.roll(1, (0, 1)); x.roll((1, 2)); x.roll(())
    torch.tensor(1.0).roll(1, 0); torch.arange(3).rot90(); x.rot90(1, (0, 0)); x.rot90(1, (0,)); torch.arange(3).tril()
    torch.arange(3).triu(); x.diag(); torch.diag_embed(torch.zeros(2, 2), 0, 0, 0)
    torch.meshgrid(torch.zeros(2, 2), indexing="ij"); torch.meshgrid(torch.zeros(2), indexing="zz")
    torch.meshgrid([], indexing="ij"); torch.meshgrid(torch.zeros(2), torch.arange(2), indexing="ij")
    torch.broadcast_tensors(torch.zeros(3), torch.zeros(2)); torch.broadcast_shapes((2, 3), (2,)); x.size(3)
    x.stride(3); torch.tensor(1.0).size(0); torch.zeros(2, 3).clone(memory_format=torch.channels_last); x.type_as(5)
    x.cuda(); x.to("nowhere")
""", {}, x=block)  # fmt: skip


@pytest.mark.parametrize("program", ERRORS.values(), ids=ERRORS)
def test_errors_are_pytorchs(program: Program) -> None:
    with pytest.raises(Exception):  # noqa: B017  (which one, the next line says)
        program(tinytorch)
    same_as_pytorch(program)


PROGRAMS = {
    **programs("""
    # Warnings.
    x.T; torch.tensor(1.0).T; torch.tensor(1.0).H; torch.meshgrid(torch.arange(2), torch.arange(3))
    # Properties.
    [x.mT, x.mH, x[0].T, x[0].H]
    # Other dtypes over the same bytes.
    x.view(torch.int32); x.view(dtype=torch.float64).shape; torch.arange(4, dtype=torch.uint8).view(torch.int16)
    x.view(size=(6, 4))
    # What is returned itself.
    # Sizes and strides.
    # Conversions.
    torch.tensor([1.7, -1.7, 300.0]).to(torch.uint8); torch.tensor([1.7, -1.7, 0.0]).to(torch.bool)
    torch.broadcast_shapes((2, 1), (3,), 1); x.narrow(0, torch.tensor(1), 1); x.tensor_split(torch.tensor([1, 2]), 2)
    x[1].as_strided((2, 2), (1, 1)); x[1].as_strided((2, 2), (1, 1), 3)
""", {}, x=block),
    "0": lambda torch: [f(x) is x for x in [block(torch)] for f in (
        lambda t: t.contiguous(), lambda t: t.float(), lambda t: t.to(torch.float32), lambda t: t.cpu(),
        lambda t: t.to("cpu"), lambda t: t.flatten(1, 1), lambda t: t.clone(), lambda t: t.to("cpu", copy=True),
        lambda t: t.reshape(2, 3, 4), lambda t: t.view(2, 3, 4), lambda t: t.double(), lambda t: t.type_as(t),
        lambda t: t.to(torch.zeros(1)), lambda t: t.real, lambda t: torch.atleast_2d(t),
    )],
    "1": lambda torch: [(t.size(), t.size(1), t.stride(), t.stride(-1), t.storage_offset(), t.is_contiguous(), t.dim(),
                    t.numel(), t.nelement(), t.element_size(), t.ndimension(), t.is_floating_point(), t.is_signed())
                   for t in (block(torch), block(torch)[1], block(torch)[:, 1:, ::2], block(torch).transpose(0, 2),
                             block(torch).expand(2, 2, 3, 4), block(torch).bool(), block(torch)[:, None])],
    "2": lambda torch: [f(torch.arange(24.0).view(2, 3, 4)).stride() for f in (
        lambda t: t.transpose(0, 1).clone(), lambda t: t.transpose(0, 1).contiguous(), lambda t: t[:, :, ::2].clone(),
        lambda t: t.transpose(0, 2).double(), lambda t: t.expand(5, 2, 3, 4).clone(), lambda t: t.rot90(),
        lambda t: t.transpose(0, 1).reshape(6, 4), lambda t: t.diagonal(), lambda t: t.unfold(2, 2, 1),
        lambda t: t.permute(2, 0, 1), lambda t: t.transpose(0, 1).flip(0), lambda t: t.squeeze(), lambda t: t.T,
    )],
    "3": lambda torch: [
        (t.stride(), t.is_contiguous(), t.is_contiguous(memory_format=torch.channels_last))
        for x in [torch.zeros(2, 3, 4, 5)]
        for t in (x, x.contiguous(memory_format=torch.channels_last), x.clone(memory_format=torch.channels_last),
                  x.to(memory_format=torch.channels_last), x.to(torch.float64, memory_format=torch.channels_last),
                  x.contiguous(memory_format=torch.channels_last).contiguous())
    ],
    "4": lambda torch: [block(torch).to(*a, **k).dtype for a, k in (
        ((torch.int8,), {}), ((float,), {}), ((int,), {}), ((bool,), {}), (("cpu", torch.half), {}), ((), {}),
        ((None,), {}), ((), {"dtype": torch.int32, "device": "cpu"}), ((torch.zeros(1, dtype=torch.int16),), {}),
        ((torch.device("cpu"),), {"copy": True}), ((torch.int64, True, True), {}),
    )],
}  # fmt: skip


test_behaves_as_pytorch = of_each(PROGRAMS)


# Views share memory with their base, and writes to either have the right gradients.

VIEWS = programs("""
    t.view(4, 6); t.reshape(6, 4); t.narrow(1, 1, 2); t.select(2, -1); t.permute(2, 0, 1); t.transpose(0, 2); t[1].t()
    t[0].T; t.mT; t.movedim(0, 2); t[:1].squeeze(); t[:, :1].squeeze(1); t[:1, :1].squeeze((0, 1)); t.unsqueeze(1)
    t.flatten(1); t.unflatten(2, (2, 2)); t.diagonal(0, 1, 2); t.diagonal(1, 0, 2); t.unfold(2, 2, 2)
    t.as_strided((2, 2), (12, 2), 1); t.tensor_split(2, 2)[1]; t[:, 1:, ::2]; t[0, 1, 2]; t[None, ..., 1]; t[...]
    t[1:].transpose(1, 2)[0, 1:].unsqueeze(0); t[:, :, None].expand(2, 3, 1, 4); t.ravel(); t.swapaxes(0, 1)
    torch.atleast_3d(t[0])
""", {}, "t")  # fmt: skip


def written_view(make: Callable[[Any, Any], Any]) -> Program:
    """Return a program that writes to a view of a non-leaf, then to the base, and looks at everything."""

    def program(torch: Any) -> Any:
        x = (torch.arange(24.0).view(2, 3, 4) / 7).requires_grad_()
        base = x * 2
        view = make(torch, base)
        shared = view._base is base, view._is_view()
        view.mul_(3)
        base.mul_(base.detach().sin())
        view.add_(view)
        versions = base._version, view._version
        ((base * base).sum() + view.sin().sum()).backward()
        return shared, versions, base, view, x.grad

    return program


@pytest.mark.parametrize("name", VIEWS)
def test_writes_to_a_view_and_its_base(name: str) -> None:
    same_as_pytorch(written_view(VIEWS[name]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_a_leaf_cannot_be_written_to(name: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.ones(2, 3, 4, requires_grad=True)
        VIEWS[name](torch, x).add_(1)

    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        program(tinytorch)
    same_as_pytorch(program)


SEVERAL: list[Callable[[Any], Any]] = [
    lambda t: t.split(1), lambda t: t.split([1, 1]), lambda t: t.chunk(2), lambda t: t.unbind(), lambda t: tuple(t),
]  # fmt: skip


@pytest.mark.parametrize("make", SEVERAL, ids=range(len(SEVERAL)))
def test_several_views_cannot_be_written_to_where_it_is_recorded(make: Callable[[Any], Any]) -> None:
    def recorded(torch: Any) -> Any:
        x = torch.ones(2, 3, requires_grad=True) * 1
        make(x)[0].mul_(2)

    def unrecorded(torch: Any) -> Any:
        x = torch.ones(2, 3)
        parts = make(x)
        parts[0].mul_(2)
        return x, parts, x._version, parts[1]._version

    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        recorded(tinytorch)
    same_as_pytorch(recorded)
    same_as_pytorch(unrecorded)


@compared
def test_gradients_of_some_of_several_views(torch: Any) -> Any:
    x = torch.arange(6.0).view(2, 3).requires_grad_()
    a, _, c = x.unbind(1)
    d, _ = x.split([2, 1], 1)
    (a * c).sum().backward()
    first = x.grad.clone()
    (d * d).sum().backward()
    names = [part.grad_fn.name() for part in (a, d)] + [c.output_nr]
    return first, x.grad, names


def test_an_expanded_tensor_cannot_be_written_to_but_its_parts_can() -> None:
    def whole(torch: Any) -> Any:
        torch.zeros(3).expand(2, 3).add_(1)

    def part(torch: Any) -> Any:
        base = torch.zeros(3)
        base.expand(2, 3)[1].add_(1)
        return base

    same_as_pytorch(whole)
    same_as_pytorch(part)


@compared
def test_writing_to_what_reshape_copied_leaves_the_source_alone(torch: Any) -> Any:
    x = torch.zeros(2, 3)
    x.t().reshape(6).add_(1)
    x.t().flatten().add_(1)
    x.t().contiguous().add_(1)
    y = x.reshape(6).add_(5)
    return x, y, x._version, x.t().reshape(6)._is_view(), y._is_view()


@compared
def test_views_of_other_types_share_memory_and_version(torch: Any) -> Any:
    x = torch.zeros(2, 3)
    y = x.view(torch.int32)
    y[0, 0] = 1065353216
    return x, x._version, y._version


@compared
def test_names_of_nodes(torch: Any) -> Any:
    x = torch.zeros(2, 3, 4, requires_grad=True)
    m, v = x[0, :, :3], x[0, 0]
    made = [
        x.view(6, 4), x.narrow(1, 0, 2), x.select(1, 0), x.expand(2, 2, 3, 4), x.permute(2, 0, 1), x.mT, m.t(), m.T,
        x.squeeze(), x.squeeze(0), x.squeeze((0, 1)), x.unsqueeze(0), x.unflatten(2, (2, 2)), m.diagonal(),
        x.unfold(2, 2, 1), x.split(1)[0], x.split([1, 1])[0], x.chunk(2)[0], x.tensor_split(2)[0], x.unbind()[0],
        x.as_strided((2, 2), (1, 1)), x.reshape(6, 4), x.transpose(0, 1).reshape(6, 4), x.ravel(), x.mT.ravel(),
        x.mT.contiguous(), x.clone(), torch.cat([x, x]), torch.stack([x, x]), torch.vstack([v, v]),
        torch.column_stack([v, v]), x.repeat(1, 1, 2), x.repeat_interleave(2), x.flip(0), x.roll(1), x.rot90(),
        m.tril(), m.triu(), m.diag(), v.diag(), v.diagflat(), torch.meshgrid(v, v, indexing="ij")[0],
        torch.block_diag(m, m), x.double(), x.to("cpu", copy=True), torch.atleast_3d(v),
    ]  # fmt: skip
    return [each.grad_fn.name() for each in made], [
        [None if node is None else node.name() for node, _ in each.grad_fn.next_functions] for each in made
    ]


def test_a_view_keeps_nothing_but_shapes() -> None:
    x = tinytorch.ones(3, 4, requires_grad=True)
    y = x.transpose(0, 1)[1:].unsqueeze(0)
    y.sum().backward()
    y.sum().backward()  # nothing was freed, since no tensor was saved
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), [[0, 2, 2, 2]] * 3)


@compared
def test_what_another_type_needs_of_a_view(torch: Any) -> Any:
    x, found = torch.zeros(4, 4, 3), []
    for view in (
        lambda: x[:, :, 1:].view(torch.float64), lambda: x.view(torch.float64),
        lambda: torch.zeros(4, 7)[:, :2].view(torch.float64), lambda: torch.zeros(4, 6)[:, :2].view(torch.float64),
        lambda: torch.zeros(0, 5, 64).view(torch.float64),
        lambda: x[..., ::2].view(torch.int8), lambda: torch.tensor(1.0).view(torch.int8),
    ):  # fmt: skip
        try:
            found.append(view().shape)
        except RuntimeError as error:
            found.append(str(error))
    return found
