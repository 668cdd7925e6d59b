"""Warnings that name the user's line: the one outside of the package from which the call came.

A `stacklevel` counts calls, and the number of calls between a user and a warning depends on the way: `torch.f`,
`Tensor.f`, a module, an argument that makes the call take a longer one. Here the frames are looked at instead.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from types import FrameType

import numpy as np

from tinytorch.core.mode import local

__all__ = ["OURS", "always", "is_ours", "issued", "users_frame", "warn"]


def _folder(path: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(path)), "")


#: Where code is that users did not write: this package, NumPy, and what wraps functions.
OURS = (_folder(os.path.dirname(__file__)), _folder(np.__file__), functools.__file__, contextlib.__file__)
_PACKAGE = f"{__name__.partition('.')[0]}."  # of the modules for which code is generated


def users_frame() -> FrameType:
    """Return the innermost frame of a user's code, or the outermost one if all are of the package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_ours(frame):
        frame = frame.f_back
    return frame


def is_ours(frame: FrameType) -> bool:
    """Return whether a frame runs code of this package or of NumPy, or a wrapper of functions."""
    return frame.f_code.co_filename.startswith(OURS) or str(frame.f_globals.get("__name__")).startswith(_PACKAGE)


#: The messages that are not issued again, in this process.
issued: set[str] = set()
#: Whether they are nevertheless (`torch.set_warn_always`).
always = [False]


def warn(message: str | Warning, category: type[Warning] = UserWarning, *, once: bool = False) -> None:
    """Issue a warning at the user's line, in whose module Python notes that it was shown.

    Under `python -W error` the warning is raised.

    Args:
        message: the text, or a warning.
        category: the class of the warning, if `message` is a text.
        once: issue it once in a process, as PyTorch does with some; Python's filters decide about all others.
    """
    if local.state.trial is not None:
        local.state.trial.warned(str(message))
        return
    if once:
        if str(message) in issued and not always[0]:
            return
        issued.add(str(message))
    frame = users_frame()
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    module = names.get("__name__") or "<string>"
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, module, registry)
