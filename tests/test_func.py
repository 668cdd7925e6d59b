"""`torch.func`: values, structure, graphs, nesting and errors of the transforms, against PyTorch's."""

from __future__ import annotations

import functools
import gc
import warnings
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from typing import Any

import pytest

import tinytorch
from tests.autograd.programs import made
from tests.oracle import needs_oracle, torch
from tests.same import ended, programs, same_as_pytorch
from tinytorch.func.pytree import describe, flatten, unflatten

if torch is not None:
    with warnings.catch_warnings():  # PyTorch imports modules at its first use, which warn
        warnings.simplefilter("ignore")
        torch.func.jacfwd(torch.sin)(torch.ones(1))

Program = Callable[[Any], Any]
Pair = namedtuple("Pair", "first second")

CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def same(program: Program) -> None:
    same_as_pytorch(program, **CLOSE)


def check_all(programs: dict[str, Program]) -> Any:
    """Return a test that runs all programs with both libraries."""

    @pytest.mark.parametrize("name", programs)
    def test(name: str) -> None:
        same(programs[name])

    return test


def vector(t: Any, requires_grad: bool = False) -> Any:
    return t.tensor([0.3, -0.7, 1.2], dtype=t.float64, requires_grad=requires_grad)


def matrix(t: Any, requires_grad: bool = False) -> Any:
    return t.linspace(-1, 2, 6, dtype=t.float64).view(2, 3).requires_grad_(requires_grad)


def number(t: Any, value: float, requires_grad: bool = False) -> Any:
    return t.tensor(value, dtype=t.float64, requires_grad=requires_grad)


def bowl(x: Any) -> Any:
    return (x.sin() * x.exp() + x**3).sum()


def wave(x: Any) -> Any:
    return x.sin() * x.exp().sum()


test_values = check_all(
    {
        "grad": lambda t: t.func.grad(bowl)(matrix(t)),
        "grad of one": lambda t: t.func.grad(lambda x, y: (x * y).sum())(vector(t), matrix(t)),
        "grad of another": lambda t: t.func.grad(lambda x, y: (x * y).sum(), argnums=1)(vector(t), matrix(t)),
        "grad of the last": lambda t: t.func.grad(lambda x, y: (x * y).sum(), argnums=-1)(vector(t), matrix(t)),
        "grad of both": lambda t: t.func.grad(lambda x, y: (x * y).sum(), argnums=(1, 0))(vector(t), matrix(t)),
        "grad of the same twice": lambda t: (lambda x: t.func.grad(lambda x, y: (x * y).sum())(x, x))(vector(t)),
        "grad with keywords": lambda t: t.func.grad(lambda x, y=1, *, s: (x * y * s).sum())(
            vector(t), y=3, s=vector(t)
        ),
        "grad with aux": lambda t: t.func.grad(lambda x: (bowl(x), {"a": x * 2, "b": [x]}), has_aux=True)(vector(t)),
        "grad and value": lambda t: t.func.grad_and_value(bowl)(vector(t)),
        "grad and value with aux": lambda t: t.func.grad_and_value(lambda x: (bowl(x), x.cos()), has_aux=True)(
            vector(t)
        ),
        "grad of a constant": lambda t: t.func.grad(lambda x: t.ones(()))(vector(t)),
        "grad through integers": lambda t: t.func.grad(lambda x: x.sum().long())(vector(t)),
        "vjp": lambda t: t.func.vjp(wave, vector(t))[1](vector(t)),
        "vjp, output": lambda t: t.func.vjp(wave, vector(t))[0],
        "vjp of two": lambda t: t.func.vjp(lambda x, y: (x * y, y.sum()), vector(t), matrix(t))[1](
            (matrix(t), number(t, 2.0))
        ),
        "vjp with aux": lambda t: t.func.vjp(lambda x: (wave(x), x * 2), vector(t), has_aux=True)[2],
        "vjp in float": lambda t: t.func.vjp(wave, vector(t))[1](vector(t).float()),
        "jvp": lambda t: t.func.jvp(wave, (vector(t),), (vector(t) * 2,)),
        "jvp of two": lambda t: t.func.jvp(
            lambda x, y: (x * y, y.sum()), (vector(t), matrix(t)), (vector(t) * 2, matrix(t) - 1)
        ),
        "jvp of a constant": lambda t: t.func.jvp(lambda x: t.ones(2), (vector(t),), (vector(t),)),
        "jvp with aux": lambda t: t.func.jvp(lambda x: (wave(x), x * 2), (vector(t),), (vector(t),), has_aux=True),
        "jacrev": lambda t: t.func.jacrev(wave)(vector(t)),
        "jacrev of a matrix": lambda t: t.func.jacrev(wave)(matrix(t)),
        "jacrev of both": lambda t: t.func.jacrev(lambda x, y: y @ x, argnums=(0, 1))(vector(t), matrix(t)),
        "jacrev in chunks": lambda t: t.func.jacrev(wave, chunk_size=2)(vector(t)),
        "jacrev with aux": lambda t: t.func.jacrev(lambda x: (wave(x), {"a": x * 2}), has_aux=True)(vector(t)),
        "jacrev of a constant": lambda t: t.func.jacrev(lambda x: t.ones(2))(vector(t)),
        "jacrev of nothing": lambda t: t.func.jacrev(lambda x: x)(t.zeros(0)),
        "jacrev to nothing": lambda t: t.func.jacrev(lambda x: x[:0])(vector(t)),
        "jacfwd": lambda t: t.func.jacfwd(wave)(vector(t)),
        "jacfwd of a matrix": lambda t: t.func.jacfwd(wave)(matrix(t)),
        "jacfwd of one of two": lambda t: t.func.jacfwd(lambda x, y: y @ x, argnums=(1,))(vector(t), matrix(t)),
        "jacfwd of all": lambda t: t.func.jacfwd(lambda x, y: y @ x, argnums=None)(vector(t), matrix(t)),
        "jacfwd with aux": lambda t: t.func.jacfwd(lambda x: (wave(x), {"a": x * 2}), has_aux=True)(vector(t)),
        "jacfwd of a constant": lambda t: t.func.jacfwd(lambda x: t.ones(2))(vector(t)),
        "jacfwd of nothing": lambda t: t.func.jacfwd(lambda x: x)(t.zeros(0)),
        "hessian": lambda t: t.func.hessian(bowl)(vector(t)),
        "hessian of both": lambda t: t.func.hessian(lambda x, y: (x * y**3).sum(), argnums=(0, 1))(
            vector(t), matrix(t)
        ),
        "hessian of a vector function": lambda t: t.func.hessian(wave)(vector(t)),
    }
)


