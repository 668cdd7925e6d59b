"""Where `numpy.intp` has 32 bits, every index result is int64 all the same; see tests/narrow."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.narrow import calls
from tinytorch.kernels import intp, shape


def answers(*arguments: str) -> dict[str, Any]:
    """Return what the program in tests/narrow/calls.py prints."""
    command = [sys.executable, "-m", "tests.narrow.calls", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TINYTORCH_NATIVE": "0"}
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_results_are_the_same_with_indices_of_32_bits() -> None:
    here = answers()
    assert [text for text in calls.CALLS if isinstance(here[text], str)] == []  # none of them is an error
    assert calls.differences(here, answers("--pretend")) == []


def test_the_pretence_is_effective() -> None:
    """Otherwise the test above would compare equal things."""
    program = """
import numpy as np
from tests.narrow import pretence
pretence.install()
x, i = np.ones((2, 3)), np.arange(2, dtype=np.int64)
found = [x.argmax(1), np.argsort(x), x.nonzero()[0], (x > 0).sum(1), np.array([1, 2]), np.arange(3), np.cumsum(x > 0),
         np.unique(i, return_inverse=True)[1], np.where(x > 0, 1, 0), np.add.reduce(x > 0), np.bincount(np.array([1]))]
assert [each.dtype.name for each in found] == ["int32"] * len(found), [each.dtype.name for each in found]
assert i.sum().dtype == np.cumsum(i).dtype == np.zeros(2, np.int64).dtype == np.int64
for call in (lambda: x.take(i), lambda: np.repeat(x, i, 0), lambda: np.bincount(i), lambda: np.add.reduceat(x, i)):
    try:
        call()
    except TypeError:
        continue
    raise AssertionError("an index of int64 was taken")
"""
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        timeout=100,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module `intp` as it is with indices of 32 bits."""
    with monkeypatch.context() as changed:
        changed.setattr(np, "intp", np.int32)
        yield importlib.reload(intp)
    importlib.reload(intp)


def test_an_index_that_no_array_can_have_is_not_cut_to_32_bits(narrow: Any) -> None:
    assert narrow.as_intp(np.array([1, -2])).dtype == np.int32
    assert narrow.as_int64(np.array([1, 2], np.int32)).dtype == np.int64
    small = np.array([3], np.uint8)
    assert narrow.as_intp(small) is small
    for index in (2**32 + 1, -(2**31) - 1):
        with pytest.raises(IndexError, match="out of range"):
            narrow.as_intp(np.array([index]))


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("of", ["float16", "float32", "float64"])
def test_negative_floats_as_unsigned_integers(of: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some processors make 0 of them: then they are converted by way of int64, with the same results."""
    x = tinytorch.tensor([-1.5, 300.7, -300.0, 7.0], dtype=getattr(tinytorch, of))
    expected = [int(each) % 2 ** (8 * np.dtype(kind).itemsize) for each in x.tolist()]
    for cuts_off in (False, True) if sys.platform != "darwin" else (True,):
        monkeypatch.setattr(shape, "_CUTS_OFF", cuts_off)
        assert x.to(getattr(tinytorch, kind)).tolist() == expected
