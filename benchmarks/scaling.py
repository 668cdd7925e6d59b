"""What training in several processes costs: measured here, and predicted for up to 1,024 machines.

python -m benchmarks.scaling                    measure with 2, 3 and 4 processes, check the model, predict
python -m benchmarks.scaling --predict          predict only
MPICH_NOLOCAL=1 python -m benchmarks.scaling    through the network's stack, not through shared memory

The model: a ring of N adds n bytes up in 2 (N - 1) messages, each of n / N bytes, so it takes
T = 2 (N - 1) a + 2 (N - 1) / N * n / b seconds, with a seconds for a message and b bytes in a second. Gradients are
added up in buckets, each as soon as the backward pass has filled it, while that goes on.
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
#: By model: its parameters' bytes, and the seconds of one step alone (docs/distributed.md).
MODELS = {"MLP, 0.67 M": (2.7e6, 0.010), "GPT, 1 M": (4e6, 0.070), "ResNet-50": (1e8, 2.0), "GPT-2, 124 M": (5e8, 8.0)}
MACHINES = (2, 4, 8, 16, 64, 256, 1024)
GIGABITS = (10, 25, 100)
LATENCY, USED = 30e-6, 0.9  # of TCP in one room: seconds for a message, and the part of the line's rate that is reached
BACKWARD = 2 / 3  # the part of a step that is the backward pass


def ring(processes: int, size: float, a: float, b: float) -> float:
    """Return the seconds in which processes add up `size` bytes."""
    return 2 * (processes - 1) * (a + size / processes / b)


def fit(times: dict[tuple[int, int], float]) -> tuple[float, float]:
    """Return `a` and `b` from seconds by processes and bytes: least squares of the relative errors."""
    rows = [[2 * (n - 1) / t, 2 * (n - 1) / n * size / t] for (n, size), t in times.items()]
    (a, per_byte), *_ = np.linalg.lstsq(np.array(rows), np.ones(len(rows)), rcond=None)
    return max(float(a), 1e-9), 1 / max(float(per_byte), 1e-15)


def step(seconds: float, size: float, exchange: Callable[[float], float], bucket: float = 25 * MB) -> float:
    """Return the seconds of a step: the backward pass fills buckets one after the other, at the pace of its bytes.

    Args:
        seconds: of the step alone.
        size: of the gradients, in bytes.
        exchange: the seconds in which so many bytes are added up.
        bucket: the bytes of a bucket; the first one has 1 MB at most.
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
    """Print how much of N machines' work is training: with exchange during the backward pass, and after it."""
    print("\nEfficiency with exchange during the backward pass / after it")
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
    print("\nSeconds of a step on 16 machines at 10 Gb/s, by size of the buckets")
    sizes = (1, 5, 25, 100, 1000)
    print(f"{'':20s}" + "".join(f"{f'{each} MB':>10s}" for each in sizes))
    for name, (size, seconds) in models.items():
        found = [step(seconds, size, lambda part: ring(16, part, LATENCY, 1.25e9 * USED), each * MB) for each in sizes]
        print(f"{name:20s}" + "".join(f"{each:10.4f}" for each in found))


# Measurement --------------------------------------------------------------------------------------


def median(call: Callable[[], object], times: int) -> float:
    """Return the median of a call's seconds."""
    call()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def worker(times: int) -> None:
    """Measure in this process, one of several; the first prints what all have, the slowest of each."""
    import tinytorch as torch
    from tinytorch import distributed as dist
    from tinytorch.nn.parallel import DistributedDataParallel

    dist.init_process_group()
    found: dict[str, Any] = {"processes": dist.get_world_size(), "exchanges": {}}
    for size in (2**12, 2**16, 2**20, 2**22, 2**24):
        x = torch.zeros(size // 4)
        found["exchanges"][size] = median(lambda x=x: dist.all_reduce(x), times)
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    )
    parallel = DistributedDataParallel(model)
    x, y = torch.rand(256, 784), torch.randint(0, 10, (256,))

    def train(model: Any) -> None:
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()

    found["alone"] = median(lambda: train(model), times)  # all at once, none exchanges
    found["together"] = median(lambda: train(parallel), times)
    found["bytes"] = sum(p.nbytes for p in model.parameters())
    everyone = [found] * dist.get_world_size()
    dist.all_gather_object(everyone, found)
    for key in ("alone", "together"):
        found[key] = max(each[key] for each in everyone)
    for size in found["exchanges"]:
        found["exchanges"][size] = max(each["exchanges"][size] for each in everyone)
    if dist.get_rank() == 0:
        print(json.dumps(found))
    dist.destroy_process_group()


def measure(processes: int, times: int) -> dict[str, Any]:
    """Return what `worker` prints in several processes."""
    command = [sys.executable, "-m", "tinytorch.distributed.run", "--nproc-per-node", str(processes)]
    root = str(Path(__file__).resolve().parent.parent)
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    ran = subprocess.run(
        [*command, "-m", "benchmarks.scaling", "--worker", "--times", str(times)],
        cwd=root,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    found["exchanges"] = {int(size): seconds for size, seconds in found["exchanges"].items()}
    return found


def check(processes: list[int], times: int) -> None:
    """Print what exchanges take here, what the model says of them, and steps between its two bounds."""
    runs = [measure(n, times) for n in processes]
    seconds = {(each["processes"], size): t for each in runs for size, t in each["exchanges"].items()}
    cores = os.cpu_count() or 1  # more processes than these wait for each other, not for messages
    a, b = fit({key: t for key, t in seconds.items() if key[0] <= max(cores, min(processes))})
    print(f"{cores} cores; of up to so many processes: a = {a * 1e6:.1f} us, b = {b / 1e9:.2f} GB/s")
    print("\nprocesses     bytes   measured      model")
    for (n, size), t in seconds.items():
        print(f"{n:9d} {size:9,} {t * 1e6:7.0f} us {ring(n, size, a, b) * 1e6:7.0f} us")
    print("\nprocesses  step alone  with exchange   predicted: during the backward pass, after it")
    for each in runs:
        n, size, alone = each["processes"], each["bytes"], each["alone"]
        during = step(alone, size, lambda part, n=n: ring(n, part, a, b))
        after = alone + ring(n, size, a, b)
        line = f"{n:9d} {alone * 1e3:8.2f} ms {each['together'] * 1e3:11.2f} ms"
        print(f"{line}{during * 1e3:17.2f} ms {after * 1e3:12.2f} ms")


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--predict", action="store_true", help="measure nothing")
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 3, 4], help="how many to measure with (2 3 4)")
    parser.add_argument("--times", type=int, default=30, help="how often each thing is measured (30)")
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
