"""ddp_step.py LIBRARY MODEL: print the time of a training step in seconds, on all processes that are started."""

from __future__ import annotations

import importlib
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import models

ROOT = Path(__file__).resolve().parent.parent
STEPS = 30


def seconds(library: str, model: str, processes: int, times: int) -> float:
    """Return the time of a step in seconds on processes of one thread each: the minimum of several runs."""
    command = [sys.executable, "-m", "benchmarks.ddp_step", library, model]
    if processes > 1 and library == "torch":
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command = [*launcher, "-m", *command[2:]]
    elif processes > 1:
        mpiexec = Path(sys.executable).parent / "mpiexec"
        command = [str(mpiexec) if mpiexec.exists() else "mpiexec", "-n", str(processes), *command]
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **single, "PROCESSES": str(processes), "PYTHONPATH": str(ROOT)}
    results = []
    for _ in range(times):
        process = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{process.stderr}")
        results.append(float(process.stdout.split()[-1]))
    return min(results)


def main(library: str, model: str) -> None:
    """Train for some steps; the first process prints the median time."""
    torch: Any = importlib.import_module(library)
    torch.set_num_threads(1)
    if os.environ["PROCESSES"] == "1":
        step = getattr(models, model)(torch)
        first = True
    else:
        dist = importlib.import_module(f"{library}.distributed")
        dist.init_process_group("gloo")
        first = dist.get_rank() == 0
        step = getattr(models, model)(torch, wrap=torch.nn.parallel.DistributedDataParallel)
    times = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    if first:
        print(statistics.median(times[STEPS // 3 :]))
    if os.environ["PROCESSES"] != "1":
        dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
