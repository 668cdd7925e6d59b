"""Forward mode: dual tensors against PyTorch's, views and writes, nesting with itself and with reverse mode."""

from __future__ import annotations

import gc
import importlib
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.autograd.programs import made
from tests.oracle import torch
from tests.same import same_as_pytorch
from tinytorch.autograd.forward_ad import Level

Program = Callable[[Any, Any], Any]


@pytest.fixture(scope="module", autouse=True)
def oracle_is_warm() -> None:
    """PyTorch's first dual tensor imports what gives deprecation warnings."""
    if torch is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch.autograd.forward_ad.dual_level():
                torch.autograd.forward_ad.make_dual(torch.ones(1), torch.ones(1))


def run(program: Program) -> None:
    """Run `program(torch, fwAD)` inside a dual level of each library, and compare."""

    def inside(lib: Any) -> Any:
        forward_ad = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
        with forward_ad.dual_level():
            return program(lib, forward_ad)

    same_as_pytorch(inside)


def dual(lib: Any, fwAD: Any, *shape: int, seed: int = 0, requires_grad: bool = False) -> Any:
    lib.manual_seed(seed)
    x = lib.randn(*shape, dtype=lib.float64).abs() + 0.5
    return fwAD.make_dual(x.requires_grad_(requires_grad), lib.randn(*shape, dtype=lib.float64))


def seen(fwAD: Any, *tensors: Any) -> list[Any]:
    return [tuple(part.detach() for part in fwAD.unpack_dual(each)) for each in tensors]


