"""PyTorch's notes on extending autograd, and its tutorial on double backward through custom functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.autograd.documented import Page
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch

PAGE = Page()
section = PAGE.section


def affine(torch: Any) -> Any:
    """Return the function of a linear layer, with an optional bias."""

    class Affine(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any, bias: Any = None) -> Any:
            ctx.save_for_backward(x, weight, bias)
            y = x.mm(weight.t())
            if bias is not None:
                y += bias.unsqueeze(0).expand_as(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, weight, bias = ctx.saved_tensors
            of_x = of_weight = of_bias = None
            if ctx.needs_input_grad[0]:
                of_x = g.mm(weight)
            if ctx.needs_input_grad[1]:
                of_weight = g.t().mm(x)
            if bias is not None and ctx.needs_input_grad[2]:
                of_bias = g.sum(0)
            return of_x, of_weight, of_bias  # more than there were inputs, if None

    return Affine


def affine_in_two_parts(torch: Any) -> Any:
    """Return the same function with `setup_context`."""
    together = affine(torch)

    class Apart(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, weight: Any, bias: Any) -> Any:
            y = x.mm(weight.t())
            return y if bias is None else y + bias

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        backward = together.backward

    return Apart


def scaled(torch: Any) -> Any:
    """Return a function with an argument that is no tensor."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, factor: float) -> Any:
            return x * factor

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.set_materialize_grads(False)
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return (None if g is None else g * ctx.factor), None

    return Scaled


def inputs_of_affine(torch: Any) -> list[Any]:
    torch.manual_seed(0)
    shapes = (4, 3), (2, 3), (2,)
    return [torch.randn(*shape, dtype=torch.double, requires_grad=True) for shape in shapes]


# Extending torch.autograd ---------------------------------------------------------------------------

example = section("Extending torch.autograd: Example")


@example
def linear_with_and_without_bias(torch: Any) -> Any:
    found = []
    for function in (affine(torch), affine_in_two_parts(torch)):
        x, w, b = inputs_of_affine(torch)
        y = function.apply(x, w, b)
        y.pow(2).sum().backward()
        found += [y, x.grad, w.grad, b.grad, function.apply(x, w, None), y.grad_fn.name()]
    x, w, _ = inputs_of_affine(torch)
    y = affine(torch).apply(x, w)
    y.sum().backward()
    return found, y, x.grad


@example
def only_what_needs_a_gradient_gets_one(torch: Any) -> Any:
    x, w, b = inputs_of_affine(torch)
    w.requires_grad_(False)
    affine(torch).apply(x, w, b).sum().backward()
    return x.grad, w.grad, b.grad


@example
def nothing_needs_a_gradient(torch: Any) -> Any:
    y = affine(torch).apply(*[t.detach() for t in inputs_of_affine(torch)])
    return y, y.grad_fn


@example
def gradcheck_of_the_example(torch: Any) -> Any:
    function = affine(torch).apply
    inputs = inputs_of_affine(torch)
    return (
        torch.autograd.gradcheck(function, inputs, eps=1e-6, atol=1e-4),
        torch.autograd.gradgradcheck(function, inputs, eps=1e-6, atol=1e-4),
    )


@example
def arguments_that_are_no_tensors(torch: Any) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = scaled(torch).apply(x, 3.0)
    y.sum().backward()
    return y, x.grad


@example
def an_undefined_gradient_is_none(torch: Any) -> Any:
    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g * 2 + h * 3

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    a, b = Pair.apply(scaled(torch).apply(x, 10.0))
    a.sum().backward(retain_graph=True)
    first = x.grad.clone()
    b.sum().backward()
    return first, x.grad


@example
def a_module_of_the_function(torch: Any) -> Any:
    function = affine(torch).apply

    class Layer(torch.nn.Module):
        def __init__(self, inputs: int, outputs: int, bias: bool = True) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.empty(outputs, inputs).uniform_(-0.1, 0.1))
            if bias:
                self.bias = torch.nn.Parameter(torch.empty(outputs).uniform_(-0.1, 0.1))
            else:
                self.register_parameter("bias", None)

        def forward(self, x: Any) -> Any:
            return function(x, self.weight, self.bias)

        def extra_repr(self) -> str:
            return f"bias={self.bias is not None}"

    layer = Layer(3, 2)
    layer(torch.ones(4, 3)).sum().backward()
    bare = Layer(3, 2, bias=False)
    return layer.weight.grad, layer.bias.grad, repr(layer), [n for n, _ in bare.named_parameters()]


