"""`torch._higher_order_ops.while_loop` (floor 4)."""

from ..compiler import while_loop

__all__ = ["while_loop"]
