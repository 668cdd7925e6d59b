"""Runs an ordinary PyTorch program with PyTorch and with tinytorch under torch's name, and compares the outcomes.

The program is not changed: for tinytorch, `import torch`, `import torch.nn as nn`, `from torch.utils.data import
DataLoader` … import tinytorch and its submodules, by an `__import__` in the builtins of the program alone.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import io
import math
import re
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np

SCRIPTS = Path(__file__).resolve().parent / "scripts"
NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|\bnan\b|\binf\b")


class Outcome:
    """The output of a program, its global values at the end, and the classes of its warnings."""

    def __init__(self, lines: list[str], values: dict[str, Any], warned: list[str]) -> None:
        self.lines = lines
        self.values = values
        self.warned = warned


def importer(library: str) -> Any:
    """Return an `__import__` that imports `library` in place of torch."""

    def load(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level == 0 and (name == "torch" or name.startswith("torch.")):
            name = library + name[len("torch") :]
        return builtins.__import__(name, globals, locals, fromlist, level)

    return load


def execute(script: Path, library: str, code: Any, **names: Any) -> tuple[dict[str, Any], str, list[Any]]:
    """Run the code of a program with `library` ("torch" or "tinytorch") under torch's name, as `__main__`.

    Args:
        script: the file of the program.
        library: the name of the library.
        code: the compiled program.
        names: initial global names of the program.

    Returns:
        The global values of the program at its end, its output, and its warnings.
    """
    torch = importlib.import_module(library)
    program = types.ModuleType("__main__")
    program.__dict__.update({"__file__": str(script), **names})
    program.__dict__["__builtins__"] = {**vars(builtins), "__import__": importer(library)}
    main = sys.modules["__main__"]
    dtype, grad, threads = (torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads())
    torch.set_num_threads(1)  # the programs are small
    printed = io.StringIO()
    torch.manual_seed(0)
    try:
        sys.modules["__main__"] = program  # in which pickle looks up the classes of the program
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(io.StringIO()),  # progress bars contain times
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            exec(code, program.__dict__)
    finally:
        sys.modules["__main__"] = main
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(grad)
        torch.set_num_threads(threads)
        torch.set_printoptions(profile="default")
    return vars(program), printed.getvalue(), caught


def run(script: Path, library: str) -> Outcome:
    """Run a program with `library` ("torch" or "tinytorch") under torch's name."""
    text = script.read_text("utf-8")
    names, printed, caught = execute(script, library, compile(text, str(script), "exec"))
    values = {
        name: value
        for name, value in names.items()
        if not name.startswith("_") and not isinstance(value, (types.ModuleType, type))
    }
    # NumPy warns of floating-point errors in tinytorch, and of deprecated calls in PyTorch.
    ignored = (RuntimeWarning, DeprecationWarning)
    warned = [w.category.__name__ for w in caught if w.category not in ignored]
    if "torch.compile(" in text:
        warned = []  # the warnings of PyTorch's compiler depend on what ran before in the process
    return Outcome(printed.splitlines(), values, warned)


def close_words(ours: str, theirs: str) -> bool:
    """Return whether two printed numbers agree to 1e-4, or to one unit of the last digit of three or more decimals."""
    if ours == theirs:
        return True
    if not any(c in theirs for c in ".e"):
        return False
    a, b = float(ours), float(theirs)
    digits = len(theirs.split("e")[0].partition(".")[2])
    power = int(theirs.partition("e")[2] or 0)
    last = 1.001 * 10.0 ** (power - digits) if digits >= 3 else 0.0
    return abs(a - b) <= max(1e-4 * abs(b), last)


def compare_lines(ours: list[str], theirs: list[str]) -> None:
    """Assert that two outputs are the same: the text exactly, the numbers to 1e-4."""
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        mine = mine.replace("tinytorch", "torch")
        where = f"line {number + 1}:\n  ours:   {mine}\n  theirs: {other}"
        assert NUMBER.split(mine) == NUMBER.split(other), where
        for a, b in zip(NUMBER.findall(mine), NUMBER.findall(other), strict=True):
            assert close_words(a, b), where
    assert len(ours) == len(theirs), f"{len(ours)} lines against {len(theirs)}"


def compare_arrays(ours: Any, theirs: Any, where: str) -> None:
    """Assert that two arrays agree to 1e-4 of the largest element."""
    assert ours.shape == theirs.shape, f"{where}: {ours.shape} against {theirs.shape}"
    assert ours.dtype == theirs.dtype, f"{where}: {ours.dtype} against {theirs.dtype}"
    if ours.dtype.kind in "fc" and ours.size:
        magnitudes = np.abs(theirs[np.isfinite(theirs)])
        largest = float(magnitudes.max()) if magnitudes.size else 0.0
        np.testing.assert_allclose(ours, theirs, 1e-4, 1e-4 * largest + 1e-7, err_msg=where)
    else:
        np.testing.assert_array_equal(ours, theirs, err_msg=where)


def compare_values(ours: Any, theirs: Any, where: str) -> None:
    """Assert that two values are the same; objects of the program's own classes are compared by class only."""
    if hasattr(theirs, "state_dict") and hasattr(theirs, "parameters"):
        compare_values(dict(ours.state_dict()), dict(theirs.state_dict()), where)
    elif hasattr(theirs, "grad_fn"):
        assert str(ours.dtype) == str(theirs.dtype), f"{where}: {ours.dtype}, {theirs.dtype}"
        assert ours.requires_grad == theirs.requires_grad, where
        assert ours.is_leaf == theirs.is_leaf, where
        if str(theirs.dtype) == "torch.bfloat16":
            ours, theirs = ours.float(), theirs.float()
        if str(theirs.layout) != "torch.strided":
            assert str(ours.layout) == str(theirs.layout), where
            ours, theirs = ours.to_dense(), theirs.to_dense()
        compare_arrays(ours.detach().resolve_conj().numpy(), theirs.detach().resolve_conj().numpy(), where)
    elif isinstance(theirs, np.ndarray):
        compare_arrays(ours, theirs, where)
    elif isinstance(theirs, float):
        assert isinstance(ours, float), f"{where}: {ours!r} against {theirs!r}"
        same = math.isclose(ours, theirs, rel_tol=1e-4, abs_tol=1e-6)
        assert same or (math.isnan(ours) and math.isnan(theirs)), f"{where}: {ours} against {theirs}"
    elif isinstance(theirs, dict):
        assert list(map(str, ours)) == list(map(str, theirs)), where
        for mine, other in zip(ours, theirs, strict=True):
            compare_values(ours[mine], theirs[other], f"{where}[{other!r}]")
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), where
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            compare_values(mine, other, f"{where}[{index}]")
    elif theirs is None or isinstance(theirs, (bool, int, str)):
        assert ours == theirs, f"{where}: {ours!r} against {theirs!r}"
    elif type(theirs).__module__ == "__main__":
        assert type(ours).__name__ == type(theirs).__name__, f"{where}: {ours!r}, {theirs!r}"


def compare(ours: Outcome, theirs: Outcome) -> None:
    """Assert that two outcomes of a program are the same."""
    compare_lines(ours.lines, theirs.lines)
    assert ours.warned == theirs.warned, f"warnings: {ours.warned} against {theirs.warned}"
    assert list(ours.values) == list(theirs.values)
    for name, value in theirs.values.items():
        compare_values(ours.values[name], value, name)
