"""`torch._higher_order_ops.cond`."""

from ..compiler import cond

__all__ = ["cond"]
