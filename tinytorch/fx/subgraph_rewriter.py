"""`torch.fx.subgraph_rewriter`: replaces a pattern wherever a graph contains it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, NoReturn

from tinytorch.core.tensor import Tensor
from tinytorch.fx._symbolic_trace import symbolic_trace
from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import GraphModule, _get_attr
from tinytorch.fx.node import Node
from tinytorch.nn.modules.module import Module

__all__ = ["Match", "replace_pattern"]

#: What the nodes of a pattern stand for: nodes of the graph or, for parameters, also numbers and texts.
Found = dict[Node, Any]


class Match(NamedTuple):
    """A place where a pattern was replaced: its result, and the nodes of the graph by those of the pattern."""

    anchor: Node
    nodes_map: Found


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace a pattern wherever a graph contains it, without overlaps.

    Args:
        gm: the module whose graph is changed; its code is generated anew.
        pattern: a function or graph module. A place matches if the same is called, on values of which its parameters
            stand for any, and if the values in between are not used elsewhere.
        replacement: a function or graph module with the same parameters.

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
    graph, matcher, new = gm.graph, _Matcher(_graph_of(pattern)), _graph_of(replacement)
    parameters = [node for node in new.nodes if node.op == "placeholder"]
    replaced: dict[Node, Node] = {}
    places = matcher.places(graph)
    if places and len(parameters) != len(matcher.parameters):
        raise AssertionError(f"Placeholder count mismatch: {len(matcher.parameters)} vs {len(parameters)}")
    for found in places:
        for own in matcher.parameters:  # (nodes that were replaced since are their replacements)
            value = found[own]
            found[own] = replaced.get(value, value) if isinstance(value, Node) else value
        returned = [found[node] for node in matcher.results]
        values = dict(zip(parameters, [found[own] for own in matcher.parameters], strict=True))
        with graph.inserting_before(_place_for(returned, graph)):
            results = graph.graph_copy(new, values)
        results = (results,) if isinstance(results, Node) else results
        if len(returned) != len(results):
            raise AssertionError(f"Returning nodes count mismatch: {len(returned)} vs {len(results)}")
        for old, node in zip(returned, results, strict=True):
            old.replace_all_uses_with(node)
            replaced[old] = node
        for node in reversed(matcher.pattern.nodes):
            if node.op not in ("placeholder", "output"):
                graph.erase_node(found[node])
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return [Match(matcher.anchors[0], found) for found in places]


def replace_pattern_with_filters(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: `replace_pattern` has no options."""
    raise NotImplementedError("torch.fx.subgraph_rewriter.replace_pattern_with_filters: use replace_pattern")


def _graph_of(program: Any) -> Graph:
    """Return the graph of a graph module or a function."""
    if isinstance(program, GraphModule):
        return program.graph
    graph: Graph = program if isinstance(program, Graph) else symbolic_trace(program).graph
    return graph


def _place_for(returned: list[Node], graph: Graph) -> Node:
    """Return the node before which the replacement goes: the first user of its results, or else what follows them."""
    users = {user for node in returned for user in node.users}
    first = next((node for node in graph.nodes if node in users), None)
    return max(returned, key=graph._place).next if first is None else first


# Where a graph contains a pattern -----------------------------------------------------------------


class _Matcher:
    """Finds a pattern in graphs."""

    def __init__(self, pattern: Graph) -> None:
        self.pattern = pattern
        if not len(pattern.nodes):
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.users and not node.is_impure():
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        self.parameters = [node for node in pattern.nodes if node.op == "placeholder"]
        self.results = pattern._root.prev.all_input_nodes
        self.anchors = [node for node in self.results if len(node.users) == 1]

    def places(self, graph: Graph) -> list[Found]:
        """Return the places where a graph contains the pattern, without overlaps.

        A place is found from the pattern's results backwards. The values inside it are used by it alone, and it can be
        computed at once: nothing outside of it needs one of its values, and is needed by another.
        """
        candidates = [(anchor, [node for node in graph.nodes if _is_alike(anchor, node)]) for anchor in self.anchors]
        candidates = [(anchor, nodes) for anchor, nodes in candidates if nodes]
        kept: list[Found] = []
        taken: set[Node] = set()
        for found in self._extended({}, candidates) if candidates else ():
            own = {gn for pn, gn in found.items() if pn.op != "placeholder"}
            if self._is_contained(found, own) and not _is_circle(own) and taken.isdisjoint(own):
                kept.append(found)
                taken |= own
        return kept

    def _extended(self, found: Found, candidates: list[tuple[Node, list[Node]]]) -> Iterator[Found]:
        """Yield all extensions of a place by nodes for the remaining results of the pattern."""
        if not candidates:
            yield found
            return
        (anchor, nodes), *rest = candidates
        for node in nodes:
            extended = dict(found)
            if _fits(anchor, node, extended):
                yield from self._extended(extended, rest)

    def _is_contained(self, found: Found, own: set[Node]) -> bool:
        """Return whether the values inside a place, its results apart, are used by it alone."""
        inside = [gn for pn, gn in found.items() if pn.op != "placeholder" and pn not in self.results]
        return all(user in own for node in inside for user in node.users)


def _is_alike(pn: Node, gn: Node) -> bool:
    """Return whether a node of the graph may stand for one of the pattern, whatever their arguments."""
    if pn.op == "placeholder":
        return True
    return pn.op == gn.op and (_reads_alike(pn, gn) if pn.op == "get_attr" else pn.target == gn.target)


def _reads_alike(pn: Node, gn: Node) -> bool:
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


def _fits(pn: Node, gn: Node, found: Found) -> bool:
    """Extend a place by two nodes and all that they are computed from; return whether that is possible."""
    if pn in found:
        return found[pn] is gn
    if any(gn is each for each in found.values()) or not _is_alike(pn, gn):
        return False
    found[pn] = gn
    if pn.op == "placeholder":
        return True
    arguments = [*pn.args, *pn.kwargs.values()], [*gn.args, *gn.kwargs.values()]
    return list(pn.kwargs) == list(gn.kwargs) and _arguments_fit(*arguments, found)


def _arguments_fit(pattern: Iterable[Any], given: Iterable[Any], found: Found) -> bool:
    pattern, given = list(pattern), list(given)
    if len(pattern) != len(given):
        return False
    for own, each in zip(pattern, given, strict=True):
        if isinstance(own, Node) and isinstance(each, Node):
            fits = _fits(own, each, found)
        elif isinstance(own, (list, tuple)) and isinstance(each, (list, tuple)):
            fits = _arguments_fit(own, each, found)
        elif isinstance(own, Node):  # a parameter of the pattern stands for any number or text, too
            fits = own.op == "placeholder" and bool(found.setdefault(own, each) == each)
        else:
            fits = not isinstance(each, Node) and type(each) is type(own) and each == own
        if not fits:
            return False
    return True


def _is_circle(inside: set[Node]) -> bool:
    """Return whether something outside of a place uses one of its values, and computes another."""
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


# What a replacement refers to ---------------------------------------------------------------------


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
