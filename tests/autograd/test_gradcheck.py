"""`gradcheck` and `gradgradcheck`: they find what PyTorch's find, and say it in the same words."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

import tinytorch
from tests.oracle import torch
from tests.same import same_as_pytorch

parametrize = pytest.mark.parametrize
modes = parametrize("fast_mode", [False, True], ids=["slow", "fast"])


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Let PyTorch give the warnings of its first use of forward mode."""
    if torch is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = torch.ones(1, dtype=torch.float64, requires_grad=True)
            torch.autograd.gradcheck(lambda x: x * x, x, check_forward_ad=True)


def leaf(torch: Any, *shape: int, requires_grad: bool = True) -> Any:
    x = torch.randn(shape, dtype=torch.float64)
    return x.requires_grad_(requires_grad)


def made(torch: Any, forward: Any, backward: Any, jvp: Any = None) -> Any:
    """Return the `apply` of a custom `Function`."""
    rules = {"forward": forward, "backward": backward} | ({"jvp": jvp} if jvp else {})
    body = {name: staticmethod(rule) for name, rule in rules.items()}
    return type("Custom", (torch.autograd.Function,), body).apply


def square(ctx: Any, x: Any) -> Any:
    ctx.save_for_backward(x)
    ctx.save_for_forward(x)
    return x * x


def times(factor: float) -> Callable[[Any, Any], Any]:
    """Return the rule `g -> factor * x * g`, which is right for `square` if the factor is 2."""
    return lambda ctx, g: g * ctx.saved_tensors[0] * factor


def one_output(ctx: Any, x: Any) -> Any:
    ctx.set_materialize_grads(False)
    return x * 2


def two_outputs(ctx: Any, x: Any) -> Any:
    ctx.set_materialize_grads(False)
    return x * 2, x * 3


# What is right ------------------------------------------------------------------------------------

RIGHT: dict[str, Any] = {
    "product": lambda x, y: x * y,
    "matrix product": lambda x, y: x @ y.t(),
    "one number": lambda x, y: (x * y).sum(),
    "an input is not used": lambda x, y: x.exp(),
    "a tuple": lambda x, y: (x * y, (x + y).sin()),
    "a list": lambda x, y: [x * y, x.clone()],
    "an input itself": lambda x, y: x,
    "a write in place": lambda x, y: x.clone().mul_(y),
    "views": lambda x, y: (x * y).unbind(0),
    "with integers": lambda x, y: (x * y).max(1),
    "integers only": lambda x, y: x.argmax(),
    "a constant": lambda x, y: x.new_ones(3),
    "a constant at the end": lambda x, y: (x * y, x.new_ones(3)),
    "an empty one": lambda x, y: (x * y)[:0],
}


@modes
@parametrize("name", RIGHT)
def test_right_gradients_pass(name: str, fast_mode: bool) -> None:
    def program(torch: Any) -> Any:
        inputs = leaf(torch, 2, 3), leaf(torch, 2, 3)
        options = {"fast_mode": fast_mode}
        check, check_second = torch.autograd.gradcheck, torch.autograd.gradgradcheck
        first = check(RIGHT[name], inputs, check_grad_dtypes=True, check_forward_ad=True, **options)
        forward = check(RIGHT[name], inputs, check_forward_ad=True, check_backward_ad=False, **options)
        if name in ("integers only", "a constant"):
            return first, forward
        second = check_second(RIGHT[name], inputs, check_fwd_over_rev=True, **options)
        return first, forward, second, torch.rand(2)  # the last: what was drawn

    same_as_pytorch(program)


