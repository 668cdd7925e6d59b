"""side.py LIBRARY WORK [compiled]: a process that runs a workload on request and reports the time, one per side."""

from __future__ import annotations

import importlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.measure import ROOT, peak_memory

WARM_UP = 0.05  # seconds of untimed work, during which idle threads of another side may still spin


class Side:
    """A process that runs the workload of a row with one library.

    Args:
        library: "tinytorch", "torch" or "jax".
        work: the name of the row.
        native: use native kernels, if there are any.
        compiled: use `torch.compile`; PyTorch's cache on disk is disabled.
        python: the Python interpreter.
        quiet: discard the standard error of the process.
        module: the program that is run, and its further arguments.
    """

    def __init__(
        self, library: str, work: str, native: bool = True, compiled: bool = False, python: str = sys.executable,
        quiet: bool = False, module: Sequence[str] = ("benchmarks.side",),
    ) -> None:  # fmt: skip
        command = [python, "-m", module[0], library, work, *module[1:], *["compiled"] * compiled]
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
        """Return the time of the first call in seconds, which includes compilation."""
        return float(self.ask("first"))

    def turn(self, times: int) -> None:
        """Run the workload some times, and append the median time in seconds to `turns`."""
        self.turns.append(float(self.ask(str(times))))

    def end(self) -> float:
        """End the process, and return its peak memory in megabytes."""
        peak = float(self.ask("end"))
        self.process.communicate()
        return peak

    def ask(self, request: str) -> str:
        """Return the process's answer, a line."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(f"{request}\n")
            self.process.stdin.flush()
        except BrokenPipeError:  # the process has ended
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
    """Run the workload on request, until the request "end"."""
    serve(_work(library, name, bool(compiled)))


def serve(work: Callable[[], Any]) -> None:
    """Call a function on request, until the request "end"."""
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
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        print(statistics.median(times), flush=True)
    print(peak_memory(), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
