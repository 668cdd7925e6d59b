"""Calls with numbers as arguments on 16-bit floats: intermediate results are rounded where PyTorch rounds them.

Many of PyTorch's functions compute vectors of 32 or 64 numbers at once and those that are left one by one, and some
round differently in the two loops, so the lengths are below a vector, or whole vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import FUSED, needs_oracle, torch
from tests.same import expressions

pytestmark = needs_oracle

#: Expressions of the tensors x, y and z, any numbers a and b, and a positive number p.
EXACT = """
    x.add_(y, alpha=a); torch.add(x, y, alpha=a); x.sub_(y, alpha=a); torch.sub(x, y, alpha=a)
    torch.rsub(x, y, alpha=a); torch.rsub(x, b, alpha=a); torch.add(x, b, alpha=a); x.add_(b, alpha=a)
    x.sub_(b, alpha=a); torch.sub(x, b, alpha=a); x.add_(y[:1], alpha=a); x.add_(y[0], alpha=a)
    torch.add(x, y[0], alpha=a); torch.add(x[0], y, alpha=a)
    torch.stack([x, y], 1).add_(torch.stack([y, z], 1), alpha=a); x.addcmul_(y, z, value=a)
    torch.addcmul(x, y, z, value=a); x.addcdiv_(y, z, value=a); torch.addcdiv(x, y, z, value=a); x.addcmul_(y, z)
    x.addcdiv_(y, z); torch._foreach_add([x], [y], alpha=a)[0]; torch._foreach_addcmul([x], [y], [z], a)[0]
    torch._foreach_addcdiv([x], [y], [z], a)[0]; x.clamp_(min(a, b), max(a, b)); torch.clamp(x, min=a); x.clamp_max_(a)
    torch.pow(x, 2); torch.pow(x, 3); torch.pow(x, -1); torch.pow(x, -2); x.pow_(3); torch.pow(x.abs(), -0.5)
    x.abs().rsqrt(); x * a; x.mul_(a); x / a; x.div_(a); a / x; a - x; x.add_(a); x.sub_(a); x // a; x.floor_divide_(a)
    x // y; torch.div(x, a, rounding_mode="trunc"); torch.div(x, y, rounding_mode="trunc")
    x.div_(a, rounding_mode="trunc"); x.div_(a, rounding_mode="floor"); x % a; x.remainder_(a); torch.fmod(x, a)
    F.leaky_relu(x, a); F.leaky_relu_(x, p); F.elu(x, p); F.elu_(x, p); F.celu(x, p); F.selu(x); F.hardtanh(x, -p, p)
    F.threshold(x, a, b); F.softplus(x, p, 2.0); F.hardshrink(x, p); F.softshrink(x, p); F.hardswish(x)
    F.hardsigmoid(x); F.relu6(x); F.prelu(x, y[:1]); F.smooth_l1_loss(x, y, beta=p, reduction="none")
    F.huber_loss(x, y, delta=p, reduction="none"); F.mse_loss(x, y); F.mse_loss(x, y, reduction="none")
    F.margin_ranking_loss(x, y, z.sign(), margin=p); F.triplet_margin_loss(x[None], y[None], z[None], margin=p)
    torch.special.entr(x); torch.logit(x.abs() / 64, 1e-2); torch.nan_to_num(x, a); torch.where(x > 0, x, a)
    torch.index_add(x, 0, torch.arange(len(x)), y, alpha=a); torch.round(x, decimals=1); torch.trapezoid(x, dx=p)
    torch.full_like(x, a)
