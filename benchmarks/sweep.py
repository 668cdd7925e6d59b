"""Sweeps: 32 seeds of a script together, and one after the other.

python -m benchmarks.sweep                  all scripts of `benchmarks/sweeps`
python -m benchmarks.sweep mlp gpt          some of them
python -m benchmarks.sweep --seeds 8        other numbers of seeds

A row has the wall times, their ratio, the largest difference between the curves, and the share of the steps that were
made together. One after the other means in one process, in eager mode: imports count once on both sides.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "sweeps"


def together(path: str, seeds: int) -> dict[str, Any]:
    """Run the script with all seeds together."""
    from tinytorch.compiler.sweep import together
    from tinytorch.compiler.sweep.script import planned

    ((_, _, body),) = planned(path, [], {}, [{}])
    begin = time.perf_counter()
    runs = together([(seed, {}, body) for seed in range(seeds)], progress=False)
    spent = time.perf_counter() - begin
    print(runs, file=sys.stderr)
    share = sum(run.together for run in runs) / len(runs)
    return {"spent": spent, "losses": [run.losses for run in runs], "together": share}


def alone(path: str, seeds: int) -> dict[str, Any]:
    """Run the script with one seed after the other."""
    from tinytorch.autograd import api
    from tinytorch.ops.random import default_generator

    losses: list[list[float]] = []
    api.observer = lambda loss: losses[-1].append(float(loss.detach()))
    code = compile(Path(path).read_text(), path, "exec")
    begin = time.perf_counter()
    for seed in range(seeds):
        losses.append([])
        default_generator._source.shift = seed
        default_generator.manual_seed(0)
        exec(code, {"__name__": "__main__", "__file__": path})
    return {"spent": time.perf_counter() - begin, "losses": losses, "together": 0.0}


def measured(mode: str, path: str, seeds: int) -> dict[str, Any]:
    """Return what a process of its own measures."""
    from tinytorch.compat import alias

    paths = [str(alias.FOLDER), str(FOLDER.parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.sweep", "--worker", mode, "--seeds", str(seeds), path]
    made = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(made.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*")
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--worker", choices=["together", "alone"])
    options = parser.parse_args()
    if options.worker:
        work = together if options.worker == "together" else alone
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            result = work(options.scripts[0], options.seeds)
        result["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(result))
        return
    print(
        f"{'':12} {'together':>9} {'one by one':>10} {'ratio':>6} {'difference':>10} {'joint':>6} {'MB':>5} {'MB':>5}"
    )
    for name in options.scripts or sorted(path.stem for path in FOLDER.glob("*.py")):
        path = str(FOLDER / f"{name}.py")
        theirs, ours = measured("alone", path, options.seeds), measured("together", path, options.seeds)
        pairs = [pair for a, b in zip(ours["losses"], theirs["losses"], strict=True) for pair in zip(a, b, strict=True)]
        difference = max(abs(a - b) for a, b in pairs)
        print(
            f"{name:12} {ours['spent']:8.2f}s {theirs['spent']:9.2f}s {ours['spent'] / theirs['spent']:6.2f} "
            f"{difference:10.2g} {ours['together']:6.0%} {ours['memory']:5.0f} {theirs['memory']:5.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
