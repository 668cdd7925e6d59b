"""side.py LIBRARY WORK [compiled]: do work whenever told so, and say how long it took. Each side is a process."""

from __future__ import annotations

import importlib
import os
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks.measure import ROOT, peak_memory

WARM_UP = 0.05  # seconds of work that do not count: so long another side's idle threads may go on spinning


class Side:
    """A process that does one row's work, with one library.

    Args:
        library: "tinytorch" or "torch".
        work: the name of the row.
        native: with native kernels, if there are any.
        compiled: as `torch.compile` makes it.
    """

    def __init__(self, library: str, work: str, native: bool = True, compiled: bool = False) -> None:
        command = [sys.executable, "-m", "benchmarks.side", library, work, *["compiled"] * compiled]
        environment = os.environ if native else os.environ | {"TINYTORCH_NATIVE": "0"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True)
        self.turns: list[float] = []

    def turn(self, times: int) -> None:
        """Do the work some times, and note the median of the seconds."""
        self.turns.append(float(self._ask(str(times))))

    def end(self) -> float:
        """End the process; return the megabytes of memory that it had at its peak."""
        peak = float(self._ask("end"))
        self.process.communicate()
        return peak

    def _ask(self, words: str) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{words}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{' '.join(map(str, self.process.args))} failed")  # type: ignore[arg-type]
        return answer


def main(library: str, name: str, compiled: str = "") -> None:
    """Do the work in turns, until told to end."""
    from benchmarks.work import WORK

    torch: Any = importlib.import_module(library)
    if library == "torch":
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    work = WORK[name].make(torch)
    if compiled:
        work = torch.compile(work)
    for _ in range(3):
        work()
    for line in sys.stdin:
        if line == "end\n":
            break
        begin = time.perf_counter()
        while time.perf_counter() - begin < WARM_UP:
            work()
        taken = []
        for _ in range(int(line)):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
        print(statistics.median(taken), flush=True)
    print(peak_memory(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
