"""`torch._dynamo`: the compiler's settings, which programs write. They have no effect."""

from __future__ import annotations

from typing import Any

from tinytorch.compiler import (
    OptimizedModule,
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)
from tinytorch.compiler import compile as optimize

from ..named import names_of

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "disable", "graph_break",
    "is_compiling", "list_backends", "mark_dynamic", "mark_static", "maybe_mark_dynamic", "optimize", "reset",
]  # fmt: skip


def graph_break(msg: str = "") -> None:
    """Do nothing: no graph is compiled that could end here."""


def mark_dynamic(
    t: Any, index: Any, *, hint_override: int | None = None, min: int | None = None,
    max: int | None = None, specialize_on: list[Any] | None = None,
) -> None:  # fmt: skip
    """Do nothing: no graph is compiled that could hold for more than one length of a dimension."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Do nothing, see `mark_dynamic`."""


def mark_static(t: Any, index: Any = None) -> None:
    """Do nothing, see `mark_dynamic`."""


globals().update(names_of(__name__))