test_containers = check_all(
    {
        "grad": lambda t: t.func.grad(lambda p: (p["w"] * p["b"][0] ** 2).sum())({"w": vector(t), "b": [matrix(t)]}),
        "grad, named tuple": lambda t: list(
            t.func.grad(lambda p: (p.first * p.second**2).sum())(Pair(vector(t), matrix(t)))
        ),
        "grad, ordered": lambda t: t.func.grad(lambda p: p["a"].sum())(OrderedDict(a=vector(t))),
        "grad, default": lambda t: t.func.grad(lambda p: p["a"].sum())(defaultdict(list, a=vector(t))),
        "vjp": lambda t: t.func.vjp(lambda x: {"a": x.sin(), "b": (x.cos(), [x])}, vector(t))[1](
            {"a": vector(t), "b": (vector(t), [vector(t) * 2])}
        ),
        "vjp, sort": lambda t: t.func.vjp(lambda x: Pair(*x.sort()).first, vector(t))[1](vector(t)),
        "jvp": lambda t: t.func.jvp(
            lambda p: {"o": p["a"] * p["b"], "s": [p["a"].sum()]},
            ({"a": vector(t), "b": matrix(t)},),
            ({"a": vector(t) * 3, "b": matrix(t) + 1},),
        ),
        "jacrev": lambda t: t.func.jacrev(lambda p: {"o": p["a"] * 2, "s": (p["b"].sum(), p["a"].exp())})(
            {"a": vector(t), "b": matrix(t)}
        ),
        "jacfwd": lambda t: t.func.jacfwd(lambda p: {"o": p["a"] * 2, "s": (p["b"].sum(), p["a"].exp())})(
            {"a": vector(t), "b": matrix(t)}
        ),
        "hessian": lambda t: t.func.hessian(lambda p: {"o": (p["a"] * p["b"]).sum() ** 2})(
            {"a": vector(t), "b": matrix(t)}
        ),
    }
)


# Nesting ------------------------------------------------------------------------------------------


