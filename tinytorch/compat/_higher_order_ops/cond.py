"""`torch._higher_order_ops.cond` (floor 4)."""

from ..compiler import cond

__all__ = ["cond"]
