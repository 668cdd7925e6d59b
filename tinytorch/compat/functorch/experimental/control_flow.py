"""`functorch.experimental.control_flow`: `cond` and `map`, under their former path."""

from tinytorch._higher_order_ops.map import map  # type: ignore[import-not-found]
from tinytorch.control import cond  # type: ignore[import-not-found]

__all__ = ["cond", "map"]
