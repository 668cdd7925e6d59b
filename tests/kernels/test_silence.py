"""NumPy's floating-point warnings: silent for the package's own calls, whatever filters say; for others as ever."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest

import tinytorch as torch


def test_filters_that_come_later() -> None:
    x = torch.zeros(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.isinf(1 / x).all() and torch.isnan(x / 0).all() and torch.isinf(x.log()).all()
        with pytest.raises(RuntimeWarning, match="divide by zero"):
            np.ones(1) / np.zeros(1)
        warnings.resetwarnings()
        assert (torch.ones(1) * 3e38 * 10).isinf().all()
    with pytest.warns(RuntimeWarning, match="divide by zero") as caught:
        x / 0
        np.ones(1) / np.zeros(1)
    assert len(caught) == 1


def test_compiled() -> None:
    f = torch.compile(lambda x: (x.sqrt() + 1).log())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (2, 600_000):  # (a large array in blocks)
            for _ in range(3):
                assert f(torch.full((size,), -1.0)).isnan().all()
    assert [each.runs for each in f.variants] == [2, 2]


def test_import_inside_of_catch_warnings() -> None:
    program = """
import warnings
with warnings.catch_warnings():  # as pytest collects
    import tinytorch as torch
before = list(warnings.filters)
with warnings.catch_warnings():
    warnings.simplefilter("error")
    print(1 / torch.zeros(1))
assert warnings.filters == before
print(1 / torch.zeros(1))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("tensor([inf])\n" * 2, "")