def order(t: Any, transforms: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with nested transforms, the first letter innermost."""
    for letter in transforms:
        function = {
            "g": lambda f: lambda x: t.func.grad(lambda x: f(x).sum())(x),
            "p": lambda f: lambda x: t.func.jvp(f, (x,), (x.detach() * 0 + 1,))[1],
            "v": lambda f: lambda x: t.func.vjp(f, x)[1](t.ones_like(x))[0],
            "l": lambda f: lambda x: t.func.linearize(f, x)[1](t.ones_like(x)),
        }[letter](function)
    return function


@pytest.mark.parametrize(
    "transforms",
    ["g", "gg", "ggg", "gggg", "p", "pp", "ppp", "gp", "pg", "gpg", "pgp", "ggp", "pgg", "vg", "gv", "pv", "vp", "vpg",
     "gvp", "ppg"],
)  # fmt: skip
def test_orders(transforms: str) -> None:
    same(lambda t: order(t, transforms, lambda x: x.sin() * x.exp() / (1 + x * x))(vector(t)))


@pytest.mark.parametrize("transforms", ["l", "ll", "lg", "gl", "lp", "pl", "vl", "lv"])
def test_linearize_in_orders(transforms: str) -> None:
    def function(x: Any) -> Any:
        return x.sin() * x.exp() / (1 + x * x)

    found = order(tinytorch, transforms, function)(vector(tinytorch))
    expected = order(tinytorch, transforms.replace("l", "p"), function)(vector(tinytorch))
    assert not found.requires_grad
    assert tinytorch.allclose(found, expected, rtol=1e-10, atol=1e-12)


test_nesting = check_all(
    {
        "jacrev of jacrev": lambda t: t.func.jacrev(t.func.jacrev(wave))(vector(t)),
        "jacfwd of jacrev": lambda t: t.func.jacfwd(t.func.jacrev(wave))(vector(t)),
        "jacrev of jacfwd": lambda t: t.func.jacrev(t.func.jacfwd(wave))(vector(t)),
        "jacfwd of jacfwd": lambda t: t.func.jacfwd(t.func.jacfwd(wave))(vector(t)),
        "jacfwd of hessian": lambda t: t.func.jacfwd(t.func.hessian(bowl))(vector(t)),
        "jacrev of hessian": lambda t: t.func.jacrev(t.func.hessian(bowl))(vector(t)),
        "grad of an element of the hessian": lambda t: t.func.grad(lambda x: t.func.hessian(bowl)(x)[0, 0])(vector(t)),
        "no confusion": lambda t: t.func.grad(lambda x: x * t.func.grad(lambda y: x + y)(number(t, 1.0)))(
            number(t, 2.0)
        ),
        "no confusion, forward": lambda t: t.func.jvp(
            lambda x: x * t.func.jvp(lambda y: x + y, (number(t, 1.0),), (number(t, 1.0),))[1],
            (number(t, 2.0),),
            (number(t, 1.0),),
        ),
        "no confusion, forward in reverse": lambda t: t.func.grad(
            lambda x: x * t.func.jvp(lambda y: x * y, (number(t, 3.0),), (number(t, 1.0),))[1]
        )(number(t, 2.0)),
        "no confusion, reverse in forward": lambda t: t.func.jvp(
            lambda x: x * t.func.grad(lambda y: x * y)(number(t, 3.0)), (number(t, 2.0),), (number(t, 1.0),)
        ),
        "closes over the outer input": lambda t: t.func.grad(
            lambda x: t.func.grad(lambda y: (x * y**2).sum())(x * 2).sum()
        )(vector(t)),
        "the outer input itself": lambda t: t.func.grad(lambda x: t.func.grad(lambda y: (x * y).sum())(x).sum())(
            vector(t)
        ),
        "detach inside": lambda t: t.func.grad(lambda x: t.func.grad(lambda y: (x.detach() * y**2).sum())(x).sum())(
            vector(t)
        ),
        "hessian-vector product": lambda t: t.func.jvp(t.func.grad(bowl), (vector(t),), (vector(t),))[1],
        "hessian-vector product, by vjp": lambda t: t.func.vjp(t.func.grad(bowl), vector(t))[1](vector(t)),
        "hessian-vector product, by grad": lambda t: t.func.grad(lambda x: (t.func.grad(bowl)(x) * vector(t)).sum())(
            vector(t)
        ),
        "autograd inside": lambda t: t.func.grad(
            lambda x: t.autograd.grad((x**3).sum(), x, create_graph=True)[0].sum()
        )(vector(t)),
        "values of inner transforms": lambda t: t.func.grad_and_value(
            lambda x: (lambda g, v: g.sum() * v)(*t.func.grad_and_value(bowl)(x))
        )(vector(t)),
        "views of the input": lambda t: t.func.jacfwd(lambda m: t.func.grad(lambda row: (row**3).sum())(m[0]) + m[1])(
            matrix(t)
        ),
        "writes in place": lambda t: t.func.jacrev(t.func.grad(written))(vector(t)),
        "writes in place, forward of reverse": lambda t: t.func.hessian(written)(vector(t)),
        "writes in place, forward": lambda t: t.func.jacfwd(t.func.jacfwd(written))(vector(t)),
        "writes in place, reverse of forward": lambda t: t.func.jacrev(t.func.jacfwd(written))(vector(t)),
        "custom function": lambda t: t.func.grad(t.func.grad(lambda x: cube(t)(x)))(number(t, 2.0)),
    }
)


def written(x: Any) -> Any:
    y = x.clone()
    y.mul_(x).add_(1).pow_(2)
    y[0] = x[1] ** 3
    return (y * x[0]).sum()


def cube(t: Any) -> Any:
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x**3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x**2 * g

    return Cube.apply


# Interaction with other modes ---------------------------------------------------------------------


test_tracked_outside = check_all(
    {
        "grad": lambda t: t.func.grad(bowl)(vector(t, True)),
        "grad of a linear function": lambda t: t.func.grad(lambda x: (x * 2).sum())(vector(t, True)),
        "grad and value": lambda t: t.func.grad_and_value(lambda x: (x * 2).sum())(vector(t, True)),
        "closed over": lambda t: (
            lambda w: (
                t.func.grad(lambda x: (w * x).sum())(vector(t)),
                t.func.grad(lambda x: (w + x).sum())(vector(t)),
                t.func.grad(lambda x: ((x * x).sum(), (w, x, x * 2, w * x)), has_aux=True)(vector(t)),
            )
        )(vector(t, True)),
        "keyword": lambda t: t.func.grad(lambda x, p: (x * p["w"]).sum())(vector(t), p={"w": vector(t, True)}),
        "vjp": lambda t: [
            each
            for x in (vector(t), vector(t, True))
            for v in (vector(t), vector(t, True))
            for each in (t.func.vjp(wave, x)[0], t.func.vjp(wave, x)[1](v))
        ],
        "jvp": lambda t: [
            t.func.jvp(wave, (x,), (v,)) for x in (vector(t), vector(t, True)) for v in (vector(t), vector(t, True))
        ],
        "jacobians": lambda t: [
            transform(wave)(vector(t, True)) for transform in (t.func.jacrev, t.func.jacfwd, t.func.hessian)
        ],
        "the input itself": lambda t: [t.func.vjp(lambda x: x, x)[0] is x for x in (vector(t), vector(t, True))],
        "an outer tensor itself": lambda t: (
            lambda w: t.func.grad(lambda x: (x.sum(), w), has_aux=True)(vector(t))[1] is w
        )(vector(t, True)),
        "no_grad around": lambda t: in_no_grad(t),
        "no_grad inside": lambda t: [
            t.func.grad(lambda x: half(t, x).sum())(vector(t)),
            t.func.vjp(lambda x: half(t, x), vector(t))[1](vector(t)),
            t.func.jvp(lambda x: half(t, x), (vector(t),), (vector(t),)),
            t.func.jacfwd(lambda x: half(t, x))(vector(t)),
        ],
        "no_grad between": lambda t: t.func.grad(lambda x: between(t, x))(number(t, 2.0)),
        "inference mode around": lambda t: in_inference(t),
    }
)


def half(t: Any, x: Any) -> Any:
    with t.no_grad():
        constant = x**2
    return x - constant


def in_no_grad(t: Any) -> Any:
    x, w = vector(t, True), vector(t, True)
    with t.no_grad():
        return (
            t.func.grad(lambda x: (w * x**3).sum())(x),
            t.func.grad_and_value(lambda x: (w * x**3).sum())(x),
            t.func.vjp(lambda x: w * x**3, x)[1](vector(t)),
            t.func.jvp(lambda x: w * x**3, (x,), (vector(t),)),
            t.func.jacrev(lambda x: w * x**3)(x),
            t.func.jacfwd(lambda x: w * x**3)(x),
            t.func.grad(t.func.grad(lambda x: w[0] * x**3))(number(t, 2.0, True)),
            t.is_grad_enabled(),
        )


def between(t: Any, x: Any) -> Any:
    with t.no_grad():
        slope = t.func.grad(lambda y: y**2 * x)(x)
    return slope * x


def in_inference(t: Any) -> Any:
    with t.inference_mode():
        x = vector(t) * 2
        found = t.func.grad(bowl)(x), t.func.jacrev(wave)(x), t.func.jvp(wave, (x,), (x,))[1]
        return found, found[0].is_inference(), t.is_inference_mode_enabled()


def test_backward_through_the_results() -> None:
    def program(t: Any) -> Any:
        found = []
        for call in (
            lambda x, w: t.func.grad(lambda y: (w * y**3).sum())(x * 2),
            lambda x, w: t.func.grad_and_value(lambda y: (w * y**3).sum())(x)[1],
            lambda x, w: t.func.vjp(lambda y: w * y**3, x)[1](x * w)[0],
            lambda x, w: t.func.vjp(lambda y: w * y**3, x)[0],
            lambda x, w: t.func.jvp(lambda y: w * y**3, (x,), (w * 2,))[1],
            lambda x, w: t.func.jvp(lambda y: w * y**3, (x,), (w * 2,))[0],
            lambda x, w: t.func.jacrev(lambda y: w * y.prod())(x),
            lambda x, w: t.func.jacfwd(lambda y: w * y.prod())(x),
            lambda x, w: t.func.hessian(lambda y: (w * y**3).sum())(x),
            lambda x, w: t.func.grad(lambda y: ((w * y**3).sum(), w * y), has_aux=True)(x)[1],
            lambda x, w: t.func.grad(lambda y: ((y**3).sum(), w * y.exp()), has_aux=True)(vector(t) + 1)[1] + x,
        ):
            x, w = vector(t, True), vector(t, True)
            call(x, w).pow(2).sum().backward()
            found.append((x.grad, w.grad))
        return found

    same(program)


def test_vjp_functions_outlive_the_transform() -> None:
    def program(t: Any) -> Any:
        x = vector(t, True)
        _, vjp_fn = t.func.vjp(wave, x)
        first = vjp_fn(vector(t))[0]
        with t.no_grad():
            untracked = vjp_fn(vector(t))[0]
        second = t.func.grad(lambda v: (vjp_fn(v)[0] * vector(t)).sum())(vector(t))
        third = t.func.jvp(lambda v: vjp_fn(v)[0], (vector(t),), (vector(t),))[1]
        first.sum().backward()
        return first, untracked, second.detach(), third.detach(), x.grad

    same(program)


def test_arguments_are_left_alone() -> None:
    def program(t: Any) -> Any:
        x, y = vector(t, True), vector(t)
        t.func.grad(lambda x, y: (x * y).sum())(x, y)
        # A function may write to an argument that is not differentiated.
        found = t.func.grad(lambda x, y: y.mul_(2).mul(x).sum())(vector(t), y)
        again = t.func.grad(lambda x, y: y.mul_(x).sum())(vector(t), y)
        return found, again, y, x.grad, y.grad

    same(program)


def test_nothing_is_leaked() -> None:
    kept: list[Any] = []

    def function(x: Any) -> Any:
        out = x.exp()
        kept.extend([weakref.ref(x), weakref.ref(out)])
        return out.sum()

    gc.collect()
    gc.disable()
    try:
        x = vector(tinytorch)
        kept.append(weakref.ref(x))
        tinytorch.func.grad(function)(x)
        tinytorch.func.hessian(function)(x)
        tinytorch.func.jvp(function, (x,), (x,))
        tinytorch.func.vjp(function, x)[1](tinytorch.ones((), dtype=x.dtype))
        del x
        assert [reference() for reference in kept] == [None] * len(kept)
    finally:
        gc.enable()


def test_a_failing_function_leaves_no_level_behind() -> None:
    def fail(x: Any) -> Any:
        raise ValueError("from inside")

    x = vector(tinytorch)
    with tinytorch.no_grad():
        for call in (
            lambda: tinytorch.func.grad(fail)(x),
            lambda: tinytorch.func.jvp(fail, (x,), (x,)),
            lambda: tinytorch.func.hessian(fail)(x),
        ):
            with pytest.raises(ValueError, match="from inside"):
                call()
        assert not tinytorch.is_grad_enabled()
    assert tinytorch.is_grad_enabled()
    assert not tinytorch.func.grad(bowl)(x).requires_grad


# Mistakes -----------------------------------------------------------------------------------------


test_mistakes = check_all(
    {
        "not a tensor": lambda t: t.func.grad(lambda x: x)(3.0),
        "not all tensors": lambda t: t.func.grad(lambda x: x[0])([vector(t), 3]),
        "integers": lambda t: t.func.grad(lambda x: x.sum().float())(t.arange(3)),
        "argnums too large": lambda t: t.func.grad(bowl, argnums=1)(vector(t)),
        "argnums a list": lambda t: t.func.grad(bowl, argnums=[0])(vector(t)),
        "argnums empty": lambda t: t.func.grad(bowl, argnums=())(vector(t)),
        "argnums twice": lambda t: t.func.grad(bowl, argnums=(0, -1))(vector(t)),
        "argnums a word": lambda t: t.func.grad(bowl, argnums=(0, "a"))(vector(t)),
        "not a scalar": lambda t: t.func.grad(lambda x: x)(vector(t)),
        "a number": lambda t: t.func.grad(lambda x: 3.0)(vector(t)),
        "a tuple": lambda t: t.func.grad(lambda x: (x.sum(), 1))(vector(t)),
        "no aux": lambda t: t.func.grad(lambda x: [x.sum(), x], has_aux=True)(vector(t)),
        "aux a number": lambda t: t.func.grad(lambda x: (x.sum(), 3), has_aux=True)(vector(t)),
        "aux None": lambda t: t.func.grad(lambda x: (x.sum(), None), has_aux=True)(vector(t)),
        "write to the input": lambda t: t.func.grad(lambda x: x.mul_(2).sum())(vector(t)),
        "backward inside": lambda t: t.func.grad(lambda x: x.sum().backward())(vector(t)),
        "vjp, None": lambda t: t.func.vjp(lambda x: None, vector(t)),
        "vjp, nothing": lambda t: t.func.vjp(lambda x: (), vector(t)),
        "vjp, a number": lambda t: t.func.vjp(lambda x: (x, 3), vector(t)),
        "vjp, integers": lambda t: t.func.vjp(lambda x: x.long(), vector(t)),
        "vjp, no aux": lambda t: t.func.vjp(lambda x: x, vector(t), has_aux=True),
        "vjp, structure": lambda t: t.func.vjp(lambda x: (x, x), vector(t))[1](vector(t)),
        "vjp, keys": lambda t: t.func.vjp(lambda x: {"a": x, "b": x}, vector(t))[1]({"b": vector(t), "a": vector(t)}),
        "vjp, shape": lambda t: t.func.vjp(lambda x: x * 2, vector(t))[1](vector(t)[0]),
        "vjp, float": lambda t: t.func.vjp(bowl, vector(t))[1](1.0),
        "jvp, no tuple": lambda t: t.func.jvp(bowl, vector(t), vector(t)),
        "jvp, structure": lambda t: t.func.jvp(bowl, (vector(t),), (vector(t), vector(t))),
        "jvp, nothing": lambda t: t.func.jvp(lambda: t.ones(1), (), ()),
        "jvp, primal a number": lambda t: t.func.jvp(bowl, (3,), (vector(t),)),
        "jvp, tangent a number": lambda t: t.func.jvp(bowl, (vector(t),), (3,)),
        "jvp, shape": lambda t: t.func.jvp(bowl, (vector(t),), (vector(t)[:2],)),
        "jvp, integers": lambda t: t.func.jvp(bowl, (vector(t).long(),), (vector(t),)),
        "jvp, None": lambda t: t.func.jvp(lambda x: None, (vector(t),), (vector(t),)),
        "jvp, number": lambda t: t.func.jvp(lambda x: (x, 3), (vector(t),), (vector(t),)),
        "jvp, no aux": lambda t: t.func.jvp(lambda x: x, (vector(t),), (vector(t),), has_aux=True),
        "jvp, aux": lambda t: t.func.jvp(lambda x: (x, 3), (vector(t),), (vector(t),), has_aux=True),
        "jvp, strict": lambda t: t.func.jvp(lambda x: t.ones(2), (vector(t),), (vector(t),), strict=True),
        "jacrev, argnums": lambda t: t.func.jacrev(bowl, argnums=None)(vector(t)),
        "jacrev, keyword": lambda t: t.func.jacrev(lambda x, y: x)(vector(t), y=2),
        "jacrev, chunk": lambda t: t.func.jacrev(bowl, chunk_size=0),
        "jacrev, number": lambda t: t.func.jacrev(lambda x: 3.0)(vector(t)),
        "jacfwd, argnums": lambda t: t.func.jacfwd(bowl, argnums=2)(vector(t)),
        "jacfwd, no arguments": lambda t: t.func.jacfwd(bowl)(),
        "jacfwd, None": lambda t: t.func.jacfwd(lambda x: None)(vector(t)),
        "jacfwd, integers": lambda t: t.func.jacfwd(lambda x: x)(t.arange(3)),
    }
)


def test_linearize_checks_its_tangents() -> None:
    x = vector(tinytorch)
    _, jvp_fn = tinytorch.func.linearize(wave, x)
    with pytest.raises(RuntimeError, match=r"tangent:0 with shape .* doesn't match the shape"):
        jvp_fn(x[:2])
    with pytest.raises(RuntimeError, match=r"tangent:0 with dtype .* doesn't match the dtype"):
        jvp_fn(x.float())
    with pytest.raises(RuntimeError, match="to have the same argspec as the primals"):
        jvp_fn(x, x)


def test_linearize_does_not_ask_whether_to_record() -> None:
    """Forward mode and the derivatives of `linearize` work inside `no_grad`; a detached factor has no derivative."""

    def program(t: Any) -> Any:
        def function(x: Any) -> Any:
            with t.no_grad():
                factor = x.exp()
                y = factor.clone().mul_(x)
            with t.set_grad_enabled(False), t.enable_grad():
                z = x * x.detach()
            return [x * factor, y, z]

        x = matrix(t)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch traces the function
            output, jvp_fn = t.func.linearize(function, x)
            with t.no_grad():
                inside, _ = t.func.linearize(function, x)
        return output, inside, jvp_fn(t.ones_like(x)), jvp_fn(x)

    same(program)


def test_linearize_calls_its_function_once() -> None:
    calls = []

    def function(p: Any, y: Any) -> Any:
        calls.append(1)
        return {"a": p[0] * y, "b": [p[0].sum()]}

    x, y = vector(tinytorch), matrix(tinytorch)
    output, jvp_fn = tinytorch.func.linearize(function, [x], y)
    expected = tinytorch.func.jvp(function, ([x], y), ([x * 2], y + 1))
    calls.clear()
    for _ in range(2):
        found = jvp_fn([x * 2], y + 1)
        assert tinytorch.allclose(found["a"], expected[1]["a"])
        assert tinytorch.allclose(found["b"][0], expected[1]["b"][0])
    assert not calls
    assert tinytorch.equal(output["a"], expected[0]["a"])


def loss_of(t: Any, reduction: str) -> Any:
    weight = t.tensor([0.5, 1.0, 2.0], dtype=t.float64)
    return lambda x, target: t.nn.functional.cross_entropy(x, target, weight, ignore_index=1, reduction=reduction)


def weighted(t: Any) -> Any:
    weight = t.tensor([0.5, 1, 3], dtype=t.float64)
    return lambda x, y: t.nn.functional.nll_loss(x, y, weight, ignore_index=2)


def scored(t: Any) -> tuple[Any, Any]:
    return t.linspace(-1, 2, 24, dtype=t.float64).reshape(2, 4, 3).sin(), t.tensor([[0, 1, 2, 2], [1, 0, 0, 2]])


VMAPPED: dict[str, Any] = {
    "one": lambda t, x, y: t.vmap(t.sin)(x),
    "two": lambda t, x, y: t.vmap(t.dot)(x, y),
    "dimensions": lambda t, x, y: t.vmap(lambda a, b: a * b, in_dims=(1, None), out_dims=-1)(x, y[0, 0]),
    "all in one dimension": lambda t, x, y: t.vmap(lambda a, b: a - b, 1, 1)(x, y),
    "containers": lambda t, x, y: t.vmap(lambda d, *, k: {"a": d["x"] + k, "b": [d["y"]]})({"x": x, "y": y}, k=x),
    "nested dimensions": lambda t, x, y: t.vmap(lambda p: p[0] * p[1], in_dims=((0, None),))((x, y[0])),
    "places of outputs": lambda t, x, y: t.vmap(lambda a: (a, a.sum()), out_dims=(1, 0))(x),
    "chunks": lambda t, x, y: t.vmap(t.cos, chunk_size=2)(x),
    "twice": lambda t, x, y: t.vmap(t.vmap(lambda a, b: a * b, (0, None)), (None, 0))(x[0], y[0]),
    "gradients": lambda t, x, y: t.vmap(t.func.grad(lambda a, b: (a * b).sin().sum()), (0, None))(x, y[0]),
    "gradient of": lambda t, x, y: t.func.grad(lambda a: t.vmap(t.dot)(a, y).pow(3).sum())(x),
    "jacrev": lambda t, x, y: t.func.jacrev(lambda a: t.vmap(lambda b: b.exp().sum())(a))(x),
    "jacfwd": lambda t, x, y: t.vmap(t.func.jacfwd(t.sin))(x),
    "hessians": lambda t, x, y: t.vmap(t.func.hessian(lambda a: a.pow(4).sum()))(x),
    "vjp": lambda t, x, y: t.func.vjp(t.vmap(t.tanh), x)[1](y),
    "jvp": lambda t, x, y: t.func.jvp(t.vmap(t.tanh), (x,), (y,)),
    "same numbers": lambda t, x, y: t.vmap(lambda a: a + t.rand(3), randomness="same")(x) - x,
    "same numbers for written ones": lambda t, x, y: t.vmap(lambda a: a + t.randn(3), randomness="same")(x) - x,
    "same numbers like others": lambda t, x, y: t.vmap(lambda a: a + t.bernoulli(y[0] / 2), randomness="same")(x),
    "same numbers like its own": lambda t, x, y: t.vmap(t.bernoulli, randomness="same")(y / 2),
    "expanded": lambda t, x, y: t.vmap(lambda a: a.expand(2, 2, 3))(x),
    "losses": lambda t, x, y: [t.vmap(loss_of(t, reduction))(*scored(t)) for reduction in ("none", "sum", "mean")],
    "losses of one": lambda t, x, y: t.vmap(loss_of(t, "mean"))(x, t.tensor([2, 1])),
    "gradients of losses": lambda t, x, y: t.vmap(t.func.grad(loss_of(t, "mean")))(*scored(t)),
    "gradients of losses with weights": lambda t, x, y: [
        t.vmap(t.func.grad(weighted(t)), which)(*[a if k == 0 else a[0] for a, k in zip(scored(t), which, strict=True)])
        for which in ((0, 0), (0, None), (None, 0))
    ],
    "attention": lambda t, x, y: t.vmap(lambda q: t.nn.functional.scaled_dot_product_attention(q, y, y))(
        t.stack([x, y, x - y])
    ),
    "gradients of attention": lambda t, x, y: t.vmap(
        t.func.grad(lambda q: t.nn.functional.scaled_dot_product_attention(q, y, y).pow(2).sum())
    )(t.stack([x, y, x - y])),
    "no inputs": lambda t, x, y: t.vmap(t.sin)(),
    "sizes": lambda t, x, y: t.vmap(t.add)(x, y[:1]),
    "no tensor": lambda t, x, y: t.vmap(t.add)(x, 1.0),
    "no such dimension": lambda t, x, y: t.vmap(t.sin, 2)(x),
    "a list of dimensions": lambda t, x, y: t.vmap(t.sin, [0])(x),
    "no tensor comes out": lambda t, x, y: t.vmap(lambda a: 1.0)(x),
    "randomness": lambda t, x, y: t.vmap(t.sin, randomness="maybe")(x),
    "no chunk": lambda t, x, y: t.vmap(t.sin, chunk_size=0)(x),
}


AT_LEVELS = programs("""
    x if torch._is_all_true(x > 0.5) else -x; x if torch._is_any_true(x > 0.5) else -x; (i > 0.1)._is_all_true() * x
    torch.linspace(x[0].float(), 2 * x[1].float(), 3); torch.logspace(*x.float(), 2); torch.isclose(x, x[:1], 0.5)
    F.batch_norm(i, i[0, 0] * 0, i[1, 0].clone(), training=True); F.batch_norm(i, ones, ones, training=True)
    F.instance_norm(i, ones, ones); x @ i[0, :2, :2]; i[0, 0] @ ones.diag(); ones.diag().__rmatmul__(i[0, 0])
    torch.bincount(k, minlength=2); torch.argwhere(x); x[k]; i[k, 0]; i[:, k]; i[k[0], k[1]]; i[k[0], :, k]
    i.index_put((k, k), x[0]); i.index_put((k,), x[0], accumulate=True); torch.rand(2) * x; torch.randint(9, (2,)) + x
    torch.randperm(4) + x[0]; torch.rand_like(x); torch.normal(x, 1.0); torch.multinomial(x, 2); torch.poisson(x)
    torch._standard_gamma(x); x.clone().normal_(); x.clone().bernoulli_(x); x.bernoulli(); F.dropout(x, 0.4)
    F.dropout2d(i, 0.4); F.alpha_dropout(x, 0.4, True); F.gumbel_softmax(x); F.gumbel_softmax(x, hard=True)
    F.gumbel_softmax(i, 0.5, True, dim=0); F.fractional_max_pool2d(i, 2, 2); F.fractional_max_pool3d(i[None], 1, 2)
    F.fractional_max_pool2d(i[None], 2, (1, 2), return_indices=True)
    F.fractional_max_pool2d(torch.ones(1, 3, 3), 2, 2) * x; torch.nn.init.orthogonal_(i[0].clone())
    F.instance_norm(i[:, :2], i[0, 0, :2] * 0, i[1, 0, :2].clone()); F.embedding(k, i[0].clone(), max_norm=0.5)
    torch.func.grad(lambda w: F.embedding(k, w, scale_grad_by_freq=True).sum())(x)
    torch.nn.init.sparse_(i[0].clone(), 0.5); d.Gamma(x, 1.0).sample(); d.Categorical(x).sample((2,))
""", {}, "x", "i", "k", "ones", F=lambda t: t.nn.functional, d=lambda t: t.distributions)  # fmt: skip


@pytest.mark.parametrize("randomness", ["different", "same"])
@pytest.mark.parametrize("text", AT_LEVELS)
def test_vmap_at_two_levels(text: str, randomness: str) -> None:
    def program(t: Any) -> Any:
        x, i = t.linspace(0.1, 1, 8).double().view(2, 2, 2), t.linspace(0.1, 1, 72).double().view(2, 2, 2, 3, 3)
        k, ones = t.tensor([[[1, 0], [1, 1]], [[0, 1], [0, 0]]]), t.ones(3, dtype=t.float64)
        once = t.vmap(lambda *given: AT_LEVELS[text](t, *given, ones), randomness=randomness)
        with warnings.catch_warnings(action="ignore"):  # (of functions that are called per example)
            found = [ended(lambda: once(x[0], i[0], k[0])), ended(lambda: t.vmap(once, randomness=randomness)(x, i, k))]
        return [result for result, _ in found] + [t.get_rng_state()]

    same_as_pytorch(program)


@pytest.mark.parametrize("name", VMAPPED)
def test_vmap(name: str) -> None:
    def program(t: Any) -> Any:
        x, y = (t.linspace(first, 2.0, 6, dtype=t.float64).reshape(2, 3) for first in (-1, 0.5))
        return VMAPPED[name](t, x, y)

    same(program)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("function", programs("""
    F.batch_norm(x, None, None, w[:2, 0], training=True); F.layer_norm(x, (2,), w[0]); F.conv1d(x, w[:2, :, None])
    torch.gru_cell(x[0], x[1], w, w); torch.rnn_tanh(x, x[:1] * 0, [w[:2], w[:2], w[0], w[1]], True, 1, 0, *3 * [0])[0]
    x[0].index_reduce(0, (w[0] > 0.6).long(), w[:2], "prod"); x[0].scatter_reduce(0, (w[:2] > 0.6).long(), x[1], "prod")
""", {}, "x", "w", F=lambda t: t.nn.functional).values())  # fmt: skip
def test_second_derivatives_in_vmap(function: Program) -> None:
    x, w = tinytorch.rand(3, 2, 2, 2, dtype=tinytorch.float64), tinytorch.rand(3, 6, 2, dtype=tinytorch.float64)
    second = tinytorch.func.jacfwd(tinytorch.func.jacrev(functools.partial(function, tinytorch), (0, 1)), (0, 1))
    for k, each in enumerate(zip(x, w, strict=True)):
        for a, b in zip(sum(tinytorch.vmap(second)(x, w), ()), sum(second(*each), ()), strict=True):
            tinytorch.testing.assert_close(a[k], b)


def test_vmap_of_nothing() -> None:
    same(lambda t: t.vmap(lambda x: x.sin().sum())(t.ones(0, 2)))


def test_transforms_keep_the_functions_name() -> None:
    for transform in (tinytorch.func.grad, tinytorch.func.jacrev, tinytorch.func.hessian):
        assert transform(bowl).__name__ == "bowl"


def test_structures_as_text() -> None:
    tree = ({"a": 1, "b": [2, None]}, Pair(3, ()))
    leaves, structure = flatten(tree)
    assert leaves == [1, 2, None, 3]
    assert unflatten(leaves, structure) == tree
    assert describe(structure) == "({'a': *, 'b': [*, *]}, Pair(first=*, second=()))"


# functional_call ----------------------------------------------------------------------------------


def network(t: Any) -> Any:
    t.manual_seed(0)
    return t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Linear(4, 2)).double()


def tied(t: Any) -> Any:
    class Tied(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = t.nn.Parameter(t.ones(1))
            self.b = self.a
            self.register_buffer("count", t.zeros(()))

        def forward(self, x: Any, scale: float = 1.0) -> Any:
            self.count = self.count + 1
            return (x + self.a + self.b * 10) * scale

    return Tied()


def zeros_of(t: Any, module: Any) -> dict[str, Any]:
    return {name: t.zeros_like(each) for name, each in module.named_parameters()}


def call_tied(t: Any, given: Any, **options: Any) -> Any:
    module = tied(t)
    before = dict(module.named_parameters(remove_duplicate=False))
    try:
        return t.func.functional_call(module, given, t.zeros(1), {"scale": 2.0}, **options), given
    finally:
        after = dict(module.named_parameters(remove_duplicate=False))
        assert list(after) == list(before)
        assert all(after[name] is before[name] for name in before)
        assert module.count.item() == 0 or "count" not in given


test_functional_calls = check_all(
    {
        "zeros": lambda t: (lambda m: t.func.functional_call(m, zeros_of(t, m), matrix(t)))(network(t)),
        "some": lambda t: (lambda m: t.func.functional_call(m, {"0.weight": matrix(t)[:1].expand(4, 3)}, (matrix(t),)))(
            network(t)
        ),
        "two dictionaries": lambda t: call_tied(t, ({"a": t.ones(1) * 5}, {"count": t.ones(())})),
        "tied": lambda t: call_tied(t, {"a": t.ones(1) * 5}),
        "tied, other name": lambda t: call_tied(t, {"b": t.ones(1) * 5}),
        "not tied": lambda t: call_tied(t, {"a": t.ones(1) * 5}, tie_weights=False),
        "both": lambda t: call_tied(t, {"a": t.ones(1), "b": t.ones(1) * 3}, tie_weights=False),
        "buffer": lambda t: call_tied(t, {"count": t.ones(())}),
        "new name": lambda t: call_tied(t, {"other": t.ones(1)}),
        "strict": lambda t: call_tied(t, {"a": t.ones(1), "count": t.ones(())}, strict=True),
        "ambiguous": lambda t: call_tied(t, {"a": t.ones(1), "b": t.ones(1) * 3}),
        "same under both names": lambda t: (lambda w: call_tied(t, {"a": w, "b": w}))(t.ones(1) * 4),
        "missing": lambda t: call_tied(t, {"a": t.ones(1)}, strict=True),
        "unexpected": lambda t: call_tied(t, {"a": t.ones(1), "count": t.ones(()), "c": t.ones(1)}, strict=True),
        "no submodule": lambda t: call_tied(t, {"layer.weight": t.ones(1)}),
        "submodule a tensor": lambda t: call_tied(t, {"a.weight": t.ones(1)}),
        "not a tensor": lambda t: call_tied(t, {"count": t.ones(()), "a": 3.0}),
        "a method": lambda t: call_tied(t, {"forward": t.ones(1)}),
        "empty name": lambda t: call_tied(t, {"": t.ones(1)}),
        "repeated": lambda t: call_tied(t, ({"a": t.ones(1)}, {"a": t.ones(1)})),
        "not dictionaries": lambda t: call_tied(t, [3]),
        "no dictionary": lambda t: t.func.functional_call(tied(t), 3, t.ones(1)),
        "raises": lambda t: call_tied(t, {"a": t.ones(3), "b": t.ones(2)}, tie_weights=False),
        "no arguments": lambda t: t.func.functional_call(t.nn.Identity(), {}),
    }
)


def test_gradients_of_modules() -> None:
    def program(t: Any) -> Any:
        model = network(t)
        x, target = matrix(t), t.ones(2, 2, dtype=t.float64)

        def loss(params: Any, x: Any, target: Any) -> Any:
            return t.nn.functional.mse_loss(t.func.functional_call(model, params, (x,)), target)

        params = {name: p.detach() for name, p in model.named_parameters()}
        tracked = t.func.grad(loss)(dict(model.named_parameters()), x, target)
        # Per-sample gradients: a loop where PyTorch's tutorial has vmap.
        rows = [t.func.grad(loss)(params, x[k : k + 1], target[k : k + 1]) for k in range(2)]
        by_sample = {name: t.stack([row[name] for row in rows]) for name in params}
        hessian = t.func.hessian(loss)(params, x, target)
        return (
            t.func.grad(loss)(params, x, target), tracked, by_sample, hessian["2.bias"],
            [p.grad for p in model.parameters()], loss(params, x, target),
        )  # fmt: skip

    same(program)


def test_stack_module_state() -> None:
    def program(t: Any) -> Any:
        models = [t.nn.Sequential(t.nn.Linear(2, 3), tied(t)) for _ in range(3)]
        params, buffers = t.func.stack_module_state(models)
        return params, buffers

    same(program)
    mistakes: list[Program] = [
        lambda t: t.func.stack_module_state([]),
        lambda t: t.func.stack_module_state([t.nn.Linear(2, 3), t.nn.Linear(2, 3).eval()]),
        lambda t: t.func.stack_module_state([t.nn.Linear(2, 3), t.nn.Identity()]),
        lambda t: t.func.stack_module_state([t.nn.Linear(2, 3), t.nn.Linear(2, 3).requires_grad_(False)]),
    ]
    for mistake in mistakes:
        same(mistake)


# Whole programs -----------------------------------------------------------------------------------


def test_jacobians_hessians_tutorial() -> None:
    def program(t: Any) -> Any:
        t.manual_seed(0)
        weight, bias, x = t.randn(4, 5).double(), t.randn(4).double(), t.randn(5).double()

        def predict(weight: Any, bias: Any, x: Any) -> Any:
            return t.nn.functional.linear(x, weight, bias).tanh()

        by_rows = t.func.jacrev(predict, argnums=2)(weight, bias, x)
        by_columns = t.func.jacfwd(predict, argnums=2)(weight, bias, x)
        return (
            by_rows, by_columns, t.func.jacrev(predict, argnums=(0, 1))(weight, bias, x),
            t.func.hessian(predict, argnums=2)(weight, bias, x),
            t.func.jacrev(t.func.jacrev(predict, argnums=2), argnums=2)(weight, bias, x),
            t.func.jacfwd(t.func.jacfwd(predict, argnums=2), argnums=2)(weight, bias, x),
        )  # fmt: skip

    same(program)


def test_maml() -> None:
    """Gradients of losses after a step of gradient descent, through that step."""

    def program(t: Any) -> Any:
        model = network(t)
        opt = t.optim.SGD(model.parameters(), lr=0.1)
        losses = []

        def loss(params: Any, x: Any, y: Any) -> Any:
            return t.nn.functional.mse_loss(t.func.functional_call(model, params, x), y)

        def adapted(params: Any, x: Any, y: Any) -> Any:
            for _ in range(2):
                slopes = t.func.grad(loss)(params, x, y)
                params = {name: params[name] - 0.1 * slopes[name] for name in params}
            return loss(params, x + 1, y)

        for task in range(2):
            x, y = matrix(t) + task, t.ones(2, 2, dtype=t.float64) * task
            value = adapted(dict(model.named_parameters()), x, y)
            opt.zero_grad()
            value.backward()
            opt.step()
            losses.append(value)
        params = {name: p.detach() for name, p in model.named_parameters()}
        return losses, list(model.parameters()), t.func.grad(adapted)(params, x, y)

    same(program)


def test_physics_informed_network() -> None:
    """A loss of second derivatives with respect to the input, differentiated with respect to the weights."""

    def program(t: Any) -> Any:
        model = network(t)
        points = matrix(t)

        def u(point: Any) -> Any:
            return model(point)[0]

        def laplacian(point: Any) -> Any:
            return t.func.hessian(u)(point).trace()

        residual = t.stack([laplacian(p) - u(p) for p in points])
        loss = (residual**2).mean()
        loss.backward()
        nested = t.func.grad(lambda s: t.func.grad(lambda s: t.func.grad(t.sin)(s))(s))(number(t, 0.5))
        return loss, [p.grad for p in model.parameters()], nested

    same(program)


# Other functions of the module --------------------------------------------------------------------

#: A pattern, a shape, and sizes of names.
PATTERNS: list[tuple[str, tuple[int, ...], dict[str, int]]] = [
    ("a b -> b a", (2, 3), {}),
    ("a (b c) -> b (c a)", (2, 6), {"c": 2}),
    ("b (h p) (w q) -> b h w (p q)", (2, 4, 6), {"p": 2, "q": 3}),
    ("... a -> (...) a", (2, 3, 4), {}),
    ("... a -> (... a)", (2, 3, 4), {}),
    ("a ... -> ... a 1", (2, 3), {}),
    ("... a -> a (...)", (4,), {}),
    ("... -> ...", (2, 3), {}),
    ("() a -> a", (1, 3), {}),
    ("a b ... -> b a ...", (2, 3), {}),
    ("a b -> (a b)", (0, 3), {}),
    # malformed patterns, and patterns that do not match the shape
    ("a b -> b c", (2, 3), {}),
    ("a b c -> b c a", (2, 3), {}),
    ("a b b c", (2, 3), {}),
    ("a (b -> a b", (2, 3), {}),
    ("a (...) -> ... a", (2, 3), {}),
    ("a a -> a", (2, 3), {}),
    ("a b -> a b 2", (2, 3), {}),
    ("a b -> a b", (2, 3), {"d": 3}),
    ("a b -> ... a b", (2, 3), {}),
    ("a ((b)) -> a b", (2, 3), {}),
    ("a $ -> a $", (2, 3), {}),
    ("a _b -> a _b", (2, 3), {}),
    ("a.. b -> b a", (2, 3), {}),
    ("a (b c) -> a b c", (2, 3), {"c": 2, "b": 2}),
    ("a (b c) -> a b c", (2, 3), {"c": 2}),
    ("a (b c) -> b (c a)", (2, 3), {}),
]


@needs_oracle
@pytest.mark.parametrize(("pattern", "shape", "sizes"), PATTERNS)
def test_rearrange(pattern: str, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    def outcome(t: Any) -> Any:
        x = t.arange(t.Size(shape).numel()).view(shape)
        try:
            found = t.func.rearrange(x, pattern, **sizes)
        except Exception as error:
            return type(error).__name__, str(error)[:12]
        return found.shape, found.flatten().tolist(), found.stride()

    assert outcome(tinytorch) == outcome(torch)


def test_rearrange_checks_a_dimension_of_size_one() -> None:
    # PyTorch takes the first element of any size.
    with pytest.raises(Exception, match=r"Dimension sizes to do not match \(2 != 1\)"):
        tinytorch.func.rearrange(tinytorch.ones(2, 3), "1 a -> a")


@pytest.mark.parametrize("transform", ["grad", "jacrev", "jacfwd", "hessian", "vmap"])
@pytest.mark.parametrize(
    ("text", "write"),
    programs(
        """
        c.add_(t); c.add_(1) * t; c[0].add_(1) * t; c.detach().mul_(2) * t; c.fill_(3); c.zero_() * t; c.copy_(t)
        [each * t for each in torch._foreach_mul_([c, c[1]], 3)][0]; torch._foreach_copy_([c], [c * 2])[0] * t
        c.resize_(2) * t; c.unsqueeze_(0) * t; c.clone().add_(t); torch.add(c, 1, out=c) * t; norm(t.view(2, 1))
        c.detach_() * t
        t.requires_grad_(); t.detach().requires_grad_(False); c.clone().requires_grad_() * t; (t * 2).retain_grad() or t
        torch.autograd.functional.jacobian(torch.sin, c) * t; torch.sparse_coo_tensor([[0]], c[:1], (2,)) * 1 and t
        """,
        {}, "t", "c", "norm",
    ).items(),
)  # fmt: skip
def test_writes_to_captured_tensors_and_asking_for_gradients(text: str, write: Any, transform: str) -> None:
    def run(t: Any) -> Any:
        c, x, norm = t.tensor([1.0, 2.0]), t.tensor([[0.5, 3.0], [1.5, -1.0]]), t.nn.BatchNorm1d(1)
        f = getattr(t.func, transform)(lambda x: write(t, x, c, norm).sum())
        found, _ = ended(lambda: f(x if transform == "vmap" else x[0]))
        return getattr(found, "kind", found), c, list(norm.buffers())

    same(run)


def test_writes_that_are_not_recorded() -> None:
    def f(t: Any, x: Any) -> Any:
        w = (x * x).clone()
        t.no_grad()(w[:2].mul_)(1.5)
        return (w.log() * w).sum()

    same(lambda t: t.func.jacrev(t.func.jacfwd(lambda x: f(t, x)))(vector(t)))


def test_derivatives_that_do_not_exist() -> None:
    once = tinytorch.autograd.function.once_differentiable
    square = made(tinytorch, forward=lambda ctx, x: x * x, backward=once(lambda ctx, g: g * 2)).apply
    func, x = tinytorch.func, vector(tinytorch)
    for call in (lambda: func.linearize(square, x)[1](x), lambda: func.jacrev(func.jacrev(square))(x)):
        with pytest.raises(RuntimeError, match="once_differentiable"):
            call()


def test_functionalize() -> None:
    def program(t: Any) -> Any:
        def f(x: Any, *, k: int) -> Any:
            y = x.clone()
            y.view(-1)[0].mul_(k)
            x.add_(1)
            return {"y": y, "x": x}

        x = matrix(t)
        found = t.func.functionalize(f, remove="mutations_and_views")(x, k=3)
        return found, x, t.func.grad(lambda x: t.func.functionalize(f)(x, k=2)["y"].sum())(x)

    same(program)
    with pytest.raises(RuntimeError, match=r"received invalid argument for remove=views"):
        tinytorch.func.functionalize(tinytorch.sin, remove="views")


def test_debug_unwrap() -> None:
    def program(t: Any) -> Any:
        seen: list[Any] = []

        def f(x: Any) -> Any:
            y = x * 2
            plain = t.func.debug_unwrap(y)
            seen.append([plain, repr(plain), plain.requires_grad])
            return y.sum()

        x = matrix(t)
        t.func.grad(f)(x)
        t.func.grad(lambda x: t.func.grad(f)(x).sum())(x)
        t.func.jvp(f, (x,), (x,))
        outside = matrix(t, requires_grad=True) * 2
        return seen, t.func.debug_unwrap(outside) is outside

    same(program)


def test_replace_all_batch_norm_modules() -> None:
    def program(t: Any) -> Any:
        net = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Sequential(t.nn.BatchNorm1d(4)))
        net = net.double()
        assert t.func.replace_all_batch_norm_modules_(net) is net
        assert not net[1][0].track_running_stats
        params = {name: p.detach() * 0 + 0.5 for name, p in net.named_parameters()}
        x = matrix(t)

        def loss(params: Any) -> Any:
            return (t.func.functional_call(net, params, (x,)) ** 2).sum()

        return t.func.grad(loss)(params), list(net.state_dict()), net.eval()(x).shape

    same(program)
