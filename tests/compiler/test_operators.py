"""Operators of users (`torch.library.custom_op`) in compiled functions: a call is one step of the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinytorch as torch


@torch.library.custom_op("tests_compiler::rolled", mutates_args=())
def rolled(x: torch.Tensor, steps: int) -> torch.Tensor:
    """NumPy computes, and a value is read: nothing that a tracer could follow."""
    amount = steps + int(x.sum().item() > 0)
    return torch.from_numpy(np.roll(x.numpy(), amount).copy())


@torch.library.custom_op("tests_compiler::halves", mutates_args=())
def halves(xs: list[torch.Tensor], *, scale: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.cat(xs) * scale
    return x[: len(x) // 2].clone(), x[len(x) // 2 :].clone()


@torch.library.custom_op("tests_compiler::positive", mutates_args=())
def positive(x: torch.Tensor) -> torch.Tensor:
    return x[x > 0]


@torch.library.custom_op("tests_compiler::doubled_", mutates_args=("x",))
def doubled_(x: torch.Tensor) -> None:
    x.mul_(2)


@torch.library.custom_op("tests_compiler::counted", mutates_args=("x",))
def counted(x: torch.Tensor) -> torch.Tensor:
    """NumPy writes: the version of the tensor does not tell."""
    x.numpy()[0] += 1
    return torch.tensor(float(x.numpy()[0]))


def compiled_equals(function: Any, *calls: Any) -> Any:
    compiled = torch.compile(function)
    for args in calls:
        ours, expected = compiled(*args), function(*args)
        for x, y in zip(*[each if isinstance(each, tuple) else (each,) for each in (ours, expected)], strict=True):
            assert x.equal(y) and x.dtype is y.dtype
    return compiled


def numbers(*shape: int, seed: int = 0) -> Any:
    return torch.tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def test_one_step() -> None:
    calls = [(numbers(6, seed=k),) for k in range(6)]
    compiled = compiled_equals(lambda x: rolled(x * 2, 2).sin() + 1, *calls)
    assert len(compiled.variants) == 1 and compiled.variants[0].runs == 5


def test_by_its_name_in_the_namespace() -> None:
    compiled = compiled_equals(
        lambda x: torch.ops.tests_compiler.rolled(x, 1) * 2, *[(numbers(4, seed=k),) for k in range(4)]
    )
    assert compiled.variants[0].runs == 3


def test_lists_of_tensors_and_several_results() -> None:
    def function(x: Any, y: Any) -> Any:
        first, second = halves([x, y + 1], scale=0.5)
        return first * second.sum(), second

    compiled = compiled_equals(function, *[(numbers(3, seed=k), numbers(5, seed=k + 9)) for k in range(4)])
    assert compiled.variants[0].runs == 3


def test_a_result_whose_shape_follows_from_values() -> None:
    """The program is left where the shape is another one than when it was recorded."""
    calls = [(numbers(8, seed=k),) for k in (0, 0, 1, 2, 0)]
    compiled = compiled_equals(lambda x: positive(x + 0.1) * 2, *calls)
    assert compiled.variants[0].runs >= 2


def test_with_parameters_and_without_gradients() -> None:
    model = torch.nn.Linear(4, 4)
    compiled = torch.compile(lambda x: rolled(model(x), 1))
    with torch.no_grad():
        for seed in range(3):
            x = numbers(2, 4, seed=seed)
            assert compiled(x).equal(rolled(model(x), 1))
    assert compiled.variants[0].runs == 2


@pytest.mark.parametrize("function", [lambda x: doubled_(x.clone()), lambda x: rolled(x.mul_(2), 1)])
def test_what_runs_as_python(function: Any) -> None:
    compiled = torch.compile(function)
    for _ in range(3):
        x, y = numbers(4), numbers(4)
        ours, expected = compiled(x), function(y)
        assert x.equal(y) and (ours is expected is None or ours.equal(expected))
    assert not compiled.variants
    assert "tests_compiler" in compiled.explain()


def test_an_operator_that_says_that_it_writes_is_no_step() -> None:
    compiled = torch.compile(lambda x: counted(x) * x)
    for _ in range(3):
        x, y = numbers(4), numbers(4)
        assert compiled(x).equal(counted(y) * y) and x.equal(y)
    assert not compiled.variants
    assert "whose effects are not known" in compiled.reasons[0]


def test_gradients() -> None:
    @torch.library.custom_op("tests_compiler::cubed", mutates_args=())
    def cubed(x: torch.Tensor) -> torch.Tensor:
        return x**3

    cubed.register_autograd(
        lambda ctx, g: g * 3 * ctx.x**2, setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0])
    )
    compiled = torch.compile(lambda x: cubed(x * 2).sum())
    for seed in range(4):
        x, y = numbers(4, seed=seed).requires_grad_(), numbers(4, seed=seed).requires_grad_()
        compiled(x).backward()
        cubed(y * 2).sum().backward()
        assert x.grad.equal(y.grad)
    assert compiled.variants[0].runs == 3 and "opaque" in compiled.source


def test_gradients_of_an_operator_of_lists() -> None:
    @torch.library.custom_op("tests_compiler::weighted", mutates_args=())
    def weighted(xs: list[torch.Tensor], by: float, *, plus: float = 0.0) -> torch.Tensor:
        return torch.from_numpy(xs[0].numpy() * by + xs[1].numpy() + plus)

    def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        ctx.by = inputs[1] + keyword_only_inputs["plus"]
        ctx.save_for_backward(output)

    def backward(ctx: Any, g: Any) -> Any:
        return [g * ctx.by, g * ctx.saved_tensors[0]], None

    weighted.register_autograd(backward, setup_context=setup)
    function = lambda x, y: weighted([x * 2, y], 0.5, plus=1.0).square().sum()  # noqa: E731
    compiled = torch.compile(function)
    for seed in range(4):
        given = [[numbers(4, seed=seed + k).requires_grad_() for k in range(2)] for _ in range(2)]
        compiled(*given[0]).backward()
        function(*given[1]).backward()
        assert all(a.grad.equal(b.grad) for a, b in zip(*given, strict=True))
    assert compiled.variants[0].runs == 3


def test_operators_of_pytorch_by_their_names() -> None:
    compiled = compiled_equals(
        lambda x: torch.ops.aten.relu.default(torch.ops.aten.sin(x)) * 2, *[(numbers(4, seed=k),) for k in range(4)]
    )
    assert compiled.variants[0].runs == 3
