"""`torch.fx.proxy`: the classes of symbolic values and of tracers."""

from typing import Any, NoReturn

from ..absent import Refused
from ..named import names_of

__all__ = ["Proxy", "Tracer"]


class Proxy(Refused):
    """A symbolic value in a trace: it has no instances."""


class Tracer:
    """The base class of tracers, which programs derive from. `trace` raises NotImplementedError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        return None

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> NoReturn:
        """Raise NotImplementedError: tracing is not implemented."""
        raise NotImplementedError("torch.fx: tinytorch traces no programs")


globals().update(names_of(__name__))
