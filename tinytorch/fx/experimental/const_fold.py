"""`torch.fx.experimental.const_fold`: computes once what depends on parameters and buffers alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.fx._symbolic_trace import symbolic_trace
from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.node import Node, map_arg
from tinytorch.fx.passes.split_module import split_module
from tinytorch.nn.modules.container import ParameterList
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.create import tensor

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """A graph module that computes its constants at its first call.

    Args:
        root: has what the graphs refer to.
        graph: the graph, which reads the constants as an attribute.
        const_subgraph: the graph that computes them; None if there are none.
        fx_const_folded_attrs_name: the attribute's name.
        device_for_folded_attrs: the device of constants that are numbers.
    """

    def __init__(
        self, root: Module, graph: Graph, const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None, device_for_folded_attrs: str = "cuda",
    ) -> None:  # fmt: skip
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result, after the constants were computed."""
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args)

    def run_folding(self) -> None:
        """Compute the constants.

        Raises:
            AssertionError: they are computed already.
        """
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        values = self.const_subgraph_module()
        kept: Any = ParameterList([self._kept(each) for each in values]) if isinstance(values, tuple) else None
        setattr(self, self.fx_const_folded_attrs_name, self._kept(values) if kept is None else kept)

    def _kept(self, value: Any) -> Parameter:
        if isinstance(value, Tensor):
            return Parameter(value.detach().clone(), requires_grad=value.requires_grad)
        return Parameter(tensor([float(value)]).to(device=self.device_for_folded_attrs), requires_grad=False)


def _inline_module(gm: GraphModule, inline_mod_name: str, run_dce: bool = True) -> dict[Node, Any]:
    """Put the nodes of a child, which is a graph module, in place of its call; return the new nodes by the child's."""
    child: Any = dict(gm.named_modules())[inline_mod_name]
    if not isinstance(child, GraphModule):
        raise AssertionError(f"Expected GraphModule, got {type(child)}")
    calls = gm.graph.find_nodes(op="call_module", target=inline_mod_name)
    if not calls:
        raise AssertionError(f"Could not find call_module node for {inline_mod_name}")
    call = calls[0]
    made: dict[Node, Any] = {}

    def new(node: Node) -> Node:
        made[node].meta = node.meta.copy()
        value: Node = made[node]
        return value

    given = iter(call.args)
    for node in child.graph.nodes:
        if node.op == "placeholder":
            value = next(given, None)
            made[node] = call.kwargs.get(node.name, value)
        elif node.op != "output":
            with gm.graph.inserting_before(call):
                made[node] = gm.graph.node_copy(node, new)
    result = map_arg(child.graph.output_node().args[0], new)
    items = [user for user in call.users if isinstance(result, (list, tuple)) and _reads_item(user)]
    for user in items:
        made[user] = result[user.args[1]]
        user.replace_all_uses_with(made[user])
        gm.graph.erase_node(user)
    if call.users:
        call.replace_all_uses_with(result)
    gm.graph.erase_node(call)
    if run_dce:
        gm.graph.eliminate_dead_code()
    return made


def _reads_item(node: Node) -> bool:
    name = getattr(node.target, "__name__", "")
    return node.op == "call_function" and name == "getitem" and isinstance(node.args[1], int)


def get_unique_attr_name_in_module(mod_traced: Any, name: str) -> str:
    """Return a name like another one that a module does not have.

    Example:
        >>> from tinytorch.fx.experimental.const_fold import get_unique_attr_name_in_module
        >>> get_unique_attr_name_in_module(torch.nn.Linear(1, 1), "weight")
        'weight_1'
    """
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    if name[0].isdigit():
        name = f"_{name}"
    while hasattr(mod_traced, name):
        numbered = re.match(r"(.*)_(\d+)$", name)
        name = f"{numbered[1]}_{int(numbered[2]) + 1}" if numbered else f"{name}_1"
    return name


def _has_effects(module: Any) -> bool:
    """Return whether a graph module has a call with an effect, in modules inside too."""
    for node in module.graph.nodes:
        if node.op == "call_function" and node.is_impure():
            return True
        below = module.get_submodule(str(node.target)) if node.op == "call_module" else None
        if isinstance(below, GraphModule) and _has_effects(below):
            return True
    return False


def _constants(module: GraphModule, skips: Callable[[Node], bool] | None) -> set[Node]:
    """Return the nodes that depend on attributes alone."""
    found: set[Node] = set()
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output") or (skips and skips(node)):
            continue
        if node.op != "get_attr" and not found.issuperset(node.all_input_nodes):
            continue
        below = module.get_submodule(str(node.target)) if node.op == "call_module" else None
        if not node.is_impure() and not (isinstance(below, GraphModule) and _has_effects(below)):
            found.add(node)
    return found


def split_const_subgraphs(
    module: Module, skip_folding_node_fn: Callable[[Node], bool] | None = None, device_for_folded_attrs: str = "cpu"
) -> FoldedGraphModule:
    """Return a graph module that computes at its first call what depends on parameters and buffers alone.

    Args:
        module: the module, which is traced if it is no graph module.
        skip_folding_node_fn: returns whether a node is computed at each call, whatever it depends on.
        device_for_folded_attrs: the device of constants that are numbers.

    Example:
        >>> import warnings
        >>> from tinytorch.fx.experimental.const_fold import split_const_subgraphs
        >>> class Scaled(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.weight = torch.nn.Parameter(torch.ones(2))
        ...     def forward(self, x):
        ...         return x * self.weight.exp()
        >>> with warnings.catch_warnings(action="ignore"):  # of a graph that has the parameter before the module has
        ...     folded = split_const_subgraphs(Scaled())
        >>> print(folded.code.strip())
        def forward(self, x):
            _fx_const_folded_attrs = self._FX_CONST_FOLDED_ATTRS
            mul = x * _fx_const_folded_attrs;  x = _fx_const_folded_attrs = None
            return mul
    """
    traced: Any = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constants(traced, skip_folding_node_fn)
    if all(node.op == "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)
    split: Any = split_module(traced, module, lambda node: 0 if node in constant else 1)
    computing = split.submod_0
    for part in (computing, getattr(split, "submod_1", None)):
        for node in part.graph.find_nodes(op="call_module", sort=False) if part is not None else ():
            setattr(split, node.target, getattr(part, node.target))
    call = split.graph.find_nodes(op="call_module", target="submod_0")[0]

    # The parameters of the part that computes the constants become attributes of the module.
    holder = GraphModule(split, computing.graph)
    parameters = holder.graph.find_nodes(op="placeholder")
    for node, given in zip(parameters, call.args, strict=False):
        if given.op != "get_attr":
            raise AssertionError(f"Expected get_attr, got {given.op}")
        with holder.graph.inserting_before(node):
            read = holder.graph.get_attr(given.target)
        read.meta = node.meta.copy()
        node.replace_all_uses_with(read)
        holder.graph.erase_node(node)
    several = isinstance(holder.graph.output_node().args[0], tuple)

    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    setattr(split, name, ParameterList() if several else Parameter(tensor([])))
    with split.graph.inserting_before(call):
        read = split.graph.get_attr(name)
    read.meta = call.meta.copy()
    call.replace_all_uses_with(read)
    if hasattr(split, "submod_1"):
        _inline_module(split, "submod_1")
    split.graph.eliminate_dead_code()
    return FoldedGraphModule(split, split.graph, holder.graph, name, device_for_folded_attrs)
