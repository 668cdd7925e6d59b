"""`torch._dynamo.utils`: what programs ask of the compiler."""

from typing import Any

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: Any) -> bool:
    """Return False: nothing is compiled."""
    return False
