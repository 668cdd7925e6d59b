"""`torch.fx.passes.utils.fuser_utils`: puts groups of nodes into modules of their own."""

from __future__ import annotations

import copy
import heapq
from collections.abc import Iterable
from typing import Any

from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.node import Node
from tinytorch.fx.passes.tools_common import NodeList, stable_topological_sort
from tinytorch.fx.passes.utils.common import lift_subgraph_as_module
from tinytorch.fx.proxy import Proxy

__all__ = [
    "erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort", "validate_partition",
]  # fmt: skip


def topo_sort(nodes: NodeList) -> NodeList:
    """Return nodes so that each follows its arguments among them, and earlier ones stay earlier where possible."""
    missing = {node: 0 for node in nodes}
    for node in nodes:
        missing[node] = sum(each in missing for each in node.all_input_nodes)
    places = {node: place for place, node in enumerate(nodes)}
    ready = [(places[node], node) for node in nodes if not missing[node]]
    heapq.heapify(ready)
    found: NodeList = []
    while ready:
        node = heapq.heappop(ready)[1]
        found.append(node)
        for user in node.users:
            if user in missing:
                missing[user] -= 1
                if not missing[user]:
                    heapq.heappush(ready, (places[user], user))
    if len(found) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return found


def validate_partition(partition: Iterable[Node]) -> bool:
    """Return whether nodes can be run at once: nothing outside needs one of their values, and is needed by another."""
    inside = set(partition)
    waiting = [user for node in inside for user in node.users if user not in inside]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            waiting += node.users
    return True


def fuse_as_graphmodule(
    gm: GraphModule, nodes: NodeList, module_name: str, partition_lookup_table: Any = None, *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:  # fmt: skip
    """Return a graph module with copies of nodes.

    Args:
        gm: the graph module that has the nodes.
        nodes: the nodes; each follows its arguments.
        module_name: the name of the new module's class.
        partition_lookup_table: the nodes once more, as a container that is quick to search.
        always_return_tuple: whether a single result is returned as a tuple, too.

    Returns:
        The module; the nodes whose values it takes; and those whose values it returns.

    Raises:
        AssertionError: a node is not one of `gm`; or something outside needs a value, and is needed.
    """
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = set(nodes) if partition_lookup_table is None else partition_lookup_table
    graph = Graph()
    parameters: dict[Node, Node] = {}
    copies: dict[Node, Node] = {}

    def copied(node: Node) -> Node:
        if node in inside:
            return copies[node]
        if node not in parameters:
            parameters[node] = graph.placeholder(node.name, type_expr=node.type)
            parameters[node].meta = copy.copy(node.meta)
        return parameters[node]

    for node in nodes:
        copies[node] = graph.node_copy(node, copied)
    results = [node for node in nodes if any(user not in inside for user in node.users)]
    values = tuple([copies[node] for node in results])
    graph.output(values[0] if len(values) == 1 and not always_return_tuple else values)
    graph.lint()
    made, _ = lift_subgraph_as_module(gm, graph, class_name=module_name)
    return made, tuple(parameters), tuple(results)


def insert_subgm(
    gm: GraphModule, sub_gm: GraphModule, orig_inputs: tuple[Node, ...], orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:  # fmt: skip
    """Let a graph module call another one, in place of the nodes that it was made of.

    Args:
        gm: the graph module.
        sub_gm: the other one, which becomes a child with the name of its class.
        orig_inputs, orig_outputs: the nodes whose values it takes, and those for whose values its results stand.
        insertion_point: the node after which it is called, by default the last of `orig_outputs`.

    Returns:
        `gm`.
    """
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        insertion_point = next((node for node in reversed(gm.graph.nodes) if node in orig_outputs), None)
    if insertion_point is None:
        raise AssertionError(
            "Cannot determine insertion point: no insertion_point provided and orig_outputs is empty. Pass the last "
            "partition node as insertion_point."
        )
    with gm.graph.inserting_after(insertion_point):
        call = gm.graph.call_module(name, args=orig_inputs, kwargs=None)
    if not orig_outputs:
        return gm
    result = sub_gm.graph.output_node().args[0]
    with gm.graph.inserting_before(call.next):
        if len(orig_outputs) == 1 and not isinstance(result, tuple):
            orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
            return gm
        proxy: Any = Proxy(call)
        for number, node in enumerate(orig_outputs):
            node.replace_all_uses_with(proxy[number].node, propagate_meta=True)
    call.meta["val"] = tuple([node.meta.get("val") for node in orig_outputs])
    return gm


def erase_nodes(gm: GraphModule, nodes: NodeList) -> None:
    """Remove nodes from a graph, the last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


def fuse_by_partitions(
    gm: GraphModule, partitions: list[dict[Node, int | None]], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Put groups of nodes into modules of their own, which the graph module calls then.

    Args:
        gm: the graph module, which is changed.
        partitions: the groups, as dicts whose keys are the nodes.
        prefix: the start of the modules' names; their numbers follow.
        always_return_tuple: whether a single result is returned as a tuple, too.

    Returns:
        `gm`.

    Raises:
        AssertionError: a group cannot be run at once.

    Example:
        >>> from tinytorch.fx.passes.utils.fuser_utils import fuse_by_partitions
        >>> module = torch.fx.symbolic_trace(lambda x: (x + 1) * 2)
        >>> group = dict.fromkeys(node for node in module.graph.nodes if node.op == "call_function")
        >>> print(fuse_by_partitions(module, [group]).graph)
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %fused_0 : [num_users=1] = call_module[target=fused_0](args = (%x,), kwargs = {})
            return fused_0
    """
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        made, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, made, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
