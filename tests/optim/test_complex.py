"""Complex parameters: each optimizer updates them as pairs of real numbers, compared with PyTorch's trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import torch
from tests.same import compared, refused

CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.05}), ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.05, "momentum": 0.5, "dampening": 0.2, "maximize": True}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1}), ("Adam", {"lr": 0.05, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.1}),
    ("Adagrad", {"lr": 0.05, "lr_decay": 0.1, "initial_accumulator_value": 0.2}), ("Adadelta", {"lr": 0.05}),
    ("RMSprop", {"lr": 0.05, "centered": True, "momentum": 0.9}), ("Rprop", {"lr": 0.05}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1}), ("RAdam", {"lr": 0.05}), ("Adamax", {"lr": 0.05}),
    ("ASGD", {"lr": 0.05}), ("LBFGS", {}), ("LBFGS", {"line_search_fn": "strong_wolfe"}),
]  # fmt: skip
parametrize = pytest.mark.parametrize


def numbers(rng: Any, shape: tuple[int, ...], kind: Any) -> Any:
    return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(kind)


def trained(library: Any, name: str, options: dict[str, Any]) -> tuple[list[float], list[Any], dict[Any, Any]]:
    """Return the losses, the parameters and the state after a few steps of an optimizer."""
    rng = np.random.default_rng(0)
    shapes = [((3,), np.complex128), ((2, 2), np.complex64), ((), np.complex64), ((4,), np.complex64)]
    params = [library.nn.Parameter(library.from_numpy(numbers(rng, *each))) for each in shapes]
    params.append(library.nn.Parameter(library.ones(4)))
    targets = [library.from_numpy(numbers(rng, tuple(each.shape), np.complex128)) for each in params[:-1]]
    optimizer = getattr(library.optim, name)(params, **options)

    def closure() -> Any:
        optimizer.zero_grad()
        errors = [(p * (1 + 0.5j) - t).abs() ** 2 for p, t in zip(params, targets, strict=False)]
        loss = sum(each.sum() for each in errors) + (params[-1] ** 2).sum()
        loss.backward()
        return loss

    losses = []
    for _ in range(6):
        if name != "LBFGS":
            losses.append(closure().item())
        result = optimizer.step(*([closure] if name == "LBFGS" else []))
        losses += [] if result is None else [result.item()]
    return losses, [each.detach() for each in params], optimizer.state_dict()["state"]


@parametrize("foreach", [None, True, False])
@parametrize(("name", "options"), CASES, ids=lambda value: str(value))
@compared(rtol=1e-3, atol=1e-5)
def test_trajectory(torch: Any, name: str, options: dict[str, Any], foreach: bool | None) -> Any:
    losses, params, state = trained(torch, name, options | ({"foreach": foreach} if name != "LBFGS" else {}))
    kept = [{key: value for key, value in each.items() if hasattr(value, "dtype")} for each in state.values()]
    return losses, params, list(state), [list(each) for each in state.values()], kept


@parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "RMSprop", "NAdam", "RAdam", "ASGD"])
@compared(rtol=1e-4, atol=1e-5)
def test_gradients_through_a_step(torch: Any, name: str) -> Any:
    rng = np.random.default_rng(1)
    w, g = (torch.from_numpy(numbers(rng, (3,), np.complex128)).requires_grad_() for _ in range(2))
    p = w.clone()
    p.grad = g.clone()
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(torch.optim, name)([p], lr=0.1, differentiable=True, **options)
    for _ in range(2):
        optimizer.step()
    return p.detach(), torch.autograd.grad((p.abs() ** 2).sum(), (w, g), allow_unused=True)


@parametrize("name", ["Muon", "Adafactor", "SparseAdam"])
@compared
def test_refusals(torch: Any, name: str) -> Any:
    w = torch.ones(2, 2, dtype=torch.cfloat, requires_grad=True)
    optimizer = getattr(torch.optim, name)([w])
    w.abs().sum().backward()
    return optimizer.step()


@pytest.mark.parametrize("library", [tinytorch, torch], ids=["tinytorch", "torch"])
def test_fused_steps_are_refused(library: Any) -> None:
    if library is not None:
        w = library.ones(2, dtype=library.cfloat, requires_grad=True)
        w.abs().sum().backward()
        step = library.optim.Adam([w], fused=True).step
        refused(RuntimeError, "requires all the params to be floating point", step)


def test_a_loaded_state_continues() -> None:
    w = tinytorch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    optimizer = tinytorch.optim.Adam([w], lr=0.1)
    (w.abs() ** 2).sum().backward()
    optimizer.step()
    copy = w.detach().clone().requires_grad_()
    copy.grad = w.grad.clone()
    other = tinytorch.optim.Adam([copy], lr=0.1)
    other.load_state_dict(optimizer.state_dict())
    for each in (optimizer, other):
        each.step()
    assert copy.equal(w) and other.state[copy]["exp_avg"].dtype is tinytorch.complex64
