"""NumPy's floating-point errors: ignored in the package's own calls, whatever a program says; for others as ever."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
from tinytorch.core.op import op


def everything() -> None:
    """Make errors of all kinds: by ufuncs, twins and other kernels, in place, in casts, backward, in large arrays."""
    for kind in (torch.float32, torch.float64, torch.float16):
        for size in (3, 400_000):
            x = torch.zeros(size, dtype=kind, requires_grad=True)
            assert torch.isinf(1 / x).all() and torch.isnan(x / 0).all() and torch.isinf(x.log()).all()
            assert x[::2].log().isinf().all() and (x - 1).sqrt().isnan().all()
            assert (x + 30000).square().exp().isinf().all()
            (x.sqrt() + x.sqrt()).sum().backward()
            assert x.grad is not None and x.grad.isinf().all()
            x.detach().add_(1).div_(0).sub_(torch.inf)
    huge = torch.full((2, 2), 1e300, dtype=torch.float64)
    assert (huge.float() @ huge.float()).isinf().all() and (huge @ huge).isinf().all() and huge.prod().isinf()
    assert torch.tensor([1e300]).isinf().all() and torch.tensor(np.array([1e300]), dtype=torch.float32).isinf().all()
    w = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    w.grad = huge[0].clone()
    torch.optim.Adam([w]).step()
    assert "inf" in repr(huge.float()) and huge.to(torch.complex64).real.isinf().all()


@pytest.mark.parametrize("state", ["warn", "raise", "call"])
def test_error_states_and_filters(state: Any) -> None:
    def run() -> None:
        with np.errstate(all=state, call=lambda *args: failures.append(args)):
            before = np.geterr(), list(warnings.filters)
            try:
                everything()
                assert (np.geterr(), list(warnings.filters)) == before
            except BaseException as error:
                failures.append(error)
            with pytest.raises(FloatingPointError) if state == "raise" else warnings.catch_warnings(action="ignore"):
                np.ones(1) / np.zeros(1)

    failures: list[Any] = []
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("error")
        run()
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert [str(each) for each in failures if not isinstance(each, tuple)] == []
    assert len(failures) == 2 * (state == "call")


def test_compiled() -> None:
    f = torch.compile(lambda x: (x.sqrt() + 1).log())
    with np.errstate(all="raise"):
        for size in (2, 600_000):  # (a large array in blocks)
            for _ in range(3):
                assert f(torch.full((size,), -1.0)).isnan().all()
    assert [each.runs for each in f.variants] == [2, 2]


def test_import_installs_no_filter() -> None:
    program = """
import numpy, warnings
before, mutated = list(warnings.filters), warnings._filters_mutated
import tinytorch as torch
print(1 / torch.zeros(1))
assert (warnings.filters, warnings._filters_mutated) == (before, mutated)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("tensor([inf])\n", "")


def test_a_call_inside_of_a_kernel() -> None:
    """A finalizer that runs while a kernel does may call ops, too."""
    found: list[Any] = []

    @op(x=None)
    def doubled(x: Any) -> Any:
        found.append((1 / torch.zeros(2)).sum())
        return x * 2

    for _ in range(2):
        assert doubled(torch.ones(2)).tolist() == [2, 2] and found.pop().isinf()
