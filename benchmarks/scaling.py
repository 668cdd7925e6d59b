"""The cost of communication in distributed training: measured here, and predicted for up to 1,024 machines.

python -m benchmarks.scaling                    measure with 2, 3 and 4 processes, check the model, predict
python -m benchmarks.scaling --predict          predict only
MPICH_NOLOCAL=1 python -m benchmarks.scaling    communicate through the network stack instead of shared memory

The model: a ring all-reduce of n bytes over N processes takes 2 (N - 1) messages of n / N bytes each, so its time is
T = 2 (N - 1) a + 2 (N - 1) / N * n / b, with the latency a of a message in seconds and the bandwidth b in bytes per
second. Gradients are reduced in buckets: each one as soon as the backward pass, which goes on meanwhile, has filled it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

MB = 2**20
#: By model: the size of the parameters in bytes, and the time of a step without communication in seconds
#: (docs/distributed.md).
MODELS = {"MLP, 0.67 M": (2.7e6, 0.010), "GPT, 1 M": (4e6, 0.070), "ResNet-50": (1e8, 2.0), "GPT-2, 124 M": (5e8, 8.0)}
MACHINES = (2, 4, 8, 16, 64, 256, 1024)
GIGABITS = (10, 25, 100)
# Of TCP in a local network: the latency of a message in seconds, and the fraction of the line rate that is reached.
LATENCY, USED = 30e-6, 0.9
BACKWARD = 2 / 3  # the fraction of a step that is the backward pass


def ring(processes: int, size: float, a: float, b: float) -> float:
    """Return the time of a ring all-reduce of `size` bytes, for latency `a` and bandwidth `b`."""
    return 2 * (processes - 1) * (a + size / processes / b)


def fit(times: dict[tuple[int, int], float]) -> tuple[float, float]:
    """Fit `a` and `b` to times by (processes, bytes), by least squares of the relative errors."""
    rows = [[2 * (n - 1) / t, 2 * (n - 1) / n * size / t] for (n, size), t in times.items()]
    (a, per_byte), *_ = np.linalg.lstsq(np.array(rows), np.ones(len(rows)), rcond=None)
    return max(float(a), 1e-9), 1 / max(float(per_byte), 1e-15)


def step(seconds: float, size: float, exchange: Callable[[float], float], bucket: float = 25 * MB) -> float:
    """Return the time of a step in which the backward pass fills buckets one after the other, at a constant rate.

    Args:
        seconds: the time of the step without communication.
        size: the size of the gradients in bytes.
        exchange: returns the time of an all-reduce of so many bytes.
        bucket: the size of a bucket in bytes; the first one has at most 1 MB.
    """
    begin, end = seconds * (1 - BACKWARD), 0.0
    filled = 0.0
    while filled < size:
        part = min(bucket if filled else min(bucket, MB), size - filled)
        filled += part
        end = max(end, begin + seconds * BACKWARD * filled / size) + exchange(part)
    return max(seconds, end)


# Prediction ---------------------------------------------------------------------------------------


def predict(models: dict[str, tuple[float, float]] = MODELS) -> None:
    """Print the parallel efficiency of N machines, with communication during the backward pass and after it."""
    print("\nEfficiency with communication during the backward pass / after it")
    print(f"{'':30s}" + "".join(f"{n:>12,}" for n in MACHINES))
    for name, (size, seconds) in models.items():
        for gigabits in GIGABITS:
            line = f"{name:20s}{gigabits:5d} Gb/s"
            for n in MACHINES:
                b = gigabits * 1e9 / 8 * USED
                during = step(seconds, size, lambda part, n=n, b=b: ring(n, part, LATENCY, b))
                after = seconds + ring(n, size, LATENCY, b)
                line += f"{f'{seconds / during:.0%} / {seconds / after:.0%}':>12s}"
            print(line)
    print("\nSeconds per step on 16 machines at 10 Gb/s, by bucket size")
    buckets = (1, 5, 25, 100, 1000)
    print(f"{'':20s}" + "".join(f"{f'{bucket} MB':>10s}" for bucket in buckets))
    for name, (size, seconds) in models.items():
        line = f"{name:20s}"
        for bucket in buckets:
            line += f"{step(seconds, size, lambda part: ring(16, part, LATENCY, 1.25e9 * USED), bucket * MB):10.4f}"
        print(line)


# Measurement --------------------------------------------------------------------------------------


def median(call: Callable[[], object], times: int) -> float:
    """Return the median time of a call in seconds."""
    call()
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def worker(times: int) -> None:
    """Measure in this process, one of several; the first one prints the maximum over all processes as JSON."""
    import tinytorch as torch
    from tinytorch import distributed as dist
    from tinytorch.nn.parallel import DistributedDataParallel

    dist.init_process_group()
    result: dict[str, Any] = {"processes": dist.get_world_size(), "exchanges": {}}
    for size in (2**12, 2**16, 2**20, 2**22, 2**24):
        x = torch.zeros(size // 4)
        result["exchanges"][size] = median(lambda x=x: dist.all_reduce(x), times)
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    )
    parallel = DistributedDataParallel(model)
    x, y = torch.rand(256, 784), torch.randint(0, 10, (256,))

    def train(model: Any) -> None:
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()

    result["alone"] = median(lambda: train(model), times)  # all processes at the same time, without communication
    result["together"] = median(lambda: train(parallel), times)
    result["bytes"] = sum(p.nbytes for p in model.parameters())
    results = [result] * dist.get_world_size()
    dist.all_gather_object(results, result)
    for key in ("alone", "together"):
        result[key] = max(other[key] for other in results)
    for size in result["exchanges"]:
        result["exchanges"][size] = max(other["exchanges"][size] for other in results)
    if dist.get_rank() == 0:
        print(json.dumps(result))
    dist.destroy_process_group()


def measure(processes: int, times: int) -> dict[str, Any]:
    """Return the output of `worker` for some number of processes."""
    command = [sys.executable, "-m", "tinytorch.distributed.run", "--nproc-per-node", str(processes)]
    root = str(Path(__file__).resolve().parent.parent)
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    process = subprocess.run(
        [*command, "-m", "benchmarks.scaling", "--worker", "--times", str(times)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    result: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    result["exchanges"] = {int(size): seconds for size, seconds in result["exchanges"].items()}
    return result


def check(processes: list[int], times: int) -> None:
    """Print measured and predicted times of all-reduce, and of training steps with the model's two bounds."""
    runs = [measure(n, times) for n in processes]
    seconds = {(run["processes"], size): t for run in runs for size, t in run["exchanges"].items()}
    cores = os.cpu_count() or 1  # more processes than cores wait for each other instead of messages
    a, b = fit({key: t for key, t in seconds.items() if key[0] <= max(cores, min(processes))})
    print(f"{cores} cores; fitted to at most as many processes: a = {a * 1e6:.1f} us, b = {b / 1e9:.2f} GB/s")
    print("\nprocesses     bytes   measured      model")
    for (n, size), t in seconds.items():
        print(f"{n:9d} {size:9,} {t * 1e6:7.0f} us {ring(n, size, a, b) * 1e6:7.0f} us")
    print("\nprocesses  step alone  with exchange   predicted: during the backward pass, after it")
    for run in runs:
        n, size, alone = run["processes"], run["bytes"], run["alone"]
        during = step(alone, size, lambda part, n=n: ring(n, part, a, b))
        after = alone + ring(n, size, a, b)
        line = f"{n:9d} {alone * 1e3:8.2f} ms {run['together'] * 1e3:11.2f} ms"
        print(f"{line}{during * 1e3:17.2f} ms {after * 1e3:12.2f} ms")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--predict", action="store_true", help="only predict")
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 3, 4], help="numbers of processes (2 3 4)")
    parser.add_argument("--times", type=int, default=30, help="repetitions of each measurement (30)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        worker(args.times)
        return
    if not args.predict:
        check(args.processes, args.times)
    predict()


if __name__ == "__main__":
    main()
