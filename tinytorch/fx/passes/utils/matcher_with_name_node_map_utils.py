"""`torch.fx.passes.utils.matcher_with_name_node_map_utils`: patterns that give names to their nodes."""

from __future__ import annotations

from typing import Any

from tinytorch.fx._codegen import _PyTreeInfo
from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.node import Node
from tinytorch.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher
from tinytorch.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """Remove the dict of named nodes from a pattern's results; return the module and the dict."""
    node = gm.graph.output_node()
    codegen: Any = gm._graph._codegen
    spec: Any = getattr(gm, "_out_spec", None)
    if spec is None:
        raise AssertionError("gm._out_spec is None")
    leaves: Any = node.args[0]
    output = tree_unflatten(list(leaves), spec)
    if not isinstance(output, tuple):
        raise AssertionError("Expecting the pattern graph to return a tuple")
    if len(output) < 2:
        raise AssertionError("Expecting the pattern graph to have at least two outputs")
    *results, names = output
    if not isinstance(names, dict):
        raise AssertionError("Expecting the input graph to have a dict output as the last element")
    flat, out_spec = tree_flatten(results)
    node.args = (flat,)
    codegen.pytree_info = _PyTreeInfo(codegen.pytree_info.orig_args, codegen.pytree_info.in_spec, out_spec)
    gm.recompile()
    return gm, names


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Finds a pattern that returns, besides its results, a dict of its nodes by name.

    Args:
        pattern_gm: the pattern, which is changed.
        match_output, match_placeholder, remove_overlapping_matches, ignore_literals: as in `SubgraphMatcher`.
    """

    def __init__(
        self, pattern_gm: GraphModule, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False,
    ) -> None:  # fmt: skip
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the places where a graph contains the pattern, with the nodes by name as `name_node_map`."""
        matches = super().match(graph, node_name_match)
        for match in matches:
            match.name_node_map.update({name: match.nodes_map[node] for name, node in self.name_node_map.items()})
        return matches
