"""Where in a user's program something happens: the innermost line that is neither this package's nor a library's."""

from __future__ import annotations

import os
import sys
from types import FrameType

from tinytorch.core.warning import users_frame
from tinytorch.inspect.places import Line, is_library

__all__ = ["Place", "frame_here", "here", "is_users", "place_of"]


class Place(Line):
    """A line of a program; it prints with the path of the file."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{os.path.relpath(self.file) if self.file.startswith(os.getcwd()) else self.file}:{self.number}"


_known: dict[str, bool] = {}  # by file name


def is_users(frame: FrameType) -> bool:
    """Return whether a frame is of the user's program."""
    file = frame.f_code.co_filename
    known = _known.get(file)
    if known is None:
        other = file.startswith("<") or f"{os.sep}site-packages{os.sep}" in file
        known = _known[file] = not (other or is_library(frame.f_code))
    return known


def frame_here() -> FrameType:
    """Return the innermost frame of the user's program; if there is none, that of whatever called the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame):
        frame = frame.f_back
    return users_frame() if frame is None else frame


def place_of(frame: FrameType) -> Place:
    """Return the line that a frame runs."""
    return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def here() -> Place:
    """Return the line of the user's program that is being executed."""
    return place_of(frame_here())