"""

#: As `EXACT`; an elementary function of the two libraries may differ in the last bit, which rounding seldom shows.
CLOSE = """
    torch.lerp(x, y, a); x.lerp_(y, a); torch.lerp(x, y, z); torch.pow(x.abs(), a); F.silu(x); F.softplus(x, p)
    F.logsigmoid(x); F.glu(torch.stack([x, y]), 0); torch.sigmoid(x); x.sigmoid_(); torch.special.xlog1py(x, p)
    torch.xlogy(x, p); x.norm(2); x.norm(3); torch.linalg.vector_norm(x, p); x.var(correction=0); x.std(correction=0.5)
    torch.dist(x, y, 3); torch.renorm(x[:, None], 2, 0, p); F.normalize(x, dim=0)
    torch.addmm(z[:1, None], x[:, None], y[None], beta=a, alpha=b)
    torch.baddbmm(z[None, None], y[None, None, :1], x[None, None], beta=a, alpha=b)
    torch.addr(z.expand(len(x), len(x)), x, y, beta=a, alpha=b)
    torch.addmv(z, x[:, None].repeat(1, 3), y[:1].repeat(3), beta=a, alpha=b)
"""


def values_of(library: Any, expression: str, dtype: str, drawn: dict[str, Any]) -> Any:
    scope = {"torch": library, "F": library.nn.functional, **drawn}
    scope.update({name: library.tensor(drawn[name], dtype=getattr(library, dtype)) for name in "xyz"})
    out = eval(expression, scope)
    assert str(out.dtype).removeprefix("torch.") == dtype
    return out.float().numpy(), tuple(out.shape)


def drawn(seed: int, length: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal(2) * 2
    numbers = {"a": float(a), "b": float(b), "p": abs(float(rng.standard_normal())) + 0.01}
    if seed % 3 == 0:
        numbers["a"] = int(a * 3) or 2
    scales = rng.choice([1, 8, 40], (3, length))
    return numbers | dict(zip("xyz", (rng.standard_normal((3, length)) * scales).tolist(), strict=True))


def differing(expression: str, dtype: str) -> tuple[int, int, str]:
    """Return how many numbers differ, of how many, and the last call with one."""
    count = total = 0
    example = ""
    for seed in range(20):
        length = (1, 7, 16, 31, 64)[seed % 5]
        given = drawn(seed, length)
        mine, my_shape = values_of(tinytorch, expression, dtype, given)
        theirs, shape = values_of(torch, expression, dtype, given)
        assert my_shape == shape
        wrong = ~((mine == theirs) | (np.isnan(mine) & np.isnan(theirs)))
        total, count = total + wrong.size, count + int(wrong.sum())
        if wrong.any():
            numbers = {name: given[name] for name in "abp"}
            example = f"seed {seed}, length {length}, {numbers}: {mine[wrong][:3]} against {theirs[wrong][:3]}"
    return count, total, example


@pytest.mark.skipif(not FUSED, reason="PyTorch's baseline build rounds products before it adds them")
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("expression", expressions(EXACT))
def test_every_bit_agrees(expression: str, dtype: str) -> None:
    count, _, example = differing(expression, dtype)
    assert not count, example


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("expression", expressions(CLOSE))
def test_nearly_every_bit_agrees(expression: str, dtype: str) -> None:
    count, total, example = differing(expression, dtype)
    assert count <= max(1, total // 100), example


def test_a_sum_that_promotes_is_not_rounded_to_16_bits() -> None:
    mine, theirs = (
        library.ones(3, dtype=library.bfloat16).add_(library.tensor([1 / 3, 2.0, 3.0]), alpha=0.1).float().numpy()
        for library in (tinytorch, torch)
    )
    assert (mine == theirs).all()


def test_gradients_of_the_forms_in_place() -> None:
    for expression in ("(x * 1).add_(y, alpha=0.3)", "(x * 1).addcmul_(y, z, value=0.3)", "(x * 1).sub_(y, alpha=2)"):
        grads = []
        for library in (tinytorch, torch):
            x, y, z = (library.tensor([0.3, -2.0, 5.0], dtype=library.bfloat16, requires_grad=True) for _ in range(3))
            eval(expression, {"x": x, "y": y, "z": z}).sum().backward()
            grads.append([None if each.grad is None else each.grad.float().numpy().tolist() for each in (x, y, z)])
        assert grads[0] == grads[1]
