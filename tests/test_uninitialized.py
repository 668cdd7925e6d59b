"""No result depends on memory that nobody wrote; of layers: tests/nn/module_database.py."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.faces.outcomes import CHANGES, outcome
from tests.filled import emptied, reads_what_was_not_written, sizes
from tests.samples import Sample, all_samples

SAMPLES = all_samples()


def call(sample: Sample, size: int, change: str) -> Any:
    """Call a sample with 0 for a size."""
    tinytorch.manual_seed(0)
    args, values = emptied([sample.args, [*sample.kwargs.values()]], size)
    kwargs = dict(zip(sample.kwargs, values, strict=True))
    return outcome(dataclasses.replace(sample, args=args, kwargs=kwargs), tinytorch, CHANGES[change])


@pytest.mark.parametrize("family", sorted({each.family for each in SAMPLES}))
def test_samples_also_where_sizes_are_0(family: str) -> None:
    found = []
    for each in [each for each in SAMPLES if each.family == family]:
        calls = [(each, -1, change) for change in CHANGES]
        calls += [(each, size, "float32") for size in sizes([*each.args, *each.kwargs.values()])]
        found += [str(args) for args in calls if reads_what_was_not_written(functools.partial(call, *args))]
    assert not found


def test_the_look_is_effective() -> None:
    for kind in (np.float32, np.int64, np.bool_):
        assert reads_what_was_not_written(lambda kind=kind: np.empty(3, kind))
        assert not reads_what_was_not_written(lambda kind=kind: np.zeros(3, kind))
    assert reads_what_was_not_written(lambda: tinytorch.empty(2, 3).sum())
    of_bytes = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)
    memory_of_c = of_bytes(("PyBytes_FromStringAndSize", ctypes.pythonapi))
    assert reads_what_was_not_written(lambda: memory_of_c(None, 10_000)) or not hasattr(ctypes.pythonapi, "mallopt")
    assert not reads_what_was_not_written(lambda: tinytorch.nn.LazyLinear(3)(tinytorch.zeros(2, 0)))
