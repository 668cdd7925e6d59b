"""Run the notebooks of the course in docs/course, and write them as pages with their outputs.

Notebooks are stored without outputs. After a cell with the tag `exercise` follow one with the tag `test`, which fails
for the exercise as it is, and a text with the tag `solution`, whose code runs in place of the exercise. Every
assertion of a test has a message: what was found, what was wanted, a hint.

    python -m scripts.website.lessons docs/course/*.ipynb      # run them
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tinytorch
from scripts.website.executed import ROOT, Stale, figure, workplace
from scripts.website.playground.files import with_parts

FOLDER = ROOT / "docs" / "course"


@dataclass
class Cell:
    """A cell of a notebook: its text, whether it is code, its tags, and the solution of an exercise."""

    text: str
    is_code: bool
    tags: tuple[str, ...] = ()
    solution: str = ""


def cells(path: Path) -> list[Cell]:
    """Return the cells of a notebook, without the texts of solutions, which their exercises have."""
    found: list[Cell] = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        text, tags = "".join(cell["source"]), tuple(cell["metadata"].get("tags", ()))
        if "solution" in tags:
            exercise = next(each for each in reversed(found) if "exercise" in each.tags)
            exercise.solution = text.partition("```python\n")[2].partition("\n```")[0]
        else:
            found.append(Cell(text, cell["cell_type"] == "code", tags))
    return found


def run(code: str, names: dict[str, Any], file: str) -> str:
    """Run a cell, and return what it prints and, as a notebook does, the value of an expression at its end."""
    printed = io.StringIO()
    body = ast.parse(code).body
    Path(file).write_text(code, "utf-8")
    with contextlib.redirect_stdout(printed):
        last = body.pop() if body and isinstance(body[-1], ast.Expr) and not code.rstrip().endswith(";") else None
        exec(compile(ast.Module(body, []), str(Path(file).resolve()), "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), str(Path(file).resolve()), "eval"), names)
            if value is not None:
                print(repr(value))
    return printed.getvalue()


def outputs(path: Path, answers: Sequence[tuple[int, str, str, str]] = ()) -> list[tuple[Cell, str, str]]:
    """Run a notebook, and return (cell, text printed, figure) for each of its cells.

    Args:
        path: the notebook.
        answers: those of `answers`, if they are tested, too.

    Raises:
        Stale: a cell raises an exception or logs a warning, or a test does not say what it should.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    before: dict[str, Any] = {}
    exercise, exercises = Cell("", True), 0
    found = []
    os.environ.setdefault("MPLBACKEND", "agg")
    with workplace(), logged() as log:
        for number, cell in enumerate(cells(path)):
            text = drawing = ""
            where, file = f"{path}, cell {number}", f"cell_{number}.py"
            if "exercise" in cell.tags:
                exercise, before, exercises = cell, dict(names), exercises + 1
            if "test" in cell.tags:
                check(
                    cell.text, exercise, [rest for which, *rest in answers if which == exercises], before, file, where
                )
                log.truncate(0)
            if cell.is_code:
                try:
                    text = run(cell.solution or cell.text, names, file)
                except Exception as error:
                    raise Stale(f"{where} raises {type(error).__name__}: {error}") from error
                if log.getvalue():
                    raise Stale(f"{where} logs: {log.getvalue()}")
                plots = sys.modules.get("matplotlib.pyplot")
                if plots is not None and plots.get_fignums():
                    drawing = figure("The figure of the lines above")
            found.append((cell, text, drawing))
    return found


@contextlib.contextmanager
def logged() -> Iterator[io.StringIO]:
    """Collect what tinytorch logs."""
    log = io.StringIO()
    handler, logger = logging.StreamHandler(log), logging.getLogger("tinytorch")
    logging.disable(logging.NOTSET)  # (`workplace` has changed it, and changes it back)
    logger.addHandler(handler)
    try:
        yield log
    finally:
        logger.removeHandler(handler)


def check(
    test: str, exercise: Cell, answers: Sequence[Sequence[str]], names: dict[str, Any], file: str, where: str
) -> None:
    """Give a test the exercise as it is, and other answers, as (a part of the solution, what stands there, words).

    Raises:
        Stale: an assertion has no message, or the test does not say of an answer what it should.
    """
    if any(isinstance(node, ast.Assert) and node.msg is None for node in ast.walk(ast.parse(test))):
        raise Stale(f"{where}: an assertion has no message")
    if not said(test, exercise.text, dict(names), file):
        raise Stale(f"{where}: the test passes without a solution")
    for part, instead, words in answers:
        if part not in exercise.solution:
            raise Stale(f"{where}: the solution has no {part!r}")
        answer = exercise.solution.replace(part, instead) if part else instead
        heard = said(test, answer, dict(names), file)
        if not (words in heard if words else not heard):
            raise Stale(f"{where}: the test says {heard!r} of this answer:\n{answer}")


def said(test: str, answer: str, names: dict[str, Any], file: str) -> str:
    """Return what a test says of an answer, nothing if it passes, and leave the random numbers as they were."""
    state = tinytorch.get_rng_state()
    try:
        run(answer, names, file)
        run(test, names, file)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        tinytorch.set_rng_state(state)
    return ""


def answers(path: Path) -> list[tuple[int, str, str, str]]:
    """Return the answers of answers.txt to a notebook's exercises, as (exercise, part, what stands there, words)."""
    lines = (Path(__file__).parent / "answers.txt").read_text("utf-8").splitlines()
    fields = [[field.strip() for field in line.split("|")] for line in lines if line.startswith(path.name[0] + ".")]
    return [(int(number.partition(".")[2]), part, instead, words) for number, part, instead, words in fields]


def notebooks() -> list[Path]:
    """Return the notebooks of the course."""
    return sorted(FOLDER.glob("*.ipynb"))


def pages() -> list[str]:
    """Return the pages of the course."""
    return [f"course/{path.stem}.md" for path in notebooks()]


def page(path: Path) -> str:
    """Return a notebook with its outputs as a page."""
    out: list[str] = []
    parts: list[str | list[str]] = []  # of the program that the page is
    every = outputs(path)
    for number, (cell, text, drawing) in enumerate(every):
        if not cell.is_code:
            out.append(cell.text)
            if number == 0:
                out.append(f"[Download this lesson as a notebook]({path.name}){{ .md-button download }}")
            continue
        if cell.solution:  # an exercise is opened with its test, and is solved for the cells after them
            tests = [each.text for each, _, _ in every[number + 1 : number + 2] if "test" in each.tags]
            parts.append(["\n\n\n".join([cell.text.rstrip(), *tests]), cell.solution])
        else:
            parts.append(cell.text)
        button = f"``` {{ .python .run-{len(parts) - 1} }}" if "test" not in cell.tags else "```python"
        out.append(f"{button}\n{cell.text.rstrip()}\n```")
        if cell.solution:
            solution = cell.solution.rstrip().replace("\n", "\n    ")
            out.append(f'??? tip "Solution"\n\n    ```python\n    {solution}\n    ```')
        if text.strip():
            out.append(f"```output\n{text.rstrip()}\n```")
        if drawing:
            out.append(drawing)
    return with_parts("\n\n".join(out) + "\n", parts)


def written() -> dict[str, str]:
    """Return the pages of the course with their texts."""
    return {f"course/{path.stem}.md": page(path) for path in notebooks()}


if __name__ == "__main__":
    for each in sys.argv[1:]:
        outputs(Path(each))
