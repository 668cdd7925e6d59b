"""Runs one program with tinytorch and with PyTorch, and compares what comes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tinytorch
import tinytorch.utils.data
from tests.oracle import torch


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
        assert plain(program(tinytorch)) == plain(program(torch))
        return
    errors = []
    for library in (tinytorch, torch):
        try:
            program(library)
        except Exception as error:
            errors.append(error)
        else:
            raise AssertionError(f"{library.__name__} raised nothing")
    assert type(errors[0]) is type(errors[1]), errors
    assert words in str(errors[0]) and words in str(errors[1]), errors


def state(library: Any) -> Any:
    """Return the next draws of the default generator, which tell where it stands."""
    return library.randint(0, 1 << 30, (4,))
