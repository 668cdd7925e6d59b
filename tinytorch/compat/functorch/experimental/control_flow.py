"""`functorch.experimental.control_flow`: `cond` and `map`, under their former path."""

from tinytorch._higher_order_ops.map import map
from tinytorch.control import cond

__all__ = ["cond", "map"]
