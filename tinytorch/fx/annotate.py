"""`torch.fx.annotate`: types of values that a trace records."""

from __future__ import annotations

from typing import Any

from tinytorch.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """Return a value; if it is symbolic, its node gets a type, which generated code shows.

    Args:
        val: the value.
        type: the type.

    Raises:
        RuntimeError: the node has a type already.

    Example:
        >>> from tinytorch.fx.annotate import annotate
        >>> print(torch.fx.symbolic_trace(lambda x: annotate(x + 1, int)).code.strip())
        def forward(self, x):
            add : int = x + 1;  x = None
            return add
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is {val.node.type} and new "
                f"type is {type}. This could happen if you tried to annotate a function parameter value (in which "
                "case you should use the type slot on the function signature) or you called annotate on the same "
                "value twice"
            )
        val.node.type = type
    return val
