"""How the benchmarks measure: always all sides in turn, so that a busy machine is fair to each."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Row:
    """One line of the table: what each side took, and what the ratio is to be at most."""

    what: str
    unit: str  # "s", "ms", "us" or "MB"
    ours: float
    theirs: float | None = None
    ratio: float | None = None
    aim: float | None = None  # of the ratio
    aim_ours: float | None = None  # of `ours`, where an absolute figure is what counts
    without: float | None = None  # native kernels
    memory: float | None = None  # at its peak, to theirs

    @property
    def ok(self) -> bool | None:
        """Whether the aim is met; None if there is none, or PyTorch is not there."""
        if self.aim_ours is not None:
            return self.ours <= self.aim_ours
        return None if self.aim is None or self.ratio is None else self.ratio <= self.aim


def ratio_of(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios of neighbouring turns."""
    return statistics.median(x / y for x, y in zip(ours, theirs, strict=True))


def peak_memory() -> float:
    """Return the megabytes of memory that this process had at its peak."""
    return _megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _megabytes(most: int) -> float:
    return most / (2**20 if sys.platform == "darwin" else 2**10)


@dataclass
class Process:
    """What a whole process took."""

    seconds: float
    megabytes: float  # of memory, at its peak


def run(arguments: Sequence[str], cwd: str) -> Process:
    """Run Python with `arguments` to its end and return what it took.

    Raises:
        RuntimeError: it ended with an error, which the message holds.
    """
    # As on a user's machine: modules are compiled once, then read from __pycache__.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    # A file for its output, not a pipe: nobody reads a pipe while `wait4` waits.
    with open(os.path.join(cwd, "output.txt"), "w+") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=cwd, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        taken = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{output.read()}")
    return Process(taken, _megabytes(usage.ru_maxrss))
