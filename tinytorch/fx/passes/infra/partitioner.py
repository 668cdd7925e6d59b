"""`torch.fx.passes.infra.partitioner`: finds the parts of a graph that a backend can run."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

from tinytorch.fx._names import qualified_name
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.node import Node
from tinytorch.fx.passes.operator_support import OperatorSupportBase
from tinytorch.fx.passes.utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """A group of nodes.

    Args:
        id: its number.
        nodes: the nodes.
        node_orders: the places of the nodes, counted from the end of the graph.
    """

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None, node_orders: Iterable[int] | None = None
    ) -> None:
        self.id = id
        self.nodes: dict[Node, int | None] = dict.fromkeys(nodes or ())
        if nodes is not None and node_orders is not None:
            places = list(node_orders)
            if len(places) != len(self.nodes):
                raise AssertionError("nodes and node_orders must have the same length")
            self.nodes = dict(zip(self.nodes, places, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Add a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Remove a node."""
        del self.nodes[node]

    def size(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)


class _Proposal:
    """Groups of nodes that grow: two become one unless that closes a circle.

    Attributes:
        groups: the groups by their numbers.
        group_of: the number of each node's group.
        first: by group, its smallest number when it was made, in which order groups are joined.
        users: by group, the nodes outside that use its values.
        reached: by group, the groups that need its values.
    """

    def __init__(self, nodes: list[Node]) -> None:
        self.groups: dict[int, Partition] = {}
        self.group_of: dict[Node, int] = {}
        self.first: dict[int, int] = {}
        self.users: dict[int, set[Node]] = {}
        self.reached: dict[int, set[int]] = {}
        self.below: dict[Node, set[Node]] = {}
        for node in reversed(nodes):
            below = self.below[node] = set(node.users)
            for user in node.users:
                below |= self.below[user]

    def ways(self, users: Iterable[Node]) -> Iterable[Node]:
        """Return nodes, and all that need them."""
        for user in users:
            yield user
            yield from self.below[user]

    def groups_below(self, users: Iterable[Node]) -> set[int]:
        """Return the groups that need nodes, or need groups that do."""
        found: set[int] = set()
        for node in self.ways(users):
            group = self.group_of.get(node)
            if group is not None:
                found.add(group)
                found |= self.reached[group]
        return found

    def begin(self, node: Node, place: int, number: int) -> None:
        """Make a group of one node."""
        self.first[number] = number
        self.group_of[node] = number
        self.groups[number] = Partition(number, [node], [place])
        self.users[number] = set(node.users)
        self.reached[number] = self.groups_below(node.users) - {number}

    def move(self, node: Node, group: int | None) -> None:
        """Put a node into another group, or into none."""
        if node in self.group_of:
            self.groups[self.group_of.pop(node)].remove_node(node)
        if group is not None:
            self.group_of[node] = group
            self.groups[group].add_node(node)

    def join(self, one: int, other: int) -> int:
        """Join two groups if they can be run at once; return the number of the joined group, else of the first."""
        nodes, others = self.groups[one].nodes, self.groups[other].nodes
        users = (self.users[one] | self.users[other]).difference(nodes, others)
        for node in self.ways(users):
            if node in nodes or node in others:
                return one
            group = self.group_of.get(node)
            if group is not None and not self.reached[group].isdisjoint((one, other)):
                return one
        kept, gone = (other, one) if len(nodes) < len(others) else (one, other)
        moved = self.groups.pop(gone).nodes
        self.groups[kept].nodes.update(moved)
        self.group_of.update(dict.fromkeys(moved, kept))
        self.first[kept] = min(self.first[kept], self.first.pop(gone))
        del self.users[gone]
        self.users[kept] = users
        self.reached[kept] |= self.reached.pop(gone) | self.groups_below(users)
        self.reached[kept] -= {kept, gone}
        return kept


