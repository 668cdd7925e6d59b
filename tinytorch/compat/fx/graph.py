"""`torch.fx.graph`: the class of a trace, of which there are no objects."""

from ..absent import Refused

__all__ = ["Graph"]


class Graph(Refused):
    """A trace of a function: there are none."""
