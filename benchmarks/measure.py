"""How the benchmarks measure: always both sides in turn, so that a busy machine is fair to both."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Work = Callable[[], object]


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

    @property
    def ok(self) -> bool | None:
        """Whether the aim is met; None if there is none, or PyTorch is not there."""
        if self.aim_ours is not None:
            return self.ours <= self.aim_ours
        return None if self.aim is None or self.ratio is None else self.ratio <= self.aim


def seconds(work: Work, times: int) -> float:
    """Return the seconds that one `work()` takes, the median of `times`."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def alternate(
    ours: Work, theirs: Work | None, *, blocks: int, times: int, warm_up: int
) -> tuple[float, float | None, float | None]:
    """Return the seconds of each side and the median of the ratios of neighbouring blocks.

    The sides take turns in blocks, not call by call: the idle threads of the matrix libraries of
    both go on spinning for a while, which the `warm_up` calls at the head of each block sit out.
    """
    a, b = [], []
    for _ in range(blocks):
        for work, into in ((ours, a), (theirs, b)):
            if work is not None:
                for _ in range(warm_up):
                    work()
                into.append(seconds(work, times))
    if not b:
        return statistics.median(a), None, None
    ratio = statistics.median(x / y for x, y in zip(a, b, strict=True))
    return statistics.median(a), statistics.median(b), ratio


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
    per_megabyte = 2**20 if sys.platform == "darwin" else 2**10
    return Process(taken, usage.ru_maxrss / per_megabyte)
