"""Guards of kernels: dtypes that most ops refuse (complex numbers, 8-bit floats) cost nothing until a program uses one.

Until then the generated functions call their kernels directly. When a program first uses such a dtype, the kernels of
the ops that refuse it are replaced by functions that look at their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Change = Callable[[Callable[[Any], Any]], None]


class KernelGuards:
    """The guards against the dtypes of one kind.

    Args:
        refusal: returns the error by which an op of this name refuses a value, or None for a value that is no such one.

    Attributes:
        active: whether a program has used such a dtype.
    """

    def __init__(self, refusal: Callable[[str, Any], Exception | None]) -> None:
        self.refusal = refusal
        self.active = False
        self._waiting: list[tuple[str, Change]] = []

    def add(self, name: str, change: Change) -> None:
        """Make the generated function of an op refuse such values: now, or when the program first uses them.

        Args:
            name: of the op.
            change: replaces each of the function's kernels (None where there is none) by what a function returns for
                it.
        """
        if self.active:
            change(lambda kernel: kernel and self.guarded(name, kernel))
        else:
            self._waiting.append((name, change))

    def begin(self) -> None:
        """Replace the kernels: the program uses such a dtype."""
        self.active = True
        waiting, self._waiting = self._waiting, []
        for name, change in waiting:
            self.add(name, change)

    def guarded(self, name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """Return a kernel that refuses such arguments."""

        def call(*args: Any, **kwargs: Any) -> Any:
            for each in (*args, *kwargs.values()) if kwargs else args:
                self.check(name, each)
            return kernel(*args, **kwargs)

        for attribute in ("shares", "writes"):  # (by which `parallel` tells kinds of functions)
            if hasattr(kernel, attribute):
                setattr(call, attribute, getattr(kernel, attribute))
        return call

    def check(self, name: str, value: Any) -> None:
        """Raise the error of an op for a value that it refuses, or for a sequence with such a value."""
        if isinstance(value, (list, tuple)):
            for each in value:
                self.check(name, each)
        elif (error := self.refusal(name, value)) is not None:
            raise error
