"""How a function is traced is declared where it is defined, and is not inherited by classes of users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tinytorch as torch
import tinytorch.nn.functional as F
from tinytorch import nn
from tinytorch.compiler.policy import INLINE, OP, REFUSED, STATEFUL, TRUSTED, policy_of


class OfAUser(nn.Linear):
    """A layer outside of the package."""


class DistributionOfAUser(torch.distributions.Normal):
    """A distribution outside of the package, which may run any code."""


class OptimizerOfAUser(torch.optim.SGD):
    """An optimizer outside of the package, which may run any code."""


POLICIES: dict[Any, str | None] = {
    nn.Linear: INLINE, nn.utils.clip_grad_norm_: INLINE, OfAUser: None,
    torch.distributions.Normal: TRUSTED, torch.distributions.kl_divergence: TRUSTED, DistributionOfAUser: None,
    torch.optim.SGD: STATEFUL, torch.optim.LBFGS: REFUSED, OptimizerOfAUser: None,
    torch.no_grad: OP, torch.autograd.api.grad: OP, torch.linalg.norm.raw: OP, F.relu.raw: OP,
    torch.save: REFUSED, torch.set_default_dtype: REFUSED, torch.manual_seed.raw: REFUSED,
}  # fmt: skip


@pytest.mark.parametrize("x", POLICIES, ids=lambda x: x.__qualname__)
def test_a_policy_is_declared(x: Any) -> None:
    assert policy_of(x) == POLICIES[x]


CREATE: list[Callable[..., Any]] = [
    lambda x: x + torch.scalar_tensor(2.0),
    lambda x: x * torch.empty_strided((3,), (1,)).zero_(),
    lambda x: x + torch.zeros_like(x) + x.new_full((3,), 2.0) + torch.eye(3),
    lambda x: x + torch.full_like(input=x, fill_value=3),
    lambda x: x + torch.as_tensor([1.0, 2.0, 3.0]),
]


@pytest.mark.parametrize("function", CREATE)
def test_what_is_created_is_a_constant(function: Callable[..., Any]) -> None:
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(3):
        x = torch.randn(3)
        assert torch.equal(compiled(x), function(x))
    assert len(compiled.variants) == 1


REFUSE: list[Callable[..., Any]] = [
    lambda x: (torch.manual_seed(3), x + 1)[1],
    lambda x: (x + 1).resize_(2),
    lambda x: x + x.data_ptr(),
]


@pytest.mark.parametrize("function", REFUSE)
def test_what_is_refused_is_not_compiled(function: Callable[..., Any]) -> None:
    compiled = torch.compile(function)
    compiled(torch.randn(3))
    assert not compiled.variants
    assert "whose effects are not known" in compiled.reasons[0]
