"""`torch._dynamo`: the compiler's settings, which programs write; nothing is compiled (floor 4)."""

from tinytorch._dynamo import config, eval_frame, utils
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

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "eval_frame", "graph_break",
    "is_compiling", "list_backends", "optimize", "reset", "utils",
]  # fmt: skip


def graph_break(msg: str = "") -> None:
    """Do nothing: no graph is compiled that could end here."""
