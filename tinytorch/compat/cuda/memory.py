"""`torch.cuda.memory`: statistics of a GPU's memory, all 0."""

from __future__ import annotations

from typing import Any

from tinytorch.core.warning import warn

from ..absent import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    without_cuda,
)

__all__ = [
    "empty_cache", "get_per_process_memory_fraction", "max_memory_allocated", "max_memory_cached",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_stats",
    "memory_stats_as_nested_dict", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_memory_stats", "set_per_process_memory_fraction",
]  # fmt: skip


def memory_cached(device: Any = None) -> int:
    """Return 0: the old name of `memory_reserved`."""
    _renamed("memory_cached", "memory_reserved")
    return 0


def max_memory_cached(device: Any = None) -> int:
    """Return 0: the old name of `max_memory_reserved`."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return 0


def _renamed(old: str, new: str) -> None:
    warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning)


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
get_per_process_memory_fraction = set_per_process_memory_fraction = mem_get_info = without_cuda
