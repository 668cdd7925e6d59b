"""Write docs/mistakes.md: the programs of docs/mistakes, each with a mistake, and what they print.

    python scripts/make_mistakes.py            (PyTorch's part needs PyTorch)
    python scripts/make_mistakes.py --check    is tinytorch's part of the page up to date, and are its figures?

A line of a program that begins with `#!` corrects the line before it: the remedy that a note names has to be part of
it, and the corrected program has to run. After `#:` stands a correction that only the author of the program can know.
After `#|` stands another correction that is as likely as the one before it, which a note may name too.
The line `Module:` of a program's docstring names the module in which the error happens, if there is one.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "mistakes"
PAGE = ROOT / "docs" / "mistakes.md"
_CORRECTION = re.compile(r"^ *#([!:|]) (.*)$")


class Program(NamedTuple):
    """A program with a mistake.

    Attributes:
        name: the name of its file.
        what: what the mistake is.
        module: the path of the module in which the error happens, or its class if the path is empty; or "".
        source: its lines, without the corrections; `corrected` with them.
        wrong, right: the lines that were corrected, and their corrections.
        changed: the numbers of these lines.
        determined: whether the values at hand determine the correction.
        others: other corrections that are as likely.
    """

    name: str
    what: str
    module: str
    source: str
    corrected: str
    wrong: list[str]
    right: list[str]
    changed: list[int]
    determined: bool
    others: list[str]


class Outcome(NamedTuple):
    """What a program printed, and what that names.

    Attributes:
        text: the traceback, as Python prints it.
        kind, message: the class of the error, and its message.
        module: whether it names the module.
        line: whether the user's line is the end of the traceback, or in a note; `cause`: the line to change.
        remedy: the remedy that it names, or "".
    """

    text: str
    kind: str
    message: str
    module: bool
    line: bool
    cause: bool
    remedy: str


def programs() -> Iterator[Program]:
    """Yield the programs in the order of their names."""
    for path in sorted(FOLDER.glob("*.py")):
        doc = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        module = re.search(r"^Module: (\S+)$", doc, re.MULTILINE)
        source: list[str] = []
        corrected: list[str] = []
        wrong, right, changed, determined, others = [], [], [], False, []
        for line in path.read_text("utf-8").splitlines():
            found = _CORRECTION.match(line)
            if found is None:
                source.append(line)
                corrected.append(line)
            elif found[1] == "|":
                others.append(found[2])
            else:
                kind, text = found.groups()
                determined = kind == "!"
                wrong.append(source[-1].strip())
                right.append(text)
                changed.append(len(source))
                corrected[-1] = (" " * (len(source[-1]) - len(source[-1].lstrip()))) + text
        what = doc.partition("\n")[0]
        yield Program(
            path.name, what, module[1] if module else "", "\n".join(source) + "\n", "\n".join(corrected) + "\n",
            wrong, right, changed, determined, others,
        )  # fmt: skip


def run(program: Program, library: str, corrected: bool = False) -> BaseException | None:
    """Run a program in this process with a library; return the error that ended it."""
    text = program.corrected if corrected else program.source
    linecache.cache[program.name] = (len(text), None, text.splitlines(True), program.name)
    if library != "torch":
        text = re.sub(r"^import torch$", f"import {library} as torch", text, flags=re.MULTILINE)
        text = re.sub(r"^(import|from) torch\b", rf"\1 {library}", text, flags=re.MULTILINE)
    try:
        with warnings.catch_warnings(action="ignore"):
            exec(compile(text, program.name, "exec"), {"__name__": "__main__", "__file__": program.name})
    except Exception as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # without this function
        return error
    return None


def outcome(program: Program, error: BaseException) -> Outcome:
    """Return what an error says: with tinytorch's notes, if they have been added."""
    text = "".join(traceback.format_exception(error)).rstrip()
    # What depends on the version of Python: marks below a line, and its own suggestions.
    text = re.sub(r"^ *[~^][~^ ]*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\.? Did you mean:? '\w+'\?$", "", text, flags=re.MULTILINE)
    text = re.sub(r'File "[^"]*?/((?:site-packages/)?(?:tinytorch|torch|numpy)/[^"]*)"', r'File ".../\1"', text)
    text = text.replace(".../site-packages/", ".../")
    notes = [str(note) for note in getattr(error, "__notes__", ())]
    message = str(error)
    said = "\n".join([message, *notes])
    own = [entry.lineno for entry in traceback.extract_tb(error.__traceback__) if entry.filename == program.name]
    last = traceback.extract_tb(error.__traceback__)[-1:]
    line = bool(own) and (last[0].filename == program.name or f"{program.name}:{own[-1]}" in "\n".join(notes))
    places = {*re.findall(rf"{re.escape(program.name)}:(\d+)", "\n".join(notes))}
    if line:
        places.add(str(own[-1]))
    remedies = re.findall(r"^ *remedy(?: at \S+)?: (.*)$", "\n".join(notes), re.MULTILINE)
    remedy = next((each for each in remedies if is_right(each, program)), "")
    if not remedy:
        fresh = names_of(program.right) - names_of(program.wrong)
        remedy = " ".join(sorted(name for name in fresh if re.search(rf"\b{re.escape(name)}\b", message)))
    named = bool(program.module) and bool(re.search(rf"(?<![\w.]){re.escape(program.module)}(?![\w.]\w)", said))
    return Outcome(
        text, type(error).__name__, message, named, line, any(str(k) in places for k in program.changed), remedy
    )


