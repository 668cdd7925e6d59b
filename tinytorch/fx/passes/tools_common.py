"""`torch.fx.passes.tools_common`: names of targets, sorting, and groups of nodes that pass on values without shapes."""

from __future__ import annotations

import collections
import heapq
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.fx._names import qualified_name
from tinytorch.fx.graph import Graph
from tinytorch.fx.node import Node
from tinytorch.nn.modules.module import Module

__all__ = [
    "CALLABLE_NODE_OPS", "FxNetAccFusionsFinder", "get_acc_ops_name", "get_node_target", "is_node_output_tensor",
    "legalize_graph", "stable_topological_sort",
]  # fmt: skip

NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
Tensors = tuple[Tensor] | list[Tensor]
TensorOrTensors = Tensor | Tensors
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}

_PACKAGE = __name__.partition(".")[0]


def _accelerated(k: Any) -> bool:
    return bool(k.__module__) and "acc_ops" in k.__module__


def get_acc_ops_name(k: Any) -> str:
    """Return the name of a class or function with its module's; those of a module `acc_ops` have that name alone."""
    if isinstance(k, str):
        return k
    if _accelerated(k):
        return f"acc_ops.{k.__name__}"
    module = k.__module__ or ""
    if module.partition(".")[0] == _PACKAGE:
        module = module.replace(_PACKAGE, "torch", 1)
    return f"{module.replace('torch._ops', 'torch.ops')}.{k.__name__}"


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """Return a name of what a node calls: a function's, a method's, or that of a module's class.

    Args:
        submodules: the modules by their paths.
        node: the node.

    Raises:
        AssertionError: the node calls nothing.
    """
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, but found {node.op}")
    target: Any = node.target
    if node.op == "call_module":
        module = submodules[target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_method":
        return str(target)
    return f"acc_ops.{target.__name__}" if _accelerated(target) else qualified_name(target)


def is_node_output_tensor(node: Node) -> bool:
    """Return whether a node's value is a tensor, as `ShapeProp` has found out."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


# Sorting ------------------------------------------------------------------------------------------


def _comes_first(node: Node) -> bool:
    """Return whether a node computes with sizes, of which assertions are made."""
    return node.op == "call_function" and node.target in (
        operator.add, operator.mul, operator.sub, operator.floordiv, operator.truediv, operator.mod, operator.le,
        operator.lt, operator.ge, operator.gt, operator.eq, operator.ne,
    )  # fmt: skip


def _sorted(gm: Any, put: Callable[[list[Any], Node], None], take: Callable[[list[Any]], Node]) -> list[Node]:
    """Give a module a graph with the nodes in an order in which each follows its arguments.

    Args:
        gm: the module.
        put, take: add a node whose arguments are done to those that wait, and choose one of these.

    Returns:
        The nodes that are part of a circle.
    """
    missing = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    waiting: list[Any] = []
    for node, count in missing.items():
        if not count:
            put(waiting, node)
    graph, copies = Graph(), dict[Node, Node]()
    while waiting:
        node = take(waiting)
        copies[node] = graph.node_copy(node, copies.__getitem__)
        for user in node.users:
            missing[user] -= 1
            if not missing[user]:
                put(waiting, user)
    left = [node for node in missing if node not in copies]
    if not left:
        graph._codegen = gm.graph._codegen
        gm.graph = graph
    return left


def legalize_graph(gm: Any) -> Any:
    """Sort a module's graph so that each node follows its arguments; others keep their order only roughly.

    Args:
        gm: the graph module, which is changed.

    Returns:
        The module.

    Raises:
        RuntimeError: there is a circle.
    """
    queue: collections.deque[Node] = collections.deque()

    def put(waiting: list[Any], node: Node) -> None:
        (queue.appendleft if node.all_input_nodes and _comes_first(node) else queue.append)(node)
        waiting.append(None)

    def take(waiting: list[Any]) -> Node:
        waiting.pop()
        return queue.popleft()

    left = _sorted(gm, put, take)
    if left:
        raise RuntimeError(f"Input graph has cycles, unable to add {left}")
    return gm


def stable_topological_sort(gm: Any) -> Any:
    """Sort a module's graph so that each node follows its arguments, and earlier ones stay earlier where possible.

    Args:
        gm: the graph module, which is changed.

    Returns:
        The module.

    Raises:
        AssertionError: there is a circle.
    """
    places = {node: place for place, node in enumerate(gm.graph.nodes)}

    def put(waiting: list[Any], node: Node) -> None:
        heapq.heappush(waiting, (places[node], node))

    left = _sorted(gm, put, lambda waiting: heapq.heappop(waiting)[1])
    if left:
        raise AssertionError(f"Input graph has cycles, unable to add {left}")
    return gm


# Groups of nodes ----------------------------------------------------------------------------------


class FxNetAccFusionsFinder:
    """Finds the groups of nodes that pass values other than tensors to each other, and so have to stay together.

    Args:
        module: the graph module, of which `ShapeProp` has found out what is a tensor.
        acc_nodes: the nodes that may be in groups; those of groups with other nodes are removed.
    """

    @dataclass
    class FusionGroup:
        """A group: its first place in the graph, its nodes, their inputs, and the nodes to look at."""

        top_node_idx: int
        nodes: NodeSet
        inputs: NodeSet
        nodes_need_process: NodeSet

        def add_node(self, node: Node) -> None:
            """Add a node."""
            if node in self.nodes:
                return
            self.nodes_need_process.add(node)
            self.nodes.add(node)
            self.inputs.discard(node)
            self.inputs.update(
                [each for each in node.all_input_nodes if each.op in CALLABLE_NODE_OPS and each not in self.nodes]
            )

    def __init__(self, module: Any, acc_nodes: NodeSet) -> None:
        self.module, self.acc_nodes = module, acc_nodes
        self.nodes = list(module.graph.nodes)
        self.node_index = {node: place for place, node in enumerate(self.nodes)}

    def recursive_add_node(
        self, fusion_group: FusionGroup, inputs: Iterable[Node], visited: NodeSet | None = None
    ) -> bool:
        """Add the nodes on all ways from the group back to itself; return whether one of `inputs` is on such a way."""
        for node in list(inputs):
            if visited is not None:
                if node in visited:
                    continue
                visited.add(node)
            if node.op not in CALLABLE_NODE_OPS or self.node_index[node] < fusion_group.top_node_idx:
                continue
            if node in fusion_group.nodes:
                return True
            if self.recursive_add_node(fusion_group, node.all_input_nodes, visited):
                fusion_group.add_node(node)
                return True
        return False

    def __call__(self) -> dict[Node, NodeSet]:
        """Return the groups by their nodes."""
        found: dict[Node, NodeSet] = {}
        for start in list(self.acc_nodes):
            plain = start.op not in CALLABLE_NODE_OPS or "tensor_meta" in start.meta
            if start in found or plain or start not in self.acc_nodes:
                continue
            group = self.FusionGroup(self.node_index[start], {start}, set(start.all_input_nodes), {start})
            while group.nodes_need_process:
                self._extend(group, group.nodes_need_process.pop())
            if group.nodes <= self.acc_nodes:
                found.update(dict.fromkeys(group.nodes, group.nodes))
            else:
                self.acc_nodes -= group.nodes
        return found

    def _extend(self, group: FusionGroup, node: Node) -> None:
        self.recursive_add_node(group, group.inputs, set())
        users = node.users if "tensor_meta" not in node.meta else ()
        for user in users:
            if user.op in CALLABLE_NODE_OPS and user not in group.nodes:
                group.add_node(user)
                self.recursive_add_node(group, group.inputs, set())
        for each in node.all_input_nodes:
            if each.op in CALLABLE_NODE_OPS and "tensor_meta" not in each.meta and each not in group.nodes:
                group.add_node(each)
                group.top_node_idx = min(group.top_node_idx, self.node_index[each])
                self.recursive_add_node(group, group.inputs, set())
