"""Runs a program line by line with both libraries, and compares the values, errors and warnings of each line."""

from __future__ import annotations

import builtins
import math
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import tinytorch
from tests.oracle import torch
from tests.programs.runner import importer
from tests.same import Raised, ended

#: The name of the module in which the lines run, and pickle looks up classes.
HOME = "random_program"
SILENT = (RuntimeWarning, DeprecationWarning)


class Side:
    """A library, and the module in which the lines run with it."""

    def __init__(self, library: Any, begin: str) -> None:
        self.library = library
        self.home = types.ModuleType(HOME)
        load = importer(library.__name__)
        self.home.__dict__["__builtins__"] = {**vars(builtins), "__import__": load}
        self.names["store"] = {}
        library.manual_seed(0)
        sys.modules[HOME] = self.home
        exec(begin, self.names)

    @property
    def names(self) -> dict[str, Any]:
        return self.home.__dict__

    def run(self, line: str) -> tuple[Any, set[str]]:
        """Return the value of a line or its error, and the classes of its warnings."""
        sys.modules[HOME] = self.home

        def value() -> Any:
            if re.match(r"\w+ = ", line):
                return exec(line, self.names)
            return self.plain(eval(line, self.names))

        result, caught = ended(value)
        return result, {w.category.__name__ for w in caught if w.category not in SILENT}

    def plain(self, value: Any) -> Any:
        """Return a value in a form that does not depend on the library, and can be compared."""
        if isinstance(value, self.library.Tensor):
            detached = value.detach()
            detached = detached.float() if value.dtype == self.library.bfloat16 else detached
            attributes = (type(value).__name__, str(value.dtype), value.requires_grad, value.is_leaf)
            return [*attributes, detached.numpy()]
        if isinstance(value, dict):
            items = [(self.plain(key), self.plain(item)) for key, item in value.items()]
            return [type(value).__name__, items]
        if isinstance(value, (list, tuple)):
            return [type(value).__name__, *map(self.plain, value)]
        if isinstance(value, (bool, int, float, bytes, np.ndarray, type(None))):
            return value
        if isinstance(value, (type, types.FunctionType)):
            return value.__name__
        text = re.sub(r" at 0x\w+", "", str(value)).replace("tinytorch", "torch")
        return [type(value).__name__, text.replace("torch.utils.data", "torch.data")]


def same(ours: Any, theirs: Any, tolerance: float) -> bool:
    """Return whether two plain values are the same; `tolerance` is the relative tolerance of float64."""
    if isinstance(theirs, Raised):
        return isinstance(ours, Raised) and ours.kind == theirs.kind
    if type(ours) is not type(theirs):
        return False
    if isinstance(theirs, (list, tuple)):
        pairs = zip(ours, theirs, strict=False)
        return len(ours) == len(theirs) and all(same(*pair, tolerance) for pair in pairs)
    if isinstance(theirs, np.ndarray):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return False
        if theirs.dtype.kind != "f":
            return bool((ours == theirs).all())
        rtol = max(tolerance, {2: 5e-3, 4: 1e-5, 8: 0.0}[theirs.dtype.itemsize])
        finite = np.abs(theirs[np.isfinite(theirs)]).astype(np.float64)
        largest = min(float(finite.max()) if finite.size else 0.0, 1.0)
        atol = 0.1 * rtol * largest + 10 * float(np.finfo(theirs.dtype).eps)
        with np.errstate(all="ignore"):
            return bool(np.isclose(ours, theirs, rtol, atol, equal_nan=True).all())
    if isinstance(theirs, float):
        equal = ours == theirs or (math.isnan(ours) and math.isnan(theirs))
        return equal or math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
    return bool(ours == theirs)


def check(begin: str, lines: list[str], tolerance: Callable[[str], float] = lambda line: 1e-6) -> None:
    """Assert that all lines do the same with both libraries; each finds the files of the other library in `other`."""
    sides = Side(tinytorch, begin), Side(torch, begin)
    for side, opposite in (sides, sides[::-1]):
        side.names["other"] = opposite.names["store"]
    try:
        for number, line in enumerate(lines):
            (ours, our_warnings), (theirs, their_warnings) = (side.run(line) for side in sides)
            program = "\n".join(lines[: number + 1])
            equal = same(ours, theirs, tolerance(line))
            assert equal, f"{ours!r}\nagainst\n{theirs!r}\n\n{program}"
            message = f"warnings: {our_warnings} against {their_warnings}"
            assert our_warnings == their_warnings, f"{message}\n\n{program}"
    finally:
        sys.modules.pop(HOME, None)
