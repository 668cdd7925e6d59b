"""Where in a program something happened: the user's line, the module that was running, the names of tensors.

Python's stack tells while a call runs: the frames of `Module.__call__` hold the modules, those of the user's functions
the line and the variables. So nothing has to be noted beforehand, except for what happens later: a node's backward.
"""

from __future__ import annotations

import linecache
import os
import sysconfig
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import OURS
from tinytorch.nn.modules.module import Module
from tinytorch.ops.overrides import ASKING

#: Where libraries are, whose functions are neither read for suspicious lines nor searched for models.
_LIBRARIES = tuple(
    [os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib", "platlib")]
)
#: By file name, whether users did not write it.
_ours: dict[str, bool] = {}
#: The code in whose frames `self` is the module that is called.
CALL = Module._call_impl.__code__


def is_ours(code: CodeType) -> bool:
    """Return whether code is of this package, of NumPy, or of the standard library's wrappers of functions."""
    name = code.co_filename
    known = _ours.get(name)
    if known is None:
        known = _ours[name] = name.startswith(OURS)
    return known


class Line(NamedTuple):
    """A line of the user's code; it prints as `file.py:12`.

    Example:
        >>> from tinytorch.inspect.places import Line
        >>> str(Line("/home/me/train.py", 12, "step"))
        'train.py:12'
    """

    file: str
    number: int
    function: str

    @property
    def text(self) -> str:
        """The source of the line; empty if the file cannot be read."""
        return linecache.getline(self.file, self.number).strip()

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.number}"

    def shown(self) -> str:
        """Return the place with the function, and the source of the line."""
        function = "" if self.function.startswith("<module") else f", in {self.function}"
        return f"{self}{function}" + (f": `{self.text}`" if self.text else "")


def our_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames of the package that run inside of the user's innermost one, from a frame outwards."""
    while frame is not None and is_ours(frame.f_code):
        if frame.f_code not in ASKING:
            yield frame
        frame = frame.f_back


def users_frame(frame: FrameType) -> FrameType:
    """Return the innermost frame of a user's code, from a frame outwards; the outermost frame if there is none."""
    while frame.f_back is not None and is_ours(frame.f_code):
        frame = frame.f_back
    return frame


def users_line(frame: FrameType) -> Line:
    """Return the line of the innermost frame of a user's code, from a frame outwards."""
    found = users_frame(frame)
    return Line(found.f_code.co_filename, found.f_lineno, found.f_code.co_name)


def running_modules(frame: FrameType | None) -> Iterator[Module]:
    """Yield the modules whose calls are running, the innermost first."""
    while frame is not None:
        if frame.f_code is CALL:
            yield frame.f_locals["self"]
        frame = frame.f_back


def innermost_module(frame: FrameType | None) -> Module | None:
    """Return the module whose call is running, or None."""
    return next(running_modules(frame), None)


def is_library(code: CodeType) -> bool:
    """Return whether code is of this package or of an installed library."""
    return is_ours(code) or code.co_filename.startswith((*_LIBRARIES, "<frozen"))


def users_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """Yield the frames of a user's own code, the innermost first."""
    while frame is not None:
        if not is_library(frame.f_code):
            yield frame
        frame = frame.f_back


def objects_of(frame: FrameType) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a frame's variables, local ones first, and of the attributes of `self`."""
    names = frame.f_locals
    yield from list(names.items())
    if names is not frame.f_globals:
        yield from list(frame.f_globals.items())
    for attribute, value in list(getattr(names.get("self"), "__dict__", {}).items()):
        yield f"self.{attribute}", value


def modules_in(frames: Iterable[FrameType]) -> dict[str, Module]:
    """Return the models in the variables of frames by name: modules that are not part of another of them."""
    found: dict[str, Module] = {}
    seen: set[int] = set()
    for frame in frames:
        for name, value in objects_of(frame):
            if isinstance(value, Module) and id(value) not in seen:
                seen.add(id(value))
                found.setdefault(name, value)
    inner = {id(part) for module in found.values() for part in module.modules() if part is not module}
    return {name: module for name, module in found.items() if id(module) not in inner}


def path_of(module: Module | None, frame: FrameType | None, models: Iterable[Module] = ()) -> str:
    """Return the name of a module, such as `head.0: Linear`, below the outermost model that is known.

    Args:
        module: the module; of None, the name is empty.
        frame: a frame: the models are looked for among the modules that are running, and in the variables of the
            user's functions.
        models: further models.
    """
    if module is None:
        return ""
    roots = [*models, *running_modules(frame), *modules_in(users_frames(frame)).values()]
    paths = [path for root in roots for path, part in root.named_modules() if part is module]
    kind = type(module).__name__
    path = max(paths, key=len, default="")
    return f"{path}: {kind}" if path else kind


def name_of(tensor: Tensor, frame: FrameType | None) -> str:
    """Return the name of a tensor: the path of a parameter or buffer, or a variable; empty if there is none."""
    for found in users_frames(frame):
        for name, value in objects_of(found):
            if value is tensor and not name.startswith("_"):
                return name
    roots = [*modules_in(users_frames(frame)).values(), *running_modules(frame)]
    for root in reversed(roots):
        for name, value in [*root.named_parameters(), *root.named_buffers()]:
            if value is tensor:
                return name
    return ""
