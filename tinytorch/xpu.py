"""`torch.xpu`: Intel's GPUs, of which there are none (floor 4)."""

from __future__ import annotations

from typing import Any

from tinytorch.absent import (
    StreamContext,
    device_count,
    device_of,
    empty_cache,
    get_arch_list,
    get_gencode_flags,
    get_rng_state_all,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    manual_seed,
    manual_seed_all,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    refusing,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
    set_stream,
    stream,
)

__all__ = [
    "StreamContext", "can_device_access_peer", "current_device", "current_stream", "default_generators",
    "device_count", "device_of", "empty_cache", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "get_gencode_flags", "get_rng_state", "get_rng_state_all", "init", "initial_seed",
    "is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported", "manual_seed", "manual_seed_all",
    "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_reserved",
    "memory_stats", "memory_stats_as_nested_dict", "reset_accumulated_memory_stats", "reset_peak_memory_stats",
    "seed", "seed_all", "set_device", "set_rng_state", "set_rng_state_all", "set_stream", "stream", "synchronize",
]  # fmt: skip

default_generators: tuple[Any, ...] = ()

can_device_access_peer = current_device = current_stream = get_device_capability = (
    get_device_name
) = get_device_properties = get_rng_state = init = initial_seed = mem_get_info = set_device = (
    synchronize
) = refusing(AssertionError, "Torch not compiled with XPU enabled")