FUNCTIONS: dict[str, Program] = {
    "products": lambda lib, x: (x * x.T) @ x / (1 + x.sum(0)),
    "reductions": lambda lib, x: x.sum(1) + x.mean(0) + x.prod() + x.norm() + x.std(0) + x.max(),
    "exponentials": lambda lib, x: (x.exp().log1p() * x.softmax(0) + x.log_softmax(1)).logsumexp(0),
    "selections": lambda lib, x: lib.where(x > 1, x, x.clamp(0.7, 0.9)) + x.sort(1).values + x.cumsum(0),
    "indexing": lambda lib, x: x[lib.tensor([0, 2, 2])] * x[1] + x.gather(0, lib.tensor([[1, 0, 2]])),
    "shapes": lambda lib, x: lib.cat([x.flatten()[:3].view(1, 3), x.T, lib.stack([x[0], x[1]])]).flip(0),
    "mixed with constants": lambda lib, x: 2 / x + x**3 - lib.ones(3, dtype=x.dtype) * x + (x + lib.ones(2, 3, 3)),
    "layers": lambda lib, x: lib.nn.functional.layer_norm(lib.nn.functional.gelu(x), (3,)),
    "conversions": lambda lib, x: x.float().double() + x.contiguous() * lib.ones(2, 3, 3) + x.float() * lib.arange(3),
    "losses": lambda lib, x: lib.nn.functional.cross_entropy(x, lib.arange(3)) + lib.nn.functional.mse_loss(x, x.T),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_tangents_are_pytorchs(name: str) -> None:
    function = FUNCTIONS[name]

    def program(lib: Any, fwAD: Any) -> Any:
        x = dual(lib, fwAD, 3, 3)
        return seen(fwAD, function(lib, x))

    run(program)


def writes() -> dict[str, Program]:
    def out_of_a_constant(lib: Any, fwAD: Any) -> Any:
        x, base = dual(lib, fwAD, 3), lib.zeros(2, 3, dtype=lib.float64)
        early = base[1]
        base[1] = x
        return seen(fwAD, base, base[0], early, base.sum())

    def on_itself(lib: Any, fwAD: Any) -> Any:
        x = dual(lib, fwAD, 3).clone()
        y = x.sin()
        x.mul_(y).add_(x).exp_()
        return seen(fwAD, x, y)

    def through_a_view(lib: Any, fwAD: Any) -> Any:
        x = dual(lib, fwAD, 2, 3) * 1
        row, column = x[0], x[:, 1]
        row.mul_(3)
        column.copy_(lib.ones(2, dtype=lib.float64))
        return seen(fwAD, x, row, column, x.T[1])

    def erased(lib: Any, fwAD: Any) -> Any:
        x = dual(lib, fwAD, 3) * 1
        z = x * 2
        x.zero_()
        w = x + z
        z.fill_(3.0)
        return seen(fwAD, x, z, w)

    def random_numbers(lib: Any, fwAD: Any) -> Any:
        x = dual(lib, fwAD, 3) * 1
        return seen(fwAD, x.normal_(), (dual(lib, fwAD, 3) * 1).uniform_())

    def masked(lib: Any, fwAD: Any) -> Any:
        x = dual(lib, fwAD, 3) * 1
        x[x > 1] = 0
        y = dual(lib, fwAD, 3, seed=1).masked_fill(lib.tensor([True, False, True]), 2.0)
        return seen(fwAD, x, y)

    def several_views(lib: Any, fwAD: Any) -> Any:
        x = dual(lib, fwAD, 4) * 1
        a, b = x.split(2)
        c, d = x.view(2, 2).unbind(1)
        return seen(fwAD, a, b, c, d)

    def memory_with_gaps(lib: Any, fwAD: Any) -> Any:
        column = lib.from_numpy(np.arange(12.0).reshape(4, 3)[:, 1])
        x = fwAD.make_dual(column, lib.ones(4, dtype=lib.float64))
        return seen(fwAD, x.unsqueeze(0), x.view(2, 2) * x.view(2, 2), x[1:])

    def the_dual_of_a_tensor_that_stays(lib: Any, fwAD: Any) -> Any:
        x = lib.ones(2)
        fwAD.make_dual(x, lib.ones(2)).mul_(3)
        return x, fwAD.unpack_dual(x).tangent

    return {name: value for name, value in locals().items() if callable(value)}


@pytest.mark.parametrize("name", writes())
def test_writes_and_views(name: str) -> None:
    run(writes()[name])


def reverse_over_forward(lib: Any, fwAD: Any) -> Any:
    lib.manual_seed(0)
    x = lib.randn(3, dtype=lib.float64).requires_grad_()
    w = lib.randn(3, dtype=lib.float64).requires_grad_()
    y = (fwAD.make_dual(x, lib.ones(3, dtype=lib.float64)) * w).tanh().prod()
    tangent = fwAD.unpack_dual(y).tangent
    return tangent, *lib.autograd.grad(tangent, [x, w])


def forward_over_reverse(lib: Any, fwAD: Any) -> Any:
    x = dual(lib, fwAD, 3, requires_grad=True)
    y = (x.exp() * x).sum() + x.prod()
    (g,) = lib.autograd.grad(y, x)
    (h,) = lib.autograd.grad((x * x).sum(), x, create_graph=True)
    return seen(fwAD, g, h)


def gradient_of_two_uses(lib: Any, fwAD: Any) -> Any:
    x = dual(lib, fwAD, 3, requires_grad=True)
    y = x * 2
    (g,) = lib.autograd.grad((y * y + y.sin() + y.exp()).sum(), x)
    return seen(fwAD, g)


@pytest.mark.parametrize("program", [reverse_over_forward, forward_over_reverse, gradient_of_two_uses])
def test_nested_with_reverse_mode(program: Program) -> None:
    run(program)


def errors() -> list[Program]:
    def vector(lib: Any) -> Any:
        return lib.ones(2)

    return [
        lambda lib, fwAD: fwAD.make_dual(lib.arange(2), vector(lib)),
        lambda lib, fwAD: fwAD.make_dual(vector(lib), lib.arange(2)),
        lambda lib, fwAD: fwAD.make_dual(vector(lib), lib.ones(3)),
        lambda lib, fwAD: fwAD.make_dual(vector(lib), lib.ones(2, dtype=lib.float64)),
        lambda lib, fwAD: fwAD.make_dual(vector(lib), vector(lib), level=3),
        lambda lib, fwAD: fwAD.make_dual(fwAD.make_dual(vector(lib), vector(lib)), vector(lib)),
        lambda lib, fwAD: fwAD.make_dual(vector(lib), fwAD.make_dual(vector(lib), vector(lib))),
        lambda lib, fwAD: fwAD.enter_dual_level(),
        lambda lib, fwAD: fwAD.exit_dual_level(level=4),
        lambda lib, fwAD: fwAD.unpack_dual(vector(lib), level=1),
        lambda lib, fwAD: fwAD.make_dual(vector(lib).requires_grad_(), vector(lib)).mul_(2),
    ]


@pytest.mark.parametrize("k", range(len(errors())))
def test_errors(k: int) -> None:
    run(errors()[k])


def test_without_a_level() -> None:
    def program(lib: Any) -> Any:
        fwAD = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
        raised = []
        for call in (
            lambda: fwAD.make_dual(lib.ones(1), lib.ones(1)),
            lambda: fwAD.make_dual(lib.ones(1), lib.ones(1), level=0),
            lambda: fwAD.exit_dual_level(),
        ):
            with pytest.raises(RuntimeError) as error:
                call()
            raised.append(str(error.value))
        levels = [fwAD._current_level, fwAD.enter_dual_level()]
        y = fwAD.make_dual(lib.ones(1), lib.ones(1)) * 2
        fwAD.exit_dual_level()
        seen = [tuple(fwAD.unpack_dual(each)) for each in (lib.ones(1), y)]
        with fwAD.dual_level():
            return raised, levels, seen, fwAD.unpack_dual(y).tangent

    same_as_pytorch(program)


def test_what_drops_a_tangent() -> None:
    def program(lib: Any, fwAD: Any) -> Any:
        x = dual(lib, fwAD, 2)
        with lib.no_grad():
            kept = x * 2
        with lib.inference_mode():
            dropped = x * 2
        return [
            fwAD.unpack_dual(each).tangent is None
            for each in (kept, dropped, x.detach(), x.data, x > 0, x.argmax(), x.floor(), x.sign())
        ]

    run(program)


def test_tangents_are_the_tensors_given() -> None:
    def program(lib: Any, fwAD: Any) -> Any:
        x, tangent = lib.ones(3, 3), lib.arange(9.0).view(3, 3)
        x_dual, turned = (fwAD.make_dual(x, t) for t in (tangent, tangent.T))
        copied, cut, again = lib.zeros(3, 3).copy_(x_dual), x_dual.clone(), fwAD.make_dual(x_dual.detach(), tangent * 5)
        cut.detach_()
        tangents = [fwAD.unpack_dual(each).tangent for each in (x_dual, turned, copied, cut, again)]
        model = lib.nn.Linear(3, 3)
        params = {name: fwAD.make_dual(p, lib.ones_like(p)) for name, p in model.named_parameters()}
        out = lib.func.functional_call(lib.nn.Linear(3, 3), params, x)
        for name, p in params.items():
            delattr(model, name)
            setattr(model, name, p)
        assert lib.allclose(fwAD.unpack_dual(model(x)).tangent, fwAD.unpack_dual(out).tangent)
        return tangents, [t is tangent for t in tangents], type(fwAD.unpack_dual(x_dual)).__name__, seen(fwAD, out)

    run(program)


def test_repr() -> None:
    def program(lib: Any, fwAD: Any) -> Any:
        x = dual(lib, fwAD, 2)
        return repr(x), repr(x.requires_grad_()), repr(x * x)

    run(program)


def test_functions_of_ones_own() -> None:
    def program(lib: Any, fwAD: Any) -> Any:
        calls = []

        class Scaled(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any, k: Any) -> Any:
                ctx.save_for_forward(x, y)
                ctx.k = k
                return x * y * k, x + 1

            @staticmethod
            def jvp(ctx: Any, dx: Any, dy: Any, dk: Any) -> Any:
                x, y = ctx.saved_tensors
                calls.append((dx.clone(), dy.clone(), dk, fwAD.unpack_dual(x).tangent is None))
                return (dx * y + x * dy) * ctx.k, dx

        class Written(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def jvp(ctx: Any, dx: Any) -> Any:
                return dx.mul_(2)

        x = dual(lib, fwAD, 2)
        both = seen(fwAD, *Scaled.apply(x, lib.full((2,), 3.0, dtype=lib.float64), 5))
        x = x * 1
        Written.apply(x)
        z = Scaled.apply(dual(lib, fwAD, 2, requires_grad=True), lib.ones(2, dtype=lib.float64), 5)[0]
        exponentials = made(
            lib, forward=lambda x: (x * 2, x.exp()), jvp=lambda ctx, t: (t * 2, t * ctx.saved_tensors[0]),
            setup_context=lambda ctx, inputs, output: ctx.save_for_forward(output[1]),
        )  # fmt: skip
        return both, seen(fwAD, x, z, *exponentials.apply(x)), z.requires_grad, calls

    run(program)


def wrong_functions() -> dict[str, Any]:
    def returning(value: Any) -> Program:
        return lambda lib, fwAD: seen(
            fwAD, made(lib, forward=lambda ctx, x: x * 2, jvp=lambda ctx, dx: value(dx)).apply(dual(lib, fwAD, 2))
        )

    def written(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    return {
        "absent": lambda lib, fwAD: made(lib, forward=lambda ctx, x: x * 2).apply(dual(lib, fwAD, 2)),
        "too many": returning(lambda dx: (dx, dx)),
        "shape": returning(lambda dx: dx[:1]),
        "no tensor": returning(lambda dx: 3),
        "written to, but not its tangent": lambda lib, fwAD: made(
            lib, forward=written, jvp=lambda ctx, dx: dx * 2
        ).apply(dual(lib, fwAD, 2) * 1),
    }


@pytest.mark.parametrize("name", wrong_functions())
def test_wrong_jvp(name: str) -> None:
    run(wrong_functions()[name])


def test_levels_nest() -> None:
    """The third derivative of x**4 by three levels of forward mode."""
    one = tinytorch.tensor(1.0, dtype=tinytorch.float64)

    def derivative(f: Any) -> Any:
        def inner(x: Any) -> Any:
            with Level() as level:
                return level.unpack(f(level.dual(x, one))).tangent

        return inner

    x = tinytorch.tensor(2.0, dtype=tinytorch.float64)
    assert derivative(derivative(derivative(lambda x: x**4)))(x).item() == 48
    # No confusion of one perturbation with the other: d/dx (x * d/dy (x + y)) = 1
    assert derivative(lambda x: x * derivative(lambda y: x + y)(x))(x).item() == 1


def test_tangents_die_with_their_tensors_and_with_the_level() -> None:
    gc.disable()
    try:
        with Level() as level:
            x = level.dual(tinytorch.ones(3), tinytorch.ones(3))
            y = x * 2
            tangent = weakref.ref(level.tangent(y))
            del y
            assert tangent() is None
            y = x * 3
            tangent = weakref.ref(level.tangent(y))
        assert tangent() is None
    finally:
        gc.enable()


def test_forward_over_reverse_through_writes() -> None:
    """What a write saved, of the value before it, has its tangent too."""

    def program(lib: Any, fwAD: Any) -> Any:
        x, y = (dual(lib, fwAD, 4, seed=seed, requires_grad=True) for seed in (0, 1))
        z = x * 1
        z.mul_(y)
        z[:2].mul_(y[2:]).sin_()
        z.view(2, 2).unbind(0)
        with lib.no_grad():
            w = (x * 1).mul_(y)
        return seen(fwAD, *lib.autograd.grad((z * z).sum(), [x, y]), w)

    run(program)


@pytest.mark.parametrize("outside", [True, False])
def test_a_level_and_jvp_do_not_nest(outside: bool) -> None:
    def program(torch: Any) -> Any:
        forward_ad = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
        x = torch.ones(2)

        def inside(y: Any) -> Any:
            with forward_ad.dual_level():
                return y

        if not outside:
            return torch.func.jvp(inside, (x,), (x,))
        with forward_ad.dual_level():
            return torch.func.jvp(torch.sin, (x,), (x,))

    same_as_pytorch(program)
