"""The programs of the corpus that are kept in tables: most are another program with a few lines changed.

python -m benchmarks.faults.patches FOLDER PROGRAM...      add programs to the tables of a folder, or replace them there

`patches.txt` has the programs that are changes of a file, their base, `whole.txt` the texts of those without one:

    === softmax_late.py: ../healthy/base_cnn.py
    0+# cause: softmax-before-cross-entropy
    42-    return self.fc(x)
    42+    return F.softmax(self.fc(x), dim=1)  # <- fault

`42-` takes line 42 of the base away and says what it is, `42+` puts a line after it; the numbers are those of the base.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import sys
from pathlib import Path

HEALTHY = Path(__file__).resolve().parent / "healthy"
TABLES = ("patches.txt", "whole.txt")
#: The first line of a table.
NOTE = "(benchmarks/faults/patches.py says what these lines mean, and writes them.)\n"
HEADER = re.compile(r"^=== (\S+\.py)(?:: (\S+\.py))?\n", re.MULTILINE)
CHANGE = re.compile(r"(\d+)([-+])(.*)")


def apply(base: str, changes: list[str]) -> str:
    """Return the base with its changes; raise a ValueError if one does not fit."""
    lines, made, at = base.split("\n")[:-1], [], 0
    for change in changes:
        match = CHANGE.fullmatch(change)
        if match is None:
            raise ValueError(f"not a change: {change!r}")
        number, text = int(match[1]), match[3]
        before = number - (match[2] == "-")
        if before < at:
            raise ValueError(f"out of order: {change!r}")
        if number > len(lines):
            raise ValueError(f"the base has {len(lines)} lines: {change!r}")
        made += lines[at:before]
        at = number
        if match[2] == "+":
            made.append(text)
        elif lines[before] != text:
            raise ValueError(f"line {number} of the base is {lines[before]!r}: {change!r}")
    return "".join(f"{line}\n" for line in made + lines[at:])


def difference(base: str, text: str) -> list[str]:
    """Return the changes that make a text of the base."""
    old, new = base.split("\n")[:-1], text.split("\n")[:-1]
    changes = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            changes += [f"{number}-{line}" for number, line in enumerate(old[i:j], i + 1)]
            changes += [f"{j}+{line}" for line in new[k:m]]
    return changes


def header(name: str, base: str | None) -> str:
    """Return the line above a program in a table."""
    return f"=== {name}: {base}" if base else f"=== {name}"


def entries(table: Path) -> dict[str, tuple[str | None, str]]:
    """Return the base and the lines of each program of a table."""
    if not table.exists():
        return {}
    note, *parts = HEADER.split(table.read_text("utf-8"))
    if note != NOTE:
        raise ValueError(f"{table} begins with {note!r}, not with {NOTE!r}")
    found: dict[str, tuple[str | None, str]] = {}
    for name, base, lines in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if name in found:
            raise ValueError(f"{table} has {name} twice")
        found[name] = base, lines
    return found


def programs(folder: Path) -> dict[str, str]:
    """Return the texts of the programs in the tables of a folder."""
    found: dict[str, str] = {}
    for table in TABLES:
        for name, (base, lines) in entries(folder / table).items():
            if name in found or (folder / name).exists():
                raise ValueError(f"{folder} has {name} twice")
            if base is None:
                found[name] = lines
                continue
            try:
                found[name] = apply((folder / base).read_text("utf-8"), lines.split("\n")[:-1])
            except ValueError as error:
                raise ValueError(f"{folder / table}: {name}: {error}") from None
    return found


def files(folder: Path, scratch: Path) -> list[Path]:
    """Return the programs of a folder by their names; those in its tables are written into `scratch`."""
    scratch.mkdir(parents=True, exist_ok=True)
    found = list(folder.glob("*.py"))
    for name, text in programs(folder).items():
        (scratch / name).write_text(text, "utf-8")
        found.append(scratch / name)
    return sorted(found, key=lambda path: path.name)


def add(folder: Path, program: Path) -> str:
    """Write a program into a table of a folder, as changes of the base that is most like it; return its header."""
    if (folder / program.name).exists():
        raise ValueError(f"{program.name} is a file of {folder}: change it there")
    text = program.read_text("utf-8").rstrip("\n") + "\n"
    base, lines = None, text
    # (Changes of most of the lines would be shorter than the program, and harder to read.)
    least = text.count("\n") * 2 // 3
    for path in sorted({*folder.glob("*.py"), *HEALTHY.glob("*.py")}):
        changes = difference(path.read_text("utf-8"), text)
        if len(changes) < least:
            base, least = os.path.relpath(path, folder).replace(os.sep, "/"), len(changes)
            lines = "".join(f"{change}\n" for change in changes)
    for table in TABLES:
        kept = entries(folder / table)
        kept.pop(program.name, None)
        if table == TABLES[base is None]:
            kept[program.name] = base, lines
        elif not kept:
            (folder / table).unlink(missing_ok=True)
            continue
        parts = [f"{header(name, base)}\n{lines}" for name, (base, lines) in sorted(kept.items())]
        (folder / table).write_text(NOTE + "".join(parts), "utf-8")
    return header(program.name, base)


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m benchmarks.faults.patches", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("folder", type=Path)
    parser.add_argument("programs", type=Path, nargs="+", metavar="program")
    options = parser.parse_args()
    for one in options.programs:
        print(add(options.folder.resolve(), one))
    sys.exit()
