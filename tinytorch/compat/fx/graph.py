"""`torch.fx.graph`: the class of a trace, of which there are no objects."""

from typing import Any, NoReturn

__all__ = ["Graph"]


class Graph:
    """A trace of a function: there are none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError: nothing is traced."""
        raise NotImplementedError("torch.fx: tinytorch traces no programs")
