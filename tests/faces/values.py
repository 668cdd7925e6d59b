"""Values and gradients are PyTorch's: in float64, in float32, and of arrays that are not contiguous."""

from __future__ import annotations

import pytest

import tinytorch
from tests.faces import face
from tests.faces.outcomes import CHANGES, compare, outcome
from tests.kept.of_samples import of
from tests.oracle import torch
from tests.samples import Sample


@face(always="fast", ignoring=["index_reduce", "torch.searchsorted"])
def values_and_gradients_are_pytorchs(sample: Sample) -> None:
    numbers = of(sample)
    if numbers is None and torch is None:
        pytest.skip("this sample is new: PyTorch (the oracle) is not installed, and its numbers are not kept yet")
    for name, change in CHANGES.items():
        theirs = outcome(sample, torch, change) if numbers is None else numbers[name]
        compare(outcome(sample, tinytorch, change), theirs, sample.rtol, sample.atol)
