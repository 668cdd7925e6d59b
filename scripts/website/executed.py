"""Run the code of a document, and compare what it prints with what the document shows.

    python -m scripts.website.executed docs/learn/*.md            # fail if an output is stale
    python -m scripts.website.executed --write docs/learn/*.md    # write the outputs

The blocks of a document whose language is `python` run from top to bottom as one program, in an empty folder. What a
block prints stands in a block `output` after it, where `...` stands for any text. Comments in the document, which are
not shown, say what else is done with the block that follows them:

    <!-- setup                   run this code first, whose lines follow, up to the end of the comment
    <!-- output -->              it is what the code before it prints
    <!-- from PATH -->           it is a part of this file of the repository
    <!-- file NAME -->           it is written to a file of this name, whatever its language
    <!-- needs PACKAGE -->       it runs if this package is installed
    <!-- raises NAME -->         it is the program NAME.py, on its own, and ends with an error, which is what it prints
    <!-- not run: REASON -->     it does not run
    <!-- figure: TEXT -->        (without a block) the figure that matplotlib has open is shown here; TEXT describes it

Examples of interactive sessions (`pycon`) are run by `tests/test_docs.py`, section by section.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import io
import linecache
import logging
import os
import re
import sys
import tempfile
import textwrap
import traceback
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tinytorch.core.notes import annotate

ROOT = Path(__file__).resolve().parents[2]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

COMMENT = r"<!-- (?P<mark>setup|output|from|file|needs|raises|not run|figure)\b:?(?P<said>.*?)-->"
FENCE = r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$"
PARTS = re.compile(f"{COMMENT}|{FENCE}", re.MULTILINE | re.DOTALL)


class Stale(Exception):
    """A document shows something else than its code prints, or its code fails."""


@dataclass
class Step:
    """A part of a document that is run, compared, or drawn.

    Attributes:
        kind: "run", "raises", "setup", "output", "from", "file", "not run" or "figure".
        text: the code, or the text that is compared.
        said: what the comment says: a path, a package, a name, a reason.
        span: where the part stands in the document.
        line: the line on which its text begins.
    """

    kind: str
    text: str
    said: str
    span: tuple[int, int]
    line: int


def steps(document: str) -> list[Step]:
    """Return the parts of a document that are run or compared, in order."""
    found, mark, said = [], "", ""
    for part in PARTS.finditer(document):
        line = document.count("\n", 0, part.start()) + 2
        if part["mark"]:
            mark, said = part["mark"], part["said"].strip("\n") if part["mark"] == "setup" else part["said"].strip()
            if mark in ("setup", "figure"):
                found.append(Step(mark, said if mark == "setup" else "", said, part.span(), line))
                mark = said = ""
            continue
        text = textwrap.dedent(part["text"])
        kind = {"": "run", "needs": "run"}.get(mark, mark)
        if part["language"] == "output":
            kind = "output"
        if kind != "run" or part["language"] == "python":
            found.append(Step(kind, text, said, part.span(), line))
        mark = said = ""
    return found


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """Work in an empty folder whose modules can be imported; afterwards all is as before."""
    before, environment = set(sys.modules), dict(os.environ)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("error")
        level = logging.root.manager.disable
        logging.disable(logging.WARNING)
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
        try:
            yield Path(folder)
        finally:
            sys.path.remove(folder)
            logging.disable(level)
            os.environ.clear()
            os.environ.update(environment)
            for name in set(sys.modules) - before:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(folder):
                    del sys.modules[name]


def figure(alternative: str) -> str:
    """Return the open figure as an SVG element in the colours of the page, and close it."""
    from matplotlib import pyplot as plt

    if not plt.get_fignums():
        raise Stale("there is no open figure to show")
    stream = io.StringIO()
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tinytorch", "font.family": "sans-serif"}):
        plt.gcf().savefig(stream, format="svg", transparent=True, bbox_inches="tight", metadata={"Date": None})
    plt.close("all")
    drawing = stream.getvalue()[stream.getvalue().index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r"#000000|#262626|\bblack\b", "currentColor", drawing)
    drawing = re.sub(r"\n\s*", "\n", drawing.replace("<svg ", f'<svg role="img" aria-label="{alternative}" ', 1))
    return f'<div class="figure">{drawing}</div>'


def execute(step: Step, names: dict[str, Any], path: Path) -> str:
    """Run a block, and return what it prints."""
    file = Path(f"block_{step.line}.py").resolve()
    file.write_text(step.text, "utf-8")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(step.text, str(file), "exec"), names)
    except BaseException as error:
        raise Stale(f"{path}:{step.line}: the block raises {type(error).__name__}: {error}") from error
    return printed.getvalue()


def raised(step: Step, path: Path) -> str:
    """Run a program that ends with an error, and return what is printed for it below the traceback."""
    file = f"{step.said}.py"
    Path(file).write_text(step.text, "utf-8")
    linecache.checkcache(file)  # another page may have had a program of this name
    try:
        exec(compile(step.text, file, "exec"), {"__name__": "__main__"})
    except Exception as error:
        annotate(error)  # as `sys.excepthook` does
        return "".join(traceback.format_exception_only(error))
    raise Stale(f"{path}:{step.line}: the block raises no error")


def is_shown(wanted: str, printed: str) -> bool:
    """Return whether an output in a document, where `...` stands for any text, is what was printed."""
    return doctest.OutputChecker().check_output(wanted.replace("…", "..."), printed, FLAGS)


def executed(path: Path, write: bool = False) -> str:
    """Run the code of a document, and return its text with the outputs and figures of this run.

    Args:
        path: the document.
        write: put what is printed into the document, where it shows something else.

    Raises:
        Stale: a block raises an exception, prints what the document does not show, or is not in the file it is from.
    """
    document = path.read_text("utf-8")
    changes: list[tuple[tuple[int, int], str]] = []  # of the page that is shown
    corrections: list[tuple[tuple[int, int], str]] = []  # of the document
    names: dict[str, Any] = {"__name__": "__main__"}
    every = steps(document)
    os.environ.setdefault("MPLBACKEND", "agg")
    with workplace():
        printed, ran = "", None
        for step in [*every, Step("end", "", "", (len(document), len(document)), 0)]:
            if step.kind != "output" and printed.strip() and ran is not None:
                if not write:
                    raise Stale(f"{path}:{ran.line}: the page does not show what the block prints:\n{printed}")
                corrections.append(((ran.span[1], ran.span[1]), f"\n\n```output\n{printed.rstrip()}\n```"))
                printed = ""
            if step.kind == "run" and step.said and importlib.util.find_spec(step.said) is None:
                printed, ran = "", None
            elif step.kind == "raises":
                printed, ran = raised(step, path), step
            elif step.kind in ("run", "setup"):
                text = execute(step, names, path)
                printed, ran = (text, step) if step.kind == "run" else (printed + text, None)
            elif step.kind == "output":
                if not is_shown(step.text, printed):
                    if not write:
                        shown = f"the page shows\n{step.text}\nbut the code prints\n{printed}"
                        raise Stale(f"{path}:{step.line}: {shown}")
                    corrections.append((step.span, f"```output\n{printed.rstrip()}\n```"))
                elif document[step.span[0] :].startswith("```output") and "..." not in step.text:
                    changes.append((step.span, f"```output\n{printed.rstrip()}\n```"))
                printed, ran = "", None
            elif step.kind == "file":
                Path(step.said).parent.mkdir(parents=True, exist_ok=True)
                Path(step.said).write_text(step.text, "utf-8")
                importlib.invalidate_caches()
            elif step.kind == "from":
                if step.text.strip() not in textwrap.dedent((ROOT / step.said).read_text("utf-8")):
                    raise Stale(f"{path}:{step.line}: the block is not in {step.said}")
            elif step.kind == "figure":
                changes.append((step.span, figure(step.said)))
    if corrections:
        text = replaced(document, corrections)
        path.write_text(text, "utf-8")
    return replaced(document, changes)


def replaced(text: str, changes: list[tuple[tuple[int, int], str]]) -> str:
    """Return a text with other texts in the places of some of its parts."""
    for (start, end), new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def sections(path: Path) -> tuple[list[doctest.Example], list[tuple[str, list[doctest.Example]]]]:
    """Return the examples before the first section, and (heading, examples) for each section that has examples."""
    parser = doctest.DocTestParser()
    result, line = [], 0
    for part in re.split(r"^(?=## )", path.read_text("utf-8"), flags=re.MULTILINE):
        examples = []
        for block in re.finditer(r"^```pycon\n(.*?)^```$", part, re.MULTILINE | re.DOTALL):
            before = line + part.count("\n", 0, block.start(1))
            for example in parser.get_examples(block[1]):
                example.lineno += before
                examples.append(example)
        result.append((part.partition("\n")[0].removeprefix("## "), examples))
        line += part.count("\n")
    (_, start), *rest = result
    return start, [section for section in rest if section[1]]


@contextlib.contextmanager
def without_notes() -> Iterator[None]:
    """Let `doctest` compare the message of an error; it would take the last line, that of a note, for it."""

    def lines(kind: Any, value: Any) -> list[str]:
        found = traceback.TracebackException(kind, value, None)
        found.__notes__ = None  # type: ignore[attr-defined]
        return list(found.format_exception_only())

    before = doctest.traceback  # type: ignore[attr-defined]
    doctest.traceback = types.SimpleNamespace(**{**vars(traceback), "format_exception_only": lines})
    try:
        yield
    finally:
        doctest.traceback = before


def run_session(
    path: str, heading: str, examples: list[doctest.Example], library: str, names: dict[str, Any] | None = None
) -> None:
    """Run examples as one session with a library; warnings are printed, as in an interpreter.

    Raises:
        Stale: an example prints something else.
    """
    session = [
        doctest.Example(
            re.sub(r"\btinytorch\b", library, example.source), example.want, example.exc_msg,
            example.lineno, example.indent, example.options,
        )
        for example in examples
    ]  # fmt: skip
    report: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=FLAGS)
    test = doctest.DocTest(session, names or {}, heading, path, 0, None)
    with warnings.catch_warnings(), without_notes():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, kind, *rest: print(f"{kind.__name__}: {message}")
        failed, _ = runner.run(test, out=report.append)
    if failed:
        raise Stale("".join(report))


def check_sessions(path: Path) -> None:
    """Run the interactive examples of a document, section by section."""
    start, rest = sections(path)
    for heading, examples in rest:
        with workplace():
            run_session(str(path), heading, start + examples, "tinytorch")


def not_run(document: str) -> list[str]:
    """Return the reasons why blocks of a document do not run."""
    return [step.said for step in steps(document) if step.kind == "not run"]


if __name__ == "__main__":
    for each in sys.argv[1:]:
        if each != "--write":
            executed(Path(each), write="--write" in sys.argv)
