"""8-bit floats (`float8_e4m3fn` ...): which ops move their elements. All others refuse them, as in PyTorch.

The ops that only move elements set `moves` where they are declared; views need not say it. Programs without such
dtypes pay nothing: when a program first uses one, the kernels are replaced by functions that look for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.kernels import dtypes


class _State:
    """Attributes: `active`: whether a program has used 8-bit floats; `waiting`: what to change then."""

    def __init__(self) -> None:
        self.active = False
        self.waiting: list[tuple[Any, Any]] = []


_state = _State()


def guarded(op: Any, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that refuses 8-bit floats, unless the op moves elements."""

    def call(*args: Any, **kwargs: Any) -> Any:
        if not op.moves:
            for each in (*args, *kwargs.values()) if kwargs else args:
                _check(op.name, each)
        return kernel(*args, **kwargs)

    for attribute in ("shares", "writes"):  # (by which `parallel` tells kinds of functions)
        if hasattr(kernel, attribute):
            setattr(call, attribute, getattr(kernel, attribute))
    return call


def _check(name: str, value: Any) -> None:
    kind = getattr(value, "dtype", None)
    if kind is not None:
        if getattr(kind, "itemsize", 0) == 1 and kind.kind in dtypes.FLOATS:
            words = dtypes.from_numpy_dtype(kind).tensor_name
            raise NotImplementedError(f"\"{name.strip('_')}\" not implemented for '{words}'")
    elif isinstance(value, (list, tuple)):
        for each in value:
            _check(name, each)


def guard_kernels(op: Any, change: Callable[[Callable[[Any], Any]], None]) -> None:
    """Make a generated function refuse 8-bit floats: now, or when the program first uses them.

    Args:
        op: the op.
        change: replaces each of the function's kernels (None where there is none) by what a function returns for it.
    """
    if op.view:
        return
    if _state.active:
        change(lambda kernel: kernel and guarded(op, kernel))
    else:
        _state.waiting.append((op, change))


def _begin() -> None:
    _state.active = True
    waiting, _state.waiting = _state.waiting, []
    for op, change in waiting:
        guard_kernels(op, change)


dtypes.on_float8.append(_begin)
