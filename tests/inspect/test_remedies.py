"""Remedies for layers are right: the layer that a note names, in the place that it names, makes random models run."""

from __future__ import annotations

import itertools
import random
import re

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
