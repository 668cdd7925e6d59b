"""The allowlist of names for `load` with `weights_only=True`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_safe: dict[str, Any] = {}
#: Modules whose functions are refused even if they are allowlisted, as in PyTorch.
_BLOCKED = frozenset({"nt", "os", "posix", "sys"})


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Allow `load` with `weights_only=True` to create instances of these classes, and to call these functions.

    Only add functions that are safe to call with arbitrary arguments, which the author of the file chooses.

    Args:
        safe_globals: classes and functions, or pairs of a class or function and its full name in files.

    Example:
        >>> import io
        >>> from collections import defaultdict
        >>> from tinytorch.serialization import load, safe_globals, save
        >>> buffer = io.BytesIO()
        >>> with safe_globals([defaultdict, list]):
        ...     save(defaultdict(list, a=[1]), buffer)
        ...     load(io.BytesIO(buffer.getvalue()))
        defaultdict(<class 'list'>, {'a': [1]})
    """
    for entry in safe_globals:
        _safe.update([_name_and_value(entry)])


def _name_and_value(entry: Any) -> tuple[str, Any]:
    if not isinstance(entry, tuple):
        return f"{entry.__module__}.{entry.__qualname__}", entry
    if len(entry) != 2:
        raise ValueError(
            f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(entry)}"
        )
    if not isinstance(entry[1], str):
        raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(entry[1])}")
    return entry[1], entry[0]


def get_safe_globals() -> list[Any]:
    """Return the classes and functions added by `add_safe_globals`."""
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Remove all classes and functions added by `add_safe_globals`."""
    _safe.clear()


@contextmanager
def safe_globals(safe_globals: Iterable[Any]) -> Iterator[None]:
    """Call `add_safe_globals` for the duration of a `with` block."""
    before = dict(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        clear_safe_globals()
        _safe.update(before)
