"""The frames of an error: those that still run, and those of its traceback."""

from __future__ import annotations

import ast
import dis
import linecache
import os
import sys
import sysconfig
from collections.abc import Iterable
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple, TypeVar

from tinytorch.core.warning import is_ours
from tinytorch.inspect.source import around, definition_of, parsed

__all__ = ["N", "Step", "entries_of", "is_raised", "joined", "locals_of", "steps_of"]

N = TypeVar("N", bound=ast.AST)
_LIBRARY = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")
_INSTALLED = tuple([os.path.join(sysconfig.get_path(name), "") for name in ("purelib", "platlib")])
_OPTIMIZED = 1  # a flag of code: its variables are not those of a dictionary
_RAISE = dis.opmap["RAISE_VARARGS"]


class Step(NamedTuple):
    """A frame, and the place in it: of a call that has not returned.

    Attributes:
        frame: the frame.
        place: the index of the instruction.
        line: the line number.
        ours: whether the frame runs code of the package, or of Python called by it.
        users: whether it runs the user's code; Python's own modules, and other libraries that the user calls, are
            neither.
        entry: its entry in the traceback, if it is in it.
    """

    frame: FrameType
    place: int
    line: int
    ours: bool
    users: bool
    entry: TracebackType | None

    @property
    def code(self) -> CodeType:
        """The code that the frame runs."""
        return self.frame.f_code

    @property
    def file(self) -> str:
        """The name of the file of the code."""
        return self.code.co_filename

    @property
    def installed(self) -> bool:
        """Whether the code is of another library."""
        return not self.ours and self.file.startswith(_INSTALLED)

    def text(self) -> str:
        """Return the line of the source, without indentation; "" if there is none."""
        return linecache.getline(self.file, self.line, self.frame.f_globals).strip()

    def tree(self) -> ast.AST | None:
        """Return the statements of the function that runs here, or of the module; None without their source."""
        module = parsed(self.file, self.frame.f_globals)
        if module is None or self.code.co_name == "<module>":
            return module
        found = definition_of(self.code, module)
        if found is None and self.code.co_name in ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>"):
            return around(module, self.line, ast.FunctionDef) or module
        return None if isinstance(found, ast.Lambda) else found

    def nodes(self, *kinds: type[N]) -> list[N]:
        """Return the nodes of some kinds of the function that runs here."""
        tree = self.tree()
        return [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, kinds)]

    def loops(self) -> list[ast.For | ast.While]:
        """Return the loops around the line, the outermost first."""
        loops: list[Any] = self.nodes(ast.For, ast.While)
        return [each for each in loops if each.lineno <= self.line <= (each.end_lineno or 0)]

    def expression(self) -> ast.expr | None:
        """Return the expression that is evaluated here, parsed, or None if its source is not to be found."""
        lines = linecache.getlines(self.file, self.frame.f_globals)
        positions = list(self.code.co_positions())
        first, last, start, end = positions[self.place // 2] if self.place >= 0 else (None,) * 4
        if first is None or last is None or start is None or end is None or last > len(lines):
            return None
        found = [line.encode() for line in lines[first - 1 : last]]
        found[-1] = found[-1][:end]
        found[0] = found[0][start:]
        text = b"".join(found).strip()
        try:
            return ast.parse(b"(" + text + b")", mode="eval").body
        except (SyntaxError, ValueError):
            return _sum_in_place(text)


def _sum_in_place(text: bytes) -> ast.BinOp | None:
    """Return `a += b` as the expression a + b, whose attribute `in_place` is the text of a."""
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    if not isinstance(statement, ast.AugAssign):
        return None
    target = ast.unparse(statement.target)
    value = ast.BinOp(ast.parse(target, mode="eval").body, statement.op, statement.value)
    value.in_place = target  # type: ignore[attr-defined]
    return value


def entries_of(error: BaseException) -> list[TracebackType]:
    """Return the entries of an error's traceback, the outermost first."""
    entries = []
    entry = error.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    return entries


def steps_of(entries: Iterable[TracebackType], running: FrameType | None) -> list[Step]:
    """Return the steps from the outermost frame to the one that raised an error.

    Args:
        entries: the entries of the traceback.
        running: the innermost frame that is not in the traceback; None if there is no other.
    """
    found: list[Any] = []
    while running is not None:
        found.append((running, running.f_lasti, running.f_lineno, None))
        running = running.f_back
    found.reverse()
    found += [(entry.tb_frame, entry.tb_lasti, entry.tb_lineno, entry) for entry in entries]
    steps = []
    ours = False
    known = (*_INSTALLED, _LIBRARY, "<frozen ")
    written = any(not (is_ours(each[0]) or each[0].f_code.co_filename.startswith(known)) for each in found)
    for frame, place, line, entry in found:
        file = frame.f_code.co_filename
        users = False
        if is_ours(frame):
            ours = True
        elif not (file.startswith("<frozen ") or (file.startswith(_LIBRARY) and not file.startswith(_INSTALLED))):
            ours, users = False, not (written and file.startswith(_INSTALLED))
        steps.append(Step(frame, place, line, ours, users, entry))
    return steps


def joined(entries: list[TracebackType]) -> TracebackType | None:
    """Return a traceback of some entries, which are changed."""
    for k, entry in enumerate(entries):
        entry.tb_next = entries[k + 1] if k + 1 < len(entries) else None
    return entries[0] if entries else None


def is_raised(step: Step) -> bool:
    """Return whether a `raise` statement raised the error here, rather than a call of compiled code, say."""
    code = step.code.co_code
    return 0 <= step.place < len(code) and code[step.place] == _RAISE


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Return a copy of a frame's variables; the frame keeps none alive that it did not before."""
    names = frame.f_locals
    found = dict(names)
    if frame.f_code.co_flags & _OPTIMIZED and sys.version_info < (3, 13) and sys.gettrace() is None:
        names.clear()  # a copy that Python would keep with the frame, and a debugger uses
    return found
