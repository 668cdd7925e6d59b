"""`torch.fx.passes.split_utils`: splits a graph by the tags of its nodes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.node import Node, map_arg
from tinytorch.fx.passes.utils.common import HolderModule, lift_subgraph_as_module
from tinytorch.fx.proxy import Proxy
from tinytorch.nn.modules.container import ModuleList

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: Any, name: str) -> Any:
    """Return the attribute at a path; None if there is none."""
    for part in name.split("."):
        if isinstance(obj, ModuleList):
            obj = obj._modules.get(part)
        else:
            obj = getattr(obj, part, None)
        if obj is None:
            return None
    return obj


def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute at a path."""
    *path, name = attr.split(".")
    for part in path:
        obj = getattr(obj, part)
    setattr(obj, name, value)


@dataclass
class Component:
    """A part of a graph.

    Attributes:
        graph: the part as a graph.
        order: its number.
        name: its name.
        input_placeholders: its parameters.
        orig_inputs, orig_outputs: the nodes whose values it takes, and returns.
        getattr_maps: its copies of nodes that read attributes.
        constructor_args: nothing.
        gm: the part as a module.
    """

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None


def _nodes_in(value: Any) -> list[Node]:
    found: list[Node] = []
    map_arg(value, lambda node: found.append(node) or node)  # type: ignore[func-returns-value]
    return found


def split_by_tags(
    gm: GraphModule, tags: list[str], return_fqn_mapping: bool = False, return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> Any:  # fmt: skip
    """Return a graph module that calls one graph module per tag.

    Args:
        gm: the graph module; each of its nodes that call something has an attribute `tag`.
        tags: the tags in the order in which the modules are called.
        return_fqn_mapping: whether the paths are returned, too.
        return_tuple: whether a module with one result returns a tuple, too.
        GraphModuleCls: the class of the module that is returned.

    Returns:
        The module; with `return_fqn_mapping` a pair, whose second element has the paths of what is called or read in
        the new module by the old paths.

    Raises:
        AssertionError: a node has no tag; or needs a value of a node with a later tag.

    Example:
        >>> from tinytorch.fx.passes.split_utils import split_by_tags
        >>> module = torch.fx.symbolic_trace(lambda x: torch.relu(x + 1))
        >>> for node in module.graph.nodes:
        ...     node.tag = "first" if node.name == "add" else "last"
        >>> print(split_by_tags(module, ["first", "last"]).code.strip())
        def forward(self, x):
            first = self.first(x);  x = None
            last = self.last(first);  first = None
            return last
    """
    parts = {tag: Component(Graph(), number, f"{tag}") for number, tag in enumerate(tags)}
    part_of: dict[Node, Component] = {}
    copies: dict[Node, Node] = {}
    graph, values = Graph(), dict[Node, Node]()
    needed: dict[Node, None] = {}  # the values that go from part to part, or are returned

    def copy_into(part: Component, node: Node) -> Node:
        if node.op == "get_attr":
            if node not in part.getattr_maps:
                part.getattr_maps[node] = part.graph.get_attr(str(node.target), type_expr=node.type)
                part.getattr_maps[node].meta = copy.copy(node.meta)
            return part.getattr_maps[node]
        if part_of.get(node) is part:
            return copies[node]
        if node not in part.orig_inputs:
            made = part.graph.placeholder(node.name, type_expr=node.type)
            made.meta = copy.copy(node.meta)
            part.orig_inputs.append(node)
            part.input_placeholders.append(made)
            needed[node] = None
        return part.input_placeholders[part.orig_inputs.index(node)]

    for node in gm.graph.nodes:
        if node.op == "placeholder":
            values[node] = graph.placeholder(node.name, type_expr=node.type)
            values[node].meta = copy.copy(node.meta)
        elif node.op not in ("get_attr", "output"):
            part = part_of[node] = _part_for(node, parts, part_of)
            copies[node] = part.graph.node_copy(node, lambda each, part=part: copy_into(part, each))  # type: ignore[misc]
            copies[node].tag = node.tag  # type: ignore[attr-defined]
    result = gm.graph.output_node().args[0]
    returned = _nodes_in(result)
    for node in returned:
        if node.op == "get_attr":
            values[node] = graph.get_attr(node.name, type_expr=node.type)
        else:
            needed[node] = None
    for node in needed:
        if node.op != "placeholder":
            part_of[node].orig_outputs.append(node)
    paths: dict[str, str] = {}
    for part in parts.values():
        outputs = tuple([copies[node] for node in part.orig_outputs])
        alone = len(outputs) == 1 and not return_tuple
        part.graph.output(outputs[0] if alone else outputs)
        part.gm, below = lift_subgraph_as_module(gm, part.graph, part.name)
        paths.update(below)
        call = graph.call_module(part.name, tuple([values[node] for node in part.orig_inputs]))
        proxy: Any = Proxy(call)
        for number, node in enumerate(part.orig_outputs):
            values[node] = call if alone else proxy[number].node
    graph.output(map_arg(result, values.__getitem__))
    graph._codegen = gm.graph._codegen
    root = HolderModule({part.name: part.gm for part in parts.values()})
    for node in returned:
        if node.op == "get_attr":
            setattr(root, node.name, getattr_recursive(gm, str(node.target)))
    made = GraphModuleCls(root, graph)
    return (made, paths) if return_fqn_mapping else made


def _part_for(node: Any, parts: dict[str, Component], part_of: dict[Node, Component]) -> Component:
    if not hasattr(node, "tag"):
        raise AssertionError(f"Node does not have tag: {node.format_node()}")
    part = parts[node.tag]
    before = max([part_of[each].order for each in node.all_input_nodes if each in part_of], default=0)
    if part.order < before:
        raise AssertionError(
            f"Component {part.name} order must be >= max of its upstream components, order={part.order} and "
            f"max={before}"
        )
    return part
