"""Optimizers that do not treat every element by itself: Adafactor, Muon, LBFGS; and the errors of SparseAdam."""

from __future__ import annotations

import copy
import io

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import compare, compared, programs, same_as_pytorch

STEPS = 25
SHAPES = {"Adafactor": [(), (1,), (7,), (4, 3), (3, 5), (2, 3, 4)], "Muon": [(4, 3), (3, 5), (8, 8), (1, 4)]}
CASES = [
    ("Adafactor", {}), ("Adafactor", {"lr": 0.1, "weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.1, "beta2_decay": -0.5, "eps": (1e-4, 0.1), "d": 2.0}), ("Adafactor", {"maximize": True}),
    ("Muon", {}), ("Muon", {"lr": 0.1, "nesterov": False}),
    ("Muon", {"lr": 0.1, "momentum": 0.3, "weight_decay": 0.0, "adjust_lr_fn": "match_rms_adamw"}),
    ("Muon", {"lr": 0.1, "ns_steps": 3, "adjust_lr_fn": "original", "ns_coefficients": (2.0, -1.5, 0.5)}),
]  # fmt: skip
IDS = [f"{name}-{'-'.join(options) or 'default'}" for name, options in CASES]


def trained(module, name, options, dtype, steps=STEPS, state=None, start=None):
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.standard_normal(shape)).astype(dtype) for shape in SHAPES[name]]
    params = [module.from_numpy(a).requires_grad_() for a in (arrays if start is None else start)]
    optimizer = getattr(module.optim, name)(params, **options)
    if state is not None:
        optimizer.load_state_dict(state)
    for step in steps if isinstance(steps, range) else range(steps):
        rng = np.random.default_rng(step + 1)
        for p in params:
            p.grad = module.from_numpy(np.asarray(rng.standard_normal(tuple(p.shape))).astype(dtype))
        optimizer.step()
    return params, optimizer


def close(name, dtype):
    # Muon computes in bfloat16: its last bit is one of 256.
    return (
        {"rtol": 2e-2, "atol": 2e-2}
        if name == "Muon"
        else {"rtol": 1e-4 if dtype == "float32" else 1e-10, "atol": 1e-5}
    )


@needs_oracle
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_walks_as_pytorch(name, options, dtype):
    (ours, a), (theirs, b) = (trained(module, name, options, dtype) for module in (tinytorch, torch))
    assert repr(a) == repr(b) and a.defaults == b.defaults
    compare(ours, theirs, **close(name, dtype))
    compare(a.state_dict(), b.state_dict(), **close(name, dtype))


