"""Copies of views, replaced views, views in place, and methods as functions, against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import tinytorch
from tests.oracle import needs_oracle
from tests.same import compared, expressions, of_each, programs, same_as_pytorch

IN_PLACE = expressions("""
    x.t_(); x.transpose_(0, -1); x.swapaxes_(0, 1); x.swapdims_(0, 1); x.unsqueeze_(1)
    x.squeeze_(); x.squeeze_(0); x.squeeze_((0, 1)); x.as_strided_((2, 2), (1, 2))
    x.as_strided_((2,), (2,), 1); x.tril_(); x.triu_(1); x.transpose_(0, 5)
    x.as_strided_((40,), (1,)); x.t_().unsqueeze_(0); x.t_().mul_(2)
""")


def weighted(torch: Any, x: Any) -> Any:
    return (x * torch.arange(float(x.numel())).view(x.shape)).sum()


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize("source", ["result", "leaf", "plain", "view", "base", "detached", "no_grad"])
@compared
def test_a_view_in_place(torch: Any, name: str, source: str) -> Any:
    p = torch.arange(6.0).view(2, 3).clone().requires_grad_(source != "plain")
    other = x = p if source in ("leaf", "plain") else p * 2
    if source == "view":
        x = other[:1]
    elif source == "base":
        other = x[:, :2]
    elif source == "detached":
        x = other.detach()
    elif source == "no_grad":
        with torch.no_grad():
            eval(name, {"x": x})
        return x.shape, x._version
    before = x._version
    assert eval(name, {"x": x}) is x
    seen = [x, x.stride(), x._version - before, other, x.grad_fn and x.grad_fn.name(), x._is_view()]
    if x.requires_grad:
        (weighted(torch, x) + 3 * weighted(torch, other)).backward()
    return [*seen, p.grad]


test_views_in_place_that_are_refused = of_each([
    lambda torch: torch.ones(4, 3, requires_grad=True).mul(1).chunk(2)[0].t_(),
    lambda torch: torch.zeros(2, 1).expand(2, 3).t_(), lambda torch: torch.ones(2, 3, requires_grad=True)[:1].t_(),
    lambda torch: torch.ones(2, 2, 2).t_(),
])  # fmt: skip


def test_a_tangent_is_viewed_too() -> None:
    forward = tinytorch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(tinytorch.zeros(2, 3), tinytorch.arange(6.0).view(2, 3))
        dual.t_()
        assert forward.unpack_dual(dual).tangent.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_what_was_saved_is_noticed_to_have_changed() -> None:
    p, x = tinytorch.ones(2, 3, requires_grad=True), tinytorch.zeros(2, 3)
    y = p * x
    x.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("program", programs("""
    torch.t_copy(p); torch.unbind_copy(p); torch.view_copy(p, dtype=torch.int32).dtype
    torch.expand_copy(p, (2, 2, 3), implicit=True); torch.slice_copy(p, step=0); torch.select_copy(p, 0, 5)
    torch.t_copy(p).grad_fn.name(); torch.split_copy(p, 1)[0].grad_fn.name()
    torch.permute_copy(p.detach(), (1, 0)).stride(); torch.select_scatter(p, torch.ones(2), 0, 1)
    torch.select_scatter(p, torch.ones(3).long(), 0, 1); torch.slice_scatter(p, torch.ones(1), 0, 1)
    torch.diagonal_scatter(p, torch.ones(2)).grad_fn.name()
    torch.as_strided_scatter(p, torch.ones(2, 2), (2, 2), (1, 2))
    torch.as_strided_scatter(p.detach().t(), torch.ones(2), (2,), (1,))
    torch.slice_inverse(p.detach()[:1], torch.zeros(2, 3), 0, 0, 1); torch.unsafe_split(p, 1); torch.unsafe_chunk(p, 0)
    torch.constant_pad_nd(p, (1,)); torch.constant_pad_nd(p, (-2, -3)); torch.constant_pad_nd(p, (0,) * 6)
    torch.pixel_shuffle(torch.ones(3, 2, 2), 2); torch.pixel_shuffle(p, 2)
    torch.pixel_unshuffle(torch.ones(3, 3, 2), 2); torch.pixel_unshuffle(torch.ones(4, 2, 2), 0)
    torch.channel_shuffle(p, 2); torch.channel_shuffle(torch.ones(1, 4, 2), 3)
    torch.unbind_copy(p.detach(), out=[torch.empty(3), torch.empty(3)])
    torch.split_copy(p.detach(), 1, out=[torch.empty(3)]); torch.detach(p)
    (torch.is_nonzero(p[0, :1]), torch.is_signed(p), torch.get_device(p)); torch.dropout_(p.detach(), 0.5, True)
    torch.dropout_(p * 1, -1.0, True); torch.alpha_dropout_(p.detach(), 0.5, True); torch.feature_dropout(p, 0.5, True)
    torch.feature_dropout_(p.detach(), 0.5, True); torch.feature_alpha_dropout(torch.ones(2, 3, 2), 0.5, True)
    torch.feature_alpha_dropout_(torch.ones(2, 3, 2), 0.5, True); torch.range(1, 4); torch.range(0, 1, 0.1)
    torch.range(4, 1, -1, dtype=torch.int64); torch.range(4, 1); torch.range(0, 1, 0)
