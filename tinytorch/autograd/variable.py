"""Where older programs import `Variable` from (floor 4)."""

from tinytorch.legacy import Variable

__all__ = ["Variable"]
