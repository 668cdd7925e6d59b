"""Remedies for layers are right: the layer that a note names, in the place that it names, makes random models run."""

from __future__ import annotations

import itertools
import random
import re
import tracemalloc
import warnings

import pytest

import tinytorch as torch
from tinytorch import nn
from tinytorch.core.notes import Note
from tinytorch.inspect.mistakes import explaining

_IN = re.compile(r"^  in ([\w.]+): ")
_REMEDY = re.compile(r"^  remedy(?: at \S+)?: (nn\..*)$")


def dense(rng, sizes):
    """Return layers for vectors; some of them do not fit the one before."""
    layers = []
    for a, b in itertools.pairwise(sizes):
        a = rng.choice([a, a, rng.randint(1, 9)])
        layers.append(nn.Linear(a, b, bias=rng.random() < 0.5))
        layers += rng.choice([[], [nn.ReLU()], [nn.BatchNorm1d(rng.choice([b, b, b + 1]))], [nn.LayerNorm(b + 2)]])
    return nn.Sequential(*layers)


def convolutions(rng, sizes):
    """Return layers for images; some of them do not fit the one before."""
    layers = []
    for a, b in itertools.pairwise(sizes):
        a = rng.choice([a, a, rng.randint(1, 9)])
        kind = rng.choice([nn.Conv2d, nn.Conv2d, nn.ConvTranspose2d])
        layers.append(kind(a, b, rng.choice([1, 3, (1, 3)]), stride=rng.choice([1, 2]), padding=1))
        layers += rng.choice(
            [[], [nn.ReLU()], [nn.BatchNorm2d(rng.choice([b, b + 1]))], [nn.InstanceNorm2d(b + 1, affine=True)]]
        )
    return nn.Sequential(*layers)


def recurrent(rng, sizes):
    """Return a recurrent layer that may not fit the input."""
    kind = rng.choice([nn.LSTM, nn.GRU, nn.RNN])
    return nn.Sequential(kind(sizes[0] + rng.choice([0, 1, 2]), 5, batch_first=True, num_layers=rng.choice([1, 2])))


INPUTS = {dense: lambda n: torch.ones(23, n), convolutions: lambda n: torch.ones(2, n, 12, 12),
          recurrent: lambda n: torch.ones(2, 13, n)}  # fmt: skip


@pytest.mark.parametrize("make", INPUTS, ids=lambda make: make.__name__)
def test_random_models_run_after_the_remedies(make, monkeypatch) -> None:
    monkeypatch.setattr(explaining, "USUAL", 10**6)  # (all errors leave at one place)
    found = 0
    for seed in range(60):
        rng = random.Random(seed)
        sizes = [rng.randint(2, 9) for _ in range(4)]
        model = nn.Sequential(nn.Identity(), make(rng, sizes))
        x = INPUTS[make](sizes[0])
        for _ in range(9):
            try:
                model(x)
            except (RuntimeError, ValueError) as error:
                notes = error.__notes__
                assert all(type(note) is Note for note in notes)
                (path,) = [each[1] for note in notes if (each := _IN.match(note))]
                (text,) = [each[1] for note in notes if (each := _REMEDY.match(note))]
                before = model.get_submodule(path)
                layer = eval(text, {"nn": nn})
                assert type(layer) is type(before)
                model.set_submodule(path, layer)
                found += 1
            else:
                break
        model(x)
    assert found > 20


class Counting(nn.Module):
    """A module that counts its calls, with a mistake in them."""

    calls = 0

    def forward(self, x):
        self.calls += 1
        return nn.functional.dropout(x.T + torch.ones(4), 0.5) @ torch.ones(3, 3)


class Mode(torch.overrides.TorchFunctionMode):
    """Notes the functions that are called."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        SEEN.append(str(func))
        return func(*args, **(kwargs or {}))


SEEN: list[object] = []
PART, MODEL, COUNTING = torch.zeros(4, 3), nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 4)), Counting()
MISTAKES = (
    lambda: PART.add_(torch.ones(4)), lambda: torch.add(PART, torch.ones(4), out=PART), lambda: PART + torch.ones(4),
    lambda: MODEL(torch.ones(4, 5)), lambda: MODEL(torch.ones(2, 4).double()), lambda: COUNTING(PART),
    lambda: nn.functional.mse_loss(PART, PART[:, :1].double().requires_grad_()).backward(PART),
)  # fmt: skip


def noticed(call, hooks: bool) -> list[object]:
    """Return what is noticed of a call that fails, and what it leaves."""
    torch.manual_seed(0)
    tensors = [PART, *MODEL.parameters(), *MODEL.buffers()]
    before, COUNTING.calls = [each._version for each in tensors], 0
    handle = (nn.modules.module.register_module_forward_pre_hook if hooks else MODEL[0].register_forward_pre_hook)(
        lambda *args: SEEN.append(0)
    )
    watched = warnings.catch_warnings(record=True, action="always"), torch.profiler.profile(), Mode()
    with watched[0] as warned, watched[1] as profile, watched[2], pytest.raises((RuntimeError, TypeError, ValueError)):
        call()
    handle.remove()
    events = [(event.key, event.count) for event in profile.key_averages()]
    left = [(each._version - version, each.grad) for each, version in zip(tensors, before, strict=True)]
    seen = [*SEEN]
    SEEN.clear()
    return [seen, events, len(warned), torch.get_rng_state().tolist(), left, COUNTING.calls]


@pytest.mark.parametrize("call", MISTAKES)
def test_nobody_notices_what_is_tried(call, monkeypatch) -> None:
    monkeypatch.setattr(explaining, "USUAL", 10**6)
    found = [noticed(call, hooks) for hooks in (False, True)]
    monkeypatch.setattr(explaining, "notes_of", lambda failure: [])
    assert [noticed(call, hooks) for hooks in (False, True)] == found


def test_what_is_tried_takes_little_memory() -> None:
    tracemalloc.start()
    with pytest.raises(RuntimeError, match="must match"):
        torch.zeros(30_000) + torch.ones(20_000)
    assert tracemalloc.get_traced_memory()[1] < 1 << 27
    tracemalloc.stop()
