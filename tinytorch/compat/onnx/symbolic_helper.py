"""`torch.onnx.symbolic_helper`: what packages declare exports with, which are not made."""

from collections.abc import Callable
from typing import Any

__all__ = ["parse_args"]


def parse_args(*arg_descriptors: str) -> Callable[[Any], Any]:
    """Return a decorator that returns the function itself."""
    return lambda fn: fn
