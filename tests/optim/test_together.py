"""Parameters updated by one call of a kernel: nobody can tell, but by the time it takes."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import tinytorch
from tests.optim.test_trajectories import CASES, IDS
from tests.oracle import needs_oracle, torch
from tests.same import compared
from tinytorch.optim import Adam

SHAPES = [(20, 20), (20,)] * 3 + [(), (0,), (3, 1, 2), (90, 100), (1,)]
KINDS = {
    "SGD": {"lr": 0.1}, "SGD, momentum": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "Adam": {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}, "AdamW": {"lr": 0.01, "maximize": True},
    "NAdam": {"lr": 0.01}, "RAdam": {"lr": 0.01}, "Adamax": {"lr": 0.01, "weight_decay": 0.1},
    "Adagrad": {"lr": 0.01, "lr_decay": 0.1}, "Adadelta": {},
    "RMSprop": {"momentum": 0.5, "centered": True, "eps": 1e-2}, "Rprop": {"maximize": True},
    "ASGD": {"lr": 0.01, "t0": 3},
}  # fmt: skip


def make(module, kind="Adam", shapes=SHAPES, dtype="float32", **options):
    rng = np.random.default_rng(0)
    params = [
        module.from_numpy(np.asarray(rng.standard_normal(shape)).astype(dtype)).requires_grad_() for shape in shapes
    ]
    options = options or KINDS[kind]
    return params, getattr(module.optim, kind.split(",")[0])(params, **options)


def give(module, params, seed, skip=()):
    rng = np.random.default_rng(seed + 1)
    for i, p in enumerate(params):
        g = np.asarray(rng.standard_normal(tuple(p.shape))).astype(str(p.dtype).split(".")[1])
        p.grad = None if i in skip else module.from_numpy(g)


def walk(module, params, optimizer, steps, skip=lambda step: ()):
    for step in steps:
        give(module, params, step, skip(step))
        optimizer.step()


def left(optimizer):
    """Make a step of the first group, and return the parameters that are not updated together."""
    group = optimizer.param_groups[0]
    return optimizer._update_together(group["params"], group)


def assert_same(ours, theirs, rtol=2e-5):
    for p, q in zip(ours, theirs, strict=True):
        a, b = (t.detach().numpy() for t in (p, q))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1, np.abs(b).max(initial=0)))


def assert_same_state(a, b, rtol=2e-5):
    ours, theirs = a.state_dict()["state"], b.state_dict()["state"]
    assert list(ours) == list(theirs)
    for i, kept in theirs.items():
        assert list(ours[i]) == list(kept)
        for name, value in kept.items():
            assert tuple(ours[i][name].shape) == tuple(value.shape)
            assert str(ours[i][name].dtype) == str(value.dtype)
            assert_same([ours[i][name]], [value], rtol)


def reference(kind, *args, **options):
    """Return parameters and an optimizer of PyTorch; without it, one of ours that updates them one by one.

    (tests/optim/test_trajectories.py compares these with PyTorch.)
    """
    params, optimizer = make(torch or tinytorch, kind, *args, **options)
    if torch is None:
        optimizer._elementwise = False
    return params, optimizer


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_walks_as_pytorch(kind, dtype):
    params, a = make(tinytorch, kind, dtype=dtype)
    others, b = reference(kind, dtype=dtype)
    walk(tinytorch, params, a, range(25))
    walk(torch or tinytorch, others, b, range(25))
    rtol = 1e-4 if dtype == "float32" else 1e-12
    assert_same(params, others, rtol)
    assert_same_state(a, b, rtol)
    assert left(a) == []


@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_walks_long_with_every_option(name, options):
    params, a = make(tinytorch, name, SHAPES[:4], "float64", **{"lr": 1e-2, **options})
    others, b = reference(name, SHAPES[:4], "float64", **{"lr": 1e-2, **options})
    walk(tinytorch, params, a, range(30))
    walk(torch or tinytorch, others, b, range(30))
    assert_same(params, others, 1e-10)
    assert_same_state(a, b, 1e-10)


SKIPS = {
    "frozen from the start": lambda step: (1, 4), "frozen later": lambda step: (0, 1, 2) if step > 5 else (),
    "freed later": lambda step: () if step > 5 else (0, 1, 2), "in turn": lambda step: (step % 5,),
    "two halves": lambda step: (0, 1, 2, 3) if step % 2 else (4, 5, 6, 7, 8, 9, 10),
    "at random": lambda step: tuple(np.random.default_rng(step).choice(11, 4)),
    "none at all for a while": lambda step: tuple(range(11)) if 3 < step < 9 else (),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["SGD, momentum", "Adam", "Adagrad"])
@pytest.mark.parametrize("skip", SKIPS.values(), ids=SKIPS)
def test_parameters_without_a_gradient_stay(kind, skip):
    params, a = make(tinytorch, kind)
    others, b = reference(kind)
    walk(tinytorch, params, a, range(30), skip)
    walk(torch or tinytorch, others, b, range(30), skip)
    assert_same(params, others)
    assert_same_state(a, b)


def test_steps_differ():
    params, optimizer = make(tinytorch)
    walk(tinytorch, params, optimizer, range(3))
    walk(tinytorch, params, optimizer, range(8), lambda step: (0,))
    give(tinytorch, params, 8)
    assert left(optimizer) == [params[0]]  # it is some steps behind, alone
    optimizer.state[params[1]]["step"].fill_(3.0)
    assert left(optimizer) == []
    assert [float(optimizer.state[p]["step"]) for p in params[:3]] == [4, 4, 13]


@needs_oracle
@pytest.mark.parametrize("kind", KINDS)
def test_states_go_to_pytorch_and_back(kind):
    params, a = make(tinytorch, kind)
    others, b = make(torch, kind)
    walk(tinytorch, params, a, range(5))
    buffer = io.BytesIO()
    tinytorch.save(a.state_dict(), buffer)
    numbers = sum(t.numel() for kept in a.state.values() for t in kept.values())
    assert buffer.tell() < 4 * numbers + 40_000
    buffer.seek(0)
    b.load_state_dict(torch.load(buffer, weights_only=True))
    for p, q in zip(params, others, strict=True):
        q.data.copy_(torch.from_numpy(p.detach().numpy()))
    walk(tinytorch, params, a, range(5, 10))
    walk(torch, others, b, range(5, 10))
    assert_same(params, others)
    buffer = io.BytesIO()
    torch.save(b.state_dict(), buffer)
    buffer.seek(0)
    a.load_state_dict(tinytorch.load(buffer))
    walk(tinytorch, params, a, range(10, 15))
    walk(torch, others, b, range(10, 15))
    assert_same(params, others, 1e-4)
    assert_same_state(a, b, 1e-4)


def twins(**options):
    """Return an optimizer, and one whose parameters are updated one by one."""
    params, a = make(tinytorch, "Adam", **(options or {"lr": 0.01}))
    others, b = make(tinytorch, "Adam", **(options or {"lr": 0.01}))
    b._elementwise = False
    return params, a, others, b


def both(params, a, others, b, steps):
    walk(tinytorch, params, a, steps)
    walk(tinytorch, others, b, steps)
    assert_same(params, others, 1e-6)
    assert_same_state(a, b, 1e-6)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))], ids=["deepcopy", "pickle"])
def test_copies_are_of_their_own(copied):
    params, a, others, b = twins()
    both(params, a, others, b, range(3))
    before = [p.detach().clone() for p in params]
    state = {i: {k: v.clone() for k, v in kept.items()} for i, kept in a.state_dict()["state"].items()}
    c = copied(a)
    mine = c.param_groups[0]["params"]
    walk(tinytorch, mine, c, range(3, 8))
    assert_same(params, before, 0)
    for i, kept in state.items():
        for name, value in kept.items():
            assert a.state_dict()["state"][i][name].equal(value)
    walk(tinytorch, others, b, range(3, 8))
    assert_same(mine, others, 1e-6)


def change_data(params, optimizer):
    params[0].data.mul_(2)
    params[1].data = params[1].data * 0.5


def change_options(params, optimizer):
    optimizer.param_groups[0].update(lr=0.5, betas=(0.5, 0.9), weight_decay=0.1, maximize=True)


def change_state(params, optimizer):
    optimizer.state[params[2]]["exp_avg"].fill_(3.0)
    optimizer.state[params[3]]["exp_avg_sq"] = tinytorch.ones(20)
    optimizer.state[params[4]]["step"].fill_(100.0)


def forget_state(params, optimizer):
    del optimizer.state[params[2]]
    optimizer.state[params[3]].clear()


def change_params(params, optimizer):
    del optimizer.state[optimizer.param_groups[0]["params"].pop(3)]
    params.pop(3)


def replace_state(params, optimizer):
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def add_a_group(params, optimizer):
    more = [tinytorch.ones(3, requires_grad=True), tinytorch.ones(2, 2, requires_grad=True)]
    optimizer.add_param_group({"params": more, "lr": 0.3})
    params += more


CHANGES = [change_data, change_options, change_state, forget_state, change_params, replace_state, add_a_group]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_changes_between_steps_are_seen(change):
    params, a, others, b = twins()
    both(params, a, others, b, range(3))
    change(params, a)
    change(others, b)
    for step in range(3, 15):
        both(params, a, others, b, [step])


def test_parameters_in_others_memory():
    """Views of one array, of NumPy's, and of one storage are updated where they lie."""
    array = np.ones(40, np.float32)
    params = [tinytorch.from_numpy(array[:10]), tinytorch.from_numpy(array[10:30].reshape(4, 5))]
    params += [tinytorch.from_numpy(array[::-1][:4].copy())]
    for p in params:
        p.requires_grad_()
    optimizer = Adam(params, lr=0.5)
    walk(tinytorch, params, optimizer, range(3))
    assert left(optimizer) == [] and (array[:30] != 1).all() and (array[30:] == 1).all()


