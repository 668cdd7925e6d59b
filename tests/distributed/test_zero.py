"""`ZeroRedundancyOptimizer`: the plain optimizer's numbers, with the state spread over processes."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tinytorch
from tests.distributed import needs_mpi, run
from tests.oracle import torch
from tests.same import compared, expressions, outcome, same_as_pytorch
from tinytorch.distributed.optim import ZeroRedundancyOptimizer


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[None]:
    libraries = [each for each in (tinytorch, torch) if each is not None]
    for each in libraries:
        address = f"file://{tmp_path}/{each.__name__}"
        each.distributed.init_process_group("gloo", init_method=address, rank=0, world_size=1)
    yield
    for each in libraries:
        each.distributed.destroy_process_group()


def made(t: Any, *args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, of what it imports
        module = importlib.import_module(f"{t.__name__}.distributed.optim")
    return module.ZeroRedundancyOptimizer(*args, **kwargs)


CALLS = """
    made(t, 3, t.optim.SGD, lr=0.1); made(t, [], t.optim.SGD, lr=0.1); made(t, [t.ones(2), 3], t.optim.SGD, lr=0.1)
    made(t, [{"lr": 3}], t.optim.SGD, lr=0.1); made(t, [t.ones(2), t.ones(2).double()], t.optim.SGD, lr=0.1)
    made(t, [t.ones(2)], t.optim.SGD, lr=-1.0); made(t, [t.ones(2)], t.optim.SGD, lr=0.1).state_dict()
    made(t, [t.ones(2)], t.optim.SGD, lr=0.1).param_groups
"""


@pytest.mark.parametrize("call", expressions(CALLS))
def test_calls_are_pytorchs(call: str, groups: None) -> None:
    same_as_pytorch(lambda t: repr(eval(call, {"t": t, "made": made})))


@pytest.mark.parametrize("views", [False, True])
@compared(rtol=1e-4, atol=1e-6)
def test_steps_and_states_are_pytorchs(t: Any, views: bool, groups: None) -> Any:
    model = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.Linear(2, 5))
    zero = made(t, model.parameters(), t.optim.Adam, parameters_as_bucket_view=views, lr=0.1)
    shares = [[p.numel() for p in group["params"]] for share in zero._partition_parameters() for group in share]
    losses = []
    for _ in range(3):
        zero.zero_grad()
        losses.append(zero.step(lambda: model(t.ones(2, 3)).square().sum().backward() or 7.0))
    zero.consolidate_state_dict()
    state = zero.state_dict()
    again = made(t, model.parameters(), t.optim.Adam, lr=0.5)
    again.load_state_dict(state)
    model(t.ones(2, 3)).square().sum().backward()
    again.step()
    return shares, losses, state, again.param_groups[0]["lr"], model.state_dict()


def test_shares_of_three() -> None:
    """The largest parameter first, for the process that has least."""
    zero = object.__new__(ZeroRedundancyOptimizer)
    zero.world_size, sizes = 3, [1, 7, 3, 5, 2, 9]
    zero.param_groups = [{"params": [tinytorch.ones(n) for n in sizes]}, {"params": [tinytorch.ones(4)]}]
    shares = [[[p.numel() for p in group["params"]] for group in share] for share in zero._partition_parameters()]
    assert shares == [[[9], [4]], [[7, 2], []], [[5, 3, 1], []]]  # PyTorch's


def test_what_it_needs() -> None:
    result, _ = outcome(lambda t: made(t, [t.ones(2)], t.optim.SGD, lr=0.1), tinytorch)
    assert "Default process group has not been initialized" in result.text
    with pytest.raises(TypeError, match="should be an iterable of Tensors or dicts, but got"):
        made(tinytorch, tinytorch.ones(2), tinytorch.optim.SGD, lr=0.1)
    with pytest.raises(NotImplementedError, match="overlap_with_ddp"):
        made(tinytorch, [tinytorch.ones(2)], tinytorch.optim.SGD, overlap_with_ddp=True, lr=0.1)


@needs_mpi
@pytest.mark.parametrize(
    "steps", [[(2, "steps")], [(3, "steps")], [(2, "save"), (3, "resume")], [(3, "join")]], ids=str
)
def test_several_processes(steps: list[tuple[int, str]], tmp_path: Path) -> None:
    for processes, what in steps:
        ran = run("zero.py", processes, what, tmp_path)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.count("done") == processes
