"""`torch.fx.passes.utils.source_matcher_utils`: the nodes that were recorded for one call of a layer or function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tinytorch.fx.graph import Graph
from tinytorch.fx.node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@dataclass
class SourcePartition:
    """The nodes of one call.

    Attributes:
        nodes: the nodes.
        source: the function, or the type of the layer.
        input_nodes: the nodes whose values they take, without parameters.
        output_nodes: those of them whose values others use.
        params: those of them that read parameters.
    """

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def _source_of(node: Node, wanted: list[Any]) -> tuple[Any, str] | None:
    """Return which of the wanted sources a node was recorded for, and the name of the call; None for none of them."""
    stack = node.meta.get("source_fn_stack")
    if stack is not None:
        name, source = stack[-1]
        return (source, name) if source in wanted else None
    called = node.meta.get("torch_fn")
    if called is not None and called[1].split(".")[1] in wanted:
        return called[1].split(".")[1], called[0]
    modules = node.meta.get("nn_module_stack") if node.op == "call_function" else None
    if not modules:
        return None
    path, kind = list(modules.values())[-1]
    for source in wanted:
        if isinstance(kind, type) and isinstance(source, type):
            same = issubclass(kind, source)
        elif isinstance(kind, str) and isinstance(source, type):
            same = kind == f"{source.__module__}.{source.__qualname__}"
        else:
            same = kind == source
        if same:
            return source, path
    return None


def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """Return the nodes of each call of some functions and layers, as `Node.meta` tells.

    Args:
        graph: the graph.
        wanted_sources: functions, and types of layers.
        filter_fn: returns whether a node is wanted: calls with others are left out.

    Returns:
        By source, the calls.
    """
    found: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        source = _source_of(node, wanted_sources)
        if source is not None:
            found.setdefault(source[0], {}).setdefault(source[1], []).append(node)
    return {
        source: [
            _partition(nodes, source) for nodes in calls.values() if filter_fn is None or all(map(filter_fn, nodes))
        ]
        for source, calls in found.items()
    }


def _partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    given = [each for node in nodes for each in node.args if isinstance(each, Node)]
    inputs = dict.fromkeys([each for each in given if each not in inside and each.op != "get_attr"])
    outputs = [node for node in nodes if node.op != "get_attr" and any(user not in inside for user in node.users)]
    params = [node for node in nodes if node.op == "get_attr"]
    return SourcePartition(nodes, source, list(inputs), outputs, params)


def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """Return whether a node of the second call uses a value of the first."""
    return any(user in subgraph2.nodes for node in subgraph1.nodes for user in node.users)