def is_right(remedy: str, program: Program) -> bool:
    """Return whether a remedy is part of the corrected lines, or of another correction."""
    return any(_plain(remedy) in _plain(line) for line in [*program.right, *program.others])


def names_of(lines: list[str]) -> set[str]:
    """Return the identifiers in some lines."""
    return {name for line in lines for name in re.findall(r"[A-Za-z_]\w*", line)}


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text).replace("'", '"')


def ours(program: Program) -> Outcome:
    """Return what a program prints with tinytorch."""
    from tinytorch.core.notes import annotate

    error = run(program, "tinytorch")
    if error is None:
        raise AssertionError(f"{program.name} raises no error")
    annotate(error)  # as `sys.excepthook` does
    return outcome(program, error)


def theirs(program: Program) -> Outcome | None:
    """Return what a program prints with PyTorch; None if it raises no error."""
    error = run(program, "torch")
    return None if error is None else outcome(program, error)


# The page -----------------------------------------------------------------------------------------

INTRODUCTION = """\
# What mistakes print

Generated by [make_mistakes.py](../scripts/make_mistakes.py) from the programs in [docs/mistakes](mistakes): do not
edit. Each program has one mistake that people make, and ends with an error in both libraries. Its class and its message
are PyTorch's; what tinytorch knows besides stands in notes below it. [errors.md](errors.md) says what they are.

How it is counted, for both libraries alike:

- **module**: the message or a note has the path of the module in which the error happened (or its class, if the path is
  empty). There is one in {modules} programs.
- **line**: the traceback ends at the line of the program that was executed, or a note has it: who reads the end of what
  is printed finds it. (It is somewhere in all tracebacks; PyTorch's end in its own files where these are Python.)
- **line to change**: a note has the line that has to be changed, or the traceback ends there.
- **remedy**: a note has code that is part of the corrected line, or the message has a name that the corrected line has
  and the wrong one has not (`detach`, `retain_graph`). The test suite runs the corrected programs. {determined}
  mistakes have a correction that follows from the values at hand; in the others ("other corrections are possible") only
  their author knows it.

The programs were written together with the notes: the table says what is named of these mistakes, not of any mistake.
"""


class Counts(NamedTuple):
    """How many programs name what; `errors` is the number of programs that end with an error."""

    errors: int
    module: int
    line: int
    cause: int
    remedy: int


def counted(pairs: list[tuple[Program, Outcome | None]]) -> Counts:
    """Count what the outcomes of programs name, of what there is."""
    found = [(program, each) for program, each in pairs if each is not None]
    return Counts(
        len(found),
        sum(each.module for program, each in found if program.module),
        sum(each.line for _, each in found),
        sum(each.cause for _, each in found),
        sum(bool(each.remedy) for program, each in found if program.determined),
    )


