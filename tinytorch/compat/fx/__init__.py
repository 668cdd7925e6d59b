"""`torch.fx`: the names that packages use without tracing; tracing itself is not implemented.

Modules declare with `wrap` which functions a trace should not enter, and test whether a value is a `Proxy` or a
`GraphModule`. Tracing, and what transforms and runs graphs, raises NotImplementedError.
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
    """Return a function, or the name of one, unchanged: in PyTorch a trace does not enter it.

    Raises:
        RuntimeError: the argument is neither a function nor a string.

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
    """Raise NotImplementedError: tracing is not implemented."""
    return GraphModule(root, Tracer().trace(root, concrete_args))
