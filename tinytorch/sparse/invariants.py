"""The switch for checks of the parts that a sparse tensor is made from."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["check_sparse_tensor_invariants"]

_enabled = False


class check_sparse_tensor_invariants:
    """A context manager, a decorator and a switch: check all conditions on the parts of new sparse tensors.

    Indices are checked always; the switch adds that places are sorted and distinct where the format asks for it.

    Args:
        enable: whether to check.

    Example:
        >>> with torch.sparse.check_sparse_tensor_invariants():
        ...     torch.sparse.check_sparse_tensor_invariants.is_enabled()
        True
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Return whether the checks are made."""
        return _enabled

    @staticmethod
    def enable() -> None:
        """Make the checks from now on."""
        global _enabled
        _enabled = True

    @staticmethod
    def disable() -> None:
        """Make no checks from now on."""
        global _enabled
        _enabled = False

    def __enter__(self) -> None:
        global _enabled
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for "
                "context nesting."
            )
        self.saved_state, _enabled = _enabled, self.state

    def __exit__(self, *exc: object) -> None:
        global _enabled
        assert self.saved_state is not None
        _enabled, self.saved_state = self.saved_state, None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that runs with this setting."""

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return wrapper
