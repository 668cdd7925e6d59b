"""`torch.fx.passes.utils.common`: modules of parts of graphs."""

from __future__ import annotations

from typing import Any

from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.passes.utils.matcher_utils import SubgraphMatcher
from tinytorch.nn.modules.module import Module

__all__ = ["HolderModule", "compare_graphs", "lift_subgraph_as_module"]


class HolderModule(Module):
    """A module with given children, and no `forward`.

    Args:
        d: the children by name.
    """

    def __init__(self, d: dict[str, Module | None]) -> None:
        super().__init__()
        for name, child in d.items():
            self.add_module(name, child)


def lift_subgraph_as_module(
    gm: Module, subgraph: Graph, comp_name: str = "", class_name: str = "GraphModule"
) -> tuple[GraphModule, dict[str, str]]:
    """Return a graph module that shares with another what a graph refers to.

    Args:
        gm: the other module.
        subgraph: the graph.
        comp_name: the name of the new module, in the paths that are returned.
        class_name: the name of its class.

    Returns:
        The graph module; and by the paths in `gm` those in a module that has the new one as `comp_name`.
    """
    holder = HolderModule({})
    paths: dict[str, str] = {}
    for node in subgraph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        target: Any = node.target
        if not isinstance(target, str):
            raise AssertionError(f"Expected str target, got {type(target)}")
        *path, name = target.split(".")
        owner: Any = holder
        source: Any = gm
        for part in path:
            if not hasattr(owner, part):
                owner.add_module(part, HolderModule({}))
            owner, source = getattr(owner, part), getattr(source, part)
        setattr(owner, name, getattr(source, name))
        paths[target] = f"{comp_name}.{target}"
    return GraphModule(holder, subgraph, class_name), paths


def compare_graphs(left: Graph, right: Graph) -> bool:
    """Return whether two graphs do the same with the same parameters and results, in the same order.

    Example:
        >>> from tinytorch.fx.passes.utils.common import compare_graphs
        >>> one, two = [torch.fx.symbolic_trace(lambda x: x + 1).graph for _ in range(2)]
        >>> compare_graphs(one, two)
        True
    """
    return len(SubgraphMatcher(left, match_output=True, match_placeholder=True).match(right)) > 0