@modes
def test_inputs_of_all_kinds(fast_mode: bool) -> None:
    def program(torch: Any) -> Any:
        x, constant = leaf(torch, 3), leaf(torch, 3, requires_grad=False)
        index = torch.tensor([2, 0, 0])
        options = {"fast_mode": fast_mode, "check_forward_ad": True}
        return [
            torch.autograd.gradcheck(function, inputs, **options)
            for function, inputs in [
                (lambda x: x * x, x),
                (lambda x: x * x, [x]),
                (lambda x, i: x[i], (x, index)),
                (lambda c, i, x, n: (x * c)[i] * n, (constant, index, x, 2.5)),
                (lambda x: x.sum(), leaf(torch, 0, 3)),
                (lambda x: x.exp(), leaf(torch)),
                (lambda x: x.exp(), leaf(torch, 2, 3).detach().t().requires_grad_()),
                (lambda x: x.exp(), x[1:]),
                (lambda x: x.exp(), x * 2),
            ]
        ]

    same_as_pytorch(program)


@modes
def test_the_inputs_are_left_as_they_were(fast_mode: bool) -> None:
    def program(torch: Any) -> Any:
        x = leaf(torch, 3)
        before = x.detach().clone()

        def fails(x: Any) -> Any:
            if not torch.equal(x.detach(), before):
                raise KeyError
            return x * 2

        torch.autograd.gradcheck(lambda x: x * x, x, fast_mode=fast_mode)
        assert torch.equal(x.detach(), before)
        return x._version, x.grad, torch.autograd.gradcheck(fails, x, fast_mode=fast_mode)

    same_as_pytorch(program)


# What is wrong ------------------------------------------------------------------------------------

WRONG: dict[str, Callable[[Any], Any]] = {
    "a factor": lambda torch: made(torch, square, times(3)),
    "detached in part": lambda torch: lambda x: x * x.detach(),
    "all detached": lambda torch: lambda x: x.detach() * 3,
    "the second output": lambda torch: lambda x: (x * 2, made(torch, square, times(3))(x)),
    "not times g": lambda torch: made(torch, square, lambda ctx, g: ctx.saved_tensors[0] * 2),
    "another gradient each time": lambda torch: made(
        torch, lambda ctx, x: x * 1, lambda ctx, g: g * (1 + 1e-7 * torch.rand(1, dtype=g.dtype))
    ),
    "no gradient is taken for none": lambda torch: made(
        torch, one_output, lambda ctx, g: torch.ones(1, dtype=torch.float64) if g is None else g * 2
    ),
    "no gradient is not foreseen": lambda torch: made(torch, one_output, lambda ctx, g: g * 2),
    "no gradient is an error": lambda torch: made(torch, one_output, _refuses_none),
    "no gradient is an error further up": lambda torch: lambda x: made(torch, one_output, _refuses_none)(x.sin()),
    "no gradient is an error further down": lambda torch: lambda x: made(torch, one_output, _refuses_none)(x).sin(),
    "one of two gradients is an error": lambda torch: made(
        torch, two_outputs, lambda ctx, g, h: _refuses_none(ctx, g) + _refuses_none(ctx, h)
    ),
    "other shapes": lambda torch: lambda x: x[x >= _START] * 2,
    "other dtypes": lambda torch: lambda x: x * 2 if x[0] >= _START else x.float() * 2,
    "nested outputs": lambda torch: lambda x: (x, (x * 2,)),
    "None": lambda torch: lambda x: None,
    "a dict": lambda torch: lambda x: {"out": x * 2},
    "a number": lambda torch: lambda x: 3.0,
    "an error": lambda torch: lambda x: {}["key"],
}

_START = 0.5


def _refuses_none(ctx: Any, g: Any) -> Any:
    if g is None:
        raise RuntimeError("no gradient")
    return g * 2


@modes
@parametrize("name", WRONG)
@parametrize("raises", [True, False])
def test_wrong_gradients_fail(name: str, fast_mode: bool, raises: bool) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([_START], dtype=torch.float64, requires_grad=True)
        function = WRONG[name](torch)
        return torch.autograd.gradcheck(function, x, fast_mode=fast_mode, raise_exception=raises)

    same_as_pytorch(program)


