"""Write docs/mistakes.md: the programs of docs/mistakes, each with a mistake, and what they print.

    python scripts/make_mistakes.py            (PyTorch's part needs PyTorch)
    python scripts/make_mistakes.py --check    is tinytorch's part of the page up to date, and are its figures?

A line of a program that begins with `#!` corrects the line before it: the remedy that a note names has to be part of it,
and the corrected program has to run. After `#:` stands a correction that only the author of the program can know. The line `Module:` of a program's docstring names the module in which the error
happens, if there is one.
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
_CORRECTION = re.compile(r"^ *#([!:]) (.*)$")


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
        wrong, right, changed, determined = [], [], [], False
        for line in path.read_text("utf-8").splitlines():
            found = _CORRECTION.match(line)
            if found is None:
                source.append(line)
                corrected.append(line)
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
            wrong, right, changed, determined,
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
    """Return whether a remedy is part of the corrected lines."""
    return any(_plain(remedy) in _plain(line) for line in program.right)


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


if __name__ == "__main__":
    found = list(programs())
    both = "--torch" in sys.argv
    counts = dict.fromkeys(("module", "line", "cause", "remedy"), 0)
    for program in found:
        if sys.argv[1:] and sys.argv[1] not in ("--torch",) and sys.argv[1] not in program.name:
            continue
        error = run(program, "tinytorch", corrected=True)
        if error is not None:
            print("CORRECTED FAILS", program.name, type(error), error)
        error = run(program, "torch")
        theirs = None if error is None else outcome(program, error)
        if both and (fixed := run(program, "torch", corrected=True)):
            print("TORCH CORRECTED FAILS", program.name, fixed)
        try:
            result = ours(program)
        except AssertionError as e:
            print("!!!", e); continue
        if theirs is None:
            print("TORCH raises nothing:", program.name)
        elif theirs.kind != result.kind:
            print("KINDS", program.name, theirs.kind, result.kind)
        marks = "".join(c if v else "-" for c, v in zip("MLCR", (result.module or not program.module, result.line, result.cause, result.remedy)))
        print(f"### {program.name} {marks} | torch:", theirs and theirs.message[:150].replace("\n", " "))
        if marks != "MLCR" or sys.argv[1:]:
            print(result.text[-1200:] if sys.argv[1:] else "\n".join(result.text.split("\n")[-9:]))
            print("     wanted:", program.right)
