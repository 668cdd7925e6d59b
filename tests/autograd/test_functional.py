"""`torch.autograd.functional`: values, structure, graphs and errors, against PyTorch's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tinytorch
from tests.oracle import torch
from tests.same import same_as_pytorch

if torch is not None:
    with warnings.catch_warnings():  # what PyTorch loads when it is first used gives warnings of its own
        warnings.simplefilter("ignore")
        torch.func.jacfwd(torch.sin)(torch.ones(1))

Program = Callable[[Any], Any]

CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def tensors(t: Any, requires_grad: bool = False) -> tuple[Any, Any]:
    x = t.tensor([[0.3, -0.7, 1.2], [0.5, 0.9, -0.1]], dtype=t.float64)
    y = t.tensor([1.5, -0.4, 0.8], dtype=t.float64)
    return x.requires_grad_(requires_grad), y.requires_grad_(requires_grad)


def scalar(x: Any, y: Any) -> Any:
    return (x.sin() * y.exp() + x**3 * y).sum()


def several(x: Any, y: Any) -> tuple[Any, Any]:
    return (x * y).tanh(), (x.exp() @ y).sum()


def ignores_y(x: Any, y: Any) -> Any:
    return x.exp().sum()


def linear(x: Any, y: Any) -> Any:
    return (2 * x).sum() + (3 * y).sum()


FUNCTIONS = {"scalar": scalar, "several": several, "ignores_y": ignores_y, "linear": linear}


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_structure_and_graphs(name: str, strict: bool, create_graph: bool, requires_grad: bool) -> None:
    func = FUNCTIONS[name]
    options = {"create_graph": create_graph, "strict": strict}

    def calls(t: Any) -> dict[str, Program]:
        def weights(like: Any) -> Any:
            made = [(t.arange(each.numel()) + 0.5).to(each.dtype).view_as(each) for each in like]
            return made[0] if len(made) == 1 else tuple(made)

        f = t.autograd.functional
        x, y = tensors(t, requires_grad)
        outs = func(x, y)
        outs = outs if isinstance(outs, tuple) else (outs,)
        back = (lambda: (func, (x, y), weights([x, y]))), (lambda: (func, (x, y), weights(outs)))
        return {
            "jacobian": lambda _: f.jacobian(func, (x, y), **options),
            "jacobian of one": lambda _: f.jacobian(lambda x: func(x, y), x, **options),
            "hessian": lambda _: f.hessian(func, (x, y), **options),
            "hessian of one": lambda _: f.hessian(lambda x: func(x, y), x, **options),
            "vjp": lambda _: f.vjp(*back[1](), **options),
            "jvp": lambda _: f.jvp(*back[0](), **options),
            "vhp": lambda _: f.vhp(*back[0](), **options),
            "hvp": lambda _: f.hvp(*back[0](), **options),
            "hvp of one": lambda _: f.hvp(lambda x: func(x, y), x, weights([x]), **options),
        }

    for call in calls(tinytorch):
        same_as_pytorch(lambda t, call=call: calls(t)[call](t), **CLOSE)


def test_results_connect_to_the_inputs() -> None:
    def program(t: Any) -> Any:
        f = t.autograd.functional
        found = []
        for call in (
            lambda x, y: f.jacobian(several, (x, y), create_graph=True)[0][1],
            lambda x, y: f.hessian(scalar, (x, y), create_graph=True)[0][1],
            lambda x, y: f.vjp(several, (x, y), (x, y.sum()), create_graph=True)[1][0],
            lambda x, y: f.jvp(several, (x, y), (x, y), create_graph=True)[1][0],
            lambda x, y: f.hvp(scalar, (x, y), (x, y), create_graph=True)[1][0],
            lambda x, y: f.vhp(scalar, (x, y), (x, y), create_graph=True)[1][1],
        ):
            x, y = tensors(t, requires_grad=True)
            call(x, y).pow(2).sum().backward()
            found.append((x.grad, y.grad))
        return found

    same_as_pytorch(program, **CLOSE)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_forward_mode_and_vectorize(requires_grad: bool) -> None:
    def program(t: Any) -> Any:
        f = t.autograd.functional
        x, y = tensors(t, requires_grad)
        forward = {"vectorize": True, "strategy": "forward-mode"}
        outer = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
        results = [
            f.jacobian(several, (x, y), vectorize=True),
            f.jacobian(several, (x, y), **forward),
            f.jacobian(lambda x: x * y, x, **forward),
            f.jacobian(ignores_y, (x, y), **forward),
            f.hessian(scalar, (x, y), vectorize=True),
            f.hessian(scalar, (x, y), **outer),
            f.hessian(lambda x: scalar(x, y), x, **outer),
        ]
        lists = f.jacobian(lambda x: (x, x * 2), (x,), **forward)
        kinds = type(lists).__name__, type(lists[0]).__name__
        return *[detached(each) for each in (*results, lists)], kinds, x.requires_grad, x.grad, y.requires_grad

    same_as_pytorch(program, **CLOSE)


def detached(tree: Any) -> Any:
    return tuple(map(detached, tree)) if isinstance(tree, (tuple, list)) else tree.detach()


def test_no_grad_around_and_single_elements() -> None:
    def program(t: Any) -> Any:
        f = t.autograd.functional
        x, y = tensors(t, requires_grad=True)
        one = t.tensor([1.5], dtype=t.float64)
        with t.no_grad():
            inside = [
                f.jacobian(several, (x, y)),
                f.hessian(scalar, (x, y), create_graph=True),
                f.vjp(scalar, (x, y)),
                f.jvp(several, (x, y), (x, y)),
                f.vhp(scalar, (x, y), (x, y)),
                f.hvp(scalar, (x, y), (x, y)),
            ]
            connected = f.jvp(several, (x, y), (x, y), create_graph=True)[1]
        return (
            *inside, *connected, f.jvp(lambda a: a.sin(), one), f.hvp(lambda a: a**3, one), f.vhp(lambda a: a**3, one),
            x.grad, y.grad,
        )  # fmt: skip

    same_as_pytorch(program, **CLOSE)


def test_jacobians_of_no_elements() -> None:
    """PyTorch raises an error of `stack` for these."""
    (x, y), nothing = tensors(tinytorch), tinytorch.zeros(0)
    jacobian = tinytorch.autograd.functional.jacobian
    blocks = jacobian(lambda x, y: (x[:0] * y[:0, None], y.exp()), (x, y))
    assert [[tuple(block.shape) for block in row] for row in blocks] == [[(0, 3, 2, 3), (0, 3, 3)], [(3, 2, 3), (3, 3)]]
    assert jacobian(tinytorch.exp, nothing).shape == (0, 0)


MISTAKES: dict[str, Program] = {
    "inputs": lambda t: t.autograd.functional.jacobian(lambda x: x, 1.0),
    "inputs tuple": lambda t: t.autograd.functional.vjp(lambda x, y: x, (t.ones(1), 2)),
    "outputs": lambda t: t.autograd.functional.jacobian(lambda x: [x], t.ones(2)),
    "outputs tuple": lambda t: t.autograd.functional.jvp(lambda x: (x, 1), t.ones(2), t.ones(2)),
    "v": lambda t: t.autograd.functional.vjp(lambda x: x, t.ones(2), 1.0),
    "vjp without v": lambda t: t.autograd.functional.vjp(lambda x: x, t.ones(2)),
    "jvp without v": lambda t: t.autograd.functional.jvp(lambda x: x, t.ones(2)),
    "hvp without v": lambda t: t.autograd.functional.hvp(lambda x: x.sum(), t.ones(2)),
    "vhp without v": lambda t: t.autograd.functional.vhp(lambda x: x.sum(), t.ones(2)),
    "v is several": lambda t: t.autograd.functional.vjp(lambda x: x, t.ones(2), (t.ones(2),) * 2),
    "v is too few": lambda t: t.autograd.functional.jvp(lambda x, y: x, (t.ones(2),) * 2, t.ones(2)),
    "v of other size": lambda t: t.autograd.functional.vjp(lambda x: x, t.ones(2), t.ones(3)),
    "entry of v": lambda t: t.autograd.functional.hvp(lambda x, y: x.sum(), (t.ones(2),) * 2, (t.ones(2), t.ones(3))),
    "hessian of vector": lambda t: t.autograd.functional.hessian(lambda x: x, t.ones(2)),
    "hessian of tuple": lambda t: t.autograd.functional.hessian(lambda x: (x.sum(),), t.ones(2)),
    "vhp of vector": lambda t: t.autograd.functional.vhp(lambda x: x, t.ones(2), t.ones(2)),
    "hvp of tuple": lambda t: t.autograd.functional.hvp(lambda x: (x.sum(),), t.ones(2), t.ones(2)),
    "integers": lambda t: t.autograd.functional.jacobian(lambda x: x, t.ones(2).long()),
    "strategy": lambda t: t.autograd.functional.jacobian(lambda x: x, t.ones(2), strategy="both"),
    "outer strategy": lambda t: t.autograd.functional.hessian(
        lambda x: x.sum(), t.ones(2), outer_jacobian_strategy="both"
    ),
    "forward strict": lambda t: t.autograd.functional.jacobian(
        lambda x: x, t.ones(2), strict=True, strategy="forward-mode"
    ),
    "forward graph": lambda t: t.autograd.functional.jacobian(
        lambda x: x, t.ones(2), create_graph=True, strategy="forward-mode"
    ),
    "forward not vectorized": lambda t: t.autograd.functional.jacobian(lambda x: x, t.ones(2), strategy="forward-mode"),
    "forward inputs": lambda t: t.autograd.functional.jacobian(
        lambda x: x, 1.0, vectorize=True, strategy="forward-mode"
    ),
    "forward integers": lambda t: t.autograd.functional.jacobian(
        lambda x: x, t.ones(2).long(), vectorize=True, strategy="forward-mode"
    ),
    "vectorize strict": lambda t: t.autograd.functional.jacobian(lambda x: x, t.ones(2), strict=True, vectorize=True),
    "jacobian of a constant": lambda t: t.autograd.functional.jacobian(lambda x: t.ones(2), t.ones(2), strict=True),
    "strict constant": lambda t: t.autograd.functional.vjp(lambda x: t.ones(()), t.ones(2), strict=True),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name: str) -> None:
    same_as_pytorch(MISTAKES[name])
