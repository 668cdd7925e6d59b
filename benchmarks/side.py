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
        library: "tinytorch", "torch" or "jax".
        work: the name of the row.
        native: with native kernels, if there are any.
        compiled: as `torch.compile` makes it, and anew: PyTorch's keeps what it has made before in files.
        python: what runs it.
        quiet: what it says of itself is not shown.
    """

    def __init__(
        self, library: str, work: str, native: bool = True, compiled: bool = False, python: str = sys.executable,
        quiet: bool = False,
    ) -> None:  # fmt: skip
        command = [python, "-m", "benchmarks.side", library, work, *["compiled"] * compiled]
        environment = dict(os.environ)
        if not native:
            environment["TINYTORCH_NATIVE"] = "0"
        if compiled:
            environment["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"
        pipe, errors = subprocess.PIPE, subprocess.DEVNULL if quiet else None
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, stderr=errors, text=True
        )
        self.turns: list[float] = []

    def first(self) -> float:
        """Return the seconds of the first call, in which programs are made."""
        return float(self._ask("first"))

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
        try:
            self.process.stdin.write(f"{words}\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # it has ended already
            pass
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{' '.join(map(str, self.process.args))} failed")  # type: ignore[arg-type]
        return answer


def _work(library: str, name: str, compiled: bool) -> Any:
    if library == "jax":
        from benchmarks import jax_work

        return jax_work.WORK[name]()
    from benchmarks.work import WORK

    torch: Any = importlib.import_module(library)
    if library == "torch":
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    work = WORK[name].make(torch)
    return torch.compile(work) if compiled else work


def main(library: str, name: str, compiled: str = "") -> None:
    """Do the work in turns, until told to end."""
    work = _work(library, name, bool(compiled))
    begin = time.perf_counter()
    work()
    first = time.perf_counter() - begin
    for _ in range(2):
        work()
    for line in sys.stdin:
        if line == "end\n":
            break
        if line == "first\n":
            print(first, flush=True)
            continue
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
