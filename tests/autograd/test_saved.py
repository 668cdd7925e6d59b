"""Hooks on saved tensors, against PyTorch's."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import tinytorch
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch


def programs() -> dict[str, Any]:
    def what_is_packed(lib: Any) -> Any:
        log: list[Any] = []

        def pack(x: Any) -> Any:
            log.append(("pack", tuple(x.shape), x.requires_grad, str(x.dtype), lib.is_grad_enabled()))
            return x

        def unpack(x: Any) -> Any:
            log.append(("unpack", tuple(x.shape), lib.is_grad_enabled()))
            return x

        a, b = lib.ones(2, 3, requires_grad=True), lib.ones(3, requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = (a * b).exp().sum()
            z = (a.tanh() * 2.0).sum(1)
        y.backward()
        z.sum().backward()
        return log, a.grad, b.grad

    def values_may_change(lib: Any) -> Any:
        a = lib.ones(3, requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda x: (x, 2), lambda item: item[0] * item[1]):
            y = a.sin() * a
        y.sum().backward()
        return a.grad

    def second_derivative(lib: Any) -> Any:
        a = lib.tensor([0.5, 0.7], requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            y = (a.exp() * a).sum()
            (g,) = lib.autograd.grad(y, a, create_graph=True)
        return lib.autograd.grad(g.sum(), a)

    def arrays(lib: Any) -> Any:
        a = lib.tensor([0.5, 0.7], requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda x: x.numpy(force=True).copy(), lib.from_numpy):
            y = (a.exp() * a).sum()
        return lib.autograd.grad(y, a)

    def innermost_counts(lib: Any) -> Any:
        a = lib.ones(3, requires_grad=True)
        seen = []
        hooks = lib.autograd.graph.saved_tensors_hooks
        with hooks(lambda x: seen.append("outer") or x, lambda x: x):
            with hooks(lambda x: seen.append("inner") or x, lambda x: x):
                y = a * a
            z = a.exp()
        (y + z).sum().backward()
        return seen, a.grad

    def a_function_of_ones_own(lib: Any) -> Any:
        log = []

        class Cube(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                out = x**3
                ctx.save_for_backward(x, out)
                return out

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                x, out = ctx.saved_tensors
                return 3 * g * out / x

        a = lib.tensor([2.0, 3.0], requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda x: log.append(tuple(x.shape)) or x, lambda x: x):
            y = Cube.apply(a).sum()
        (g,) = lib.autograd.grad(y, a, create_graph=True)
        return log, g, lib.autograd.grad(g.sum(), a)

    def modified_is_no_error_with_hooks(lib: Any) -> Any:
        a = lib.ones(3, requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
            b = a * 2
            y = b.sin()
            b.zero_()
        y.sum().backward()
        return a.grad

    def on_cpu(lib: Any) -> Any:
        a = lib.ones(3, requires_grad=True)
        with lib.autograd.graph.save_on_cpu(pin_memory=False):
            y = (a * a).exp()
        y.sum().backward()
        return a.grad

    def mutation_allowed(lib: Any) -> Any:
        x = lib.tensor([0.5, 1.0], requires_grad=True)
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            a = x.clone()
            y, z = a.sin(), a.exp()
            a[0] = 7.0
            w = z * z
            z.mul_(3)
            a.view(-1).add_(1)
            (y.sum() + z.sum() + w.sum() + a.sum()).backward()
        return x.grad

    def retained(lib: Any) -> Any:
        count = []
        a = lib.ones(3, requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: count.append(1) or x):
            y = a.exp().sum()
        y.backward(retain_graph=True)
        y.backward()
        return len(count), a.grad

    def twice_is_an_error(lib: Any) -> Any:
        a = lib.ones(3, requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            y = a.exp().sum()
        y.backward()
        y.backward()

    def no_tensor(lib: Any) -> Any:
        a = lib.ones(3, requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda x: 5, lambda x: x):
            y = a * a
        y.sum().backward()

    def pack_that_writes(lib: Any) -> Any:
        a = lib.ones(3, requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda x: x.mul_(2), lambda x: x):
            return a * lib.ones(3)

    def pack_that_raises(lib: Any) -> Any:
        a = lib.ones(3, requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda x: 1 / 0, lambda x: x):
            return a * a

    def nothing_recorded(lib: Any) -> Any:
        a = lib.ones(3, requires_grad=True)
        with lib.no_grad(), lib.autograd.graph.saved_tensors_hooks(lambda x: 1 / 0, lambda x: x):
            return a * a

    def disabled(lib: Any) -> Any:
        graph = lib.autograd.graph
        with graph.disable_saved_tensors_hooks("not here"), graph.saved_tensors_hooks(id, id):
            pass

    def disabled_too_late(lib: Any) -> Any:
        graph = lib.autograd.graph
        with graph.saved_tensors_hooks(id, id), graph.disable_saved_tensors_hooks("not here"):
            pass

    def enabled_again(lib: Any) -> Any:
        with lib.autograd.graph.disable_saved_tensors_hooks("not here"):
            pass
        with lib.autograd.graph.saved_tensors_hooks(id, id):
            return "fine"

    def not_callable(lib: Any) -> Any:
        with pytest.raises(TypeError), lib.autograd.graph.saved_tensors_hooks(3, id):
            pass

    def backward_outside(lib: Any) -> Any:
        a = lib.ones(3, requires_grad=True)
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            y = a * a
        y.sum().backward()

    def cleared(lib: Any) -> Any:
        a = lib.ones(3, requires_grad=True)
        with lib.autograd.graph.allow_mutation_on_saved_tensors() as context:
            y = a * a
            context.clear()
            y.sum().backward()

    return {name: value for name, value in locals().items() if callable(value)}


@needs_oracle
@pytest.mark.parametrize("name", programs())
def test_as_pytorch(name: str) -> None:
    same_as_pytorch(programs()[name])


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


@needs_oracle
def test_what_may_be_written_to_is_counted_and_forgotten() -> None:
    def program(lib: Any) -> Any:
        counts = []
        with lib.autograd.graph.allow_mutation_on_saved_tensors() as context:
            x = lib.ones(2, requires_grad=True)
            y = x * 1
            out = y.sin()
            counts.append((len(context.original), len(context.cloned)))
            y.mul_(3)
            counts.append((len(context.original), len(context.cloned)))
            out.sum().backward()
            counts.append((len(context.original), len(context.cloned)))
            context.clear()
        return counts, x.grad

    same_as_pytorch(program)


@needs_oracle
def test_saved_tensors_are_made_by_nodes_alone() -> None:
    same_as_pytorch(lambda lib: lib._C._autograd.SavedTensor())
