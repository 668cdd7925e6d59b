"""Notes on errors, and tracebacks that end at the user's line.

An error's class and message are PyTorch's. What else is known (the layer, what it was given, the user's line, a remedy)
is added as notes (PEP 678), where the error leaves the package for the user's code: the functions through which that
happens call `leave` in an `except` block, which costs nothing while there is no error. Errors that leave by another
function get their notes from `sys.excepthook`, if nobody catches them. `inspect/mistakes/` finds the notes; it is
imported at the first error.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tinytorch.core.names import module_of
from tinytorch.core.supplied import inspect
from tinytorch.core.terminal import wrapped
from tinytorch.core.warning import is_ours

__all__ = ["Note", "annotate", "leave", "shows_all", "watch_uncaught"]


class Note(str):
    """A note that this package has added to an error: no other is added to an error that has one."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return str, (str(self),)


def shows_all() -> bool:
    """Return whether tracebacks keep the package's frames: the environment variable TINYTORCH_TRACEBACK is "full"."""
    return os.environ.get("TINYTORCH_TRACEBACK", "") == "full"


def shows_faults() -> bool:
    """Return whether what fails while notes are added is raised: in tests, and where all frames are shown."""
    return "TINYTORCH_TRACEBACK" in os.environ


def leave() -> None:
    """Give the error that is being handled its notes, if the caller was called by the user's code.

    The caller then re-raises the error by `raise`, which does not enter the caller into the traceback again.
    """
    frame = sys._getframe(1)
    outer = frame.f_back
    if outer is None or is_ours(outer):
        return
    error = sys.exception()
    if error is not None and module_of(type(error)) in _CLASSES:
        annotate(error, frame)


#: The modules that define the classes of errors that get notes: others belong to the user, or control the package.
_CLASSES = ("builtins", "tinytorch.compiler.compiled", "tinytorch.kernels.decompose", "_pickle")


def annotate(error: BaseException, frame: Any = None) -> None:
    """Add notes to an error, and remove the package's frames from its traceback.

    Args:
        error: the error.
        frame: the frame of the package that the error leaves, whose callers still run; None for an uncaught error.
    """
    try:
        inspect.add_notes(error, frame)
    except Exception:  # whatever a strange module or file does, the user gets the error itself
        if shows_faults():
            raise


def with_cells(text: str) -> str:
    """Return a text in which cells of a notebook have the names that IPython shows, such as "Cell In[3]"."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()

    def named(match: re.Match[str]) -> str:
        return " ".join(shell.compile.format_code_name(match[0]) or [match[0]])

    return text if shell is None else re.sub(r"\S*ipykernel_\d+\S+?\.py|<ipython-input-[^>]*>", named, text)


def watch_uncaught() -> None:
    """Give errors that nobody catches their notes before they are shown: in all threads, and in notebooks."""
    sys.excepthook = _before(sys.excepthook)
    threading.excepthook = _before_in_thread(threading.excepthook)
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), _show_in_notebook)


def _noted(error: BaseException | None, trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback of an error that is about to be shown, after adding notes to one that gets some."""
    if not isinstance(error, Exception) or module_of(type(error)) not in _CLASSES:
        return trace
    annotate(error)
    notes = getattr(error, "__notes__", [])
    notes[:] = [Note(wrapped(note, sys.stderr)) if isinstance(note, Note) else note for note in notes]
    return error.__traceback__


def _show_in_notebook(shell: Any, kind: Any, error: BaseException, trace: Any, tb_offset: int | None = None) -> None:
    """Show an error in a notebook: IPython has no exception hook."""
    shell.showtraceback((kind, error, _noted(error, trace)), tb_offset=tb_offset)


def _before(show: Callable[..., Any]) -> Callable[..., Any]:
    """Return an exception hook that adds notes, and shows the error by another hook."""

    def excepthook(kind: Any, error: BaseException, trace: TracebackType | None) -> None:
        show(kind, error, _noted(error, trace))

    return excepthook


def _before_in_thread(show: Callable[..., Any]) -> Callable[..., Any]:
    """Return `threading.excepthook` for errors of threads: as `_before`."""

    def excepthook(args: Any) -> None:
        kind, error, trace, thread = args
        show(threading.ExceptHookArgs((kind, error, _noted(error, trace), thread)))

    return excepthook