@example
def in_a_network(torch: Any) -> Any:
    x, w, b = (t.detach().float() for t in inputs_of_affine(torch))
    w.requires_grad_()
    b.requires_grad_()
    for _ in range(3):
        loss = affine(torch).apply(x, w, b).tanh().pow(2).mean()
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= 0.1 * p.grad
                p.grad = None
    return w, b


combined = section("Extending torch.autograd: Combined or separate forward() and setup_context()")


@combined
def a_single_output_is_no_tuple(torch: Any) -> Any:
    seen = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, k: int) -> Any:
            return x * k

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            seen.append((type(inputs).__name__, len(inputs), isinstance(output, torch.Tensor), ctx.needs_input_grad))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, None

    Look.apply(torch.ones(2, requires_grad=True), 3).sum().backward()
    return seen


@combined
def a_tuple_with_one_output_stays_one(torch: Any) -> Any:
    seen = []

    class One(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return (x * 2,)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            seen.append((type(output).__name__, len(output)))

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = torch.ones(2, requires_grad=True)
    y = One.apply(x)
    y[0].sum().backward()
    return seen, type(y).__name__, x.grad


@combined
def with_a_write_in_place(torch: Any) -> Any:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = torch.ones(2, requires_grad=True)
    h = x * 3
    y = Double.apply(h)
    y.sum().backward()
    return y is h, h, x.grad


forward_mode = section("Extending torch.autograd: Forward mode AD")


@forward_mode
def jvp_gets_none_for_what_has_no_tangent(torch: Any) -> Any:
    seen = []

    class Add(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, y: Any, k: float) -> Any:
            return x + k * y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.k = inputs[2]

        @staticmethod
        def jvp(ctx: Any, tx: Any, ty: Any, tk: Any) -> Any:
            seen.append((tx is None, ty is None, tk is None))
            return tx + ctx.k * ty if ty is not None else tx * 1

    fw = torch.autograd.forward_ad
    with fw.dual_level():
        y = Add.apply(fw.make_dual(torch.ones(2), torch.full((2,), 5.0)), torch.ones(2), 3.0)
        return fw.unpack_dual(y), seen


@forward_mode
def jvp_of_several_outputs(torch: Any) -> Any:
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2, x.exp()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(output[1])

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 2, t * ctx.saved_tensors[0]

    fw = torch.autograd.forward_ad
    with fw.dual_level():
        a, b = Two.apply(fw.make_dual(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0])))
        return fw.unpack_dual(a), fw.unpack_dual(b)


@forward_mode
def a_note_on_the_context_in_forward(torch: Any) -> Any:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.result = x.exp()
            return ctx.result

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            out = t * ctx.result
            del ctx.result
            return out

    fw = torch.autograd.forward_ad
    x = torch.tensor([0.0, 1.0], dtype=torch.double, requires_grad=True)
    with fw.dual_level():
        found = fw.unpack_dual(Exp.apply(fw.make_dual(x, torch.ones_like(x)))).tangent
    checked = torch.autograd.gradcheck(
        Exp.apply, (x,), check_forward_ad=True, check_backward_ad=False,
        check_undefined_grad=False, check_batched_grad=False,
    )  # fmt: skip
    return found.detach(), checked


@forward_mode
def jvp_of_a_write_in_place(torch: Any) -> Any:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t.mul_(2)

    fw = torch.autograd.forward_ad
    with fw.dual_level():
        h = fw.make_dual(torch.ones(2), torch.full((2,), 3.0)) * 1
        return fw.unpack_dual(Double.apply(h))


# Double Backward with Custom Functions --------------------------------------------------------------


