"""The table of `--compile`: what compilers make of the rows' work, and how long their first calls take."""

from __future__ import annotations

import importlib.util
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.measure import ratio_of
from benchmarks.side import Side
from benchmarks.work import WORK

COLUMNS = ("compiled", "eager", "PyTorch", "torch.compile", "JAX")
#: Those that compile: their first calls are timed.
COMPILERS = ("compiled", "torch.compile", "JAX")
#: Rows that there is a JAX program of, in `jax_work.py`.
JAX = "chain micro-mlp pinn pinn-2000 step step-adam step-256 step-256-adam decide".split()


@dataclass
class Row:
    """One line: what each column took, its first call's seconds, and the ratio of compiled to PyTorch as it is."""

    what: str
    unit: str
    taken: dict[str, float]
    first: dict[str, float]
    ratio: float | None = None

    def cells(self) -> list[str]:
        """Return what stands in the table after the name."""
        taken = [_number(self.taken.get(each)) for each in COLUMNS]
        return [*taken, self.unit, _number(self.ratio), *[_number(self.first.get(each)) for each in COMPILERS]]


def _number(x: float | None) -> str:
    return "-" if x is None else f"{x:.3f}" if x < 0.1 else f"{x:.2f}" if x < 100 else f"{x:.0f}"


def starters(work: str, jax: str) -> dict[str, Callable[[], Side]]:
    """Return what starts the columns that there are here: `jax` is a Python that has it, or an empty string."""
    found = {"compiled": lambda: Side("tinytorch", work, compiled=True), "eager": lambda: Side("tinytorch", work)}
    if importlib.util.find_spec("torch") is not None:
        found["PyTorch"] = lambda: Side("torch", work)
        found["torch.compile"] = lambda: Side("torch", work, compiled=True, quiet=True)
    if jax and work in JAX:
        found["JAX"] = lambda: Side("jax", work, python=jax)
    return found


def compare(work: str, turns: int, columns: Sequence[str], jax: str) -> Row:
    """Return the row of some work: each column is a process, and they take turns. One that fails is left out."""
    row = WORK[work]
    sides, first = {}, {}
    for name, start in starters(work, jax).items():
        if name in columns:
            try:
                side = start()
                first[name] = side.first()  # (they are made one after the other, each with the machine for itself)
            except (OSError, RuntimeError) as error:  # PyTorch's needs a C++ compiler, and cannot do everything
                if name in ("compiled", "eager"):
                    raise
                print(f"{work}: {name}: {error}", file=sys.stderr)
                continue
            sides[name] = side
    for _ in range(turns):
        for side in sides.values():
            side.turn(row.times)
    unit, scale = ("ms", 1e3) if row.per == 1 else ("us", 1e6 / row.per)
    taken = {name: statistics.median(side.turns) * scale for name, side in sides.items()}
    for side in sides.values():
        side.end()
    found = Row(row.what, unit, taken, {name: first[name] for name in COMPILERS if name in first})
    if {"compiled", "PyTorch"} <= sides.keys():
        found.ratio = ratio_of(sides["compiled"].turns, sides["PyTorch"].turns)
    return found


HEAD = [*COLUMNS, "", "ratio", *[f"1st {each}" for each in COMPILERS]]


def line(what: str, cells: Sequence[str], markdown: bool) -> str:
    """Return a line of the table."""
    if markdown:
        return f"| {what} | {' | '.join(cells)} |"
    return f"{what:<52} " + " ".join([f"{cell:>{max(8, len(name))}}" for cell, name in zip(cells, HEAD, strict=True)])


def table(works: Sequence[str], turns: int, columns: Sequence[str], jax: str, markdown: bool) -> None:
    """Print the table."""
    print(line("", HEAD, markdown))
    if markdown:
        print(line("---", ["---"] * len(HEAD), markdown))
    ratios = []
    for work in works:
        row = compare(work, turns, columns, jax)
        print(line(row.what, row.cells(), markdown), flush=True)
        ratios += [row.ratio] if row.ratio is not None else []
    if len(ratios) > 1:
        print(f"\ngeometric mean of {len(ratios)} ratios: {statistics.geometric_mean(ratios):.2f}")