@modes
def test_a_mismatch_is_reported_with_both_jacobians(fast_mode: bool) -> None:
    def program(torch: Any) -> Any:
        function = made(torch, square, times(3), times(5))
        both = {"check_backward_ad": False, "check_forward_ad": True}
        lines = []
        for options in ({}, both):
            with pytest.raises(RuntimeError) as caught:
                torch.autograd.gradcheck(
                    lambda c, x: (c + 1, function(x) * c),
                    (leaf(torch, 3), leaf(torch, 3)),
                    fast_mode=fast_mode,
                    **options,
                )
            lines.append(str(caught.value).split("\n\n")[0])
        return lines

    if fast_mode:
        ours = program(tinytorch)
        assert "for output 1 with respect to input 1" in ours[0]
    else:
        same_as_pytorch(program)


def test_the_fast_mode_shows_whole_jacobians_too() -> None:
    x = tinytorch.tensor([1.0, 2.0], dtype=tinytorch.float64, requires_grad=True)
    wrong = made(tinytorch, square, times(3))
    with pytest.raises(RuntimeError) as caught:
        tinytorch.autograd.gradcheck(wrong, x, fast_mode=True)
    text = str(caught.value)
    assert "tensor([[2.0000, 0.0000]" in text and "tensor([[3., 0.]" in text
    assert "max per-element difference (slow mode) is: " in text and "Fast gradcheck failed" not in text


def test_a_projection_may_fail_where_jacobians_pass() -> None:
    def program(torch: Any) -> Any:
        # Each element is off by less than rtol, but in the projection most of the value cancels, and no error.
        jacobian = torch.tensor([1.0009, -0.9991], dtype=torch.float64)
        function = made(torch, lambda ctx, x: x[0] - x[1], lambda ctx, g: g * jacobian)
        x = leaf(torch, 2)
        assert torch.autograd.gradcheck(function, x, atol=1e-8)
        torch.autograd.gradcheck(function, x, atol=1e-8, fast_mode=True)

    same_as_pytorch(program)
    with pytest.raises(RuntimeError, match="Fast gradcheck failed but element-wise differences are small"):
        program(tinytorch)


@modes
def test_the_tolerances(fast_mode: bool) -> None:
    def program(torch: Any) -> Any:
        x = leaf(torch, 3)
        check = torch.autograd.gradcheck
        options = {"fast_mode": fast_mode, "raise_exception": False}
        wrong = made(torch, square, times(2.001))
        shaky = made(torch, lambda ctx, x: x * 1, lambda ctx, g: g * (1 + 1e-7 * torch.rand(1, dtype=g.dtype)))
        offset = made(torch, lambda ctx, x: x * 1, lambda ctx, g: g + 1e-9)
        return [
            check(wrong, x, rtol=1e-2, **options),
            check(wrong, x, rtol=1e-5, atol=0.0, **options),
            check(wrong, x, rtol=0.0, atol=1e-1, **options),
            check(shaky, x, nondet_tol=1e-6, **options),
            check(shaky, x, nondet_tol=1e-12, **options),
            check(lambda x: x**3, x, eps=1e-1, **options),
            check(offset, x, check_undefined_grad=False, masked=True, **options),
            check(offset, x, check_undefined_grad=False, masked=False, **options),
        ]

    same_as_pytorch(program)


@modes
def test_undefined_gradients_need_not_be_checked(fast_mode: bool) -> None:
    def program(torch: Any) -> Any:
        function = made(torch, one_output, _refuses_none)
        return torch.autograd.gradcheck(function, leaf(torch, 2), fast_mode=fast_mode, check_undefined_grad=False)

    same_as_pytorch(program)


@modes
@parametrize("options", [{}, {"eps": 1e-2, "atol": 1e-2}], ids=["fails", "passes"])
def test_single_precision_is_warned_of(options: Any, fast_mode: bool) -> None:
    def program(torch: Any) -> Any:
        x = torch.full((3,), 0.7, requires_grad=True)
        return torch.autograd.gradcheck(lambda x: x * 3, x, fast_mode=fast_mode, raise_exception=False, **options)

    same_as_pytorch(program)