@needs_oracle
@pytest.mark.parametrize("ours_first", [True, False], ids=["ours to theirs", "theirs to ours"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_goes_on_from_a_checkpoint_of_the_other(name, options, ours_first):
    first, second = (tinytorch, torch) if ours_first else (torch, tinytorch)
    params, optimizer = trained(first, name, options, "float32", 4)
    buffer = io.BytesIO()
    first.save(optimizer.state_dict(), buffer)
    buffer.seek(0)
    start = [p.detach().numpy().copy() for p in params]
    others, _ = trained(second, name, {}, "float32", range(4, 8), second.load(buffer), start)
    params, _ = trained(first, name, {}, "float32", range(4, 8), optimizer.state_dict(), start)
    for p, q in zip(params, others, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), **close(name, "float32"))


def test_muon_makes_all_singular_values_about_one():
    g = np.random.default_rng(0).standard_normal((40, 60)).astype("f")
    p = tinytorch.zeros(40, 60, requires_grad=True)
    p.grad = tinytorch.from_numpy(g)
    tinytorch.optim.Muon([p], lr=1.0).step()
    values = np.linalg.svd(p.detach().numpy(), compute_uv=False)
    assert values.min() > 0.4 and values.max() < 1.4


@pytest.mark.parametrize("make", programs("""
    torch.optim.Muon([w], lr=-1.0); torch.optim.Muon([w], momentum=-1.0); torch.optim.Muon([w], weight_decay=-1.0)
    torch.optim.Muon([w], adjust_lr_fn="never"); torch.optim.Muon([torch.ones(3, requires_grad=True)])
    torch.optim.Adafactor([w], lr=-1.0); torch.optim.Adafactor([w], lr=torch.ones(2))
    torch.optim.Adafactor([w], beta2_decay=1.0); torch.optim.Adafactor([w], eps=(-1.0, 0.1))
    torch.optim.Adafactor([w], eps=(None, -0.1)); torch.optim.Adafactor([w], d=0.5)
    torch.optim.Adafactor([w], weight_decay=-1.0); torch.optim.SparseAdam([w], lr=0.0)
    torch.optim.SparseAdam([w], eps=0.0); torch.optim.SparseAdam([w], betas=(1.0, 0.9)); torch.optim.NAdam([w], lr=-1.0)
    torch.optim.NAdam([w], momentum_decay=-1.0); torch.optim.NAdam([w], betas=(0.9, 1.0))
    torch.optim.RAdam([w], eps=-1.0); torch.optim.RAdam([w], weight_decay=-1.0)
    torch.optim.Adamax([w], betas=(-1.0, 0.9)); torch.optim.Adamax([w], eps=-1.0)
    torch.optim.Adagrad([w], lr_decay=-1.0); torch.optim.Adagrad([w], initial_accumulator_value=-1.0)
    torch.optim.Adagrad([w], fused=True, foreach=True); torch.optim.Adadelta([w], rho=1.5)
    torch.optim.Adadelta([w], eps=-1.5); torch.optim.RMSprop([w], alpha=-1.0); torch.optim.RMSprop([w], momentum=-1.0)
    torch.optim.Rprop([w], etas=(1.5, 2.0)); torch.optim.Rprop([w], lr=torch.ones(3)); torch.optim.ASGD([w], lr=-1.0)
    torch.optim.ASGD([w], weight_decay=-1.0); torch.optim.LBFGS([w], lr=-1.0)
    torch.optim.LBFGS([{"params": [w]}, {"params": [torch.ones(2, requires_grad=True)]}])
""", {}, "w").values())  # fmt: skip
def test_bad_arguments(make):
    same_as_pytorch(lambda t: make(t, t.ones(2, 2, requires_grad=True)))


@compared
def test_sparse_adam_wants_sparse_gradients(t):
    w = t.ones(2, requires_grad=True)
    optimizer = t.optim.SparseAdam([w])
    w.sum().backward()
    optimizer.step()


@pytest.mark.parametrize("name", ["NAdam", "RAdam", "Adamax", "Adadelta", "RMSprop", "Rprop", "ASGD"])
@compared
def test_capturable_is_for_accelerators(t, name):
    w = t.ones(2, requires_grad=True)
    optimizer = getattr(t.optim, name)([w], capturable=True, foreach=False)
    w.sum().backward()
    optimizer.step()


def rosenbrock(t, w):
    return (100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2).sum()


LBFGS = [
    {}, {"lr": 0.5, "history_size": 3}, {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 4},
    {"line_search_fn": "strong_wolfe", "lr": 5.0, "max_eval": 7}, {"max_iter": 1}, {"tolerance_grad": 10.0},
    {"tolerance_change": 0.5},
]  # fmt: skip


def descend(t, options, loss, start, steps, state=None):
    w = t.tensor(start, dtype=t.float64, requires_grad=True)
    v = t.tensor([[0.5, -0.5]], dtype=t.float64, requires_grad=True)
    unused = t.ones(2, dtype=t.float64, requires_grad=True)
    optimizer = t.optim.LBFGS([w, v, unused], **options)
    if state is not None:
        optimizer.load_state_dict(state)
    calls = []

    def closure():
        optimizer.zero_grad()
        value = loss(t, w) + ((v - 2) ** 2 * t.tensor([1.0, 3.0], dtype=t.float64)).sum()
        value.backward()
        calls.append(value.detach())
        return value

    results = [optimizer.step(closure).detach() for _ in range(steps)]
    return results, calls, [w.detach(), v.detach()], optimizer


@pytest.mark.parametrize("options", LBFGS, ids=lambda o: "-".join(map(str, o)) or "default")
@pytest.mark.parametrize("loss", ["rosenbrock", "quadratic"])
@compared(rtol=1e-6, atol=1e-7)
def test_lbfgs_walks_as_pytorch(t, options, loss):
    if loss == "rosenbrock":
        if "line_search_fn" not in options:
            options["lr"] = 1e-3
        function, start = rosenbrock, [-1.2, 1.0, 0.5]
    else:
        function, start = ((lambda t, w: (w**2 * t.tensor([1.0, 7.0, 0.1], dtype=t.float64)).sum()), [3.0, -4.0, 5.0])
    results, calls, ends, optimizer = descend(t, options, function, start, 4)
    state = optimizer.state_dict()
    return (results, calls, ends, state["state"], {k: v for k, v in state["param_groups"][0].items() if k != "lr"})


HARD = {
    "waves": lambda t, w: (t.sin(5 * w) + 0.1 * w**2).sum(),
    "cusps": lambda t, w: (w.abs() + 1e-3).sqrt().sum(),
    "plateau": lambda t, w: -(-(w**2)).exp().sum(),
    "step": lambda t, w: (w**2).sum() + t.tanh(20 * (w - 1)).sum(),
    "two valleys": lambda t, w: (w**4 - 3 * w**2 + w).sum(),
    "rosenbrock": rosenbrock,
}


@pytest.mark.parametrize(("loss", "start", "lr"), [
    ("rosenbrock", [0.04, -0.04, 0.19], 0.01), ("waves", [-1.61, 1.08, 3.91], 5.0), ("waves", [0.79, -0.94, 4.37], 5.0),
    ("cusps", [-6.98, -0.66, -3.74], 0.01), ("cusps", [0.09, 0.11, -0.58], 1.0), ("step", [-0.13, 1.37, -0.67], 5.0),
    ("two valleys", [1.9, -6.61, 0.16], 30.0), ("plateau", [0.65, -2.03, 3.43], 30.0),
    ("plateau", [-3.22, 4.89, 3.9], 1.0), ("plateau", [-2.66, -0.46, 7.94], 1.0),
])  # fmt: skip
@compared(rtol=1e-6, atol=1e-7)
def test_strong_wolfe_where_the_cubic_is_of_no_use(t, loss, start, lr):
    """Each of these takes another way through the line search: stuck brackets, bounds, ends that change places."""
    w = t.tensor(start, dtype=t.float64, requires_grad=True)
    optimizer = t.optim.LBFGS([w], lr=lr, line_search_fn="strong_wolfe", max_iter=12)
    losses = []

    def closure():
        optimizer.zero_grad()
        value = HARD[loss](t, w)
        value.backward()
        losses.append(value.item())
        return value

    for _ in range(2):
        optimizer.step(closure)
    return losses, w.detach(), t.optim.LBFGS([w]).defaults


@needs_oracle
def test_lbfgs_goes_on_from_a_checkpoint_of_the_other():
    options = {"line_search_fn": "strong_wolfe", "max_iter": 5}
    for first, second in ((tinytorch, torch), (torch, tinytorch)):
        *_, ends, optimizer = descend(first, options, rosenbrock, [-1.2, 1.0, 0.5], 2)
        buffer = io.BytesIO()
        first.save(optimizer.state_dict(), buffer)
        buffer.seek(0)
        start = ends[0].tolist()
        one = descend(second, {}, rosenbrock, start, 3, second.load(buffer))
        two = descend(first, {}, rosenbrock, start, 3, copy.deepcopy(optimizer.state_dict()))
        np.testing.assert_allclose(one[2][0].numpy(), two[2][0].numpy(), rtol=1e-6)


@compared
def test_lbfgs_of_an_unknown_line_search(t):
    w = t.ones(2, requires_grad=True)
    optimizer = t.optim.LBFGS([w], line_search_fn="armijo")

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    optimizer.step(closure)


def test_lbfgs_finds_the_minimum_of_rosenbrocks_function():
    w = tinytorch.tensor([-1.2, 1.0], dtype=tinytorch.float64, requires_grad=True)
    optimizer = tinytorch.optim.LBFGS([w], line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(tinytorch, w)
        loss.backward()
        return loss

    for _ in range(6):
        optimizer.step(closure)
    np.testing.assert_allclose(w.detach().numpy(), [1, 1], atol=1e-4)


def test_lbfgs_needs_a_closure():
    w = tinytorch.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match="closure"):
        tinytorch.optim.LBFGS([w]).step()
