"""Where in a user's program something happens: the innermost line that is neither this package's nor a library's."""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from types import FrameType
from typing import NamedTuple

from tinytorch import core
from tinytorch.core.warning import users_frame

__all__ = ["Place", "here", "is_users"]


class Place(NamedTuple):
    """A line of a program.

    Attributes:
        file: the path of the file.
        line: the number of the line.
        function: the name of the function that it belongs to.
    """

    file: str
    line: int
    function: str

    @property
    def text(self) -> str:
        """The line itself, without its indentation."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{os.path.relpath(self.file) if self.file.startswith(os.getcwd()) else self.file}:{self.line}"


_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(core.__file__))), "")
#: Code that the user did not write: the package, Python's library, and what is installed.
_OTHERS = tuple(
    {
        _PACKAGE,
        *(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        "<frozen",
    }
)
_known: dict[str, bool] = {}


def is_users(frame: FrameType) -> bool:
    """Return whether a frame is of the user's program."""
    file = frame.f_code.co_filename
    known = _known.get(file)
    if known is None:
        known = _known[file] = not (
            file.startswith(_OTHERS) or f"{os.sep}site-packages{os.sep}" in file or file.startswith("<")
        )
    return known


def frame_here() -> FrameType:
    """Return the innermost frame of the user's program; if there is none, that of whatever called the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return users_frame() if frame is None else frame


def here() -> Place:
    """Return the line of the user's program that is being executed."""
    frame = frame_here()
    return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