@parametrize(
    "inputs",
    [
        lambda torch: leaf(torch, 2, requires_grad=False),
        lambda torch: 3.0,
        lambda torch: (),
        lambda torch: leaf(torch, 1, requires_grad=False).expand(3).requires_grad_(),
        lambda torch: (leaf(torch, 2), leaf(torch, 1, requires_grad=False).expand(2, 3).requires_grad_()),
    ],
)
def test_inputs_that_cannot_be_checked(inputs: Any) -> None:
    def program(torch: Any) -> Any:
        torch.autograd.gradcheck(lambda *xs: xs[0] * 2, inputs(torch), raise_exception=False)

    same_as_pytorch(program)


@parametrize(
    ("check", "options"),
    [
        ("gradcheck", {"check_backward_ad": False}),
        ("gradcheck", {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True}),
        ("gradcheck", {"check_batched_forward_grad": True}),
        ("gradgradcheck", {"check_rev_over_rev": False}),
        ("gradgradcheck", {"check_rev_over_rev": False, "check_fwd_over_rev": True}),
        (
            "gradgradcheck",
            {"check_rev_over_rev": False, "check_fwd_over_rev": True, "check_undefined_grad": False,
             "check_batched_grad": True},
        ),
    ],
)  # fmt: skip
def test_options_that_contradict_each_other(check: str, options: Any) -> None:
    def program(torch: Any) -> Any:
        getattr(torch.autograd, check)(lambda x: x * 2, leaf(torch, 2), **options)

    same_as_pytorch(program)


@modes
def test_checks_of_batches(fast_mode: bool) -> None:
    def program(torch: Any) -> Any:
        options = {"check_batched_grad": True, "fast_mode": fast_mode}
        x, y = leaf(torch, 2, 3), leaf(torch, 3)
        return (
            torch.autograd.gradcheck(
                lambda x, y: (x.sin() * y, y.sum()), (x, y), check_forward_ad=True,
                check_batched_forward_grad=True, **options,
            ),
            torch.autograd.gradgradcheck(lambda x: x.exp(), x, **options),
        )  # fmt: skip

    same_as_pytorch(program)


def test_the_check_of_batches_finds_what_differs() -> None:
    calls = []

    def backward(ctx: Any, g: Any) -> Any:
        calls.append(g)
        return g * (2 if len(calls) <= 5 else 3)

    # Each of the two elements is asked for twice, then the two vectors of the batch.
    function = made(tinytorch, lambda ctx, x: x * 2, backward)
    with pytest.raises(RuntimeError, match="failed while testing batched gradient computation"):
        tinytorch.autograd.gradcheck(function, leaf(tinytorch, 2), check_undefined_grad=False, check_batched_grad=True)


def test_as_a_function_and_as_a_module() -> None:
    def program(torch: Any) -> Any:
        module = import_module(f"{torch.__name__}.autograd.gradcheck")
        assert torch.autograd.gradcheck is module.gradcheck
        assert torch.autograd.gradgradcheck is module.gradgradcheck
        return [each.__name__ for each in module.GradcheckError.__mro__]

    same_as_pytorch(program)


# Forward mode -------------------------------------------------------------------------------------


@modes
@parametrize("raises", [True, False])
@parametrize("rule", [None, times(3), times(2)], ids=["missing", "wrong", "right"])
def test_the_rule_of_a_custom_function(rule: Any, fast_mode: bool, raises: bool) -> None:
    def program(torch: Any) -> Any:
        function = made(torch, square, times(2), rule)
        return torch.autograd.gradcheck(
            function, leaf(torch, 3), check_forward_ad=True, fast_mode=fast_mode, raise_exception=raises
        )

    same_as_pytorch(program)