@compared
def test_overlapping_and_repeated_parameters_are_updated_in_turn(torch):
    base = torch.ones(6)
    params = [base[:4].requires_grad_(), base[2:].detach().requires_grad_(), torch.ones(3, requires_grad=True)]
    optimizer = torch.optim.Adam(params, lr=0.1)
    walk(torch, params, optimizer, range(3))
    return base.detach()


def test_versions_count_and_a_shared_state_stays_shared():
    params, optimizer = make(tinytorch, "Adagrad")
    optimizer.share_memory()
    versions = [p._version for p in params]
    walk(tinytorch, params, optimizer, range(2))
    assert all(p._version > v for p, v in zip(params, versions, strict=True))
    assert all(optimizer.state[p]["sum"].is_shared() for p in params if p.numel())


def test_subclasses_with_an_update_of_their_own_are_updated_one_by_one():
    class Normed(Adam):
        def _update(self, p, g, state, group):
            super()._update(p, g / np.linalg.norm(g), state, group)

    class Same(Adam):
        pass

    assert (Normed._elementwise, Same._elementwise) == (False, True)
    params = [tinytorch.ones(2, requires_grad=True) for _ in range(2)]
    optimizer = Normed(params)
    give(tinytorch, params, 0)
    optimizer.step()


def test_kinds_of_parameters_and_gradients():
    kinds = [tinytorch.float32, tinytorch.float16, tinytorch.float32, tinytorch.float64, tinytorch.float64]
    params = [tinytorch.ones(3, dtype=kind, requires_grad=True) for kind in kinds]
    optimizer = Adam(params)
    walk(tinytorch, params, optimizer, range(2))
    assert left(optimizer) == [params[1]]
    table = tinytorch.nn.Embedding(4, 2, sparse=True)
    params = [table.weight, *[tinytorch.ones(3, requires_grad=True) for _ in range(2)]]
    optimizer = tinytorch.optim.SGD(params, lr=0.1)
    (table(tinytorch.tensor([1])).sum() + params[1].sum() + params[2].sum()).backward()
    assert left(optimizer) == [table.weight]


@compared
def test_a_buffer_that_begins_later(torch):
    params = [torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)]
    optimizer = torch.optim.SGD(params, lr=0.1)
    walk(torch, params, optimizer, range(2))
    optimizer.param_groups[0]["momentum"] = 0.9
    walk(torch, params, optimizer, range(3))
    return [p.detach() for p in params], [optimizer.state[p]["momentum_buffer"] for p in params]
