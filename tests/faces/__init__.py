"""The faces of an op: what it must do with each of its samples (`tests/samples`). `tests/test_ops.py` runs them.

A face is a function of a sample that raises where the sample fails, declared by `@face`. That values and gradients are
PyTorch's is checked of all samples in every run, that derivatives are those of differences from the tier of CI on. The
other faces are checked of a quarter of the samples in turn, and of those that a change touches (`is_its_turn`).
"""

from __future__ import annotations

import functools
import os
import subprocess
import warnings
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import tinytorch
from tests.faces.calls import function
from tests.oracle import torch
from tests.samples import Sample, all_samples

ROOT = Path(__file__).parents[2]


class Face(NamedTuple):
    """A requirement, the samples that have it, and the warnings to which it pays no attention.

    `always` is the tier (of conftest.py) from which on it is checked of all samples, None if it is so only in the last.
    """

    check: Callable[[Sample], None]
    applies: Callable[[Sample], bool]
    always: str | None
    ignoring: tuple[str | type[Warning], ...]


FACES: list[Face] = []


def face(
    applies: Callable[[Sample], bool] = lambda sample: True,
    *,
    always: str | None = None,
    needs_oracle: bool = False,
    ignoring: Iterable[str | type[Warning]] = (),
) -> Callable[[Callable[[Sample], None]], Callable[[Sample], None]]:
    """Declare a face of the samples that it applies to; `ignoring` has starts of messages, or classes, of warnings."""

    def declare(check: Callable[[Sample], None]) -> Callable[[Sample], None]:
        if torch is not None or not needs_oracle:
            FACES.append(Face(check, applies, always, tuple(ignoring)))
        return check

    return declare


def look(sample: Sample, always: bool) -> None:
    """Check the faces of a sample, those that have a tier or the others. The error names the faces that fail."""
    failures: dict[str, Exception] = {}
    for each in FACES:
        if bool(each.always) != always or not each.applies(sample):
            continue
        if each.always != "fast" and each.always != tier() and not is_its_turn(sample):
            continue
        with warnings.catch_warnings():
            for kind in each.ignoring:
                if isinstance(kind, str):
                    warnings.filterwarnings("ignore", kind)
                else:
                    warnings.simplefilter("ignore", kind)
            try:
                each.check(sample)
            except Exception as error:  # of any class: it is raised again below
                failures[each.check.__name__] = error
    if failures:
        raise ExceptionGroup(f"{', '.join(failures)}: {sample}", list(failures.values()))


# Which samples' turn it is -------------------------------------------------------------------------


def tier() -> str:
    """Return the tier of this run."""
    return os.environ["TINYTORCH_TIER"]


def in_turn(samples: Iterable[Sample]) -> list[Sample]:
    """Return the samples whose turn it is."""
    return [each for each in samples if is_its_turn(each)]


def is_its_turn(sample: Sample) -> bool:
    """Return whether this run checks everything of a sample.

    The nightly tier does so of all samples. CI does so of a quarter, another one each day (`TINYTORCH_TURN`, which
    conftest.py sets, is the number of the day), and of the samples of changed files. The fast tier does so of one in
    twelve, always the same.
    """
    number = zlib.crc32(str(sample).encode())
    if tier() == "fast":
        return number % 12 == 0
    if tier() == "nightly" or number % 4 == int(os.environ["TINYTORCH_TURN"]) % 4:
        return True
    changed = _touched()
    return changed is None or bool(files(sample.name) & changed)


@functools.cache
def files(name: str) -> frozenset[str]:
    """Return the files that declare a public function, its op, its kernel and its formulas."""
    found = function(tinytorch, name)
    raw = getattr(found, "raw", found)
    op = getattr(raw, "op", None)
    parts = [found, raw] if op is None else [raw, op.kernel, getattr(op.kernel, "func", None), *op.formulas.values()]
    modules = {str(getattr(each, "__module__", None)) for each in parts}
    return frozenset(f"{each.replace('.', '/')}.py" for each in modules if each.startswith("tinytorch."))


@functools.cache
def _touched() -> frozenset[str] | None:
    """Return the changed files of ops, or None if all ops are touched, or it cannot be told."""

    def git(*command: str) -> str:
        return subprocess.run(["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=True).stdout

    try:
        base = git("rev-list", "-1", "--before=1 day ago", "HEAD").strip()
        if not base:  # a clone without history
            return None
        changed = git("diff", "--name-only", base, "--", *(f"tinytorch/{each}" for each in OF_OPS)).split()
    except (OSError, subprocess.CalledProcessError):
        return None
    of_samples = frozenset().union(*(files(name) for name in {each.name for each in all_samples()}))
    return frozenset(changed) if of_samples.issuperset(changed) else None


#: The folders on whose files the results of ops depend. A file there that declares no function of a sample, or one in
#: C, is everybody's.
OF_OPS = ("core", "kernels", "ops", "nn/functional", "autograd")
