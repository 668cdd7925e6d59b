"""`torch._higher_order_ops.cond` (floor 4)."""

from tinytorch.compiler import cond

__all__ = ["cond"]
