"""Random programs of views, writes in place and ordinary ops, run by both libraries: values, gradients, errors."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tinytorch
from tests.oracle import needs_oracle
from tests.same import Raised, compare, outcome, torch

# A step is (kind, which tensor, which other one, a number): see `take`.
STEPS = st.lists(
    st.tuples(st.integers(0, 26), st.integers(0, 30), st.integers(0, 30), st.integers(0, 5)),
    min_size=1,
    max_size=12,
)


def take(lib: Any, tensors: list[Any], step: tuple[int, int, int, int]) -> None:
    """Run one step: it writes to one of the tensors, or adds one to the list.

    (No `unfold`: what a write to overlapping windows leaves in memory is undefined, in PyTorch too.)
    """
    kind, a, b, n = step
    x, y = tensors[a % len(tensors)], tensors[b % len(tensors)]
    dim = n % max(x.dim(), 1)
    views = [
        lambda: x.select(dim, 0), lambda: x.narrow(dim, 0, 1), lambda: x[..., ::2], lambda: x.transpose(0, dim),
        lambda: x.view(-1), lambda: x.reshape(-1), lambda: x.unsqueeze(dim), lambda: x.squeeze(), lambda: x.t(),
        lambda: x[None, ..., 0], lambda: x.unbind(dim)[0], lambda: x.split(1, dim)[-1], lambda: x.diagonal(),
        lambda: x.expand(2, *x.shape), lambda: x.detach(), lambda: x.movedim(0, -1),
    ]  # fmt: skip
    writes = [
        lambda: x.mul_(y), lambda: x.add_(y, alpha=2), lambda: x.copy_(y), lambda: x.zero_(), lambda: x.sin_(),
        lambda: x.__setitem__(0, y), lambda: x.__setitem__((..., 0), 1.5),
    ]  # fmt: skip
    others = [lambda: x * y, lambda: x.cos(), lambda: x + y, lambda: x.clone()]
    every = [*views, *writes, *others]
    result = every[kind % len(every)]()
    if len(views) <= kind % len(every) < len(views) + len(writes):
        return
    tensors.append(result)


def run(lib: Any, steps: list[tuple[int, int, int, int]], quiet: list[bool]) -> Any:
    """Return what can be seen of a program after all its steps."""
    x = lib.arange(24, dtype=lib.float64).reshape(2, 3, 4).div(10).clone().requires_grad_()
    w = lib.linspace(-1, 1, 4, dtype=lib.float64).requires_grad_()
    tensors = [x, w, x * 2, lib.ones(3, 4, dtype=lib.float64)]
    raised = []
    for step, silent in zip(steps, quiet, strict=False):
        try:
            with lib.set_grad_enabled(not silent):
                take(lib, tensors, step)
        except Exception as error:  # every class: it is compared
            raised.append(type(error).__name__)
    seen = [(t.detach().clone(), t._version, t._is_view()) for t in tensors]
    flags = []
    total = x.sum() * 0
    for t in tensors:
        try:
            flags.append((t.requires_grad, t.is_leaf))
            total = total + (t * t).sum()
        except Exception as error:
            raised.append(type(error).__name__)
    total.backward()
    return raised, flags, seen, x.grad, w.grad


@needs_oracle
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS, st.lists(st.sampled_from([False, False, False, True]), min_size=12, max_size=12))
def test_random_programs_agree(steps: list[tuple[int, int, int, int]], quiet: list[bool]) -> None:
    ours, _ = outcome(lambda lib: run(lib, steps, quiet), tinytorch)
    theirs, _ = outcome(lambda lib: run(lib, steps, quiet), torch)
    if isinstance(ours, Raised) and isinstance(theirs, Raised):
        assert ours.kind == theirs.kind
        return
    compare(ours, theirs, 1e-9, 1e-9)
