"""`torch._higher_order_ops`: loops and branches that PyTorch's compiler keeps as one operation; here plain Python."""

from .._higher_order_ops.associative_scan import associative_scan
from .._higher_order_ops.foreach_map import foreach_map
from .._higher_order_ops.map import map
from .._higher_order_ops.scan import scan
from ..control import cond, while_loop

__all__ = ["associative_scan", "cond", "foreach_map", "map", "scan", "while_loop"]
