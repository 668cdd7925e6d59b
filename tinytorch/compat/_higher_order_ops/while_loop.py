"""`torch._higher_order_ops.while_loop`."""

from ..compiler import while_loop

__all__ = ["while_loop"]
