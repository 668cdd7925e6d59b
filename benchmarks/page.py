"""The figures that are kept in results.json, and the tables in the documents that are written from them.

`python -m benchmarks --save` and `python -m benchmarks.platforms --save` keep what they measure; `python -m benchmarks
--page` only writes the documents. A table stands between two comments of its name. Only the standard library is needed.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import statistics
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results.json"
DOCUMENTS = [ROOT / name for name in ("README.md", "docs/performance.md")]
#: The rows of README's table.
README = (
    "quickstart, batch 64, SGD",
    "PINN 2-64-64-1, 256 points, second derivatives",
    "ResNet of 16 and 32 channels, batch 32 of 32 x 32",
    "LSTM 28-128, batch 64 x 28, Adam",
    "GPT 4 x 128, batch 12 x 64, AdamW",
)

Rows = dict[str, dict[str, Any]]


# Keeping figures ----------------------------------------------------------------------------------


def processor() -> str:
    """Return the name of the processor."""
    cpus = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", cpus.read_text("utf-8")) if cpus.exists() else None
    return model[1] if model else platform.processor() or platform.machine()


def now() -> dict[str, Any]:
    """Return the date, and the load of the last minute (a list, which is empty where the system does not tell it)."""
    load = [round(os.getloadavg()[0], 1)] if hasattr(os, "getloadavg") else []
    return {"date": datetime.date.today().isoformat(), "load": load}


def kept() -> dict[str, Any]:
    """Return all tables that are kept: of each, where it was measured, and its rows."""
    found: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    return found


def check(table: str, where: Mapping[str, Any], anew: bool = False) -> Rows:
    """Return the kept rows of a table. A table has the rows of one machine: others are dropped if `anew`.

    Raises:
        ValueError: the rows were measured elsewhere, and `anew` is false.
    """
    before = kept().get(table, {"where": where, "rows": {}})
    rows: Rows = before["rows"]
    if before["where"] == where:
        return rows
    if anew:
        return {}
    raise ValueError(
        f"the rows of {table!r} were measured with {before['where']}, and this is {where}: --anew drops them"
    )


def rounded(value: Any) -> Any:
    """Return a value whose floats have four digits that count."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def encoded(value: Any) -> str:
    return json.dumps(rounded(value), ensure_ascii=False)


def save(table: str, where: Mapping[str, Any], rows: Rows, order: Sequence[str], anew: bool = False) -> None:
    """Keep rows of a table, in place of those of the same names; what `order` does not name is dropped."""
    rows = check(table, where, anew) | rows
    results = kept()
    results[table] = {"where": dict(where), "rows": {name: rows[name] for name in order if name in rows}}
    parts = []
    for name, found in results.items():
        lines = ",\n".join(f"  {encoded(what)}: {encoded(row)}" for what, row in found["rows"].items())
        parts.append(f'{encoded(name)}: {{\n "where": {encoded(found["where"])},\n "rows": {{\n{lines}\n }}\n}}')
    RESULTS.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


# Tables -------------------------------------------------------------------------------------------


def number(x: float | None) -> str:
    """Return a figure with three digits that count."""
    return "-" if x is None else f"{x:.3g}" if x < 100 else f"{x:.0f}"


def ratio(x: float | None) -> str:
    return "-" if x is None else f"{x:.2f}"


def megabytes(size: float | None) -> str:
    return "-" if size is None else f"{size / 1e6:.1f}" if size < 1e8 else f"{size / 1e6:.0f}"


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in (head, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])


def paragraph(text: str) -> str:
    return textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False)


def mean(ratios: Iterable[float | None]) -> float:
    """Return the geometric mean."""
    return statistics.geometric_mean(x for x in ratios if x is not None)


def span(values: Iterable[Any], unit: str = "") -> str:
    """Return the smallest and the largest of values."""
    found = sorted(set(values))
    return f"{found[0]}{unit}" if len(found) == 1 else f"{found[0]} to {found[-1]}{unit}"


def day(date: str) -> str:
    return f"{datetime.date.fromisoformat(date):%d %B %Y}".removeprefix("0")


def said(table: Mapping[str, Any]) -> str:
    """Return the sentence that says on what machine, when, how and with which load a table was measured."""
    where, rows = table["where"], list(table["rows"].values())
    kernels = f"native kernels for {where['kernels']}" if where["kernels"] else "no native kernels"
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    dates = sorted({row["date"] for row in rows})
    date = day(dates[0]) if len(dates) == 1 else f"{day(dates[0])} to {day(dates[-1])}"
    loads = [load for row in rows for load in row["load"]]
    load = f"; load {span(loads)}" if loads else ""
    turns = {row["turns"] for row in rows} - {None}
    medians = f"medians of {span(turns)} turns" if turns else "medians"
    return (
        f"Measured on {date}: {where['processor']}, {where['cores']} cores, {where['threads']} threads, {kernels}; "
        f"{versions}; {medians}{load}."
    )


def unit_of(row: Mapping[str, Any]) -> str:
    return str(row["unit"]).replace("us", "µs")


def time_of(row: Mapping[str, Any]) -> str:
    return f"{number(row['ours'])} {unit_of(row)}"


def with_words(head: Sequence[str], lines: Iterable[Sequence[str]], words: str, table: Mapping[str, Any]) -> str:
    """Return a table, with a paragraph that ends with where it was measured."""
    return f"{grid(head, lines)}\n\n{paragraph(f'{words} {said(table)}')}"


