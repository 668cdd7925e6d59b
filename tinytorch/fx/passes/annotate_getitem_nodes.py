"""`torch.fx.passes.annotate_getitem_nodes`: types of the items of values whose type is known."""

from __future__ import annotations

import operator
import typing
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.fx.graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Give nodes that read an item of a tuple, list or named tuple the item's type, where the container has one.

    Args:
        graph: the graph, whose nodes are changed.
    """
    for node in graph.find_nodes(op="call_function", target=operator.getitem):
        sequence: Any = node.args[0]
        index: Any = node.args[1]
        if sequence.type:
            node.type = _item_type(sequence.type, index, node.type)


def _item_type(kind: Any, index: Any, known: Any) -> Any:
    origin, items = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return items[0]
    if origin is tuple:
        if len(items) == 2 and items[1] is ...:
            return items[0]
        if len(items) <= index:
            raise AssertionError(f"Index {index} out of range for parameterized_types (len={len(items)})")
        return items[index]
    if hasattr(kind, "_fields") and kind is not Tensor:
        return kind.__annotations__[kind._fields[index]]
    return known
