"""Runs one program with tinytorch and with PyTorch, and compares what comes out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.same import same_as_pytorch


def plain(value: Any) -> Any:
    """Return `value` with tensors of either library as (dtype, list), to be compared with ==."""
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return str(value.dtype), value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(entry) for entry in value]
    return value


def assert_same(program: Callable[[Any], Any], words: str | None = None) -> None:
    """Assert that `program(library)` gives, or raises, the same with both libraries.

    Args:
        program: a function of the library (`tinytorch` or `torch`).
        words: given when an error is expected: what both messages contain.
    """
    if words is None:
        same_as_pytorch(lambda library: plain(program(library)), rtol=0, atol=0)
        return

    def raises(library: Any) -> str:
        with pytest.raises(Exception, match=re.escape(words)) as error:  # of the same class, whichever it is
            program(library)
        return type(error.value).__name__

    same_as_pytorch(raises)


def state(library: Any) -> Any:
    """Return the next draws of the default generator, which tell where it stands."""
    return library.randint(0, 1 << 30, (4,))