def second(torch: Any, function: Callable[[Any], Any], x: Any) -> Any:
    """Return value, first and second derivative, and whether both checks pass."""
    y = function(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    again = torch.autograd.grad(g.sum(), x)[0] if g.requires_grad else None
    checks = torch.autograd.gradcheck(function, x)
    if again is not None:
        checks = checks and torch.autograd.gradgradcheck(function, x)
    return y.detach(), g.detach(), again, checks


def points(torch: Any) -> Any:
    return torch.tensor([[0.25, -0.5], [1.0, 2.0]], dtype=torch.double, requires_grad=True)


double = section("Double Backward with Custom Functions")


@double
def saving_inputs(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * ctx.saved_tensors[0]

    return second(torch, Square.apply, points(torch))


@double
def saving_outputs(torch: Any) -> Any:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return ctx.saved_tensors[0] * g

    return second(torch, Exp.apply, points(torch))


@double
def saving_intermediates_as_outputs(torch: Any) -> Any:
    class Sinh(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            up, down = x.exp(), (-x).exp()
            ctx.save_for_backward(up, down)
            return (up - down) / 2, up, down

        @staticmethod
        def backward(ctx: Any, g: Any, of_up: Any, of_down: Any) -> Any:
            up, down = ctx.saved_tensors
            of_x = g * (up + down) / 2
            of_x += of_up * up
            of_x -= of_down * down
            return of_x

    return second(torch, lambda x: Sinh.apply(x)[0], points(torch))


@double
def saving_intermediates_on_the_context_cuts_the_graph(torch: Any) -> Any:
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.up, ctx.down = x.exp(), (-x).exp()
            return (ctx.up - ctx.down) / 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * (ctx.up + ctx.down) / 2

    x = points(torch)
    (g,) = torch.autograd.grad(Bad.apply(x).sum(), x, create_graph=True)
    return g


@double
def a_backward_that_is_not_tracked(torch: Any) -> Any:
    class CubeBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, g: Any, x: Any) -> Any:
            ctx.save_for_backward(g, x)
            return torch.from_numpy(g.detach().numpy() * 3 * x.detach().numpy() ** 2)

        @staticmethod
        def backward(ctx: Any, gg: Any) -> Any:
            g, x = ctx.saved_tensors
            return gg * 3 * x**2, gg * g * 6 * x

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return torch.from_numpy(x.detach().numpy() ** 3)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return CubeBackward.apply(g, ctx.saved_tensors[0])

    return second(torch, Cube.apply, points(torch))


# Extending torch.func with autograd.Function --------------------------------------------------------


def sort_with_numpy(torch: Any, **attributes: Any) -> Any:
    """Return a sort that leaves the library in all its steps."""

    class Take(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, order: Any, back: Any, dim: int) -> Any:
            return torch.tensor(np.take_along_axis(x.numpy(), order.numpy(), dim))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            _, order, back, ctx.dim = inputs
            ctx.save_for_backward(order, back)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            order, back = ctx.saved_tensors
            return Take.apply(g, back, order, ctx.dim), None, None, None

    class Sort(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, dim: int) -> Any:
            array = x.numpy()
            order = np.argsort(array, axis=dim)
            back = np.argsort(order, axis=dim)
            return tuple(torch.tensor(a) for a in (np.take_along_axis(array, order, dim), order, back))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.dim = inputs[1]
            _, order, back = output
            ctx.mark_non_differentiable(order, back)
            ctx.save_for_backward(order, back)

        @staticmethod
        def backward(ctx: Any, g: Any, _0: Any, _1: Any) -> Any:
            order, back = ctx.saved_tensors
            return Take.apply(g, back, order, ctx.dim), None

    return lambda x, dim=-1: Sort.apply(x, dim)[0]


def cube(torch: Any, rule: bool) -> Any:
    """Return x ** 3 with its derivative computed in forward."""

    class Cube(torch.autograd.Function):
        generate_vmap_rule = rule

        @staticmethod
        def forward(x: Any) -> Any:
            return x**3, 3 * x**2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(inputs[0], output[1])

        @staticmethod
        def backward(ctx: Any, g: Any, of_slope: Any) -> Any:
            x, slope = ctx.saved_tensors
            return g * slope + of_slope * 6 * x

    return lambda x: Cube.apply(x)[0]


func = section("Extending torch.func with autograd.Function")


@func
def a_function_that_calls_another_system(torch: Any) -> Any:
    sort = sort_with_numpy(torch)
    x = torch.tensor([[3.0, 1.0, 2.0], [0.5, 2.5, -1.0]])
    weights = torch.arange(6.0).view(2, 3)
    return torch.func.grad(lambda x: (sort(x) * weights).sum())(x)


@func
def a_function_with_gradient_rules_of_its_own(torch: Any) -> Any:
    f = cube(torch, rule=False)
    x = torch.tensor(2.0)
    return torch.func.grad(f)(x), torch.func.grad(torch.func.grad(f))(x)


@needs_oracle
@pytest.mark.parametrize("program", PAGE.programs)
def test_same_as_pytorch(program: Callable[[Any], Any]) -> None:
    same_as_pytorch(program)
