"""The section "Gradients for non-differentiable functions" of PyTorch's note "Autograd mechanics".

Its rules, in order: the gradient where it exists; the sub-gradient of minimum norm where the function is convex, the
super-gradient where it is concave; continuity where it is defined; anything where it is not defined; an error where it
is no function. Each expression is differentiated at the points where it matters, in both dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import needs_oracle
from tests.same import same_as_pytorch

inf, nan = float("inf"), float("nan")
LINE = [-inf, -7.0, -6.0, -3.0, -2.5, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 6.0, 20.0, inf, nan]
NUMBERS = LINE[:-1]

#: Functions of one tensor, by name: their gradient is taken at every point of LINE.
OF_TORCH = """
    acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac log log10 log1p log2
    nan_to_num neg rad2deg reciprocal relu round rsqrt sigmoid sin sinc sinh sqrt square tan tanh trunc
"""
OF_FUNCTIONAL = """
    hardswish hardtanh leaky_relu logsigmoid mish relu relu6 silu softplus softsign tanhshrink hardshrink
    softshrink hardsigmoid
"""


def at(points: list[Any], function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a program that differentiates `function(torch, x, ...)` with respect to each of its tensors."""

    def program(torch: Any) -> Any:
        found = []
        for dtype in (torch.float32, torch.float64):
            several = points if isinstance(points, tuple) else (points,)
            inputs = [torch.tensor(each, dtype=dtype, requires_grad=True) for each in several]
            y = function(torch, *inputs)
            grads = torch.autograd.grad(y.sum(), inputs)
            found.append((y.detach(), [g.clone() for g in grads]))
        return found

    return program


