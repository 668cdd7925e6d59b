"""The section "Gradients for non-differentiable functions" of PyTorch's note "Autograd mechanics".

Its rules, in order: the gradient where it exists; the sub-gradient of minimum norm where the function is convex, the
super-gradient where it is concave; continuity where it is defined; anything where it is not defined; an error where it
is no function. Each expression is differentiated at the points where it matters, in both dtypes.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.same import same_as_pytorch

inf, nan = float("inf"), float("nan")
LINE = [-inf, -7.0, -6.0, -3.0, -2.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 6.0, 20.0, inf, nan]
NUMBERS = LINE[:-1]

#: Points, and expressions of x (of x, y and z, where the points are a tuple) that are differentiated there.
ONCE: list[Any] = [
    (LINE, *[f"torch.{name}(x)" for name in """
        acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac log log10
        log1p log2 nan_to_num neg rad2deg reciprocal relu round rsqrt sigmoid sin sinc sinh sqrt square tan tanh
        trunc
    """.split()], *[f"F.{name}(x)" for name in """
        hardswish hardtanh leaky_relu logsigmoid mish relu relu6 silu softplus softsign tanhshrink hardshrink
        softshrink hardsigmoid
    """.split()]),
    *[(points, f"torch.linalg.vector_norm(x, {p})") for p in (0, 0.5, 1, 1.5, 2, 3, inf, -inf)
      for points in ([0.0, 0.0, 0.0], [0.0, 3.0, -4.0, 4.0])],
    (NUMBERS, *[f"x ** {p}" for p in (0, 1, 2, 3, -1, -2, 0.5, 1.5, -0.5, 0.0)]),
    (NUMBERS, "x.abs()", "x.sign()", "x.sgn()", "F.elu(x)", "F.celu(x, 0.5)", "F.selu(x)", "F.elu(x, 2.0)"),
    (LINE, "x.abs()", "F.threshold(x, 1.0, 5.0)", "F.hardtanh(x, -3.0, 2.0)", "F.softplus(x, 1, 6)",
     "F.hardshrink(x, 1.0)", "F.softshrink(x, 1.0)", "x.clamp(-1.0, 3.0)", "x.clamp(min=0.5)", "x.clamp(max=0.5)",
     "x.clamp_min(2.0)", "x.clamp_max(2.0)", "x.clamp(3.0, -1.0)",
     "torch.nan_to_num(x, nan=1.0, posinf=2.0, neginf=-2.0)"),
    (LINE[3:-2], "F.gelu(x)"),
    (NUMBERS[1:-1], "F.leaky_relu(x, 0.0)"),
    ([inf], "F.leaky_relu(x, 0.0)"),
    ((NUMBERS, [0.25]), "F.prelu(x, y)"),
    (([-2.0, -1.0, 0.0, 1.0, 2.0], [-1.0] * 5, [1.0] * 5), "torch.clamp(x, y, z)"),
    (([-2.0, -1.0, 0.0], [-1.0, -1.0, 1.0]), "torch.clamp(x, min=y)"),
    (([1.0, 2.0, 2.0, inf], [2.0, 2.0, 1.0, inf]), "torch.maximum(x, y)", "torch.minimum(x, y)"),
    (([1.0, nan, nan], [nan, 1.0, nan]), "torch.maximum(x, y)", "torch.minimum(x, y)"),
    (([1.0, 2.0, 2.0, nan, 1.0, nan], [2.0, 2.0, 1.0, 1.0, nan, nan]), "torch.fmax(x, y)", "torch.fmin(x, y)"),
    ([[1.0, 3.0], [3.0, 3.0]], "x.max()"),
    ([[1.0, 3.0], [1.0, 1.0]], "x.min()"),
    ([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], "x.max(1).values", "x.amax(1)"),
    ([[1.0, 1.0, 3.0], [2.0, 2.0, 2.0]], "x.min(1).values", "x.amin(1)"),
    ([[1.0, 3.0, 3.0], [2.0, 2.0, 3.0]], "x.amax()"),
    ([[1.0, 3.0, 3.0], [1.0, 1.0, 3.0]], "sum(torch.aminmax(x))", "sum(torch.aminmax(x, dim=1))"),
    ([1.0, nan, 3.0, nan], "x.max()"),
    ([1.0, 2.0, 2.0, 2.0, 3.0], "x.median()"),
    ([4.0, 2.0, 3.0, 1.0], "x.median()"),
    ([[1.0, 2.0, 2.0, 2.0, 3.0], [1.0] * 5], "x.median(1).values"),
    ([1.0, nan, 2.0, 2.0], "x.nanmedian()"),
    ([1.0, 3.0, 3.0, 2.0, 3.0], "x.cummax(0).values"),
    ([3.0, 1.0, 1.0, 2.0, 1.0], "x.cummin(0).values"),
    ([2.0, 1.0, 2.0, 1.0], "x.sort(stable=True).values * torch.arange(4)"),
    ([3.0, 1.0, 2.0, 4.0], "x.topk(2).values * torch.arange(2)"),
    ([[0.0, 0.0], [0.0, 0.0]], "x.norm()"),
    ([[0.0, 0.0], [3.0, 4.0]], "x.norm(dim=1)", "F.normalize(x)"),
    (([[1.0, 2.0]], [[1.0, 2.0]]), "F.pairwise_distance(x, y, eps=0.0)"),
    (([[0.0, 0.0], [1.0, 2.0]], [[1.0, 2.0], [0.0, 0.0]]), "F.cosine_similarity(x, y)"),
    ([0.0, -0.0], "x.sqrt()"),
    ([2.0, 2.0, 2.0], "x.std()"),
    ([[2.0]], "x.std(1)", "x.var(1)", "x.std(1, correction=0)"),
    ([0.0, 1.0], "(x * x).sqrt()"),
    (([0.0, 0.0, 0.0, -1.0, -2.0, 1.0, 2.0], [0.0, 1.0, 2.0, 2.0, 0.5, 3.0, 0.0]), "x ** y"),
    ([0.0, 1.0, -1.0], "0.0 ** x"),
    ([0.0, 1.0, 2.0], "(-2.0) ** x"),
    (([0.0, 1.0, -1.0], [-1.0, 0.0, -0.0]), "torch.atan2(x, y)"),
    (([0.0, -0.0], [0.0, 0.0]), "torch.atan2(x, y)"),
    (([0.0, 3.0], [0.0, 4.0]), "torch.hypot(x, y)"),
    (([0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 2.0, nan]), "torch.xlogy(x, y)"),
    (([-inf, -inf, 0.0], [-inf, 0.0, -inf]), "torch.logaddexp(x, y)"),
    (([inf], [0.0]), "torch.logaddexp(x, y)"),
    ([[-inf, -inf], [0.0, -inf]], "x.logsumexp(1)", "x.softmax(1)[:, 0]"),
    ([[0.0, -inf]], "x.log_softmax(1)[:, 0]"),
    (([0.0, -0.0, 1.0, -1.0], [1.0, 1.0, -0.0, 0.0]), "torch.copysign(x, y)"),
    ([[1.0, 2.0, 3.0], [0.0, 2.0, 3.0], [0.0, 0.0, 3.0]], "x.prod(1)"),
    ([2.0, 0.0, 3.0], "x.prod()"),
    ([2.0, 0.0, 3.0, 0.0, 4.0], "x.cumprod(0)"),
    (([1.0, 0.0, -1.0], [0.0, 0.0, 0.0]), "x / y"),
    (([3.0, 4.0], [2.0, 2.0]), 'torch.div(x, y, rounding_mode="floor")'),
    (([3.0, -4.5], [2.0, 2.0]), 'torch.div(x, y, rounding_mode="trunc")'),
    (([4.0, -4.0, 5.0, 1.0], [2.0, 2.0, -3.0, 0.0]), "torch.fmod(x, y)", "torch.remainder(x, y)"),
    ([0.0, 4.0], "torch.where(x > 0, x.sqrt(), torch.zeros_like(x))", "x.masked_fill(x == 0, 1.0).log()"),
    ([1.0, nan, 2.0], "x.nansum()", "x.nanmean()"),
    (([1.0, 2.0], [1.0, 3.0]), "F.l1_loss(x, y)"),
    (([0.0, 1.0, -1.0, 2.0], [0.0] * 4), "F.smooth_l1_loss(x, y)", "F.huber_loss(x, y)"),
    (([0.0, 1.0], [0.0] * 2), "F.smooth_l1_loss(x, y, beta=0.0)"),
    ([0.0, 1.0, 0.0, 1.0], "F.binary_cross_entropy(x, torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=x.dtype))"),
    (([1.0, 2.0], [1.0, 1.0]), "F.margin_ranking_loss(x, y, torch.ones_like(x))"),
    ([1.0, 0.5], "F.hinge_embedding_loss(x, -torch.ones_like(x))"),
    (([[1.0, 2.0]], [[1.0, 2.0]], [[1.0, 2.0]]), "F.triplet_margin_loss(x, y, z)"),
    (([-1.0, -2.0], [0.0, 0.5]), 'F.kl_div(x, y, reduction="sum")'),
]  # fmt: skip

#: The same, differentiated twice.
TWICE: list[Any] = [
    ([-1.0, 0.0, 1.0], "x.relu()", "x.abs()", "F.leaky_relu(x)", "F.hardtanh(x)", "(x * x).clamp(0.0, 1.0)",
     "F.rrelu(x)", "0.0 ** x + 2.0 ** x", "torch.copysign(x, -torch.ones_like(x))"),
    ([-1.0, 1.0], "F.elu(x)", "F.celu(x)", "F.selu(x)"),
    ([0.0], "F.elu(x)", "F.celu(x)", "F.selu(x)"),
    ([-1.0, 0.0, 6.0], "F.relu6(x)"),
    ([-1.0, 0.5, 6.0], "F.hardshrink(x)", "F.softshrink(x)", "F.threshold(x, 0.5, 0.0)"),
    ([-3.0, 0.0, 3.0], "F.hardswish(x)"),
    ([-3.0, 20.0, 30.0], "F.softplus(x)"),
    ([3.0, 3.0, 1.0], "(x * x).max()", "(x * x).amax()"),
    ([0.0, 0.0], "x.norm()"),
    ([3.0, 4.0], "x.norm()"),
    ([2.0, 0.0, 3.0], "x.prod()"),
    ([2.0, 0.0, 0.0], "x.prod()"),
    ([0.0, 1.0], "x ** 2", "x ** 1.5", "F.l1_loss(x * x, torch.zeros_like(x))"),
    ([0.0, 0.5, 2.0], "F.smooth_l1_loss(x, torch.zeros_like(x))", "F.huber_loss(x, torch.zeros_like(x))"),
    ([1.0], "F.smooth_l1_loss(x, torch.zeros_like(x))", "F.huber_loss(x, torch.zeros_like(x))"),
    ([[-1.0, 0.0, 1.0]], "F.prelu(x, torch.full((1,), 0.25, dtype=x.dtype))"),
    ([1.0, 2.0, 3.0], "F.softplus(x, 3.0, 6.0)"),
    ([-1.0, 0.0, 1.0, 2.0], "F.glu(x)"),
    ([[-1.0, -2.0], [-0.5, -1.5]], "F.nll_loss(x, torch.tensor([0, 1]))"),
    ([0.0, 1.0, 0.0, 1.0, 0.5], "F.binary_cross_entropy(x, torch.tensor([0.0, 1.0, 1.0, 0.0, 0.25], dtype=x.dtype))"),
    ([-1.0, 0.0, inf], "torch.logaddexp(x, torch.zeros_like(x))"),
    ([-1.0, 0.0, 1.0, inf, nan], "x ** 1"),
    ([-2.0, 0.0, 2.0, 0.0], "torch.tensor([2.0, 0.0, -1.0, 3.0], dtype=x.dtype) ** x"),
]  # fmt: skip

#: No functions, or none with values that have a gradient: not differentiable.
WITHOUT = [
    "torch.bernoulli(x)", "torch.multinomial(x, 1)", "torch.normal(x, 1.0)", "torch.rand_like(x)",
    "torch.randn_like(x)", "x.argmax()", "x.argsort()", "x.sort().indices", "x > 0.3", "x.isnan()", "x.signbit()",
    "(x > 0.3).to(x.dtype)", "x.long()", "x.logical_not()", "x // 0.2", "x.nonzero()", "x.count_nonzero()",
    "torch.searchsorted(torch.tensor([0.0, 0.3]), x)", "torch.zeros_like(x)",
    "torch.ones_like(x, requires_grad=True) * 2", "x.round()", "(x * 1).bernoulli_(0.5)", "(x * 1).uniform_()",
    "(x * 1).normal_()", "(x * 1).random_(5)", "(x * 1).exponential_()", "torch.isclose(x, x)", "x.sign()",
]  # fmt: skip


def each(table: list[Any]) -> list[Any]:
    return [pytest.param(points, e, id=e) for points, *expressions in table for e in expressions]


def value(torch: Any, expression: str, *tensors: Any) -> Any:
    names = {"torch": torch, "F": torch.nn.functional, "inf": inf, **dict(zip("xyz", tensors, strict=False))}
    return eval(expression, names)


@pytest.mark.parametrize(("points", "expression"), each(ONCE))
def test_gradient_at_kinks(points: Any, expression: str) -> None:
    def program(torch: Any) -> Any:
        found = []
        for dtype in (torch.float32, torch.float64):
            several = points if isinstance(points, tuple) else (points,)
            inputs = [torch.tensor(p, dtype=dtype, requires_grad=True) for p in several]
            y = value(torch, expression, *inputs)
            grads = torch.autograd.grad(y.sum(), inputs)
            found.append((y.detach(), [g.clone() for g in grads]))
        return found

    same_as_pytorch(program, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("points", "expression"), each(TWICE))
def test_second_derivative_at_kinks(points: Any, expression: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor(points, dtype=torch.float64, requires_grad=True)
        (g,) = torch.autograd.grad(value(torch, expression, x).sum(), x, create_graph=True)
        return g.detach(), torch.autograd.grad(g.sum(), x)[0].clone()

    same_as_pytorch(program, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("expression", WITHOUT)
def test_what_has_no_gradient(expression: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([0.25, 0.5], requires_grad=True)
        y = value(torch, expression, x)
        found = (y.requires_grad, y.dtype, y.grad_fn is None)
        if not y.requires_grad:
            return found
        y.sum().backward()
        return found, x.grad

    same_as_pytorch(program)