def steps(table: Mapping[str, Any]) -> str:
    rows: Rows = table["rows"]
    lines = [
        [what, time_of(row), number(row["without"]), number(row["theirs"]),
         ratio(row["ratio"]), ratio(row["memory"])]
        for what, row in rows.items()
    ]  # fmt: skip
    average = mean(row["ratio"] for row in rows.values())
    head = ["", "native", "without", "PyTorch", "ratio", "peak memory"]
    return with_words(head, lines, f"The geometric mean of the {len(rows)} ratios is {average:.2f}.", table)


def readme(table: Mapping[str, Any]) -> str:
    rows: Rows = table["rows"]
    lines = [
        [what, *(number(rows[what][side]) for side in ("ours", "without", "theirs")), ratio(rows[what]["ratio"])]
        for what in README
        if what in rows
    ]
    head = ["milliseconds per training step", "native", "without", "PyTorch", "ratio"]
    average = mean(row["ratio"] for row in rows.values())
    words = (
        f"The geometric mean of all {len(rows)} ratios of [docs/performance.md](docs/performance.md) is {average:.2f}."
    )
    return with_words(head, lines, words, table)


def vmap(table: Mapping[str, Any]) -> str:
    rows: Rows = table["rows"]
    lines = [
        [what.removeprefix("vmap: "), time_of(row), number(row["theirs"]), ratio(row["ratio"])]
        for what, row in rows.items()
    ]
    average = mean(row["ratio"] for row in rows.values())
    return with_words(["", "native", "PyTorch", "ratio"], lines, f"The geometric mean is {average:.2f}.", table)


def compiled(table: Mapping[str, Any]) -> str:
    rows: Rows = table["rows"]
    columns = list(dict.fromkeys(name for row in rows.values() for name in row["times"]))
    compilers = list(dict.fromkeys(name for row in rows.values() for name in row["first"]))
    lines = []
    for what, row in rows.items():
        times = [number(row["times"].get(name)) for name in columns]
        times[0] += f" {unit_of(row)}"
        lines.append([what, *times, ratio(row["ratio"]), *(number(row["first"].get(name)) for name in compilers)])
    head = ["", *columns, "ratio", *(f"first call, {name}, s" for name in compilers)]
    average = mean(row["ratio"] for row in rows.values())
    return with_words(head, lines, f"The geometric mean of the ratios is {average:.2f}.", table)


def inference(table: Mapping[str, Any]) -> str:
    rows: Rows = table["rows"]
    models: dict[str, Rows] = {}
    for what, row in rows.items():
        model, _, peer = what.rpartition(", ")
        models.setdefault(model, {})[peer] = row
    peers = list(dict.fromkeys(peer for found in models.values() for peer in found))
    lines = []
    for model, found in models.items():
        first = next(iter(found.values()))
        line = [model, time_of(first)]
        for peer in peers:
            row = found.get(peer, {})
            line += [number(row.get("theirs")), ratio(row.get("ratio")), ratio(row.get("memory"))]
        lines.append(line)
    head = ["", "tinytorch", *(title for peer in peers for title in (peer, "ratio", "memory"))]
    means = "; ".join(
        f"{mean(found[peer]['ratio'] for found in models.values() if peer in found):.2f} to {peer}" for peer in peers
    )
    return with_words(head, lines, f"The geometric means of the ratios of time are {means}.", table)


def platforms(table: Mapping[str, Any]) -> str:
    rows: Rows = table["rows"]
    lines, notes = [], []
    for name, row in rows.items():
        lines.append([
            name, f"{row['python']}, {row['numpy']}", row["kernels"] or "-", megabytes(row["wheel"]),
            megabytes(row["installed"]["own"]), megabytes(row["installed"]["all"]), f"{row['install']:.1f} s",
            f"{row['import']:.2f} s ({row['import_numpy']:.2f})", f"{row['first']:.2f} s",
            f"{number(row['step'] * 1e3)} ms",
        ])  # fmt: skip
        load = f", load {span(row['load'])}" if row["load"] else ""
        notes.append(f"- {name}: {row['machine']}, {day(row['date'])}{load}{'; ' * bool(row['note'])}{row['note']}")
    head = [
        "", "Python, NumPy", "kernels", "wheel, MB", "installed, MB", "with what it needs", "install", "import (NumPy)",
        "first step", "later steps",
    ]  # fmt: skip
    notes = [textwrap.fill(note, 120, subsequent_indent="  ", break_on_hyphens=False) for note in notes]
    return f"{grid(head, lines)}\n\n" + "\n".join(notes)


#: By the name in the comments: the table of results.json, and what writes it.
TABLES: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "steps": ("steps", steps), "readme": ("steps", readme), "vmap": ("vmap", vmap), "compiled": ("compiled", compiled),
    "inference": ("inference", inference), "platforms": ("platforms", platforms),
}  # fmt: skip
REGION = re.compile(r"<!-- table (?P<name>\w+) -->\n.*?<!-- end of \w+ -->", re.DOTALL)


def written(text: str, results: Mapping[str, Any]) -> str:
    """Return a document with the tables that are made from results."""

    def made(match: re.Match[str]) -> str:
        source, write = TABLES[match["name"]]
        return f"<!-- table {match['name']} -->\n\n{write(results[source])}\n\n<!-- end of {match['name']} -->"

    return REGION.sub(made, text)


def put(text: str, name: str, part: str) -> str:
    """Return a document with a new part, which stands between two comments of its name."""
    start, end = f"<!-- part {name} -->\n", f"\n<!-- end of {name} -->"
    before, rest = text.split(start)
    return f"{before}{start}\n{part.strip()}\n{rest[rest.index(end) :]}"


def write() -> None:
    """Write the tables of all documents."""
    results = kept()
    for path in DOCUMENTS:
        before = path.read_text("utf-8")
        after = written(before, results)
        if after != before:
            path.write_text(after, "utf-8")
            print(f"wrote {path}")
