"""Print how fast tinytorch is, and beside it PyTorch, if that is installed.

python -m benchmarks                      all rows (some minutes)
python -m benchmarks step chain           some rows
python -m benchmarks process --epochs 1   the whole training, shorter
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

THREADS = 2
# Read when NumPy and PyTorch are loaded, so set before they are.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, str(THREADS))

import numpy as np  # noqa: E402

import tinytorch  # noqa: E402
from benchmarks import ddp_step, models, overhead, pinn_step  # noqa: E402
from benchmarks.measure import Row, alternate, run  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PYTORCH = importlib.util.find_spec("torch") is not None


def sides() -> list[ModuleType]:
    """Return the modules to compare: tinytorch, and PyTorch if it is installed."""
    if not PYTORCH:
        return [tinytorch]
    import torch

    torch.set_num_threads(THREADS)
    return [tinytorch, torch]


def compare(
    what: str,
    make: Callable[[Any], Callable[[], object]],
    aim: float | None,
    *,
    unit: str,
    blocks: int,
    times: int,
    warm_up: int,
    per: int = 1,
) -> Row:
    """Return the row of the work that `make(module)` gives for each side, `per` times in a call."""
    works = [make(module) for module in sides()]
    ours, theirs, ratio = alternate(
        works[0], works[1] if PYTORCH else None, blocks=blocks, times=times, warm_up=warm_up
    )
    scale = {"ms": 1e3, "us": 1e6}[unit] / per
    return Row(what, unit, ours * scale, theirs and theirs * scale, ratio, aim)


# The rows ----------------------------------------------------------------------------------------


def processes(args: argparse.Namespace) -> Iterator[Row]:
    """The quickstart as a whole: import, data, training, tests, saving."""
    ours, theirs = [], []
    options = ["--data", os.path.abspath(args.data), "--epochs", str(args.epochs)]
    insist = ["--dataset", "fashion"]  # drawn pictures would not be what PyTorch is given
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.repeats):
            script = str(ROOT / "train_fashion_mnist.py")
            ours.append(run([script, *options, *insist, "--no-progress"], folder))
            if PYTORCH:
                script = str(ROOT / "benchmarks" / "quickstart_torch.py")
                theirs.append(run([script, *options, "--threads", str(THREADS)], folder))
    for what, unit, quantity, aim in (
        (f"quickstart, {args.epochs} epochs, whole process", "s", "seconds", 0.35),
        (f"quickstart, {args.epochs} epochs, peak memory", "MB", "megabytes", 0.5),
    ):
        a = [getattr(process, quantity) for process in ours]
        b = [getattr(process, quantity) for process in theirs]
        ratio = statistics.median(x / y for x, y in zip(a, b, strict=True)) if b else None
        yield Row(what, unit, statistics.median(a), statistics.median(b) if b else None, ratio, aim)


def steps(args: argparse.Namespace) -> Iterator[Row]:
    """A training step of the quickstart's model."""

    def make(torch: Any, batch: int, name: str) -> Callable[[], object]:
        nn = torch.nn
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        )
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=1e-3)
        loss_fn = nn.CrossEntropyLoss()
        rng = np.random.default_rng(0)
        X = torch.from_numpy(rng.random((batch, 1, 28, 28), dtype=np.float32))
        y = torch.from_numpy(rng.integers(0, 10, batch))

        def step() -> None:
            loss = loss_fn(model(X), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    for batch in args.batch_sizes:
        aim = 1.1 if batch >= 256 else 0.95
        for name in ("SGD", "Adam"):
            yield compare(
                f"training step, batch {batch}, {name}",
                lambda torch, batch=batch, name=name: make(torch, batch, name),
                aim if name == "SGD" else None,
                unit="ms",
                blocks=args.blocks,
                times=20,
                warm_up=10,
            )


def pinn(args: argparse.Namespace) -> Iterator[Row]:
    """A training step of the physics-informed network: gradients of gradients, many small ops."""
    for points, width in itertools.product(args.points, args.widths):
        yield compare(
            f"PINN training step, {points} points, width {width}",
            lambda torch, points=points, width=width: pinn_step.make(torch.__name__, points, width),
            0.7,
            unit="ms",
            blocks=args.blocks,
            times=20,
            warm_up=10,
        )


def model_row(
    what: str, make: Callable[[Any], Callable[[], object]], aim: float
) -> Callable[[argparse.Namespace], Iterator[Row]]:
    """Return the rows, one, of a training step of `benchmarks.models`."""

    def rows(args: argparse.Namespace) -> Iterator[Row]:
        yield compare(what, make, aim, unit="ms", blocks=args.blocks, times=10, warm_up=5)

    return rows


def imports(args: argparse.Namespace) -> Iterator[Row]:
    """`import`, in a process of its own, less the start of Python."""
    taken: dict[str, list[float]] = {"pass": [], "import tinytorch": [], "import torch": []}
    if not PYTORCH:
        del taken["import torch"]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(7):  # the first one compiles; the best counts
            for statement, into in taken.items():
                code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {statement}"
                into.append(run(["-c", code], folder).seconds)
    best = {statement: min(into) for statement, into in taken.items()}
    ours = best["import tinytorch"] - best["pass"]
    theirs = best["import torch"] - best["pass"] if PYTORCH else None
    ratio = ours / theirs if theirs else None
    yield Row("import", "s", ours, theirs, ratio, aim_ours=0.15)


def chain(args: argparse.Namespace) -> Iterator[Row]:
    """A hundred small multiplications in a row."""

    def make(torch: Any) -> Callable[[], object]:
        x = torch.ones(8, 8, requires_grad=True)
        w = torch.full((8, 8), 0.99, requires_grad=True)

        def work() -> None:
            y = x
            for _ in range(100):
                y = y * w
            y.sum().backward()
            x.grad = w.grad = None

        return work

    what = "chain of 100 multiplications, forward and backward"
    yield compare(what, make, 1.0, unit="us", blocks=args.blocks, times=100, warm_up=20)


def operations(args: argparse.Namespace) -> Iterator[Row]:
    """One small multiplication: what an operation costs beside its arithmetic."""
    N = 1000  # per call, so that the clock and the loop's call do not count

    def forward(torch: Any) -> Callable[[], object]:
        a, b = (torch.ones(8, 8, requires_grad=True) for _ in range(2))

        def work() -> None:
            for _ in range(N):
                a * b

        return work

    def forward_backward(torch: Any) -> Callable[[], object]:
        a, b = (torch.ones(8, 8, requires_grad=True) for _ in range(2))
        g = torch.ones(8, 8)

        def work() -> None:
            for _ in range(N):
                (a * b).backward(g)
            a.grad = b.grad = None

        return work

    def without(torch: Any) -> Callable[[], object]:
        a, b = (torch.ones(8, 8, requires_grad=True) for _ in range(2))

        def work() -> None:
            with torch.no_grad():
                for _ in range(N):
                    a * b

        return work

    for what, make, aim in (
        ("a * b, 8 x 8, recorded", forward, 1.0),
        ("a * b, 8 x 8, recorded, and backward", forward_backward, 0.9),
        ("a * b, 8 x 8, no_grad", without, 1.0),
    ):
        yield compare(what, make, aim, unit="us", blocks=args.blocks, times=5, warm_up=1, per=N)


def forty(args: argparse.Namespace) -> Iterator[Row]:
    """Forty common ops on small and on large inputs, and the mean of their ratios."""
    for size, what, aim in ((8, "8 x 8", 1.0), (1000, "1,000 x 1,000", 1.3)):
        found = overhead.compare(sides(), size, args.blocks // 3)
        ratios = {name: each[0] / each[-1] for name, each in found.items() if PYTORCH}
        for name, taken in found.items():
            theirs = taken[1] * 1e6 if PYTORCH else None
            yield Row(f"{name}, {what}", "us", taken[0] * 1e6, theirs, ratios.get(name))
        if ratios:
            ours, theirs = (statistics.geometric_mean(each) * 1e6 for each in zip(*found.values(), strict=True))
            ratio = statistics.geometric_mean(ratios.values())
            yield Row(f"geometric mean of {len(ratios)} ops, {what}", "us", ours, theirs, ratio, aim)


def ddp(args: argparse.Namespace) -> Iterator[Row]:
    """Training steps on two processes of one thread each, and how much longer they take than on one process."""
    if importlib.util.find_spec("mpi4py") is None:
        print("mpi4py is not installed: no steps on two processes.")
        return
    libraries = [side.__name__ for side in sides()]
    for name, aim in (("mlp", 1.33), ("cnn", 1.18), ("gpt", 1.18)):  # two processes do 1.5 and 1.7 times as much
        together = {library: ddp_step.seconds(library, name, 2, args.repeats) for library in libraries}
        single = {library: ddp_step.seconds(library, name, 1, args.repeats) for library in libraries}
        ours, *theirs = (together[library] * 1e3 for library in libraries)
        ratio = ours / theirs[0] if theirs else None
        yield Row(f"DDP step, two processes, {name}", "ms", ours, theirs[0] if theirs else None, ratio)
        ours, *theirs = (together[library] / single[library] for library in libraries)
        yield Row(f"DDP step, two processes to one, {name}", "x", ours, theirs[0] if theirs else None, None, None, aim)


#: Whole processes come first: a child's peak memory counts that of the parent it was forked from,
#: which is large once PyTorch is imported here.
ROWS = {
    "process": processes,
    "import": imports,
    "op": operations,
    "chain": chain,
    "step": steps,
    "pinn": pinn,
    "cnn": model_row("CNN training step, batch 64, Adam", models.cnn, 1.5),
    "gpt": model_row("GPT training step, 4 x 128, batch 12 x 64, AdamW", models.gpt, 1.1),
    "lstm": model_row("LSTM training step, 28 to 128, batch 64 x 28, Adam", models.lstm, 1.2),
    "ops": forty,
    "ddp": ddp,
}


def line(row: Row) -> str:
    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"

    aim = "-" if row.aim is None else f"<= {row.aim:.2f}"
    if row.aim_ours is not None:
        aim = f"<= {row.aim_ours:.2f} {row.unit}"
    ok = {True: "yes", False: "NO", None: "-"}[row.ok]
    return (
        f"{row.what:<50} {number(row.ours):>8} {number(row.theirs):>8} {row.unit:<3}"
        f"{number(row.ratio):>6}  {aim:<10} {ok}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    option = parser.add_argument
    option("rows", nargs="*", metavar="ROW", help=f"which: {', '.join(ROWS)} (all)")
    option("--epochs", type=int, default=5, help="of the whole process (5)")
    option("--repeats", type=int, default=3, help="of the whole process (3)")
    option("--blocks", type=int, default=15, help="turns of each side in the other rows (15)")
    option("--batch-sizes", type=int, nargs="+", default=[64, 256], help="of the step (64 256)")
    option("--points", type=int, nargs="+", default=[2000], help="of the PINN's step (2000)")
    option("--widths", type=int, nargs="+", default=[20], help="of the PINN's layers (20)")
    option("--data", default=os.environ.get("TINYTORCH_DATA", str(ROOT / "data")))
    option("--check", action="store_true", help="exit with 1 if an aim is missed")
    args = parser.parse_args()
    if os.environ.pop("OPENBLAS_CORETYPE", None) is not None:
        # PyTorch's BLAS chooses its kernels for the processor at hand; let NumPy's do so too. It
        # does that when it is loaded, so start again.
        note = "OPENBLAS_CORETYPE was set: left out, so that both sides choose their kernels."
        print(note, file=sys.stderr, flush=True)
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])
    unknown = set(args.rows) - set(ROWS)
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))} (there are {', '.join(ROWS)})")

    if not PYTORCH:
        print("PyTorch is not installed: only tinytorch's side is measured.")
    print(f"{'':<50} {'ours':>8} {'PyTorch':>8} {'':<3}{'ratio':>6}  {'aim':<10} ok")
    missed = False
    for name in [each for each in ROWS if not args.rows or each in args.rows]:
        for row in ROWS[name](args):
            print(line(row), flush=True)
            missed |= row.ok is False
    return int(missed and args.check)


if __name__ == "__main__":
    sys.exit(main())
