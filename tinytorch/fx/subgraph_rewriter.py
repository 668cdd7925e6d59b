"""`torch.fx.subgraph_rewriter`: replaces a pattern wherever a graph contains it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tinytorch.fx._symbolic_trace import symbolic_trace
from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.node import Node
from tinytorch.fx.passes.matcher_utils import InternalMatch, SubgraphMatcher
from tinytorch.nn.modules.module import Module

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Filter = Callable[[InternalMatch, Graph, Graph], bool]


class Match(NamedTuple):
    """A place where a pattern was replaced: its result, and the nodes of the graph by those of the pattern."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """As `Match`, with the nodes of the replacement."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(program: Any) -> Graph:
    """Return the graph of a graph module or a function."""
    if isinstance(program, GraphModule):
        return program.graph
    graph: Graph = program if isinstance(program, Graph) else symbolic_trace(program).graph
    return graph


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace a pattern wherever a graph contains it, without overlaps.

    Args:
        gm: the module whose graph is changed; its code is generated anew.
        pattern: a function or graph module. A place matches if the same is called, on values of which its parameters
            stand for any, and if the values in between are not used elsewhere.
        replacement: a function or graph module with the same parameters.

    Returns:
        The places that were replaced.

    Example:
        >>> module = torch.fx.symbolic_trace(lambda x, y: torch.relu(x + y) * 2)
        >>> matches = torch.fx.replace_pattern(module, lambda a, b: a + b, lambda a, b: torch.sub(a, b))
        >>> print(module.code.strip())
        def forward(self, x, y):
            sub = torch.sub(x, y);  x = y = None
            relu = torch.relu(sub);  sub = None
            mul = relu * 2;  relu = None
            return mul
    """
    return [Match(each.anchor, each.nodes_map) for each in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Any, replacement: Any = None, match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None, node_name_match: str = "",
) -> list[ReplacedPatterns]:  # fmt: skip
    """Replace a pattern where a graph contains it and filters agree.

    Args:
        gm, pattern, replacement: as for `replace_pattern`.
        match_filters: functions of a match, the graph and the pattern; a match is replaced if all return True.
        ignore_literals: whether numbers and texts among the arguments may differ.
        replacement_callback: returns the replacement of a match, instead of `replacement`.
        node_name_match: a text; nodes whose names contain it match the pattern's results.
    """
    graph, pattern_graph = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(pattern_graph, ignore_literals=ignore_literals)
    matches = matcher.match(graph, node_name_match)
    matches = [match for match in matches if all(f(match, graph, pattern_graph) for f in match_filters or ())]
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    common = None if replacement is None else _graph_of(replacement)

    replaced: dict[Node, Node] = {}
    done = []
    for match in matches:
        new = replacement_callback(match, graph, pattern_graph) if replacement_callback else common
        assert new is not None
        values = _values_of_parameters(match, new, replaced)
        with graph.inserting_before(_place_for(match, graph)):
            results = graph.graph_copy(new, values)
        results = (results,) if isinstance(results, Node) else results
        inserted = [node for node in values.values() if all(node is not each for each in match.placeholder_nodes)]
        if len(match.returning_nodes) != len(results):
            raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}")
        for old, node in zip(match.returning_nodes, results, strict=True):
            old.replace_all_uses_with(node)
            replaced[old] = node
        for node in reversed(pattern_graph.nodes):
            if node.op not in ("placeholder", "output"):
                graph.erase_node(match.nodes_map[node])
        done.append(ReplacedPatterns(match.anchors[0], match.nodes_map, inserted))
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return done


def _values_of_parameters(match: InternalMatch, new: Graph, replaced: dict[Node, Node]) -> dict[Node, Any]:
    """Return what the replacement's parameters stand for; nodes that were replaced since are their replacements."""
    parameters = [node for node in new.nodes if node.op == "placeholder"]
    if len(match.placeholder_nodes) != len(parameters):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(parameters)}")

    def now(value: Any) -> Any:
        return replaced.get(value, value) if isinstance(value, Node) else value

    stands_for = {id(value) for value in match.placeholder_nodes}
    match.nodes_map.update({pn: now(gn) for pn, gn in match.nodes_map.items() if id(gn) in stands_for})
    match.placeholder_nodes = [now(value) for value in match.placeholder_nodes]
    return dict(zip(parameters, match.placeholder_nodes, strict=True))


def _place_for(match: InternalMatch, graph: Graph) -> Node:
    """Return the node before which the replacement goes: the first user of its results, or else what follows them."""
    users = {user for node in match.returning_nodes for user in node.users}
    first = next((node for node in graph.nodes if node in users), None)
    if first is not None:
        return first
    last = max(match.returning_nodes, key=graph._place)
    following: Node = last.next
    if following is graph._root:
        raise AssertionError("The insert point can't be None")
    return following


def _replace_attributes(gm: GraphModule, replacement: Module) -> None:
    """Give a module what its new nodes refer to, and delete the modules that are not used any more."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr") or _member(gm, node.target) is not None:
            continue
        found = _member(replacement, node.target)
        if found is None:
            raise RuntimeError(
                'Attempted to create a "', node.op, '" node during subgraph rewriting '
                f"with target {node.target}, but the referenced attribute does not exist in the replacement "
                "GraphModule",
            )  # fmt: skip
        if isinstance(found, Module):
            gm.add_submodule(str(node.target), copy.deepcopy(found))
        else:
            setattr(gm, str(node.target), copy.deepcopy(found))
    gm.graph.lint()


def _member(module: Module, target: Any) -> Any:
    home, _, name = target.rpartition(".")
    try:
        return getattr(module.get_submodule(home), name, None)
    except AttributeError:
        return None
