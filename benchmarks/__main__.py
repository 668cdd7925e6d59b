"""Measure the speed of tinytorch, and of PyTorch if it is installed.

python -m benchmarks                      all rows (ten minutes)
python -m benchmarks step chain           some rows
python -m benchmarks vmap                 the rows of torch.vmap and torch.func
python -m benchmarks process --epochs 1   the whole training program, with fewer epochs
python -m benchmarks inference --turns 5  public models, next to PyTorch and ONNX Runtime
python -m benchmarks chain --compile      torch.compile and eager mode of both libraries, and JAX
python -m benchmarks small                calls on small tensors, sorted by their ratio to PyTorch's
python -m benchmarks compat               the tests of packages that require torch, with PyTorch and without
python -m benchmarks --save               all rows, kept in benchmarks/results.json, for the tables in the documents
python -m benchmarks --page               only write these tables, from what was kept
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

THREADS = 2
# NumPy and PyTorch read these variables when they are imported.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, str(THREADS))


from benchmarks import compat, compiled, ddp_step, inference, page, small  # noqa: E402
from benchmarks.measure import ROOT, Row, ratio_of, run  # noqa: E402
from benchmarks.side import Side  # noqa: E402
from benchmarks.work import WORK  # noqa: E402
from tinytorch.kernels import native  # noqa: E402

PYTORCH = importlib.util.find_spec("torch") is not None
JAX = sys.executable if importlib.util.find_spec("jax") is not None else ""


def compare(work: str, turns: int) -> Row:
    """Return the row of a workload: each side is a process, and the processes take turns."""
    row = WORK[work]
    sides = {"ours": Side("tinytorch", work)}
    if native.instructions:
        sides["without"] = Side("tinytorch", work, native=False)
    if PYTORCH:
        sides["theirs"] = Side("torch", work)
    for _ in range(turns):
        for side in sides.values():
            side.turn(row.times)
    unit, scale = ("ms", 1e3) if row.per == 1 else ("us", 1e6 / row.per)
    medians = {name: statistics.median(side.turns) * scale for name, side in sides.items()}
    peak = {name: side.end() for name, side in sides.items()}
    result = Row(row.what, unit, medians["ours"], medians.get("theirs"), aim=row.aim, without=medians.get("without"))
    if PYTORCH:
        result.ratio = ratio_of(sides["ours"].turns, sides["theirs"].turns)
        result.memory = peak["ours"] / peak["theirs"]
    return result


# The rows ----------------------------------------------------------------------------------------


def processes(args: argparse.Namespace) -> Iterator[Row]:
    """The quickstart program as a whole: import, data loading, training, evaluation, saving."""
    ours, theirs = [], []
    options = ["--data", os.path.abspath(args.data), "--epochs", str(args.epochs)]
    fashion = ["--dataset", "fashion"]  # PyTorch's side has no generated images to fall back on
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.repeats):
            script = str(ROOT / "train_fashion_mnist.py")
            ours.append(run([script, *options, *fashion, "--no-progress"], folder))
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


def imports(args: argparse.Namespace) -> Iterator[Row]:
    """The time of `import` in a new process, without the start of Python."""
    times: dict[str, list[float]] = {"pass": [], "import tinytorch": [], "import torch": []}
    if not PYTORCH:
        del times["import torch"]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(7):  # the first run compiles the modules; the minimum counts
            for statement, seconds in times.items():
                code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {statement}"
                seconds.append(run(["-c", code], folder).seconds)
    best = {statement: min(seconds) for statement, seconds in times.items()}
    ours = best["import tinytorch"] - best["pass"]
    theirs = best["import torch"] - best["pass"] if PYTORCH else None
    ratio = ours / theirs if theirs else None
    yield Row("import", "s", ours, theirs, ratio, aim_ours=0.15)


def ddp(args: argparse.Namespace) -> Iterator[Row]:
    """Training steps on two processes of one thread each, and the ratio of their time to that on one process."""
    if importlib.util.find_spec("mpi4py") is None:
        print("mpi4py is not installed: the rows with two processes are skipped.")
        return
    libraries = ["tinytorch", "torch"] if PYTORCH else ["tinytorch"]
    for name, aim in (("mlp", 1.33), ("cnn", 1.18), ("gpt", 1.18)):  # 1.5 and 1.7 times the throughput
        together = {library: ddp_step.seconds(library, name, 2, args.repeats) for library in libraries}
        single = {library: ddp_step.seconds(library, name, 1, args.repeats) for library in libraries}
        ours, *theirs = (together[library] * 1e3 for library in libraries)
        ratio = ours / theirs[0] if theirs else None
        yield Row(f"DDP step, two processes, {name}", "ms", ours, theirs[0] if theirs else None, ratio)
        ours, *theirs = (together[library] / single[library] for library in libraries)
        yield Row(f"DDP step, two processes to one, {name}", "x", ours, theirs[0] if theirs else None, None, None, aim)


def models_for_inference(args: argparse.Namespace) -> Iterator[Row]:
    """Inference of public models, next to PyTorch, and to ONNX Runtime if it and the package onnx are installed."""
    peers = {"PyTorch": "torch"} if PYTORCH else {}
    if PYTORCH and all(importlib.util.find_spec(name) is not None for name in ("onnx", "onnxruntime")):
        peers["ONNX Runtime"] = "onnxruntime"
    ratios: dict[str, list[float]] = {name: [] for name in peers}
    module = "benchmarks.inference"
    for name, model in inference.MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model.onnx")
            if "ONNX Runtime" in peers:
                command = [sys.executable, "-m", module, "export", name, file]
                subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
            ours = Side("tinytorch", name, module=[module])
            sides = {peer: Side(library, name, module=[module, file]) for peer, library in peers.items()}
            for _ in range(args.turns):
                for side in (ours, *sides.values()):
                    side.turn(3)
            peak = ours.end()
            time = statistics.median(ours.turns) * 1e3
            for peer, side in sides.items():
                ratio = ratio_of(ours.turns, side.turns)
                ratios[peer].append(ratio)
                aim = 0.6 if peer == "PyTorch" else 1.25
                row = Row(f"{model.what}, {peer}", "ms", time, statistics.median(side.turns) * 1e3, ratio, aim)
                row.memory = peak / side.end()
                yield row
            if not sides:
                yield Row(model.what, "ms", time)
    for peer, each in ratios.items():
        mean = statistics.geometric_mean(each)
        yield Row(f"geometric mean, {peer}", "", mean, 1.0, mean, 0.6 if peer == "PyTorch" else 1.05)


#: Rows of other kinds.
OTHERS = {"process": processes, "import": imports, "inference": models_for_inference, "ddp": ddp}
ROWS = [*OTHERS, *WORK]
#: Names of several rows.
GROUPS = {"vmap": [name for name, work in WORK.items() if work.what.startswith("vmap: ")]}
#: The tables that are kept, with their rows in order.
TABLES = {
    "steps": [work.what for name, work in WORK.items() if name not in GROUPS["vmap"]],
    "vmap": [WORK[name].what for name in GROUPS["vmap"]],
    "compiled": [work.what for work in WORK.values()],
    "inference": [
        f"{model.what}, {peer}" for model in inference.MODELS.values() for peer in ("ONNX Runtime", "PyTorch")
    ],
}


def table_of(name: str) -> str | None:
    """Return the kept table that has the rows of a name, if there is one."""
    return "vmap" if name in GROUPS["vmap"] else "steps" if name in WORK else name if name in TABLES else None


def where(table: str, jax: str = "") -> dict[str, Any]:
    """Return the machine and the versions with which the rows of a table are measured."""
    versions = {"Python": platform.python_version()}
    packages = {"NumPy": "numpy", "PyTorch": "torch"}
    if table == "inference":
        packages["ONNX Runtime"] = "onnxruntime"
    for name, package in packages.items():
        if importlib.util.find_spec(package) is not None:
            versions[name] = importlib.metadata.version(package).partition("+")[0]
    if table == "compiled" and jax:
        code = "import importlib.metadata as m; print(m.version('jax'))"
        versions["JAX"] = subprocess.run([jax, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    kernels = native.instructions
    cores = os.cpu_count()
    return {"processor": page.processor(), "cores": cores, "threads": THREADS, "kernels": kernels, "versions": versions}


def line(row: Row) -> str:
    number = page.number
    aim = "-" if row.aim is None else f"<= {row.aim:.2f}"
    if row.aim_ours is not None:
        aim = f"<= {row.aim_ours:.2f} {row.unit}"
    ok = {True: "yes", False: "NO", None: "-"}[row.ok]
    return (
        f"{row.what:<52} {number(row.ours):>8} {number(row.without):>8} {number(row.theirs):>8} {row.unit:<3}"
        f"{number(row.ratio):>6} {number(row.memory):>6}  {aim:<10} {ok}"
    )


def main() -> int:
    if os.environ.pop("OPENBLAS_CORETYPE", None) is not None:
        # PyTorch's BLAS selects kernels for the processor, and so should NumPy's. OpenBLAS reads the variable when it
        # is loaded, so this program is started again without it.
        note = "OPENBLAS_CORETYPE is ignored, so that both libraries select kernels for this processor."
        print(note, file=sys.stderr, flush=True)
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]])
    for name, command in (("compat", compat), ("small", small)):
        if sys.argv[1:2] == [name]:
            return command.main(sys.argv[2:])
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    option = parser.add_argument
    option("rows", nargs="*", metavar="ROW", help=f"the rows to measure: {', '.join(ROWS)} (all)")
    option("--epochs", type=int, default=5, help="epochs of the whole process (5)")
    option("--repeats", type=int, default=3, help="runs of the whole process (3)")
    option("--turns", type=int, default=9, help="turns of each side in the other rows (9)")
    option("--data", default=os.environ.get("TINYTORCH_DATA", str(ROOT / "data")))
    option("--compile", action="store_true", help="print the table of compilers instead")
    option("--columns", default=",".join(compiled.COLUMNS), help="columns of that table (all: %(default)s)")
    option("--jax", metavar="PYTHON", default=JAX, help="a Python with JAX and NumPy (this one if it has JAX)")
    option(
        "--save", action="store_true", help="keep the rows in benchmarks/results.json, and write the documents' tables"
    )
    option("--anew", action="store_true", help="with --save: drop the rows of a table that were measured elsewhere")
    option("--page", action="store_true", help="only write these tables")
    option("--check", action="store_true", help="exit with status 1 if an aim is missed")
    args = parser.parse_args()
    args.rows = [row for name in args.rows for row in GROUPS.get(name, [name])]
    unknown = set(args.rows) - set(ROWS)
    if args.compile and not set(args.columns.split(",")) <= set(compiled.COLUMNS):
        parser.error(f"argument --columns: there are {', '.join(compiled.COLUMNS)}")
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))} (there are {', '.join(ROWS)})")

    if args.page:
        page.write()
        return 0
    rows = [row for row in ROWS if not args.rows or row in args.rows]
    tables = ["compiled"] if args.compile else {table for row in rows if (table := table_of(row))}
    here = {table: where(table, args.jax) for table in tables} if args.save else {}
    if args.save:
        if not PYTORCH:
            parser.error("argument --save: the tables compare with PyTorch, which is not installed")
        try:
            for table in here:
                page.check(table, here[table], args.anew)
        except ValueError as error:
            parser.error(f"argument --save: {error}")

    def keep(table: str | None, row: Row | compiled.Row) -> None:
        if args.save and table is not None:
            at = page.now()
            figures = {k: v for k, v in asdict(row).items() if k not in ("what", "aim", "aim_ours")}
            page.save(table, here[table], {row.what: figures | {"turns": args.turns, **at}}, TABLES[table], args.anew)

    if not PYTORCH:
        print("PyTorch is not installed: only tinytorch is measured.")
    if native.instructions is None:
        print("There are no native kernels.")
    if args.compile:
        works = [row for row in rows if row in WORK]
        compiled.table(works, args.turns, args.columns.split(","), args.jax, lambda row: keep("compiled", row))
        if args.save:
            page.write()
        return 0
    print(f"{'':<52} {'ours':>8} {'without':>8} {'PyTorch':>8} {'':<3}{'ratio':>6} {'memory':>6}  {'aim':<10} ok")
    missed, ratios = False, []
    for name in rows:
        for row in [compare(name, args.turns)] if name in WORK else OTHERS[name](args):
            print(line(row), flush=True)
            keep(table_of(name), row)
            missed |= row.ok is False
            if name in WORK and row.ratio is not None:
                ratios.append(row.ratio)
    if len(ratios) > 1:
        print(f"geometric mean of {len(ratios)} ratios: {statistics.geometric_mean(ratios):.2f}")
    if args.save:
        page.write()
    return int(missed and args.check)


if __name__ == "__main__":
    sys.exit(main())
