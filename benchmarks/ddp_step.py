"""ddp_step.py LIBRARY MODEL: print the seconds that a step takes, on as many processes as are started."""

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
    """Return the seconds of a step on some processes of one thread each, the best of several programs."""
    command = [sys.executable, "-m", "benchmarks.ddp_step", library, model]
    if processes > 1 and library == "torch":
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
        command = [*launcher, "-m", *command[2:]]
    elif processes > 1:
        mpiexec = Path(sys.executable).parent / "mpiexec"
        command = [str(mpiexec) if mpiexec.exists() else "mpiexec", "-n", str(processes), *command]
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **single, "PROCESSES": str(processes), "PYTHONPATH": str(ROOT)}
    taken = []
    for _ in range(times):
        ended = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
        if ended.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{ended.stderr}")
        taken.append(float(ended.stdout.split()[-1]))
    return min(taken)


def main(library: str, model: str) -> None:
    """Train, and have the first process print."""
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
    taken = []
    for _ in range(STEPS):
        begin = time.perf_counter()
        step()
        taken.append(time.perf_counter() - begin)
    if first:
        print(statistics.median(taken[STEPS // 3 :]))
    if os.environ["PROCESSES"] != "1":
        dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
