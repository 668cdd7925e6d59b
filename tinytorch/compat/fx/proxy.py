"""`torch.fx.proxy`: the classes of what stands for a value while a function is traced, and of what traces."""

from typing import Any, NoReturn

from ..absent import Refused
from ..named import names_of

__all__ = ["Proxy", "Tracer"]


class Proxy(Refused):
    """What stands for a value in a trace: there are none."""


class Tracer:
    """What traces a function; programs derive their own. `trace` raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        return None

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> NoReturn:
        """Raise NotImplementedError: nothing is traced."""
        raise NotImplementedError("torch.fx: tinytorch traces no programs")


globals().update(names_of(__name__))
