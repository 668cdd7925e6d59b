"""Every optimizer, with every option, walks as PyTorch's does, and keeps what it keeps."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch
from tests.same import compared
from tinytorch.kernels.optim import BLOCK, SMALL
from tinytorch.optim import SGD

#: Name of the optimizer and its options: a new optimizer is entered here.
CASES = [
    ("SGD", {}), ("SGD", {"lr": 0.1, "maximize": True}), ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}), ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "maximize": True}),
    ("Adam", {}), ("Adam", {"lr": 0.1, "betas": (0.5, 0.9), "eps": 1e-3}), ("Adam", {"lr": 0.1, "betas": (0.0, 0.99)}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1}), ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.1, "maximize": True, "weight_decay": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}), ("AdamW", {}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.5}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.5, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.0}), ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "betas": (0.5, 0.9), "momentum_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}), ("RAdam", {}),
    ("RAdam", {"lr": 0.1, "betas": (0.5, 0.9), "maximize": True}), ("RAdam", {"lr": 0.1, "weight_decay": 0.1}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}), ("Adamax", {}),
    ("Adamax", {"lr": 0.1, "betas": (0.5, 0.9), "eps": 1e-3}),
    ("Adamax", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}), ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"lr": 0.1, "weight_decay": 0.1, "eps": 1e-3, "maximize": True}), ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.5, "eps": 1e-3}), ("Adadelta", {"weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {}), ("RMSprop", {"alpha": 0.9, "eps": 1e-3, "momentum": 0.9}),
    ("RMSprop", {"centered": True, "eps": 1e-3}),
    ("RMSprop", {"centered": True, "momentum": 0.9, "weight_decay": 0.1, "eps": 1e-2}),
    ("RMSprop", {"weight_decay": 0.1, "maximize": True}), ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.25, 1.5), "step_sizes": (0.05, 0.3)}), ("Rprop", {"lr": 0.1, "maximize": True}),
    ("ASGD", {}), ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 2}),
    ("ASGD", {"lr": 0.1, "weight_decay": 0.1, "t0": 0, "maximize": True}),
]  # fmt: skip
IDS = [f"{name}-{'-'.join(f'{key}={value}' for key, value in options.items()) or 'default'}" for name, options in CASES]
SHAPES = [(), (1,), (3, 4), (0,), (2, 3, 5), (BLOCK + 1,), (3, BLOCK)]
TOLERANCE = {"float64": 1e-14, "float32": 1e-6}


def arrays(seed, dtype):
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(shape)).astype(dtype) for shape in SHAPES]


def parameters(module, dtype):
    return [module.from_numpy(a).requires_grad_() for a in arrays(0, dtype)]


def give_gradients(module, params, seed, dtype):
    for p, g in zip(params, arrays(seed, dtype), strict=True):
        p.grad = module.from_numpy(g)


def walk(module, optimizer, params, dtype, steps):
    for step in steps:
        give_gradients(module, params, step, dtype)
        optimizer.step()


def assert_close(ours, theirs, dtype):
    assert str(ours.dtype) == str(theirs.dtype)
    expected = theirs.detach().numpy()
    bound = TOLERANCE[dtype]
    size = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(ours.detach().numpy(), expected, rtol=bound, atol=bound * size)


def assert_same_state(ours, theirs, dtype):
    """Compare two state_dicts: keys in order, options, and tensors."""
    assert ours["param_groups"] == theirs["param_groups"]
    for a, b in zip(ours["param_groups"], theirs["param_groups"], strict=True):
        assert list(a) == list(b)
    assert list(ours["state"]) == list(theirs["state"])
    for number, kept in theirs["state"].items():
        assert list(ours["state"][number]) == list(kept)
        for key, value in kept.items():
            mine = ours["state"][number][key]
            assert tuple(mine.shape) == tuple(value.shape)
            assert_close(mine, value, dtype)


@needs_oracle
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_walks_as_pytorch(name, options, dtype):
    ours, theirs = parameters(tinytorch, dtype), parameters(torch, dtype)
    a = getattr(tinytorch.optim, name)(ours, **options)
    b = getattr(torch.optim, name)(theirs, **options)
    assert a.defaults == b.defaults and repr(a) == repr(b)
    assert_same_state(a.state_dict(), b.state_dict(), dtype)
    for step in range(1, 7):
        walk(tinytorch, a, ours, dtype, [step])
        walk(torch, b, theirs, dtype, [step])
        for p, q in zip(ours, theirs, strict=True):
            assert_close(p, q, dtype)
    assert_same_state(a.state_dict(), b.state_dict(), dtype)


@needs_oracle
@pytest.mark.parametrize("ours_first", [True, False], ids=["ours to theirs", "theirs to ours"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_goes_on_from_a_checkpoint_of_the_other(name, options, ours_first, tmp_path):
    first, second = (tinytorch, torch) if ours_first else (torch, tinytorch)
    dtype, path = "float64", str(tmp_path / "optimizer.pth")
    params = parameters(first, dtype)
    optimizer = getattr(first.optim, name)(params, **options)
    walk(first, optimizer, params, dtype, [1, 2, 3])
    first.save(optimizer.state_dict(), path)

    others = [second.from_numpy(p.detach().numpy().copy()).requires_grad_() for p in params]
    other = getattr(second.optim, name)(others, lr=12345.0)
    other.load_state_dict(second.load(path, weights_only=True))
    for module, each, through in (first, params, optimizer), (second, others, other):
        walk(module, through, each, dtype, [4, 5])
    mine, theirs = (params, others) if ours_first else (others, params)
    for p, q in zip(mine, theirs, strict=True):
        # (Loading casts what NAdam and ASGD keep as one number in float32 to the parameter's dtype.)
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), 1e-6, 1e-6)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
@compared(rtol=1e-14, atol=1e-14)
def test_parameters_that_are_not_contiguous(torch, name, options):
    base = torch.from_numpy(np.random.default_rng(0).standard_normal((5, 4)))
    params = [view.detach().requires_grad_() for view in (base.t(), base[:, ::2])]
    optimizers = [getattr(torch.optim, name)([p], **options) for p in params]
    for step in range(1, 4):
        for p, optimizer in zip(params, optimizers, strict=True):
            p.grad = torch.from_numpy(np.random.default_rng(step).standard_normal(tuple(p.shape)))
            optimizer.step()
    states = [optimizer.state_dict() for optimizer in optimizers]
    return base, states, optimizers[0].defaults, repr(optimizers[0])


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
@compared(rtol=4e-3, atol=4e-3)
def test_half_precision_follows_within_its_precision(torch, name, options):
    p = torch.from_numpy(np.linspace(-2, 2, 20).astype("float16")).requires_grad_()
    optimizer = getattr(torch.optim, name)([p], **{"eps": 1e-3, **options} if "Adam" in name else options)
    for step in range(1, 4):
        p.grad = torch.from_numpy(np.random.default_rng(step).random(20).astype("float16"))
        optimizer.step()
    return p


@pytest.mark.parametrize("option", ["lr", "betas"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
@compared(rtol=1e-6)
def test_options_as_tensors(torch, name, option):
    if option == "betas" and name == "SGD":
        return None
    p = torch.from_numpy(np.linspace(-2, 2, 20)).requires_grad_()
    lr = torch.tensor(0.125)
    given = {"lr": lr} if option == "lr" else {"betas": (torch.tensor(0.5), torch.tensor(0.75))}
    optimizer = getattr(torch.optim, name)([p], **given)
    for step in range(1, 4):
        p.grad = torch.from_numpy(np.random.default_rng(step).random(20))
        optimizer.step()
        lr.mul_(0.5)  # the tensor, not its value, is what the group holds
    return p, option != "lr" or optimizer.param_groups[0]["lr"] is lr


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@compared(rtol=1e-14)
def test_options_changed_on_the_way(torch, name):
    """Momentum that comes later, another rate per group, a gradient that is not always there."""
    p, q = (torch.from_numpy(np.linspace(-2, 2, 6)).requires_grad_() for _ in range(2))
    groups = [{"params": [p], "lr": 0.5}, {"params": [q], "weight_decay": 0.1}]
    optimizer = getattr(torch.optim, name)(groups, lr=0.25)
    for step in range(1, 7):
        p.grad = torch.from_numpy(np.random.default_rng(step).random(6))
        q.grad = None if step % 2 else p.grad * 2
        optimizer.step()
        optimizer.param_groups[0]["lr"] *= 0.5
        if step == 3 and name == "SGD":
            for group in optimizer.param_groups:
                group["momentum"] = 0.9
    return p, q, list(optimizer.state_dict()["state"])


@needs_oracle
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_pytorchs_old_checkpoints_are_completed(name):
    """Before `maximize` and its kin came, groups lacked them, and steps were plain numbers."""
    loaded = []
    for module in (tinytorch, torch):
        params = [module.ones(2, requires_grad=True)]
        optimizer = getattr(module.optim, name)(params)
        walk_once = module.ones(2)
        params[0].grad = walk_once
        optimizer.step()
        saved = optimizer.state_dict()
        kept = {"lr", "momentum", "dampening", "weight_decay", "betas", "eps", "params"}
        saved["param_groups"] = [{k: v for k, v in g.items() if k in kept} for g in saved["param_groups"]]
        for state in saved["state"].values():
            state["step"] = 1
        fresh = getattr(module.optim, name)([module.ones(2, requires_grad=True)])
        fresh.load_state_dict(saved)
        loaded.append(fresh.state_dict())
    ours, theirs = loaded
    assert ours["param_groups"] == theirs["param_groups"]
    if name != "SGD":
        assert [float(s["step"]) for s in ours["state"].values()] == [1.0]
        assert str(ours["state"][0]["step"].dtype) == str(theirs["state"][0]["step"].dtype)


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_pieces_make_no_difference(name, options):
    """One parameter of several pieces ends where the same numbers in small parameters end."""
    n = 2 * BLOCK + 3
    start, size = np.random.default_rng(0).standard_normal(n), BLOCK // 2
    whole = [tinytorch.from_numpy(start.copy()).requires_grad_()]
    cuts = [slice(i, i + size) for i in range(0, n, size)]
    parts = [tinytorch.from_numpy(start[cut].copy()).requires_grad_() for cut in cuts]
    optimizers = [getattr(tinytorch.optim, name)(params, **options) for params in (whole, parts)]
    for step in range(1, 4):
        g = np.random.default_rng(step).standard_normal(n)
        whole[0].grad = tinytorch.from_numpy(g)
        for part, cut in zip(parts, cuts, strict=True):
            part.grad = tinytorch.from_numpy(g[cut].copy())
        for optimizer in optimizers:
            optimizer.step()
    joined = np.concatenate([part.detach().numpy() for part in parts])
    # The ends of vectorized loops round differently (with and without a fused multiply-add).
    np.testing.assert_allclose(whole[0].detach().numpy(), joined, rtol=1e-15, atol=1e-16)
    assert not np.array_equal(joined, start)


def test_a_step_leaves_gradients_as_they_are():
    for (name, options), dtype in itertools.product(CASES, ["float32", "float64"]):
        params = parameters(tinytorch, dtype)
        optimizer = getattr(tinytorch.optim, name)(params, **options)
        walk(tinytorch, optimizer, params, dtype, [1, 2])
        for p, g in zip(params, arrays(2, dtype), strict=True):
            np.testing.assert_array_equal(p.grad.numpy(), g)


def test_a_minimum_is_found():
    """The optimizers, on their own, go down a valley to its floor."""
    for name, lr in ("SGD", 0.1), ("Adam", 0.05), ("AdamW", 0.05):
        p = tinytorch.tensor([3.0, -4.0], dtype=tinytorch.float64, requires_grad=True)
        optimizer = getattr(tinytorch.optim, name)([p], lr=lr)
        for _ in range(600):
            optimizer.zero_grad()
            ((p - 1) ** 2 * tinytorch.tensor([1.0, 5.0])).sum().backward()
            optimizer.step()
        np.testing.assert_allclose(p.detach().numpy(), [1, 1], atol=2e-2, err_msg=name)


def test_the_memory_of_the_state_is_what_a_file_holds():
    """No buffer shares memory with a parameter or with another buffer, and files hold only data."""
    params = parameters(tinytorch, "float32")
    optimizer = tinytorch.optim.Adam(params, amsgrad=True)
    walk(tinytorch, optimizer, params, "float32", [1])
    tensors = [*params, *(t for kept in optimizer.state.values() for t in kept.values())]
    for a, b in itertools.combinations(tensors, 2):
        assert not np.shares_memory(a.detach().numpy(), b.detach().numpy())
    buffer = io.BytesIO()
    tinytorch.save(optimizer.state_dict(), buffer)
    numbers = sum(t.numel() for t in tensors[len(params) :])
    assert 4 * numbers < buffer.tell() < 4 * numbers + 20_000


@needs_oracle
@pytest.mark.parametrize("n", [3, SMALL])
def test_a_rate_of_zero_carries_nan_on_as_in_pytorch(n):
    ends = []
    for module in (tinytorch, torch):
        p = module.ones(n, requires_grad=True)
        p.grad = module.ones(n)
        p.grad[1], p.grad[2] = float("nan"), float("inf")
        module.optim.SGD([p], lr=0.0).step()
        ends.append(p.detach().numpy())
    np.testing.assert_array_equal(*ends)
    assert np.isnan(ends[0][1:3]).all()


@pytest.mark.parametrize("n", [3, SMALL])
def test_memory_that_must_not_be_written_is_not(n):
    p = tinytorch.ones(n, requires_grad=True)
    p._array.flags.writeable = False
    p.grad = tinytorch.ones(n)
    with pytest.raises(ValueError, match="read-only"):
        SGD([p], lr=1.0).step()
    assert p.tolist() == [1.0] * n
