"""Hooks on saved tensors, against PyTorch's."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import tinytorch
from tests.autograd.programs import Program, Programs, leaf, made, tried
from tests.same import same_as_pytorch

PROGRAMS = Programs()


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_as_pytorch(program: Program) -> None:
    same_as_pytorch(program)


def same(x: Any) -> Any:
    return x


def hooks(lib: Any, pack: Callable[[Any], Any] = same, unpack: Callable[[Any], Any] = same) -> Any:
    return lib.autograd.graph.saved_tensors_hooks(pack, unpack)


def between(pack: Callable[[Any, Any], Any], unpack: Callable[[Any, Any], Any]) -> Program:
    """Return a program that differentiates, also twice, what was packed and unpacked by these."""

    def program(lib):
        x, w = leaf(lib), leaf(lib, 3.0, 4.0)
        with hooks(lib, lambda t: pack(lib, t), lambda t: unpack(lib, t)):
            y = (x * x * w).exp().log().sum() + (x**3).sum()
        gs = lib.autograd.grad(y, [x, w], create_graph=True)
        return gs, lib.autograd.grad(gs[0].sum() + gs[1].sum(), [x, w])

    return program


PROGRAMS.add(
    "between",
    lambda rules: between(*rules),
    the_same=(lambda lib, t: t, lambda lib, t: t),
    copies=(lambda lib, t: t.detach().clone(), lambda lib, t: t.requires_grad_(False)),
    pairs=(lambda lib, t: (t, 2), lambda lib, item: item[0] * item[1]),
    scaled=(lambda lib, t: t.detach() * 2, lambda lib, t: t / 2),
    arrays=(lambda lib, t: t.numpy(force=True).copy(), lambda lib, array: lib.from_numpy(array)),
    lists=(lambda lib, t: t.tolist(), lambda lib, items: lib.tensor(items)),
    a_number=(lambda lib, t: 5, lambda lib, item: item),
    another_shape=(lambda lib, t: t, lambda lib, t: t[:1]),
    pack_that_writes=(lambda lib, t: t.mul_(2), lambda lib, t: t),
    pack_that_writes_to_memory=(lambda lib, t: t.detach().add_(1), lambda lib, t: t),
    pack_that_raises=(lambda lib, t: 1 / 0, lambda lib, t: t),
)


@PROGRAMS
class Hooks:
    def what_is_packed(lib):
        log = []

        def pack(x):
            log.append((x.tolist(), x.requires_grad, str(x.dtype), lib.is_grad_enabled()))
            return x

        def unpack(x):
            log.append(("unpack", tuple(x.shape), lib.is_grad_enabled()))
            return x

        a, b = lib.ones(2, 3, requires_grad=True), lib.ones(3, requires_grad=True)
        with hooks(lib, pack, unpack):
            y = (a * b).exp().sum()
            z = (a.tanh() * 2.0).sum(1)
            for op in (
                lambda: a @ lib.ones(3, 2), lambda: a * a, lambda: a + a, a.max, lambda: (a * 2).relu(), lambda: a / a
            ):  # fmt: skip
                log.append("next")
                op()
        with hooks(lib, lambda t: log.append(t.grad_fn and t.grad_fn.name()) or t):
            (a * b) * a
        y.backward()
        z.sum().backward()
        return log, a.grad, b.grad

    def each_access_unpacks(lib):
        calls = []
        x = leaf(lib)
        with hooks(lib, lambda t: (calls.append("pack"), t.detach())[1], lambda t: (calls.append("unpack"), t)[1]):
            y = x.pow(2)
        y.sum().backward(retain_graph=True)
        kept = y.grad_fn._saved_self
        y.sum().backward()
        return calls, kept, x.grad, tried(lambda: y.sum().backward())

    def to_disk(lib):
        with tempfile.TemporaryDirectory() as folder:
            names = []

            def pack(tensor):
                names.append(os.path.join(folder, f"{len(names)}.pt"))
                lib.save(tensor, names[-1])
                return names[-1]

            x = leaf(lib)
            with hooks(lib, pack, lib.load):
                y = x.pow(2) * x
            y.sum().backward()
            return x.grad, len(names)

    def innermost_counts(lib):
        a = lib.ones(3, requires_grad=True)
        seen = []

        def note(name):
            return lambda x: seen.append(name) or x

        with hooks(lib, note("outer")):
            with hooks(lib, note("inner")):
                y = a * a
            z = a.exp()
            thread = threading.Thread(target=lambda: a.exp())
            thread.start()
            thread.join()
        (y + z + a.exp()).sum().backward()
        return seen, a.grad

    def a_function_of_ones_own(lib):
        log = []

        def forward(ctx, x):
            out = x**3
            ctx.save_for_backward(x, out)
            return out

        def backward(ctx, g):
            x, out = ctx.saved_tensors
            return 3 * g * out / x

        a = leaf(lib, 2.0, 3.0)
        with hooks(lib, lambda x: log.append(tuple(x.shape)) or x, lambda x: log.append("unpack") or x):
            y = made(lib, forward=forward, backward=backward).apply(a).sum()
        (g,) = lib.autograd.grad(y, a, create_graph=True)
        return log, g, lib.autograd.grad(g.sum(), a)

    def inside_backward(lib):
        seen = []
        x = leaf(lib)
        y = (x * x * x).sum()
        with hooks(lib, lambda t: (seen.append("pack"), t.detach())[1]):
            (g,) = lib.autograd.grad(y, x, create_graph=True)
        return lib.autograd.grad(g.sum(), x), len(seen) > 0

    def modified_is_no_error_with_hooks(lib):
        a = leaf(lib)
        with hooks(lib, lambda x: x.clone()):
            b = a * 2
            y = b.sin()
            b.zero_()
        y.sum().backward()
        return a.grad

    def on_cpu(lib):
        a = leaf(lib)
        with lib.autograd.graph.save_on_cpu(pin_memory=False):
            y = (a * a).exp()
        y.sum().backward()
        return a.grad

    def nothing_recorded(lib):
        with lib.no_grad(), hooks(lib, lambda x: 1 / 0):
            return leaf(lib) * leaf(lib)

    def disabled(lib):
        disable = lib.autograd.graph.disable_saved_tensors_hooks

        def enter(*contexts):
            for each in contexts:
                with each:
                    if each is not contexts[-1]:
                        return enter(*contexts[1:])
            return "fine"

        return tried(
            lambda: enter(disable("not here"), hooks(lib)), lambda: enter(hooks(lib), disable("not here")),
            lambda: enter(disable("not here"), lib.autograd.graph.save_on_cpu()),
            lambda: (enter(disable("not here")), enter(hooks(lib))),
        )  # fmt: skip

    def not_callable(lib):
        with pytest.raises(TypeError), hooks(lib, 3):
            pass

    def what_a_saved_tensor_holds(lib):
        x = lib.tensor(2.0, requires_grad=True)
        with hooks(lib):
            y = x**2
        z = y.exp()
        packed, result = y.grad_fn._raw_saved_self, z.grad_fn._raw_saved_result
        of_x = packed.data is x, packed.unpack_hook is same
        return of_x, result.data is z, result.unpack_hook, tried(lambda: result.register_hooks(same))


@PROGRAMS
class MutationAllowed:
    def all_is_as_it_was(lib):
        x = leaf(lib, 0.5, 1.0)
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            a = x.clone()
            y, z = a.sin(), a.exp()
            a[0] = 7.0
            w = z * z
            z.mul_(3)
            a.view(-1).add_(1)
            (y.sum() + z.sum() + w.sum() + a.sum()).backward()
        return x.grad

    def backward_outside(lib):
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            y = leaf(lib) ** 2
        y.sum().backward()

    def cleared(lib):
        with lib.autograd.graph.allow_mutation_on_saved_tensors() as context:
            y = leaf(lib) ** 2
            context.clear()
            y.sum().backward()

    def counted_and_forgotten(lib):
        counts = []
        with lib.autograd.graph.allow_mutation_on_saved_tensors() as context:
            x = leaf(lib)
            y = x * 1
            out = y.sin()
            for act in (lambda: None, lambda: y.mul_(3), lambda: out.sum().backward()):
                act()
                counts.append((len(context.original), len(context.cloned)))
            context.clear()
        return counts, x.grad

    def writes_past_the_ops(lib):
        found = []
        for write in (
            lambda b: lib.sin(lib.full((1,), 2.0), out=b), lambda b: b.__setitem__(0, 5.0), lambda b: b.fill_(5.0),
            lambda b: b.normal_(), lambda b: b.zero_(),
        ):  # fmt: skip
            with lib.autograd.graph.allow_mutation_on_saved_tensors():
                a, b = lib.ones(1, requires_grad=True), lib.ones(1)
                y = a * b
                write(b)
                y.backward()
                found.append(a.grad)
        return found


def test_what_was_packed_dies_with_the_graph() -> None:
    gc.disable()
    try:
        kept = []

        def pack(x: Any) -> Any:
            kept.append(weakref.ref(x))
            return x

        a = tinytorch.ones(3, requires_grad=True)
        with tinytorch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            y = (a * 2).exp().tanh().sum()
        assert any(each() is not None for each in kept)
        del y
        assert all(each() is None or each() is a for each in kept)
    finally:
        gc.enable()


def test_saved_tensors_are_made_by_nodes_alone() -> None:
    same_as_pytorch(lambda lib: lib._C._autograd.SavedTensor())
