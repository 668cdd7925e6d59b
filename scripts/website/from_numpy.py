"""Evaluate the tables of docs/start/from-numpy.md with NumPy and with a library that is like torch."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from scripts.website.executed import ROOT, Stale, sections

PAGE = ROOT / "docs" / "start" / "from-numpy.md"


def tables() -> dict[str, list[list[list[str]]]]:
    """Return the tables by their headings; of each row the code in each cell."""
    found = {}
    for part in PAGE.read_text("utf-8").split("\n## ")[1:]:
        rows = [line.split(" | ") for line in part.splitlines() if line.startswith("| ") and "`" in line]
        if rows:
            found[part.partition("\n")[0]] = [[re.findall("`(.+?)`", cell) for cell in row] for row in rows]
    return found


def check(torch: Any) -> int:
    """Compare all rows, and return how many there are.

    Raises:
        Stale: a row is not what its table says.
    """
    names: dict[str, Any] = {"np": np, "torch": torch}
    for example in sections(PAGE)[0][2:]:  # (after the imports)
        exec(example.source, names)
    as_tensor = {"np": torch, "torch": torch, "a": names["x"]}
    count = 0
    for heading, rows in tables().items():
        for first, second, *_ in rows:
            told = {"The same words, another result": "other", "Other words": "error", "The same words": "same"}[
                heading
            ]
            for words in second if told == "same" else first:
                wanted, count = eval(words, names), count + 1
                if outcome(words, as_tensor, wanted) != told:
                    raise Stale(
                        f"{PAGE}: {words!r} for a tensor is {outcome(words, as_tensor, wanted)!r}, not {told!r}"
                    )
                for instead in second if told != "same" else ():
                    if outcome(instead, names, wanted) != "same":
                        raise Stale(f"{PAGE}: {instead!r} is not {words!r}")
    return count


def outcome(words: str, names: dict[str, Any], wanted: Any) -> str:
    """Return whether words give the wanted result: "same", "other" or "error"."""
    try:
        found = eval(words, names)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return "error"
    return "same" if is_same(found, wanted) else "other"


def is_same(x: Any, y: Any) -> bool:
    """Return whether two results have the same numbers, in the same shape."""
    if isinstance(x, (tuple, list)) or isinstance(y, (tuple, list)):
        alike = isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)) and len(x) == len(y)
        return alike and all(map(is_same, x, y))
    x, y = np.asarray(x), np.asarray(y)
    return x.shape == y.shape and x.dtype != object and np.allclose(x, y)
