"""`torch.distributed`, as in a PyTorch that was built without it: programs ask whether it is there (floor 4)."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["init_process_group", "is_available", "is_initialized"]


def is_available() -> bool:
    """Return False: there is one process.

    Example:
        >>> import tinytorch as torch
        >>> torch.distributed.is_available()
        False
    """
    return False


def is_initialized() -> bool:
    """Return False."""
    return False


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: processes do not exchange tensors."""
    raise NotImplementedError(
        "torch.distributed is not available in tinytorch: ask torch.distributed.is_available() first"
    )
