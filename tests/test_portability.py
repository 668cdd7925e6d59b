"""Portability: features of Linux, glibc and NumPy's wheels are removed, and the results stay the same."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
from tinytorch.kernels import blas, parallel, processors

#: By missing feature: code that removes it, which a program runs before it imports tinytorch.
WITHOUT = {
    "nothing": "",
    "ctypes": "sys.modules['ctypes'] = sys.modules['_ctypes'] = None",
    "mallopt and OpenBLAS's functions": """
        import ctypes
        class Bare:
            def __init__(self, name): pass
            def __getattr__(self, name): raise AttributeError(name)
        ctypes.CDLL = Bare
    """,
    "libraries to open": """
        import ctypes
        def refuse(name): raise OSError(f"{name}: cannot open")
        ctypes.CDLL = refuse
    """,
    "the number of processors": """
        for name in ("sched_getaffinity", "process_cpu_count"):
            if hasattr(os, name): delattr(os, name)
        os.cpu_count = lambda: None
    """,
    "threads": """
        import threading
        os.environ["OMP_NUM_THREADS"] = "4"
        def refuse(self): raise RuntimeError("can't start new thread")
        threading.Thread.start = refuse
    """,
    "fork": """
        import multiprocessing
        multiprocessing.set_start_method("spawn", force=True)
        if hasattr(os, "fork"): del os.fork, os.register_at_fork
    """,
    "fork, but with its server": """
        import multiprocessing
        methods = multiprocessing.get_all_start_methods()
        multiprocessing.set_start_method("forkserver" if "forkserver" in methods else "spawn", force=True)
    """,
    "what is not on Windows": """
        import multiprocessing, numpy, tempfile
        multiprocessing.set_start_method("spawn", force=True)
        sys.modules["fcntl"] = sys.modules["resource"] = sys.modules["pwd"] = None
        for name in ("O_TMPFILE", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "fchown", "fchmod", "memfd_create",
                     "preadv", "sched_getaffinity", "fork", "register_at_fork", "geteuid", "uname"):
            if hasattr(os, name): delattr(os, name)
    """,
    "Linux": """
        import multiprocessing, numpy, subprocess, tempfile
        multiprocessing.set_start_method("spawn", force=True)
        sys.platform = "darwin"
    """,
}

PROGRAM = """
import os, sys
{without}
import tinytorch as torch

class Rows(torch.utils.data.Dataset):
    def __len__(self): return 600
    def __getitem__(self, i): return torch.rand(100) + i  # a batch of them is 40,000 bytes

def main():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 26 * 26, 10)
    )
    x, y = torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    for _ in range(2):
        torch.save(net.state_dict(), "net.pt")
    values = [*torch.load("net.pt", mmap=True).values()]
    values.append(torch.linspace(0, 1, 2_000_000).exp())  # shared among threads
    values += torch.utils.data.DataLoader(Rows(), 100, shuffle=True, num_workers=2)
    print(*[value.double().sum().item() for value in values])

if __name__ == "__main__":
    main()
"""


@functools.cache
def results(without: str, folder: Path) -> list[float]:
    """Return the output of a program that runs in an empty folder, in which it must leave no files."""
    work = folder / "work"
    work.mkdir(parents=True)
    program = folder / "program.py"
    program.write_text(PROGRAM.replace("{without}", textwrap.dedent(WITHOUT[without])), "utf-8")
    made = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:This DataLoader will create", "-W",
         "ignore:This process:DeprecationWarning", str(program)],
        capture_output=True, text=True, cwd=work, timeout=100,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert made.returncode == 0 and not made.stderr, made.stderr
    assert os.listdir(work) == ["net.pt"]
    return [float(word) for word in made.stdout.split()]


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    return results("nothing", tmp_path_factory.mktemp("nothing"))


@pytest.mark.parametrize("what", [each for each in WITHOUT if each != "nothing"])
def test_a_program_without(what: str, usual: list[float], tmp_path: Path) -> None:
    assert len(usual) == 11
    assert results(what, tmp_path) == pytest.approx(usual, rel=1e-6)


def test_the_pretence_is_effective(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the programs above would test nothing."""
    monkeypatch.setattr(blas, "ctypes", None)
    assert list(blas._libraries()) == [] and not blas.reload_settings()
    monkeypatch.setitem(sys.modules, "ctypes", None)
    assert blas.threads.__wrapped__() is None
    for name in ("sched_getaffinity", "process_cpu_count"):
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert processors.available() == 1


@pytest.mark.parametrize("most", [0, 2])
def test_as_many_threads_as_there_are_to_be_had(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = threading.Thread.start, []

    def limited(self: threading.Thread) -> None:
        if len(started) == most:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", limited)
    monkeypatch.setattr(parallel, "_workers", 0)
    monkeypatch.setattr(parallel, "_tasks", parallel.SimpleQueue())
    monkeypatch.setattr(parallel, "_threads", 5)
    pieces: list[Any] = []
    parallel.parallel_for(lambda begin, end: pieces.append((begin, end)), 1000)
    assert len(started) == most and parallel.get_threads() == most + 1
    assert sorted(i for begin, end in pieces for i in range(begin, end)) == list(range(1000))


@pytest.mark.parametrize("code", "bBhilqefd?")
def test_every_name_that_c_has_for_a_number_is_understood(code: str) -> None:
    """Which C types are equal depends on the system: a long has 64 bits on Linux, and 32 on Windows."""
    array = np.ones(3, code)
    dtype = tinytorch.from_numpy(array).dtype
    assert dtype.itemsize == array.itemsize
    assert dtype is getattr(tinytorch, array.dtype.name)
    assert tinytorch.tensor(array).numpy().dtype == array.dtype


def test_numbers_that_only_some_machines_have_are_refused() -> None:
    if np.dtype(np.longdouble) == np.float64:
        pytest.skip("a long double is a double here")
    with pytest.raises(TypeError, match="can't convert"):
        tinytorch.from_numpy(np.ones(2, np.longdouble))
