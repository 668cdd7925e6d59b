"""`torch.mps`: Apple's GPUs, which are not available."""

from __future__ import annotations

from .absent import device_count, is_available, manual_seed, refusing

__all__ = [
    "current_allocated_memory", "device_count", "driver_allocated_memory", "empty_cache", "get_rng_state",
    "is_available", "manual_seed", "recommended_max_memory", "seed", "set_per_process_memory_fraction", "set_rng_state",
    "synchronize",
]  # fmt: skip


def _without(name: str) -> str:
    return f"Cannot execute {name}() without MPS backend."


current_allocated_memory = refusing(RuntimeError, _without("getCurrentAllocatedMemory"))
driver_allocated_memory = refusing(RuntimeError, _without("getDriverAllocatedMemory"))
recommended_max_memory = refusing(RuntimeError, _without("getRecommendedMaxMemory"))
set_per_process_memory_fraction = refusing(RuntimeError, _without("setMemoryFraction"))
empty_cache = refusing(RuntimeError, _without("emptyCache"))
synchronize = refusing(RuntimeError, _without("deviceSynchronize"))
seed = get_rng_state = set_rng_state = refusing(RuntimeError, _without("getDefaultGenerator"))
