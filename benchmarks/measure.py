"""Measuring. All sides of a row take turns, so that other load on the machine affects all of them alike."""

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
    """One row of the table: the time or memory of each side, and the upper limit of the ratio."""

    what: str
    unit: str  # "s", "ms", "us" or "MB"
    ours: float
    theirs: float | None = None
    ratio: float | None = None
    aim: float | None = None  # upper limit of the ratio
    aim_ours: float | None = None  # upper limit of `ours`, where an absolute figure counts
    without: float | None = None  # tinytorch without native kernels
    memory: float | None = None  # ratio of the peak memory, ours to theirs

    @property
    def ok(self) -> bool | None:
        """Whether the aim is met; None if the row has no aim, or PyTorch is not installed."""
        if self.aim_ours is not None:
            return self.ours <= self.aim_ours
        return None if self.aim is None or self.ratio is None else self.ratio <= self.aim


def ratio_of(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios of neighbouring turns."""
    return statistics.median(x / y for x, y in zip(ours, theirs, strict=True))


def peak_memory() -> float:
    """Return the peak memory of this process in megabytes."""
    return _megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _megabytes(maxrss: int) -> float:
    return maxrss / (2**20 if sys.platform == "darwin" else 2**10)


@dataclass
class Process:
    """The time and the peak memory of a whole process."""

    seconds: float
    megabytes: float


def run(arguments: Sequence[str], cwd: str) -> Process:
    """Run Python with `arguments`, and return its time and peak memory.

    Raises:
        RuntimeError: the process failed; the message contains its output.
    """
    # As on a user's machine, modules are compiled once and then read from __pycache__.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    # The output goes to a file, since a pipe could fill up while `wait4` waits.
    with open(os.path.join(cwd, "output.txt"), "w+") as output:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, *arguments], cwd=cwd, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            raise RuntimeError(f"{' '.join(arguments)} failed:\n{output.read()}")
    return Process(seconds, _megabytes(usage.ru_maxrss))
