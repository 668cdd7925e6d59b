"""`torch.fx.passes.dialect.common.cse_pass`: equal calls of functions are done once."""

from __future__ import annotations

from typing import Any

from tinytorch import ops
from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.node import Node, map_arg
from tinytorch.fx.passes.pass_manager import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

#: The operators of `torch.ops.aten` that draw random numbers, and those that write into their arguments.
_RANDOM = """
    dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal poisson binomial rrelu rand_like
    rand randint randn randperm
"""
_WRITING = "add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_"


def get_CSE_banned_ops() -> set[Any]:
    """Return the operators of `torch.ops.aten` whose calls differ, or that write into their arguments."""
    return {getattr(ops.aten, name) for name in f"{_RANDOM} {_WRITING}".split()}


class CSEPass(PassBase):
    """Removes calls that an earlier one equals: the same function with the same arguments.

    Args:
        banned_ops: functions whose calls all stay, among them those with effects.

    Example:
        >>> from tinytorch.fx.passes.dialect.common.cse_pass import CSEPass
        >>> traced = torch.fx.symbolic_trace(lambda x: torch.sin(x) + torch.sin(x))
        >>> print(CSEPass()(traced).graph_module.code.strip())
        def forward(self, x):
            sin = torch.sin(x);  x = None
            add = sin + sin;  sin = None
            return add
    """

    def __init__(self, banned_ops: Any = None) -> None:
        self.banned_ops = set() if banned_ops is None else banned_ops

    def call(self, graph_module: GraphModule) -> PassResult:
        """Return a module with the calls done once; the given one, if there are no equal calls."""
        graph = Graph()
        made: dict[Node, Node] = {}
        calls: dict[Any, Node] = {}
        for node in graph_module.graph.nodes:
            target = getattr(node.target, "overloadpacket", node.target)
            if node.op in ("placeholder", "output", "get_attr") or target in self.banned_ops:
                made[node] = graph.node_copy(node, made.__getitem__)
                continue
            arguments = map_arg((node.args, dict(node.kwargs)), made.__getitem__)
            call = node.op, node.target, _told_apart(arguments)
            if call in calls:
                made[node] = calls[call]
                continue
            made[node] = calls[call] = graph.node_copy(node, made.__getitem__)
        if len(graph.nodes) == len(graph_module.graph.nodes):
            return PassResult(graph_module, False)
        return PassResult(GraphModule(graph_module, graph), True)


def _told_apart(value: Any) -> Any:
    """Return a key for an argument: equal keys mean equal arguments, of containers of one type."""
    if isinstance(value, (list, tuple)):
        return type(value), *[_told_apart(each) for each in value]
    if isinstance(value, dict):
        return dict, *[(key, _told_apart(each)) for key, each in value.items()]
    if isinstance(value, slice):
        return slice, *[_told_apart(each) for each in (value.start, value.stop, value.step)]
    return type(value), value  # (1 is not 1.0: the sums have other dtypes)