def twice(points: list[Any], function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a program that differentiates twice."""

    def program(torch: Any) -> Any:
        x = torch.tensor(points, dtype=torch.float64, requires_grad=True)
        (g,) = torch.autograd.grad(function(torch, x).sum(), x, create_graph=True)
        return g.detach(), torch.autograd.grad(g.sum(), x)[0].clone()

    return program


CASES: dict[str, Callable[[Any], Any]] = {
    **{name: at(LINE, lambda torch, x, name=name: getattr(torch, name)(x)) for name in OF_TORCH.split()},
    **{
        f"functional.{name}": at(LINE, lambda torch, x, name=name: getattr(torch.nn.functional, name)(x))
        for name in OF_FUNCTIONAL.split()
    },
    # Convex: the sub-gradient of minimum norm
    "abs at 0": at(NUMBERS, lambda torch, x: x.abs()),
    "sign": at(NUMBERS, lambda torch, x: x.sign()),
    "sgn": at(NUMBERS, lambda torch, x: x.sgn()),
    "abs at NaN": at(LINE, lambda torch, x: x.abs()),
    "gelu": at(LINE[3:-2], lambda torch, x: torch.nn.functional.gelu(x)),
    "elu": at(NUMBERS, lambda torch, x: torch.nn.functional.elu(x)),
    "celu": at(NUMBERS, lambda torch, x: torch.nn.functional.celu(x, 0.5)),
    "selu": at(NUMBERS, lambda torch, x: torch.nn.functional.selu(x)),
    "elu with alpha": at(NUMBERS, lambda torch, x: torch.nn.functional.elu(x, 2.0)),
    "leaky relu of slope 0": at(NUMBERS[1:-1], lambda torch, x: torch.nn.functional.leaky_relu(x, 0.0)),
    "leaky relu of slope 0 at infinity": at([inf], lambda torch, x: torch.nn.functional.leaky_relu(x, 0.0)),
    "prelu": at((NUMBERS, [0.25]), lambda torch, x, w: torch.nn.functional.prelu(x, w)),
    "threshold": at(LINE, lambda torch, x: torch.nn.functional.threshold(x, 1.0, 5.0)),
    "hardtanh with its own bounds": at(LINE, lambda torch, x: torch.nn.functional.hardtanh(x, -3.0, 2.0)),
    "softplus at its threshold": at(LINE, lambda torch, x: torch.nn.functional.softplus(x, 1, 6)),
    "hardshrink at lambda": at(LINE, lambda torch, x: torch.nn.functional.hardshrink(x, 1.0)),
    "softshrink at lambda": at(LINE, lambda torch, x: torch.nn.functional.softshrink(x, 1.0)),
    # Bounds
    "clamp at both bounds": at(LINE, lambda torch, x: x.clamp(-1.0, 3.0)),
    "clamp from below": at(LINE, lambda torch, x: x.clamp(min=0.5)),
    "clamp from above": at(LINE, lambda torch, x: x.clamp(max=0.5)),
    "clamp_min": at(LINE, lambda torch, x: x.clamp_min(2.0)),
    "clamp_max": at(LINE, lambda torch, x: x.clamp_max(2.0)),
    "clamp with crossed bounds": at(LINE, lambda torch, x: x.clamp(3.0, -1.0)),
    "clamp by tensors at ties": at(
        ([-2.0, -1.0, 0.0, 1.0, 2.0], [-1.0] * 5, [1.0] * 5), lambda torch, x, low, high: torch.clamp(x, low, high)
    ),
    "clamp by a tensor from below": at(
        ([-2.0, -1.0, 0.0], [-1.0, -1.0, 1.0]), lambda torch, x, low: torch.clamp(x, min=low)
    ),
    # Ties
    "maximum": at(([1.0, 2.0, 2.0, inf], [2.0, 2.0, 1.0, inf]), lambda torch, x, y: torch.maximum(x, y)),
    "maximum with NaN": at(([1.0, nan, nan], [nan, 1.0, nan]), lambda torch, x, y: torch.maximum(x, y)),
    "minimum": at(([1.0, 2.0, 2.0, inf], [2.0, 2.0, 1.0, inf]), lambda torch, x, y: torch.minimum(x, y)),
    "minimum with NaN": at(([1.0, nan, nan], [nan, 1.0, nan]), lambda torch, x, y: torch.minimum(x, y)),
    "fmax": at(([1.0, 2.0, 2.0, nan, 1.0, nan], [2.0, 2.0, 1.0, 1.0, nan, nan]), lambda torch, x, y: torch.fmax(x, y)),
    "fmin": at(([1.0, 2.0, 2.0, nan, 1.0, nan], [2.0, 2.0, 1.0, 1.0, nan, nan]), lambda torch, x, y: torch.fmin(x, y)),
    "max of all": at([[1.0, 3.0], [3.0, 3.0]], lambda torch, x: x.max()),
    "min of all": at([[1.0, 3.0], [1.0, 1.0]], lambda torch, x: x.min()),
    "max along a dimension": at([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], lambda torch, x: x.max(1).values),
    "min along a dimension": at([[1.0, 1.0, 3.0], [2.0, 2.0, 2.0]], lambda torch, x: x.min(1).values),
    "amax": at([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], lambda torch, x: x.amax(1)),
    "amin": at([[1.0, 1.0, 3.0], [2.0, 2.0, 2.0]], lambda torch, x: x.amin(1)),
    "amax of all": at([[1.0, 3.0, 3.0], [2.0, 2.0, 3.0]], lambda torch, x: x.amax()),
    "aminmax": at([[1.0, 3.0, 3.0], [1.0, 1.0, 3.0]], lambda torch, x: sum(torch.aminmax(x))),
    "aminmax along a dimension": at([[1.0, 3.0, 3.0], [1.0, 1.0, 3.0]], lambda torch, x: sum(torch.aminmax(x, dim=1))),
    "max with NaN": at([1.0, nan, 3.0, nan], lambda torch, x: x.max()),
    "median": at([1.0, 2.0, 2.0, 2.0, 3.0], lambda torch, x: x.median()),
    "median of an even number": at([4.0, 2.0, 3.0, 1.0], lambda torch, x: x.median()),
    "median along a dimension": at([[1.0, 2.0, 2.0, 2.0, 3.0], [1.0] * 5], lambda torch, x: x.median(1).values),
    "nanmedian": at([1.0, nan, 2.0, 2.0], lambda torch, x: x.nanmedian()),
    "cummax": at([1.0, 3.0, 3.0, 2.0, 3.0], lambda torch, x: x.cummax(0).values),
    "cummin": at([3.0, 1.0, 1.0, 2.0, 1.0], lambda torch, x: x.cummin(0).values),
    "sort": at([2.0, 1.0, 2.0, 1.0], lambda torch, x: x.sort(stable=True).values * torch.arange(4)),
    "topk": at([3.0, 1.0, 2.0, 4.0], lambda torch, x: x.topk(2).values * torch.arange(2)),
    # Norms at the origin
    **{
        f"norm of order {p} at 0": at([0.0, 0.0, 0.0], lambda torch, x, p=p: torch.linalg.vector_norm(x, p))
        for p in (0, 0.5, 1, 1.5, 2, 3, inf, -inf)
    },
    **{
        f"norm of order {p} with zeros": at([0.0, 3.0, -4.0, 4.0], lambda torch, x, p=p: torch.linalg.vector_norm(x, p))
        for p in (0, 0.5, 1, 1.5, 2, 3, inf, -inf)
    },
    "norm, Frobenius": at([[0.0, 0.0], [0.0, 0.0]], lambda torch, x: x.norm()),
    "norm along a dimension": at([[0.0, 0.0], [3.0, 4.0]], lambda torch, x: x.norm(dim=1)),
    "pairwise_distance": at(
        ([[1.0, 2.0]], [[1.0, 2.0]]), lambda torch, x, y: torch.nn.functional.pairwise_distance(x, y, eps=0.0)
    ),
    "normalize": at([[0.0, 0.0], [3.0, 4.0]], lambda torch, x: torch.nn.functional.normalize(x)),
    "cosine_similarity": at(
        ([[0.0, 0.0], [1.0, 2.0]], [[1.0, 2.0], [0.0, 0.0]]),
        lambda torch, x, y: torch.nn.functional.cosine_similarity(x, y),
    ),
    # Continuity
    "sqrt at 0": at([0.0, -0.0], lambda torch, x: x.sqrt()),
    "std of equal numbers": at([2.0, 2.0, 2.0], lambda torch, x: x.std()),
    "std of one number": at([[2.0]], lambda torch, x: x.std(1)),
    "var of one number": at([[2.0]], lambda torch, x: x.var(1)),
    "std without correction": at([[2.0]], lambda torch, x: x.std(1, correction=0)),
    "square root of a square": at([0.0, 1.0], lambda torch, x: (x * x).sqrt()),
    **{f"power {p}": at(NUMBERS, lambda torch, x, p=p: x**p) for p in (0, 1, 2, 3, -1, -2, 0.5, 1.5, -0.5, 0.0)},
    "power by a tensor": at(
        ([0.0, 0.0, 0.0, -1.0, -2.0, 1.0, 2.0], [0.0, 1.0, 2.0, 2.0, 0.5, 3.0, 0.0]), lambda torch, x, p: x**p
    ),
    "number to a power": at([0.0, 1.0, -1.0], lambda torch, p: 0.0**p),
    "negative number to a power": at([0.0, 1.0, 2.0], lambda torch, p: (-2.0) ** p),
    "atan2 on the axes": at(([0.0, 1.0, -1.0], [-1.0, 0.0, -0.0]), lambda torch, y, x: torch.atan2(y, x)),
    "atan2 at the origin": at(([0.0, -0.0], [0.0, 0.0]), lambda torch, y, x: torch.atan2(y, x)),
    "hypot at the origin": at(([0.0, 3.0], [0.0, 4.0]), lambda torch, x, y: torch.hypot(x, y)),
    "xlogy": at(([0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 2.0, nan]), lambda torch, x, y: torch.xlogy(x, y)),
    "logaddexp of minus infinities": at(
        ([-inf, -inf, 0.0], [-inf, 0.0, -inf]), lambda torch, x, y: torch.logaddexp(x, y)
    ),
    "logaddexp of infinity": at(([inf], [0.0]), lambda torch, x, y: torch.logaddexp(x, y)),
    "logsumexp of minus infinities": at([[-inf, -inf], [0.0, -inf]], lambda torch, x: x.logsumexp(1)),
    "softmax of minus infinities": at([[-inf, -inf], [0.0, -inf]], lambda torch, x: x.softmax(1)[:, 0]),
    "log_softmax of minus infinities": at([[0.0, -inf]], lambda torch, x: x.log_softmax(1)[:, 0]),
    "copysign": at(([0.0, -0.0, 1.0, -1.0], [1.0, 1.0, -0.0, 0.0]), lambda torch, x, y: torch.copysign(x, y)),
    "prod with no, one and two zeros": at(
        [[1.0, 2.0, 3.0], [0.0, 2.0, 3.0], [0.0, 0.0, 3.0]], lambda torch, x: x.prod(1)
    ),
    "prod of all with a zero": at([2.0, 0.0, 3.0], lambda torch, x: x.prod()),
    "cumprod with zeros": at([2.0, 0.0, 3.0, 0.0, 4.0], lambda torch, x: x.cumprod(0)),
    "division by 0": at(([1.0, 0.0, -1.0], [0.0, 0.0, 0.0]), lambda torch, x, y: x / y),
    "division, floor": at(([3.0, 4.0], [2.0, 2.0]), lambda torch, x, y: torch.div(x, y, rounding_mode="floor")),
    "division, trunc": at(([3.0, -4.5], [2.0, 2.0]), lambda torch, x, y: torch.div(x, y, rounding_mode="trunc")),
    "fmod at multiples": at(([4.0, -4.0, 5.0, 1.0], [2.0, 2.0, -3.0, 0.0]), lambda torch, x, y: torch.fmod(x, y)),
    "remainder at multiples": at(
        ([4.0, -4.0, 5.0, 1.0], [2.0, 2.0, -3.0, 0.0]), lambda torch, x, y: torch.remainder(x, y)
    ),
    # Hidden branches
    "where hides an infinite gradient": at(
        [0.0, 4.0], lambda torch, x: torch.where(x > 0, x.sqrt(), torch.zeros_like(x))
    ),
    "masked_fill": at([0.0, 4.0], lambda torch, x: x.masked_fill(x == 0, 1.0).log()),
    "nan_to_num with numbers": at(LINE, lambda torch, x: torch.nan_to_num(x, nan=1.0, posinf=2.0, neginf=-2.0)),
    "nansum": at([1.0, nan, 2.0], lambda torch, x: x.nansum()),
    "nanmean": at([1.0, nan, 2.0], lambda torch, x: x.nanmean()),
    # Losses at their kinks
    "l1_loss at 0": at(([1.0, 2.0], [1.0, 3.0]), lambda torch, x, y: torch.nn.functional.l1_loss(x, y)),
    "smooth_l1_loss at beta": at(
        ([0.0, 1.0, -1.0, 2.0], [0.0] * 4), lambda torch, x, y: torch.nn.functional.smooth_l1_loss(x, y)
    ),
    "smooth_l1_loss without beta": at(
        ([0.0, 1.0], [0.0] * 2), lambda torch, x, y: torch.nn.functional.smooth_l1_loss(x, y, beta=0.0)
    ),
    "huber_loss at delta": at(
        ([0.0, 1.0, -1.0, 2.0], [0.0] * 4), lambda torch, x, y: torch.nn.functional.huber_loss(x, y)
    ),
    "binary_cross_entropy at 0 and 1": at(
        [0.0, 1.0, 0.0, 1.0],
        lambda torch, x: torch.nn.functional.binary_cross_entropy(x, torch.tensor([0.0, 1.0, 1.0, 0.0], dtype=x.dtype)),
    ),
    "margin_ranking_loss at the margin": at(
        ([1.0, 2.0], [1.0, 1.0]), lambda torch, x, y: torch.nn.functional.margin_ranking_loss(x, y, torch.ones_like(x))
    ),
    "hinge_embedding_loss at the margin": at(
        [1.0, 0.5], lambda torch, x: torch.nn.functional.hinge_embedding_loss(x, -torch.ones_like(x))
    ),
    "triplet_margin_loss of equal points": at(
        ([[1.0, 2.0]], [[1.0, 2.0]], [[1.0, 2.0]]),
        lambda torch, a, p, n: torch.nn.functional.triplet_margin_loss(a, p, n),
    ),
    "kl_div with a target of 0": at(
        ([-1.0, -2.0], [0.0, 0.5]), lambda torch, x, y: torch.nn.functional.kl_div(x, y, reduction="sum")
    ),
    # Second derivatives at kinks
    "relu, twice": twice([-1.0, 0.0, 1.0], lambda torch, x: x.relu()),
    "abs, twice": twice([-1.0, 0.0, 1.0], lambda torch, x: x.abs()),
    "elu, twice": twice([-1.0, 1.0], lambda torch, x: torch.nn.functional.elu(x)),
    "elu, twice, at 0": twice([0.0], lambda torch, x: torch.nn.functional.elu(x)),
    "celu, twice": twice([-1.0, 1.0], lambda torch, x: torch.nn.functional.celu(x)),
    "celu, twice, at 0": twice([0.0], lambda torch, x: torch.nn.functional.celu(x)),
    "selu, twice": twice([-1.0, 1.0], lambda torch, x: torch.nn.functional.selu(x)),
    "selu, twice, at 0": twice([0.0], lambda torch, x: torch.nn.functional.selu(x)),
    "leaky_relu, twice": twice([-1.0, 0.0, 1.0], lambda torch, x: torch.nn.functional.leaky_relu(x)),
    "hardtanh, twice": twice([-1.0, 0.0, 1.0], lambda torch, x: torch.nn.functional.hardtanh(x)),
    "relu6, twice": twice([-1.0, 0.0, 6.0], lambda torch, x: torch.nn.functional.relu6(x)),
    "hardshrink, twice": twice([-1.0, 0.5, 6.0], lambda torch, x: torch.nn.functional.hardshrink(x)),
    "softshrink, twice": twice([-1.0, 0.5, 6.0], lambda torch, x: torch.nn.functional.softshrink(x)),
    "threshold, twice": twice([-1.0, 0.5, 6.0], lambda torch, x: torch.nn.functional.threshold(x, 0.5, 0.0)),
    "hardswish, twice": twice([-3.0, 0.0, 3.0], lambda torch, x: torch.nn.functional.hardswish(x)),
    "softplus, twice": twice([-3.0, 20.0, 30.0], lambda torch, x: torch.nn.functional.softplus(x)),
    "clamp, twice": twice([-1.0, 0.0, 1.0], lambda torch, x: (x * x).clamp(0.0, 1.0)),
    "max, twice": twice([3.0, 3.0, 1.0], lambda torch, x: (x * x).max()),
    "amax, twice": twice([3.0, 3.0, 1.0], lambda torch, x: (x * x).amax()),
    "norm at 0, twice": twice([0.0, 0.0], lambda torch, x: x.norm()),
    "norm, twice": twice([3.0, 4.0], lambda torch, x: x.norm()),
    "prod with a zero, twice": twice([2.0, 0.0, 3.0], lambda torch, x: x.prod()),
    "prod with two zeros, twice": twice([2.0, 0.0, 0.0], lambda torch, x: x.prod()),
    "power 2, twice": twice([0.0, 1.0], lambda torch, x: x**2),
    "power 1.5, twice": twice([0.0, 1.0], lambda torch, x: x**1.5),
    "smooth_l1_loss, twice": twice(
        [0.0, 0.5, 2.0], lambda torch, x: torch.nn.functional.smooth_l1_loss(x, torch.zeros_like(x))
    ),
    "smooth_l1_loss, twice, at its kink": twice(
        [1.0], lambda torch, x: torch.nn.functional.smooth_l1_loss(x, torch.zeros_like(x))
    ),
    "huber_loss, twice": twice(
        [0.0, 0.5, 2.0], lambda torch, x: torch.nn.functional.huber_loss(x, torch.zeros_like(x))
    ),
    "huber_loss, twice, at its kink": twice(
        [1.0], lambda torch, x: torch.nn.functional.huber_loss(x, torch.zeros_like(x))
    ),
    "prelu, twice, at its kink": twice(
        [[-1.0, 0.0, 1.0]], lambda torch, x: torch.nn.functional.prelu(x, torch.full((1,), 0.25, dtype=x.dtype))
    ),
    "softplus, twice, at its threshold": twice(
        [1.0, 2.0, 3.0], lambda torch, x: torch.nn.functional.softplus(x, 3.0, 6.0)
    ),
    "rrelu, twice": twice([-1.0, 0.0, 1.0], lambda torch, x: torch.nn.functional.rrelu(x)),
    "glu, twice": twice([-1.0, 0.0, 1.0, 2.0], lambda torch, x: torch.nn.functional.glu(x)),
    "nll_loss, twice": twice(
        [[-1.0, -2.0], [-0.5, -1.5]], lambda torch, x: torch.nn.functional.nll_loss(x, torch.tensor([0, 1]))
    ),
    "binary_cross_entropy, twice, at 0 and 1": twice(
        [0.0, 1.0, 0.0, 1.0, 0.5],
        lambda torch, x: torch.nn.functional.binary_cross_entropy(
            x, torch.tensor([0.0, 1.0, 1.0, 0.0, 0.25], dtype=x.dtype)
        ),
    ),
    "logaddexp, twice": twice([-inf, -1.0, 0.0, inf], lambda torch, x: torch.logaddexp(x, torch.zeros_like(x))),
    "power 1, twice": twice([-1.0, 0.0, 1.0, inf, nan], lambda torch, x: x**1),
    "power by a tensor, twice": twice(
        [-2.0, 0.0, 2.0, 0.0], lambda torch, p: torch.tensor([2.0, 0.0, -1.0, 3.0], dtype=p.dtype) ** p
    ),
    "number to a power, twice": twice([-1.0, 0.0, 1.0], lambda torch, p: 0.0**p + 2.0**p),
    "copysign, twice": twice([-1.0, 0.0, 1.0], lambda torch, x: torch.copysign(x, -torch.ones_like(x))),
    "l1_loss, twice": twice([0.0, 1.0], lambda torch, x: torch.nn.functional.l1_loss(x * x, torch.zeros_like(x))),
}


def no_gradient(call: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a program that shows how far an operation without derivative gets."""

    def program(torch: Any) -> Any:
        x = torch.tensor([0.25, 0.5], requires_grad=True)
        y = call(torch, x)
        found = (y.requires_grad, y.dtype, y.grad_fn is None)
        if y.requires_grad:
            y.sum().backward()
            return found, x.grad
        return found

    return program


#: No functions, or none with values that have a gradient: not differentiable.
WITHOUT: dict[str, Callable[[Any], Any]] = {
    "bernoulli": no_gradient(lambda torch, x: torch.bernoulli(x)),
    "multinomial": no_gradient(lambda torch, x: torch.multinomial(x, 1)),
    "normal of a mean": no_gradient(lambda torch, x: torch.normal(x, 1.0)),
    "rand_like": no_gradient(lambda torch, x: torch.rand_like(x)),
    "randn_like": no_gradient(lambda torch, x: torch.randn_like(x)),
    "argmax": no_gradient(lambda torch, x: x.argmax()),
    "argsort": no_gradient(lambda torch, x: x.argsort()),
    "indices of sort": no_gradient(lambda torch, x: x.sort().indices),
    "comparison": no_gradient(lambda torch, x: x > 0.3),
    "isnan": no_gradient(lambda torch, x: x.isnan()),
    "signbit": no_gradient(lambda torch, x: x.signbit()),
    "heaviside by comparison": no_gradient(lambda torch, x: (x > 0.3).to(x.dtype)),
    "conversion to integers": no_gradient(lambda torch, x: x.long()),
    "logical_not": no_gradient(lambda torch, x: x.logical_not()),
    "floor_divide": no_gradient(lambda torch, x: x // 0.2),
    "nonzero": no_gradient(lambda torch, x: x.nonzero()),
    "count_nonzero": no_gradient(lambda torch, x: x.count_nonzero()),
    "searchsorted": no_gradient(lambda torch, x: torch.searchsorted(torch.tensor([0.0, 0.3]), x)),
    "zeros_like": no_gradient(lambda torch, x: torch.zeros_like(x)),
    "ones_like that requires grad": no_gradient(lambda torch, x: torch.ones_like(x, requires_grad=True) * 2),
    "round": no_gradient(lambda torch, x: x.round()),
    "bernoulli in place": no_gradient(lambda torch, x: (x * 1).bernoulli_(0.5)),
    "uniform in place": no_gradient(lambda torch, x: (x * 1).uniform_()),
    "normal in place": no_gradient(lambda torch, x: (x * 1).normal_()),
    "random in place": no_gradient(lambda torch, x: (x * 1).random_(5)),
    "exponential in place": no_gradient(lambda torch, x: (x * 1).exponential_()),
    "isclose": no_gradient(lambda torch, x: torch.isclose(x, x)),
    "sign": no_gradient(lambda torch, x: x.sign()),
}


@needs_oracle
@pytest.mark.parametrize("name", CASES)
def test_gradient_at_kinks(name: str) -> None:
    same_as_pytorch(CASES[name], rtol=1e-4, atol=1e-6)


@needs_oracle
@pytest.mark.parametrize("name", WITHOUT)
def test_what_has_no_gradient(name: str) -> None:
    same_as_pytorch(WITHOUT[name])