def whole(found: list[Program]) -> Counts:
    """Return how many programs there are, and in how many of them there is what is counted."""
    modules = sum(bool(program.module) for program in found)
    return Counts(len(found), modules, len(found), len(found), sum(program.determined for program in found))


ROWS = (("module", "module"), ("line", "line"), ("line to change", "cause"), ("remedy", "remedy"))


def table(found: list[Program], own: Counts, other: Counts | None) -> str:
    """Return the table of what is named."""
    lines = ["| | programs | tinytorch | PyTorch |", "|---|---|---|---|"]
    for title, name in ROWS:
        total, ours_, theirs_ = (getattr(each, name) if each else 0 for each in (whole(found), own, other))
        shown = f"{theirs_} ({theirs_ / total:.0%})" if other else ""
        lines.append(f"| {title} | {total} | {ours_} ({ours_ / total:.0%}) | {shown} |")
    return "\n".join(lines)


def section(program: Program, own: Outcome, other: str) -> str:
    """Return the section of a program: its text, what it prints with tinytorch, and PyTorch's message."""
    text = program.source.split('"""', 2)[2].strip("\n")
    more = "" if program.determined else " (other corrections are possible)"
    right = "\n".join(f"{line}  # line {k}" for k, line in zip(program.changed, program.right, strict=True))
    right += "".join(f"\n# or {line}" for line in program.others)
    return (
        f"### {program.what.rstrip('.')}\n\n[{program.name}](mistakes/{program.name})\n\n```python\n{text}\n```\n\n"
        f"```text\n{end_of(own.text)}\n```\n\n{other}\n\nCorrected{more}:\n\n```python\n{right}\n```\n"
    )


def end_of(text: str) -> str:
    """Return what is printed from the last frame on."""
    lines = text.split("\n")
    start = max(k for k, line in enumerate(lines) if line.startswith('  File "'))
    return "\n".join(["Traceback (most recent call last):", *["  ..."] * (start > 1), *lines[start:]])


def of_pytorch(program: Program, found: Outcome | None) -> str:
    """Return what the page says of PyTorch's error."""
    if found is None:
        return "PyTorch: no error."
    files = re.findall(r'File "([^"]*)"', found.text)
    depth = len(files) - 1 - max(k for k, name in enumerate(files) if name == program.name)
    message = " ".join(found.message.split())
    message = re.sub(r"/\S*/(?:site-packages|lib)/", ".../", message)
    shown = message if len(message) <= 300 else f"{message[:297]}..."
    below = f", below {depth} frame{'s' * (depth > 1)} of its own" if depth > 0 else ""
    return f"PyTorch{below}: `{found.kind}: {shown}`"


def page(found: list[Program], own: list[Outcome], others: dict[str, str], counts: str) -> str:
    """Return the page."""
    introduction = INTRODUCTION.format(
        modules=sum(bool(program.module) for program in found), determined=sum(program.determined for program in found)
    )
    parts = [section(program, each, others[program.name]) for program, each in zip(found, own, strict=True)]
    return f"{introduction}\n{counts}\n\n" + "\n".join(parts)


def main() -> None:
    """Write the page, or check it."""
    found = list(programs())
    own = [ours(program) for program in found]
    wrong = [program.name for program in found if run(program, "tinytorch", corrected=True) is not None]
    if wrong:
        raise SystemExit(f"corrected programs that raise errors: {wrong}")
    if "--check" in sys.argv:
        text = PAGE.read_text("utf-8")
        stale = [p.name for p, each in zip(found, own, strict=True) if end_of(each.text) not in text]
        if stale:
            raise SystemExit(f"docs/mistakes.md is not up to date: run scripts/make_mistakes.py ({', '.join(stale)})")
        return
    results = [theirs(program) for program in found]
    others = {program.name: of_pytorch(program, each) for program, each in zip(found, results, strict=True)}
    counts = table(found, counted(list(zip(found, own, strict=True))), counted(list(zip(found, results, strict=True))))
    PAGE.write_text(page(found, own, others, counts), "utf-8")
    print(counts)


if __name__ == "__main__":
    main()
