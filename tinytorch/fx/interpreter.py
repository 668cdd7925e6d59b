"""`torch.fx.interpreter`: runs a graph node by node."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tinytorch.fx._symbolic_trace import Tracer
from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.node import Node, last_uses, map_aggregate, map_arg
from tinytorch.fx.proxy import Proxy, preserve_node_meta, set_current_meta
from tinytorch.nn.modules.module import Module

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph; subclasses override a method per operation, or `run_node`.

    Example:
        >>> class Counting(torch.fx.Interpreter):
        ...     calls = 0
        ...     def call_function(self, target, args, kwargs):
        ...         self.calls += 1
        ...         return super().call_function(target, args, kwargs)
        >>> counting = Counting(torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1))
        >>> counting.run(torch.ones(1)), counting.calls
        (tensor([2.]), 2)
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module: Any = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = self.module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses = last_uses([*self.graph.nodes]) if garbage_collect_values else {}

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Return the result of the graph."""
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    self._tell_of(node, error)
                raise
            for used in self.user_to_last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def _tell_of(self, node: Node, error: Exception) -> None:
        """Add the node to an error's text."""
        text = f"While executing {node.format_node()}"
        if error.args:
            text = f"{error.args[0]}\n\n{text}"
        error.args = (f"{text}\nOriginal traceback:\n{node.stack_trace}", *error.args[1:])
        if isinstance(error, KeyError):  # (whose text would show line breaks as such)
            raise RuntimeError(*error.args) from error

    @contextlib.contextmanager
    def _set_current_node(self, node: Node) -> Iterator[None]:
        with set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def run_node(self, n: Node) -> Any:
        """Return the value of a node, by the method that has the name of its operation."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    # The operations -------------------------------------------------------------------------------

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the next argument, or the default of a parameter."""
        if target.startswith("*"):
            return list(self.args_iter)
        for value in self.args_iter:
            return value
        if args:
            return args[0]
        raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!")

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the module's attribute at a path."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a method of the first argument."""
        owner, *rest = args
        return getattr(owner, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a module."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of the graph."""
        return args[0]

    # Values ---------------------------------------------------------------------------------------

    def fetch_attr(self, target: str) -> Any:
        """Return the module's attribute at a path."""
        found = self.module
        names = target.split(".")
        for depth, name in enumerate(names):
            if not hasattr(found, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(names[: depth + 1])}")
            found = getattr(found, name)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the values of a node's arguments."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Return arguments with the values of nodes in their place."""

        def value_of(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value_of)


class _Placing(Tracer):
    """The tracer of a `Transformer`: no module is entered."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.tensor_attrs = {}

    def is_leaf_module(self, _: Module, __: str) -> bool:
        return True


class Transformer(Interpreter):
    """Makes a new graph module by running a graph with symbolic values; subclasses override methods per operation.

    Example:
        >>> class Negated(torch.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         return -super().call_function(target, args, kwargs)
        >>> module = torch.fx.symbolic_trace(lambda x: torch.relu(x))
        >>> Negated(module).transform()(torch.ones(1))
        tensor([-1.])
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer: Any = _Placing(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Insert a parameter; return its symbolic value."""
        default = {"default_value": args[0]} if args else {}
        return Proxy(self.new_graph.placeholder(target, **default), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Insert a node that reads an attribute; return its symbolic value."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Insert a call of a module, or enter it if `self.tracer` does not take it for a leaf."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Insert a call of a function; return its symbolic value."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Return the new graph module."""
        with preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            nodes = map_aggregate(result, lambda x: x.node if isinstance(x, Proxy) else x)
            old, made = self.graph.output_node(), self.new_graph.output(nodes)
            made.meta = dict(old.meta)
        made_module = GraphModule(self.module, self.new_graph)
        return made_module
