"""What programs ask of `torch.cuda` before they use it: there is no GPU here, and it says so (floor 4)."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "current_device", "device_count", "empty_cache", "get_device_name", "is_available", "is_bf16_supported",
    "manual_seed", "manual_seed_all", "set_device", "synchronize",
]  # fmt: skip


def is_available() -> bool:
    """Return False: tinytorch runs on the CPU.

    Example:
        >>> import tinytorch as torch
        >>> "cuda" if torch.cuda.is_available() else "cpu"
        'cpu'
    """
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False."""
    return False


def manual_seed(seed: int) -> None:
    """Seed the GPUs' generators: there are none, so nothing happens, as in PyTorch."""


def manual_seed_all(seed: int) -> None:
    """Seed all GPUs' generators: there are none, so nothing happens, as in PyTorch."""


def empty_cache() -> None:
    """Free cached GPU memory: there is none."""


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise: there is no GPU."""
    raise AssertionError("Torch not compiled with CUDA enabled")


current_device = set_device = synchronize = get_device_name = _refuse
