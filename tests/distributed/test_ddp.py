"""`DistributedDataParallel` and its kin: programs on two processes, against PyTorch's and against one process."""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.distributed import PROGRAMS, needs_mpi, run
from tests.fx.programs import model
from tests.oracle import needs_oracle
from tests.same import compared

MODELS = ["mlp", "cnn", "batchnorm", "gpt", "small_buckets", "static"]


def checked(ended: subprocess.CompletedProcess[str]) -> str:
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended.stdout


def python(*command: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in one process."""
    variables = {**os.environ, "PYTHONPATH": str(PROGRAMS.parent.parent.parent), "OMP_NUM_THREADS": "1", **environment}
    command = sys.executable, *map(str, command)
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=200)


def pytorch(program: str, *args: object) -> None:
    """Run a program in two of PyTorch's processes, which may abort as they end, after both have saved."""
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    ended = python(*launcher, PROGRAMS / program, "torch", *args)
    if "terminate called without an active exception" not in ended.stderr:  # of a thread that nobody joined
        checked(ended)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What two processes trained."""
    path = tmp_path_factory.mktemp("ddp") / "two.npz"
    checked(run("train.py", 2, "tinytorch", path, *MODELS, "syncbn"))
    return np.load(path)


@needs_mpi
def test_two_processes_train_like_one(trained: Any, tmp_path: Path) -> None:
    checked(python(PROGRAMS / "train.py", "tinytorch", tmp_path / "one.npz", *MODELS, "syncbn", ALONE="1"))
    one = np.load(tmp_path / "one.npz")
    for name in [*MODELS, "syncbn"]:
        if name != "batchnorm":  # whose statistics are those of a half
            for kind, tolerance in (("losses", 2e-6), ("final", 1e-5), ("buffers", 1e-5)):
                key = f"{name}.{kind}"
                np.testing.assert_allclose(trained[key], one[key], 0, tolerance, err_msg=key)
    assert np.abs(trained["batchnorm.losses"] - one["batchnorm.losses"]).max() > 1e-5


@needs_oracle
@needs_mpi
def test_training_is_pytorchs(trained: Any, tmp_path: Path) -> None:
    pytorch("train.py", tmp_path / "torch.npz", *MODELS)
    theirs = np.load(tmp_path / "torch.npz")
    assert set(theirs) == {key for key in trained if "syncbn" not in key}
    for key in theirs:
        tolerance = 2e-6 if key.endswith("losses") else 1e-5
        np.testing.assert_allclose(trained[key], theirs[key], 0, tolerance, err_msg=key)


def compare(ours: Any, theirs: Any, where: str) -> None:
    if isinstance(theirs, (list, tuple)):
        assert isinstance(ours, (list, tuple)) and len(ours) == len(theirs), f"{where}: {ours} against {theirs}"
        for k, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            compare(mine, other, f"{where}[{k}]")
    elif isinstance(theirs, (np.ndarray, float)):
        assert type(ours) is type(theirs), f"{where}: {ours} against {theirs}"
        assert getattr(ours, "dtype", None) == getattr(theirs, "dtype", None), where
        np.testing.assert_allclose(ours, theirs, 1e-5, 1e-5, equal_nan=False, err_msg=where)
    else:
        assert ours == theirs, f"{where}: {ours!r} against {theirs!r}"


@needs_oracle
@needs_mpi
def test_cases_are_pytorchs(tmp_path: Path) -> None:
    checked(run("cases.py", 2, "tinytorch", tmp_path))
    pytorch("cases.py", tmp_path)
    for rank in range(2):
        ours, theirs = (
            pickle.loads((tmp_path / f"{library}{rank}.pickle").read_bytes()) for library in ("tinytorch", "torch")
        )
        assert list(ours) == list(theirs)
        for name, value in theirs.items():
            compare(ours[name], value, f"rank {rank}, {name}")


@needs_mpi
def test_what_is_our_own() -> None:
    words = checked(run("own.py", 2)).split()
    assert words.count("ok") == 12


@contextlib.contextmanager
def group(torch: Any) -> Iterator[None]:
    """A group of this process alone."""
    store = None if torch is tinytorch else torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        yield
    finally:
        torch.distributed.destroy_process_group()


def linear(torch: Any, *sizes: int) -> Any:
    rng = np.random.default_rng(0)
    model = torch.nn.Sequential(*[torch.nn.Linear(a, b) for a, b in itertools.pairwise(sizes)])
    for p in model.parameters():
        p.data = torch.from_numpy(rng.standard_normal(tuple(p.shape)).astype(np.float32))
    return model


def wrapped(torch: Any, model: Any = None, **options: Any) -> Any:
    return torch.nn.parallel.DistributedDataParallel(linear(torch, 3, 2) if model is None else model, **options)


def grads(model: Any) -> Any:
    return [p.grad for p in model.parameters()]


def step(torch: Any, net: Any) -> Any:
    net(torch.ones(4, 3)).sum().backward()
    return grads(net)


def completed(torch: Any, value: Any) -> Any:
    future = torch.futures.Future()
    future.set_result(value)
    return future


def changing(torch: Any, first: str, then: str) -> Any:
    """A model of two parts, of which each step uses some."""

    uses = [*first.split(), *then.split()]

    def forward(self: Any, x: Any) -> Any:
        for name in uses.pop(0):
            x = getattr(self, name)(x)
        return x

    return model(torch, forward, a=linear(torch, 3, 3), b=linear(torch, 3, 3))


def two_steps(torch: Any, model: Any, **options: Any) -> Any:
    net = wrapped(torch, model, **options)
    return [step(torch, net), step(torch, net)]


def seen_by_a_hook(torch: Any) -> Any:
    seen = []

    def hook(state: Any, bucket: Any) -> Any:
        assert [g.shape for g in bucket.gradients()] == [p.shape for p in bucket.parameters()]
        seen.append([state, bucket.index(), bucket.is_last(), tuple(bucket.buffer().shape)])
        return completed(torch, bucket.buffer() * 2)

    net = wrapped(torch)
    net.register_comm_hook("state", hook)
    return [step(torch, net), seen]


def registered(torch: Any, *hooks: Any) -> Any:
    net = wrapped(torch)
    for hook in hooks:
        net.register_comm_hook(None, hook)
    return step(torch, net)


def pickled(torch: Any, of_own_group: bool) -> Any:
    net = wrapped(torch, process_group=torch.distributed.new_group([0]) if of_own_group else None)
    return [step(torch, copy.deepcopy(net)), step(torch, pickle.loads(pickle.dumps(net)))]


def annotated(torch: Any) -> Any:
    def hook(state: Any, bucket: int) -> Any:
        return None

    hook.__annotations__["bucket"] = int
    return registered(torch, hook)


ALONE = {
    "gradients": lambda torch: step(torch, wrapped(torch)),
    "views": lambda torch: [g._is_view() for g in step(torch, wrapped(torch, gradient_as_bucket_view=True))],
    "keys": lambda torch: [list(wrapped(torch).state_dict()), repr(wrapped(torch))], "a hook": seen_by_a_hook,
    "a hook twice": lambda torch: registered(torch, *[lambda state, bucket: completed(torch, bucket.buffer())] * 2),
    "a hook's future of something": lambda torch: registered(torch, lambda state, bucket: completed(torch, 3)),
    "no hook": lambda torch: registered(torch, 3), "a hook of something": annotated,
    "no parameters": lambda torch: wrapped(torch, torch.nn.ReLU()),
    "frozen": lambda torch: wrapped(torch, linear(torch, 3, 2).requires_grad_(False)),
    "lazy": lambda torch: wrapped(torch, torch.nn.LazyLinear(3)),
    "two devices": lambda torch: wrapped(torch, device_ids=[0, 1]),
    "a device": lambda torch: wrapped(torch, device_ids=[0]),
    "delayed": lambda torch: wrapped(torch, delay_all_reduce_named_params=[]),
    "deprecated": lambda torch: wrapped(torch, broadcast_buffers=False).forward_sync_buffers,
    "deprecated, both": lambda torch: wrapped(torch, broadcast_buffers=True, forward_sync_buffers=False),
    "a check": lambda torch: wrapped(torch, check_reduction=True),
    "unused": lambda torch: two_steps(torch, changing(torch, "a", "a")),
    "unused, found": lambda torch: two_steps(torch, changing(torch, "a", "ab"), find_unused_parameters=True),
    "static": lambda torch: two_steps(torch, changing(torch, "a", "a"), static_graph=True),
    "static, less": lambda torch: (
        two_steps(torch, changing(torch, "ab ab a", "ab"), static_graph=True)
        and two_steps(torch, changing(torch, "ab a", "ab"), static_graph=True)
    ),
    "static, more": lambda torch: two_steps(torch, changing(torch, "a ab", ""), static_graph=True),
    "static twice": lambda torch: wrapped(torch, static_graph=True)._set_static_graph(),
    "a copy": lambda torch: pickled(torch, False), "a copy in another group": lambda torch: pickled(torch, True),
    "averaging each step": lambda torch: averager(torch, 1), "averaging never": lambda torch: averager(torch, 0),
    "no joinables": lambda torch: join(torch).Join([]),
    "power too early": lambda torch: power(torch).PowerSGDState(None, start_powerSGD_iter=1),
}  # fmt: skip


def averager(torch: Any, period: int) -> Any:
    module = __import__(f"{torch.__name__}.distributed.algorithms.model_averaging.averagers", fromlist=["_"])
    return module.PeriodicModelAverager(period).period


def join(torch: Any) -> Any:
    return __import__(f"{torch.__name__}.distributed.algorithms.join", fromlist=["_"])


def power(torch: Any) -> Any:
    return __import__(f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks.powerSGD_hook", fromlist=["_"])


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.filterwarnings("ignore:find_unused")
@compared
def test_alone_is_pytorchs(torch: Any, name: str) -> Any:
    with group(torch):
        return ALONE[name](torch)


def test_without_a_group() -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        wrapped(tinytorch)


def test_hooks_go_with_the_wrapper() -> None:
    with group(tinytorch):
        model = linear(tinytorch, 3, 2)
        net = wrapped(tinytorch, model)
        assert all(p._hooks.accumulated for p in model.parameters())
        del net
        assert not any(p._hooks.accumulated for p in model.parameters())


def test_a_hook_without_a_future() -> None:
    # (PyTorch's words begin with what pybind11 has to say.)
    with group(tinytorch), pytest.raises(RuntimeError, match=r"must return a torch\.futures\.Future"):
        registered(tinytorch, lambda state, bucket: bucket.buffer())


def test_what_there_is_not() -> None:
    with group(tinytorch), pytest.raises(NotImplementedError, match="mixed_precision"):
        wrapped(tinytorch, mixed_precision=object())
