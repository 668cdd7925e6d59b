"""`torch.multiprocessing`: Python's `multiprocessing`, loaded when first used (floor 4).

Tensors in memory that `share_memory_` moved are shared with forked processes; what goes through a queue is copied.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]

_STRATEGY = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """Return the one way in which memory is shared: by forking."""
    return {_STRATEGY}


def get_sharing_strategy() -> str:
    """Return the way in which memory is shared."""
    return _STRATEGY


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how memory is shared: there is one way.

    Raises:
        ValueError: it is another.
    """
    if new_strategy != _STRATEGY:
        raise ValueError(f"sharing strategy {new_strategy!r}: there is only {_STRATEGY!r}")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(importlib.import_module("multiprocessing"), name)