""", {}, "p").values())  # fmt: skip
def test_as_pytorch(program: Any) -> None:
    same_as_pytorch(lambda torch: program(torch, torch.arange(6.0).view(2, 3).requires_grad_()))


def test_the_gradient_of_as_strided_scatter() -> None:
    # (PyTorch 2.13 gives the first argument the gradient of the places that are replaced.)
    p = tinytorch.randn(3, 4, dtype=tinytorch.float64, requires_grad=True)
    src = tinytorch.randn(2, 2, dtype=tinytorch.float64, requires_grad=True)
    assert tinytorch.autograd.gradcheck(lambda x, y: tinytorch.as_strided_scatter(x, y, (2, 2), (1, 2), 1), (p, src))


#: Methods that PyTorch has as functions, too.
METHODS = """
    abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan_
    atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach detach_ erf_ erfc_ exp2_
    exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ get_device i0_ index_put_ is_nonzero is_same_size is_signed lcm_ ldexp_
    log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ resize_as_ round_ rsqrt_
    sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_
"""


@pytest.mark.parametrize("name", METHODS.split())
def test_methods_as_functions(name: str) -> None:
    function, method = getattr(tinytorch, name).raw, getattr(tinytorch.Tensor, name)
    assert function in (method, method.__wrapped__)


@needs_oracle
def test_the_functions_are_pytorchs() -> None:
    from tests.oracle import torch

    missing = [name for name in METHODS.split() if not hasattr(torch, name)]
    assert not missing, missing
    theirs = [name for name in dir(torch) if name.endswith("_") and not name.startswith("_")]
    ours = [n for n in theirs if hasattr(torch.Tensor, n) and hasattr(tinytorch.Tensor, n)]
    assert [name for name in ours if not hasattr(tinytorch, name)] == []


test_layers = of_each(programs("""
    torch.nn.PixelShuffle(2)(torch.arange(16.0).view(1, 8, 1, 2))
    torch.nn.PixelUnshuffle(2)(torch.arange(16.0).view(1, 2, 2, 4))
    torch.nn.ChannelShuffle(2)(torch.arange(8.0).view(1, 4, 2))
    torch.nn.functional.pixel_shuffle(torch.arange(4.0).view(4, 1, 1), 2)
    [repr(torch.nn.PixelShuffle(2)), repr(torch.nn.PixelUnshuffle(2)), repr(torch.nn.ChannelShuffle(3))]
"""))  # fmt: skip