@modes
@parametrize("check", [True, False])
def test_inputs_without_a_tangent(check: bool, fast_mode: bool) -> None:
    def add(ctx: Any, x: Any, y: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x + y

    def tangent(ctx: Any, t: Any, s: Any) -> Any:
        if t is None:
            return s * 3
        return t if s is None else t + s

    def program(torch: Any) -> Any:
        function = made(torch, add, lambda ctx, g: (g, g), tangent)
        with pytest.raises(RuntimeError) if check else _nothing() as caught:
            torch.autograd.gradcheck(
                function, (leaf(torch, 3), leaf(torch, 3)), fast_mode=fast_mode,
                check_forward_ad=True, check_backward_ad=False, check_undefined_grad=check,
            )  # fmt: skip
        return type(caught.value).__name__ if check else None, "tangent" in str(caught)

    same_as_pytorch(program)


def _nothing() -> Any:
    from contextlib import nullcontext

    return nullcontext()


@modes
def test_a_captured_input_has_no_tangent(fast_mode: bool) -> None:
    def program(torch: Any) -> Any:
        x = leaf(torch, 2)
        torch.autograd.gradcheck(lambda _: x * 2, x, check_forward_ad=True, fast_mode=fast_mode)

    same_as_pytorch(program)


# Second derivatives -------------------------------------------------------------------------------


@modes
@parametrize("over", ["reverse", "forward"])
def test_a_gradient_that_is_not_differentiable(over: str, fast_mode: bool) -> None:
    def program(torch: Any) -> Any:
        function = made(torch, square, lambda ctx, g: g * ctx.saved_tensors[0].detach() * 2, times(2))
        torch.autograd.gradgradcheck(
            function, leaf(torch, 2), fast_mode=fast_mode, check_undefined_grad=over == "reverse",
            check_fwd_over_rev=over == "forward", check_rev_over_rev=over == "reverse",
        )  # fmt: skip

    same_as_pytorch(program)


@modes
def test_given_gradients_of_the_outputs(fast_mode: bool) -> None:
    def program(torch: Any) -> Any:
        x, y = leaf(torch, 2), leaf(torch, 2)
        check = torch.autograd.gradgradcheck
        options = {"fast_mode": fast_mode, "check_fwd_over_rev": True}
        return [
            check(lambda x: x**3, x, leaf(torch, 2), **options),
            check(lambda x: x**3, x, leaf(torch, 2, requires_grad=False), **options),
            check(lambda x, y: (x * y, y.argmax(), x.exp()), (x, y), [leaf(torch, 2), leaf(torch, 2)], **options),
            check(lambda x: x**3, x, gen_non_contig_grad_outputs=True, **options),
            torch.rand(2),
        ]

    same_as_pytorch(program)


def test_a_missing_gradient_of_an_output() -> None:
    def program(torch: Any) -> Any:
        torch.autograd.gradgradcheck(lambda x: (x, x * 2), leaf(torch, 2), (leaf(torch, 2), None))

    same_as_pytorch(program)


@pytest.mark.filterwarnings("ignore")
def test_jacobians_alone() -> None:
    def program(library: Any) -> Any:
        module = import_module(f"{library.__name__}.autograd.gradcheck")
        x = library.tensor([1.0, 2], dtype=library.float64, requires_grad=True)
        y = library.ones(2, 3, dtype=library.float64, requires_grad=True)
        z = library.tensor([1 + 1j, 2], requires_grad=True, dtype=library.complex128)
        constant = library.ones(2, dtype=library.float64)
        found = [
            *module.get_numerical_jacobian(lambda given: given[0] * given[1], (x, constant)),
            *module.get_numerical_jacobian(lambda given: (given[0][:, None] * given[1]).sum(1), (x, y, 3)),
            *module.get_numerical_jacobian(lambda given: given[0] * given[0], (x,), x, 1e-6),
            *module.get_numerical_jacobian(lambda given: given[0].abs(), (z,)),
        ]
        for inputs, output in (((x, y), (x[:, None] * y).sum(1)), ((z,), z.abs())):
            jacobians, *agree = module.get_analytical_jacobian(inputs, output)
            assert agree == [True, True, True]
            found += jacobians
        return found

    same_as_pytorch(program, rtol=1e-5, atol=1e-5)
    module = import_module("tinytorch.autograd.gradcheck")
    x = tinytorch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="grad_out"):
        module.get_numerical_jacobian(lambda given: given[0], (x,), grad_out=2.0)
    with pytest.raises(ValueError, match="complex"):
        module.get_analytical_jacobian((x,), x * 1j)
