"""`torch.fx.node`: the class of a step of a trace, of which there are no objects."""

from collections.abc import Callable
from typing import Any

from ..absent import Refused

__all__ = ["Node", "Target"]


class Node(Refused):
    """A step of a trace: there are none."""


Target = Callable[..., Any] | str
