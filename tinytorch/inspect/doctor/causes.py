"""The causes that the doctor finds, and what it says of each: the rows of `causes.txt`.

    CAUSE/CASE rank NUMBER certain
      says TEXT
      remedy CODE
      proof TEXT
      try JUDGE CHANGE OPTION ... @START: WORDS

A row has the name of a cause and, where several lead to it, of a case. Findings of a lower rank are reported first;
`certain` is a mistake whatever the counterfactuals show. In braces stand what a check gives. `proof` is for what was
observed and is a proof by itself; `try` names a counterfactual: how it is judged (`judging`), what is changed
(`patches`), with options that a check gives, and from when on (`finding.Trial`).
"""

from __future__ import annotations

import ast
import functools
import os
from typing import Any, NamedTuple

from tinytorch.inspect.doctor.finding import Finding, Trial
from tinytorch.inspect.doctor.patches import Patch

__all__ = ["causes", "found"]


class Row(NamedTuple):
    """A row of the table: the cause, its rank, whether it is certain, and texts by their kinds."""

    cause: str
    rank: int
    certain: bool
    texts: list[tuple[str, str]]


@functools.cache
def _rows() -> dict[str, Row]:
    found: dict[str, Row] = {}
    with open(os.path.join(os.path.dirname(__file__), "causes.txt"), encoding="utf-8") as file:
        for line in file.read().splitlines()[1:]:
            if line and line[0] != " ":
                name, _, rank, *certain = line.split()
                row = found[name] = Row(name.partition("/")[0], int(rank), bool(certain), [])
            elif line[:3].strip():
                kind, _, text = line.strip().partition(" ")
                row.texts.append((kind, text.replace("\\n", "\n")))
            elif line:
                kind, text = row.texts[-1]
                row.texts[-1] = (kind, f"{text} {line.strip()}".replace("\\n", "\n"))
    return found


def causes() -> list[str]:
    """Return the names of all causes."""
    return list(dict.fromkeys(row.cause for row in _rows().values()))


def found(row: str, place: Any, /, *, certain: Any = None, rank: Any = None, proven: bool = True, trials: Any = None,
          **words: Any) -> Finding:  # fmt: skip
    """Return what is suspected.

    Args:
        row: the name of a row.
        place: the line of the program.
        certain, rank, trials: those of the finding, if not those of the row.
        proven: whether what was observed is a proof.
        words: what stands in the braces of the row, and the options of changes.
    """
    known, words = _rows()[row], {"place": place, **words}
    sure, number = known.certain if certain is None else bool(certain), known.rank if rank is None else rank
    result = Finding(known.cause, place, rank=number, certain=sure, trials=trials or [])
    for kind, text in known.texts:
        if kind == "try":
            head, _, says = text.partition(": ")
            judges, change, *options = head.split()
            start = options.pop()[1:] if options and options[-1][0] == "@" else "first"
            patch = Patch(change, *[words[each] if each in words else ast.literal_eval(each) for each in options])
            result.trials += [Trial(patch, judge, start, words.get("step", 0), says=says.format(**words))
                              for judge in judges.split(",")]  # fmt: skip
        elif kind != "proof" or proven:
            setattr(result, {"says": "text"}.get(kind, kind), text.format(**words))
    return result
