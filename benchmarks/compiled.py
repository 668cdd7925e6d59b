"""The table of `--compile`: the rows' workloads with several compilers, and the time of each compiler's first call."""

from __future__ import annotations

import importlib.util
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.measure import ratio_of
from benchmarks.page import number
from benchmarks.side import Side
from benchmarks.work import WORK

COLUMNS = ("compiled", "eager", "PyTorch", "torch.compile", "JAX")
#: The columns with compilers, whose first calls are timed.
COMPILERS = ("compiled", "torch.compile", "JAX")
#: The rows that `jax_work.py` implements.
JAX = "chain micro-mlp pinn pinn-2000 step step-adam step-256 step-256-adam decide".split()


@dataclass
class Row:
    """One row: times and first-call times by column, and the ratio of compiled tinytorch to eager PyTorch."""

    what: str
    unit: str
    times: dict[str, float]
    first: dict[str, float]
    ratio: float | None = None

    def cells(self) -> list[str]:
        """Return the cells of the row after its name."""
        times = [number(self.times.get(name)) for name in COLUMNS]
        return [*times, self.unit, number(self.ratio), *[number(self.first.get(name)) for name in COMPILERS]]


def starters(work: str, jax: str) -> dict[str, Callable[[], Side]]:
    """Return functions that start the processes of the available columns.

    `jax` is a Python interpreter that has JAX, or an empty string.
    """
    starts = {"compiled": lambda: Side("tinytorch", work, compiled=True), "eager": lambda: Side("tinytorch", work)}
    if importlib.util.find_spec("torch") is not None:
        starts["PyTorch"] = lambda: Side("torch", work)
        starts["torch.compile"] = lambda: Side("torch", work, compiled=True, quiet=True)
    if jax and work in JAX:
        starts["JAX"] = lambda: Side("jax", work, python=jax)
    return starts


def compare(work: str, turns: int, columns: Sequence[str], jax: str) -> Row:
    """Return the row of a workload: each column is a process, and they take turns. Failing columns are left out."""
    row = WORK[work]
    sides, first = {}, {}
    for name, start in starters(work, jax).items():
        if name in columns:
            try:
                side = start()
                first[name] = side.first()  # the processes start one after the other, with all cores available
            except (OSError, RuntimeError) as error:  # PyTorch's compiler needs a C++ compiler, and may not support it
                if name in ("compiled", "eager"):
                    raise
                print(f"{work}: {name}: {error}", file=sys.stderr)
                continue
            sides[name] = side
    for _ in range(turns):
        for side in sides.values():
            side.turn(row.times)
    unit, scale = ("ms", 1e3) if row.per == 1 else ("us", 1e6 / row.per)
    medians = {name: statistics.median(side.turns) * scale for name, side in sides.items()}
    for side in sides.values():
        side.end()
    result = Row(row.what, unit, medians, {name: first[name] for name in COMPILERS if name in first})
    if {"compiled", "PyTorch"} <= sides.keys():
        result.ratio = ratio_of(sides["compiled"].turns, sides["PyTorch"].turns)
    return result


HEAD = [*COLUMNS, "", "ratio", *[f"1st {name}" for name in COMPILERS]]


def line(what: str, cells: Sequence[str]) -> str:
    """Return a line of the table."""
    return f"{what:<52} " + " ".join([f"{cell:>{max(8, len(name))}}" for cell, name in zip(cells, HEAD, strict=True)])


def table(works: Sequence[str], turns: int, columns: Sequence[str], jax: str, keep: Callable[[Row], None]) -> None:
    """Print the table, and call `keep` with each row."""
    print(line("", HEAD))
    ratios = []
    for work in works:
        row = compare(work, turns, columns, jax)
        print(line(row.what, row.cells()), flush=True)
        keep(row)
        ratios += [row.ratio] if row.ratio is not None else []
    if len(ratios) > 1:
        print(f"\ngeometric mean of {len(ratios)} ratios: {statistics.geometric_mean(ratios):.2f}")
