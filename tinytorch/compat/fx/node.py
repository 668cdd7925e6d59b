"""`torch.fx.node`: the class of a step of a trace, of which there are no objects."""

from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["Node", "Target"]


class Node:
    """A step of a trace: there are none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError: nothing is traced."""
        raise NotImplementedError("torch.fx: tinytorch traces no programs")


Target = Callable[..., Any] | str
