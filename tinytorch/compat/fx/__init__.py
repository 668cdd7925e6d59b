"""`torch.fx`: nothing is traced, and what modules declare for tracing has no effect.

Modules say with `wrap` which functions a trace shall not look into, and ask whether they got a `Proxy` or a
`GraphModule`. That works. Tracing itself, and what changes and runs traces, raises NotImplementedError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..fx import graph_module, proxy
from ..fx.graph_module import GraphModule
from ..fx.proxy import Proxy, Tracer
from ..named import names_of

__all__ = ["GraphModule", "Proxy", "Tracer", "graph_module", "proxy", "symbolic_trace", "wrap"]

globals().update(names_of(__name__))


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Return a function, or the name of one, itself: a trace would not look into it.

    Raises:
        RuntimeError: it is neither.

    Example:
        >>> @torch.fx.wrap
        ... def double(x):
        ...     return 2 * x
        >>> double(3)
        6
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    return fn_or_name


def symbolic_trace(root: Any, concrete_args: dict[str, Any] | None = None, **options: Any) -> GraphModule:
    """Raise NotImplementedError: nothing is traced."""
    return GraphModule(root, Tracer().trace(root, concrete_args))
