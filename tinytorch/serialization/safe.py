"""The names that `load` takes because the user allows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_safe: dict[str, Any] = {}
#: Modules whose functions are refused even when the user allows them, as in PyTorch.
_BLOCKED = frozenset({"nt", "os", "posix", "sys"})


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Let `load` with `weights_only=True` make instances of these classes, and call these functions.

    Only add what is safe to call with any arguments: who writes the file chooses them.

    Args:
        safe_globals: classes and functions, or pairs of one and the full name it has in files.

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
    for each in safe_globals:
        _safe.update([_named(each)])


def _named(entry: Any) -> tuple[str, Any]:
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
    """Return what `add_safe_globals` has added.

    Example:
        >>> torch.serialization.get_safe_globals()
        []
    """
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Forget all that `add_safe_globals` has added.

    Example:
        >>> torch.serialization.clear_safe_globals()
    """
    _safe.clear()


@contextmanager
def safe_globals(safe_globals: Iterable[Any]) -> Iterator[None]:
    """Do `add_safe_globals` for a `with` block only.

    Example:
        >>> with torch.serialization.safe_globals([frozenset]):
        ...     torch.serialization.get_safe_globals()
        [<class 'frozenset'>]
    """
    before = dict(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        clear_safe_globals()
        _safe.update(before)
