"""Portability: features of Linux, glibc and NumPy's wheels are removed, and the results stay the same."""

from __future__ import annotations

import errno
import functools
import mmap
import multiprocessing.process
import os
import py_compile
import shutil
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
        import multiprocessing, numpy, subprocess, sysconfig, tempfile
        multiprocessing.set_start_method("spawn", force=True)
        sysconfig.get_config_vars()  # of this system, read once
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


def test_a_program_without_sources(tmp_path: Path) -> None:
    program = "import sys, tinytorch as t; x = t.ones(2, requires_grad=True); (x.exp() * x).sum().backward()\n"
    program += "print(x.grad.tolist()); print(*[m.__file__ for n, m in sys.modules.items() if n[:9] == 'tinytorch'])"

    def run(path: Path) -> list[str]:
        env = {**os.environ, "PYTHONPATH": str(path)}
        return subprocess.check_output([sys.executable, "-c", program], text=True, cwd=tmp_path, env=env).split("\n")

    home = Path(tinytorch.__file__).parents[1]
    expected, files, _ = run(home)
    shutil.copytree(home / "tinytorch", tmp_path / "tinytorch", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for each in [Path(file).relative_to(home) for file in files.split() if file.endswith(".py")]:
        py_compile.compile(str(home / each), str((tmp_path / each).with_suffix(".pyc")), doraise=True)
    found, files, _ = run(tmp_path)
    assert found == expected and all(file.startswith(str(tmp_path)) for file in files.split())


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


def test_large_operations_run_alone_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    x = tinytorch.linspace(-1, 1, 600_000).reshape(600, 1000).requires_grad_()

    def results() -> list[Any]:
        x.grad = None
        out = x.exp() * x.tanh() + x.softmax(1)
        out.sum().backward()
        return [out.detach().numpy(), x.grad.numpy(), x.detach().sort(1)[0].numpy()]

    before, expected = tinytorch.get_num_threads(), results()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    for name, value in (("_workers", 0), ("_tasks", parallel.SimpleQueue())):
        monkeypatch.setattr(parallel, name, value)
    try:
        for _ in range(2):
            tinytorch.set_num_threads(2)
            parallel.parallel_for(lambda begin, end: None, 2)
            assert tinytorch.get_num_threads() == 1
            for ours, theirs in zip(results(), expected, strict=True):
                np.testing.assert_array_equal(ours, theirs)
    finally:
        tinytorch.set_num_threads(before)


#: Modules of the standard library that some Pythons lack, and the parts of them that are written in C.
OPTIONAL = """
    multiprocessing _multiprocessing ctypes _ctypes mmap socket _socket socketserver subprocess _posixsubprocess select
    selectors signal fcntl resource pwd grp termios readline ssl sqlite3 lzma bz2 urllib http asyncio concurrent
""".split()

WITHOUT_A_MODULE = """
import sys
import numpy, tqdm

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "{name}":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in [name for name in sys.modules if name.partition(".")[0] == "{name}"]:
    del sys.modules[name]
sys.meta_path.insert(0, Blocker())

import io
import tinytorch as torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 3))
optimizer = torch.optim.Adam(net.parameters())
batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(8, 1, 8, 8), torch.arange(8) % 3), 4)
for x, y in batches:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
file = io.BytesIO()
torch.save(net.state_dict(), file)
file.seek(0)
net.load_state_dict(torch.load(file))
assert torch.ones(2, device="meta").shape == (2,) and torch.ones(3).share_memory_().sum() == 3
assert torch.compile(lambda x: (x * 2).sum())(torch.ones(3)) == 6 == torch.vmap(lambda x: x * 2)(torch.ones(3)).sum()
assert "{name}" not in sys.modules
"""


@pytest.mark.parametrize("name", OPTIONAL)
def test_training_needs_no_module_that_a_python_may_lack(name: str) -> None:
    run_program(WITHOUT_A_MODULE.replace("{name}", name))


#: By what happens: code that makes starting a process impossible, run after tinytorch was imported.
NO_PROCESSES = {
    "_multiprocessing is missing": "sys.modules['_multiprocessing'] = None",
    "multiprocessing is missing": "sys.modules['multiprocessing'] = None",
    "the platform has none": "sys.platform = 'emscripten'",
    "start raises OSError": """
import errno, multiprocessing.process
def refuse(self): raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
multiprocessing.process.BaseProcess.start = refuse
""",
}

LOADING = """
import os, sys, warnings
import numpy, tempfile
import tinytorch as torch

class Rows(torch.utils.data.Dataset):
    def __len__(self): return 5
    def __getitem__(self, i): return torch.rand(3) + i

class Stream(torch.utils.data.IterableDataset):
    def __iter__(self): return iter(range(5))

def batches(data, **options):
    torch.manual_seed(0)
    loader = torch.utils.data.DataLoader(data, 2, **options)
    return [[batch.tolist() for batch in loader] for epoch in range(2)] + [torch.rand(2).tolist()]

kinds = [(Rows(), dict(shuffle=True)), (Stream(), {}), (Rows(), {})]
expected = [batches(data, **options) for data, options in kinds]
{without}
wanted = [dict(), dict(persistent_workers=True, timeout=5), dict(multiprocessing_context="spawn")]
with warnings.catch_warnings(record=True) as issued:
    warnings.simplefilter("always")
    warnings.filterwarnings("ignore", "This DataLoader will create")
    for more in wanted:
        for (data, options), result in zip(kinds, expected):
            assert batches(data, num_workers=2, **options, **more) == result
assert [each.filename for each in issued] == [__file__], [str(each.message) for each in issued]
assert "cannot start worker processes" in str(issued[0].message) and "num_workers=0" in str(issued[0].message)
with warnings.catch_warnings(record=True) as issued:
    warnings.simplefilter("always")
    warnings.filterwarnings("ignore", "This DataLoader will create")
    batches(Rows(), num_workers=2, worker_init_fn=print)
assert "worker_init_fn is not called" in str(issued[0].message)
"""


def run_program(text: str, *arguments: str) -> None:
    run = subprocess.run(
        [sys.executable, *(arguments or ("-c", text))],
        capture_output=True, text=True, timeout=100,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # fmt: skip
    assert run.returncode == 0 and not run.stdout, run.stderr


@pytest.mark.parametrize("how", NO_PROCESSES)
def test_batches_are_loaded_in_process_where_no_worker_can_be_started(how: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(LOADING.replace("{without}", NO_PROCESSES[how]), "utf-8")
    run_program("", str(program))


def test_too_many_processes_are_still_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", refuse)
    with pytest.raises(OSError, match=os.strerror(errno.EAGAIN)):
        list(tinytorch.utils.data.DataLoader(tinytorch.arange(4), num_workers=1))


def test_writes_that_would_not_reach_a_file_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser's `mmap` copies the file."""
    path, saved = tmp_path / "numbers", tmp_path / "saved.pt"
    np.arange(4, dtype=np.float32).tofile(path)
    tinytorch.save({"x": tinytorch.arange(3)}, saved)
    monkeypatch.setattr(sys, "platform", "emscripten")
    with pytest.raises(NotImplementedError, match="would not reach the file"):
        tinytorch.from_file(str(path), shared=True, size=4)
    with pytest.raises(NotImplementedError, match="would not reach the file"):
        tinytorch.UntypedStorage.from_file(str(path), True, 16)
    with (
        tinytorch.serialization.set_default_mmap_options(mmap.MAP_SHARED),
        pytest.raises(NotImplementedError, match="would not reach the file"),
    ):
        tinytorch.load(saved, mmap=True)
    assert tinytorch.from_file(str(path), shared=False, size=4).tolist() == [0, 1, 2, 3]
    assert tinytorch.load(saved, mmap=True)["x"].tolist() == [0, 1, 2]
    monkeypatch.setitem(sys.modules, "mmap", None)  # without the module, files are read
    assert tinytorch.from_file(str(path), size=4).tolist() == [0, 1, 2, 3]
    assert tinytorch.load(saved, mmap=True)["x"].tolist() == [0, 1, 2]


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
