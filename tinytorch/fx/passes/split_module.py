"""`torch.fx.passes.split_module`: a graph module as a chain of smaller ones."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import GraphModule, _get_attr, _make_graph_module
from tinytorch.fx.node import Node, map_arg
from tinytorch.fx.proxy import Proxy
from tinytorch.nn.modules.module import Module

__all__ = ["Partition", "split_module"]


class Partition:
    """A part of a graph, which becomes a graph module.

    Args:
        name: its name.
    """

    def __init__(self, name: str) -> None:
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


def split_module(
    m: GraphModule, root_m: Module, split_callback: Callable[[Node], int], qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False, keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True, *, partition_affix: str | None = None, tuple_return: bool = False,
) -> GraphModule:  # fmt: skip
    """Return a graph module that calls one graph module per part of a graph.

    Args:
        m: the graph module.
        root_m: has no effect.
        split_callback: returns the number of the part that a node belongs to.
        qualname_map: gets the paths in `m` of the parts' modules.
        keep_original_order: whether the parts are called in the order of their first nodes; else in one in which each
            follows those that it needs.
        keep_original_node_name: whether nodes keep their names.
        keep_original_input_name: whether the parts' parameters have the names of the values; else `arg_0`, `arg_1` …
        partition_affix: stands in the names of the parts before their numbers.
        tuple_return: whether a part with one result returns a tuple, too.

    Raises:
        RuntimeError: two parts need each other.

    Example:
        >>> from tinytorch.fx.passes.split_module import split_module
        >>> module = torch.fx.symbolic_trace(lambda x: torch.relu(x + 1) * 2)
        >>> parts = split_module(module, module, lambda node: 1 if node.name == "mul" else 0)
        >>> print(parts.code.strip())
        def forward(self, x):
            submod_0 = self.submod_0(x);  x = None
            submod_1 = self.submod_1(submod_0);  submod_0 = None
            return submod_1
    """
    splitting = _Splitting(m, split_callback, partition_affix)
    splitting.find_inputs_and_outputs()
    first_seen = list(splitting.partitions)
    order = splitting.order()
    splitting.fill(order, qualname_map, bool(keep_original_node_name), keep_original_input_name)
    joined = _Joined(m, bool(keep_original_node_name))
    for node in m.graph.nodes if not keep_original_order else ():
        joined.read(node)
    for name in first_seen if keep_original_order else order:
        partition = splitting.partitions[name]
        if keep_original_order:
            parameters = [node for node in m.graph.nodes if node.op == "placeholder"]
            needed = [splitting.by_name[each] for each in partition.inputs]
            for node in [*parameters, *needed]:
                joined.read(node)
        results = tuple([partition.environment[splitting.by_name[each]] for each in partition.outputs])
        alone = len(results) == 1 and not tuple_return
        partition.graph.output(results[0] if alone else results)
        joined.call(partition, alone)
    for node in m.graph.nodes if not joined.values else ():
        joined.read(node)
    for node in m.graph.find_nodes(op="output"):
        joined.graph.output(map_arg(node.args[0], lambda n: joined.values[n.name]))
    made: GraphModule = _make_graph_module(joined.members, joined.graph)
    made.meta["partition_names"] = {each.submod_name for each in splitting.partitions.values()}
    return made


class _Splitting:
    """The parts of a graph, and what they need of each other."""

    def __init__(self, module: GraphModule, number_of: Callable[[Node], int], affix: str | None) -> None:
        self.module = module
        self.partitions: dict[str, Partition] = {}
        self.part_of: dict[Node, str] = {}
        self.by_name = {node.name: node for node in module.graph.nodes}
        for node in module.graph.nodes:
            if node.op not in ("placeholder", "get_attr", "output"):
                number = str(number_of(node))
                name = number if affix is None else f"{affix}_{number}"
                self.partitions.setdefault(name, Partition(name)).node_names.append(node.name)
                self.part_of[node] = name

    def find_inputs_and_outputs(self) -> None:
        """Note which values go from part to part."""
        for node in self.module.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                continue

            def goes_to(used: Node, user: Node = node) -> Node:
                self._use(used, user)
                return used

            map_arg(node.args, goes_to)
            map_arg(node.kwargs, goes_to)

    def _use(self, used: Node, user: Node) -> None:
        made_by, needed_by = self.part_of.get(used), self.part_of.get(user)
        if made_by == needed_by:
            return
        if made_by is not None:
            self.partitions[made_by].outputs.setdefault(used.name)
            if needed_by is not None:
                self.partitions[made_by].dependents.setdefault(needed_by)
                self.partitions[needed_by].dependencies.setdefault(made_by)
        if needed_by is not None:
            self.partitions[needed_by].inputs.setdefault(used.name)

    def order(self) -> list[str]:
        """Return the names of the parts so that each follows those that it needs."""
        ready = [name for name, part in self.partitions.items() if not part.dependencies]
        found: list[str] = []
        while ready:
            found.append(ready.pop())
            for name in self.partitions[found[-1]].dependents:
                missing = self.partitions[name].dependencies
                del missing[found[-1]]
                if not missing:
                    ready.append(name)
        if len(found) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return found

    def fill(self, order: list[str], paths: dict[str, str] | None, keep_names: bool, keep_inputs: bool) -> None:
        """Insert the parameters and the nodes of the parts."""
        for name in order:
            self._insert_parameters(self.partitions[name], keep_inputs)
        for node, name in self.part_of.items():
            part = self.partitions[name]
            target: Any = node.target
            if node.op == "call_module":
                target = target.replace(".", "_")
                part.targets[target] = _get_attr(self.module, str(node.target))
                if paths is not None:
                    paths[f"{part.submod_name}.{target}"] = str(node.target)
            args, kwargs = [map_arg(each, part.environment.__getitem__) for each in (node.args, node.kwargs)]
            made = part.graph.create_node(node.op, target, args, kwargs, node.name if keep_names else None, node.type)
            made.meta = node.meta.copy()
            part.environment[node] = made

    def _insert_parameters(self, part: Partition, keep_names: bool) -> None:
        inputs = [self.by_name[name] for name in part.inputs]
        modules = [node for node in inputs if node.op == "get_attr" and self._is_module(node)]
        parameters = [node for node in inputs if node not in modules]
        for number, node in enumerate(parameters):
            made = part.graph.placeholder(node.name if keep_names else f"arg_{number}", type_expr=node.type)
            made.meta = node.meta.copy()
            part.environment[node] = made
        for node in modules:  # (which no graph takes as an argument)
            target = str(node.target)
            part.targets[target] = _get_attr(self.module, target)
            part.environment[node] = part.graph.get_attr(target)
            part.environment[node].meta = node.meta.copy()
        part.inputs = dict.fromkeys([node.name for node in parameters])

    def _is_module(self, node: Node) -> bool:
        return isinstance(_get_attr(self.module, str(node.target)), Module)


class _Joined:
    """The graph that calls the parts."""

    def __init__(self, module: GraphModule, keep_names: bool) -> None:
        self.module, self.keep_names = module, keep_names
        self.graph = Graph()
        self.values: dict[str, Node] = {}
        self.members: dict[str, Any] = {}

    def read(self, node: Node) -> None:
        """Insert a parameter or an attribute of the module, once."""
        if node.name in self.values:
            return
        if node.op == "placeholder":
            default = node.args[0] if node.args else inspect.Signature.empty
            target = node.name if self.keep_names else str(node.target)
            made = self.graph.placeholder(target, type_expr=node.type, default_value=default)
        elif node.op == "get_attr":
            made = self.graph.get_attr(str(node.target))
            self.members[str(node.target)] = _get_attr(self.module, str(node.target))
        else:
            return
        made.meta = node.meta.copy()
        self.values[node.name] = made

    def call(self, part: Partition, alone: bool) -> None:
        """Insert the call of a part, and its results."""
        self.members[part.submod_name] = _make_graph_module(part.targets, part.graph)
        made = self.graph.call_module(part.submod_name, tuple([self.values[name] for name in part.inputs]))
        if alone:
            (name,) = part.outputs
            self.values[name] = made
            return
        proxy: Any = Proxy(made)
        for number, name in enumerate(part.outputs):
            self.values[name] = proxy[number].node
