"""`torch.xpu`: Intel's GPUs, which are not available."""

from __future__ import annotations

from typing import Any

from . import absent
from .absent import *  # noqa: F403

__all__ = [
    *absent.__all__, "can_device_access_peer", "current_device", "current_stream", "default_generators",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "init", "initial_seed",
    "mem_get_info", "set_device", "synchronize",
]  # fmt: skip

default_generators: tuple[Any, ...] = ()

can_device_access_peer = current_device = current_stream = get_device_capability = get_device_name = (
    get_device_properties
) = get_rng_state = init = initial_seed = mem_get_info = set_device = synchronize = absent.refusing(
    AssertionError, "Torch not compiled with XPU enabled"
)
