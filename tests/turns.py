"""Which of many alike tests a run has: all of them take too long for each change, so they take turns."""

from __future__ import annotations

import functools
import os
import subprocess
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tinytorch
from tests.samples import Sample, all_samples

ROOT = Path(__file__).parents[1]

#: The folders on whose files the results of ops depend. A file there that declares no function of a sample, or one in
#: C, is everybody's.
OF_OPS = ("core", "kernels", "ops", "nn/functional", "autograd")


def tier() -> str:
    """Return the tier of this run."""
    return os.environ["TINYTORCH_TIER"]


def turn() -> int:
    """Return the number that chooses what CI tests today: conftest.py sets it to that of the day."""
    return int(os.environ["TINYTORCH_TURN"])


def quarter(items: Sequence[Any]) -> Sequence[Any]:
    """Return every fourth of some cases, in CI others each day; all of them in the nightly tier."""
    return items if tier() == "nightly" else items[(0 if tier() == "fast" else turn()) % 4 :: 4]


def in_turn(samples: Iterable[Sample]) -> list[Sample]:
    """Return the samples whose turn it is."""
    return [each for each in samples if is_its_turn(each)]


def is_its_turn(sample: Sample) -> bool:
    """Return whether this run checks everything of a sample.

    The nightly tier does so of all samples; CI of a quarter, another one each day, and of those of changed files; the
    fast tier of one in twelve, always the same.
    """
    number = zlib.crc32(str(sample).encode())
    if tier() == "fast":
        return number % 12 == 0
    if tier() == "nightly" or number % 4 == turn() % 4:
        return True
    changed = _touched()
    return changed is None or bool(files(sample.name) & changed)


@functools.cache
def files(name: str) -> frozenset[str]:
    """Return the files that declare a public function, its op, its kernel and its formulas."""
    found: Any = functools.reduce(getattr, name.split("."), tinytorch)
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
