"""`torch.fx.passes.utils.matcher_utils`: finds where a graph contains a pattern, which is a graph, too."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import _get_attr
from tinytorch.fx.node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """A place where a graph contains a pattern.

    Attributes:
        anchors: the nodes of the pattern that the search started from.
        nodes_map: the nodes of the graph, by those of the pattern.
        placeholder_nodes: what the pattern's parameters stand for.
        returning_nodes: the nodes of the pattern's results.
        name_node_map: the nodes by names, where the pattern has some.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Any] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors, dict(self.nodes_map), list(self.placeholder_nodes), list(self.returning_nodes)
        )


class SubgraphMatcher:
    """Finds a pattern in graphs.

    Args:
        pattern: the graph of the pattern.
        match_output: whether the pattern's output has to be that of the graph.
        match_placeholder: whether the pattern's parameters have to be parameters; else they stand for anything.
        remove_overlapping_matches: whether of matches with common nodes only the first counts.
        ignore_literals: whether numbers and texts among the arguments may differ.

    Raises:
        ValueError: the pattern is empty.
        AssertionError: a value of the pattern is not used.
    """

    def __init__(
        self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False,
    ) -> None:  # fmt: skip
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.users and not node.is_impure():
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        output = pattern._root.prev
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        self.pattern_returning_nodes = output.all_input_nodes
        sinks = [node for node in output.all_input_nodes if len(node.users) == 1]
        self.pattern_anchors = [output] if match_output else sinks

    # Two nodes ------------------------------------------------------------------------------------

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        """Return whether two nodes read attributes of one kind; tensors need not be equal."""
        values = []
        for node in (pn, gn):
            if node.graph.owning_module is None:
                raise AssertionError(f"{'pn' if node is pn else 'gn'}.graph.owning_module must not be None")
            values.append(_get_attr(node.graph.owning_module, str(node.target)))
        if type(values[0]) is not type(values[1]):
            return False
        if isinstance(values[0], Tensor):
            return True
        raise RuntimeError(f"Unsupported type {values[0]} when matching attributes")

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """Return whether a node of the graph may stand for one of the pattern, whatever their arguments."""
        if pn.op == "placeholder" and not self.match_placeholder:
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.target == gn.target

    def _match_literals(self, pn: Any, gn: Any, match: InternalMatch) -> bool:
        """Return whether arguments match of which one is not a node: a parameter of the pattern stands for any."""
        if isinstance(pn, Node) and isinstance(gn, Node):
            raise AssertionError("pn and gn cannot both be Node")
        if isinstance(pn, Node):
            if pn.op != "placeholder":
                return False
            return bool(match.nodes_map.setdefault(pn, gn) == gn)
        return not isinstance(gn, Node) and type(gn) is type(pn) and gn == pn

    def _match_args(self, pattern: Iterable[Any], given: Iterable[Any], match: InternalMatch) -> bool:
        pattern, given = list(pattern), list(given)
        if len(pattern) != len(given):
            return False
        for own, each in zip(pattern, given, strict=True):
            if isinstance(own, Node) and isinstance(each, Node):
                fits = self._match_nodes(own, each, match)
            elif isinstance(own, (list, tuple)) and isinstance(each, (list, tuple)):
                fits = self._match_args(own, each, match)
            else:
                fits = self._match_literals(own, each, match) or self.ignore_literals
            if not fits:
                return False
        return True

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = "") -> bool:
        """Extend a match by two nodes and all that they are computed from; return whether that is possible."""
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        if any(gn is each for each in match.nodes_map.values()) or not self._nodes_are_equal(pn, gn, node_name_match):
            return False
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        return list(pn.kwargs) == list(gn.kwargs) and self._match_args(
            [*pn.args, *pn.kwargs.values()], [*gn.args, *gn.kwargs.values()], match
        )

    # The whole pattern ----------------------------------------------------------------------------

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the places where a graph contains the pattern.

        A match is found from the pattern's results backwards. The values inside it are used by it alone, and it can be
        computed at once: nothing outside of it needs one of its values, and is needed by another.

        Args:
            graph: the graph.
            node_name_match: a text; nodes of the graph whose names contain it match the pattern's results.
        """
        candidates = [
            (anchor, [node for node in graph.nodes if self._nodes_are_equal(anchor, node, node_name_match)])
            for anchor in self.pattern_anchors
        ]
        candidates = [(anchor, nodes) for anchor, nodes in candidates if nodes]
        if not candidates:
            return []
        found = self._extended(InternalMatch(self.pattern_anchors), candidates, node_name_match)
        matches = [each for each in found if self._is_contained(each.nodes_map) and not _is_circle(each)]
        if self.remove_overlapping_matches:
            matches = self._remove_overlapping_matches(matches)
        return matches

    def _extended(
        self, match: InternalMatch, candidates: list[tuple[Node, list[Node]]], node_name_match: str
    ) -> Iterator[InternalMatch]:
        """Return all extensions of a match by nodes for the remaining results of the pattern."""
        if not candidates:
            match.placeholder_nodes = [match.nodes_map[node] for node in self.pattern_placeholder_nodes]
            match.returning_nodes = [match.nodes_map[node] for node in self.pattern_returning_nodes]
            yield match
            return
        (anchor, nodes), *rest = candidates
        for node in nodes:
            extended = copy.copy(match)
            if self._match_nodes(anchor, node, extended, node_name_match):
                yield from self._extended(extended, rest, node_name_match)

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Return whether the values inside a match, its results apart, are used by the match alone."""
        inside = {id(gn) for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        for pn, gn in nodes_map.items():
            if pn.op == "placeholder" or pn in self.pattern_returning_nodes:
                continue
            if any(id(user) not in inside for user in gn.users):
                return False
        return True

    def _remove_overlapping_matches(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        kept: list[InternalMatch] = []
        taken: set[Node] = set()
        for match in matches:
            own = {gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output")}
            if taken.isdisjoint(own):
                kept.append(match)
                taken |= own
        return kept


def _is_circle(match: InternalMatch) -> bool:
    """Return whether something outside of a match uses one of its values, and computes another."""
    inside = {gn for pn, gn in match.nodes_map.items() if pn.op not in ("placeholder", "output")}
    seen: set[Node] = set()
    waiting = [user for node in inside for user in node.users if user not in inside]
    while waiting:
        node = waiting.pop()
        if node in inside:
            return True
        if node not in seen:
            seen.add(node)
            waiting += node.users
    return False