class CapabilityBasedPartitioner:
    """Finds the largest groups of nodes that a backend supports and that can each be run at once.

    Args:
        graph_module: the graph module.
        operator_support: tells which nodes are supported.
        allows_single_node_partition: whether a group may have a single node that computes.
        non_compute_ops: names of functions that do not count as computing.
        allowed_single_node_partition_ops: names of functions that may be alone in a group.
        skip_horizontal_fusion: whether groups are only joined where one uses a value of the other.

    Example:
        >>> from tinytorch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
        >>> from tinytorch.fx.passes.operator_support import OperatorSupport
        >>> module = torch.fx.symbolic_trace(lambda x: torch.sin(torch.cos(torch.relu(x))))
        >>> support = OperatorSupport({"torch.sin": None, "torch.cos": None})
        >>> [list(group.nodes) for group in CapabilityBasedPartitioner(module, support).propose_partitions()]
        [[cos, sin, output]]
    """

    def __init__(
        self, graph_module: GraphModule, operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False, non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None, skip_horizontal_fusion: bool = False,
    ) -> None:  # fmt: skip
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = [] if non_compute_ops is None else non_compute_ops
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def _is_node_supported(self, node: Node) -> bool:
        return self.operator_support.is_node_supported(dict(self.graph_module.named_modules()), node)

    def propose_partitions(self) -> list[Partition]:
        """Return the groups."""
        nodes = list(self.graph_module.graph.nodes)
        proposal = _Proposal(nodes)
        numbers = itertools.count()
        for place, node in enumerate(reversed(nodes)):
            candidates: dict[int, None] = {}
            begun = self._is_node_supported(node) and node not in proposal.group_of
            if begun:
                number = next(numbers)
                proposal.begin(node, place, number)
                candidates[number] = None
            if not self.skip_horizontal_fusion:
                candidates.update(dict.fromkeys(sorted(proposal.first, key=proposal.first.__getitem__)))
            elif begun:
                users = [user for user in node.users if user in proposal.group_of]
                candidates.update(dict.fromkeys([proposal.group_of[user] for user in users]))
            one, *others = candidates or [0]
            for other in others:
                one = proposal.join(one, other)
        for group in proposal.groups.values():
            places: Any = group.nodes.__getitem__
            group.nodes = {node: group.nodes[node] for node in sorted(group.nodes, key=places, reverse=True)}
        self._gather_items(proposal)
        groups = list(proposal.groups.values())
        if not self.allows_single_node_partition:
            groups = [group for group in groups if self._computes(group) > 1]
        return [group for group in groups if group.nodes]

    def _gather_items(self, proposal: _Proposal) -> None:
        """Put the items of a value, if nothing else of it is used, into the group of the value."""
        while True:
            moved: dict[Node, int | None] = {}
            for node in self.graph_module.graph.nodes:
                if all(user.op == "call_function" and user.target is operator.getitem for user in node.users):
                    group = proposal.group_of.get(node)
                    moved.update({user: group for user in node.users if proposal.group_of.get(user) != group})
            if not moved:
                return
            for node, group in moved.items():
                proposal.move(node, group)

    def _computes(self, group: Partition) -> int:
        """Return how many nodes compute; those that may be alone count twice."""
        idle = {"torch.ops.aten.view", "_operator.getitem", *self.non_compute_ops}
        names = [qualified_name(node.target) for node in group.nodes if callable(node.target)]
        return sum((name not in idle) + (name in self.allowed_single_node_partition_ops) for name in names)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Put groups into modules of their own (`fuse_by_partitions`); return the graph module."""
        return fuse_by_partitions(self.graph_module, [group.nodes for group in partitions], prefix)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Find the groups and put them into modules of their own; return the graph module."""
        return self.fuse_partitions(self.propose_partitions(), prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Remove from groups the nodes at their borders that do not compute (`non_compute_ops`).

        Args:
            partitions: the groups, which are changed.
        """
        names = set(self.non_compute_ops)

        def idle(node: Node) -> bool:
            return node.op == "call_function" and qualified_name(node.target) in names  # type: ignore[arg-type]

        above: dict[Node, bool] = {}
        below: dict[Node, bool] = {}

        def at_border(node: Node, inside: set[Node], down: bool) -> bool:
            """Return whether all ways from a node up or down leave the group through idle nodes alone."""
            known = below if down else above
            if node.op == "placeholder" or node not in inside:
                return True
            if node not in known:
                known[node] = idle(node) and all(
                    at_border(each, inside, down) for each in (node.users if down else node.all_input_nodes)
                )
            return known[node]

        for group in partitions:
            inside = set(group.nodes)
            for node in list(group.nodes):
                if idle(node) and (at_border(node, inside, down=False) or at_border(node, inside, down=True)):
                    inside.discard(node)
                    del group.nodes[node]
