"""`torch.fx.graph`: a program as a list of nodes."""

from __future__ import annotations

import copy
import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Literal

from tinytorch.core.warning import warn
from tinytorch.fx._codegen import CodeGen, PythonCode, _is_magic, _Namespace, _snake_case
from tinytorch.fx._names import own_name
from tinytorch.fx.node import Node, _legal_ops, map_aggregate, map_arg
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.members import typename

__all__ = ["CodeGen", "Graph", "PythonCode"]

_REQUIRED: Any = inspect.Signature.empty


class _InsertPoint:
    """A context manager in which new nodes are inserted at a place of the list."""

    def __init__(self, graph: Graph, new_insert: Callable[[Node], None]) -> None:
        self.graph = graph
        self.before, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.before


class _node_list:
    """The nodes of a graph in order; nodes may be inserted and erased during an iteration."""

    def __init__(self, graph: Graph, direction: Literal["_prev", "_next"] = "_next") -> None:
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        end = self.graph._root
        node = getattr(end, self.direction)
        while node is not end:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, "_prev" if self.direction == "_next" else "_next")


class Graph:
    """A program: parameters, calls and a result, as a list of nodes, each of which uses values of earlier ones.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> y = graph.call_function(torch.relu, (x,))
        >>> result = graph.output(y)
        >>> print(graph)
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
            return relu
    """

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: dict[str, Any] | None = None
    ) -> None:
        self._places: dict[Node, int] = {}  # the numbers of the nodes, after somebody has asked for one
        self._owning_module = owning_module
        self._root = Node(self, "", "root", "", (), {})
        self._used_names: dict[str, int] = {}
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        """The module that runs the graph, or None."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    # The list -------------------------------------------------------------------------------------

    @property
    def nodes(self) -> _node_list:
        """The nodes, in the order in which they run."""
        return _node_list(self)

    def _place(self, node: Node) -> int:
        """Return the number of a node in the list; the end of the list comes last."""
        if not self._places:
            self._places.update({each: number for number, each in enumerate(self.nodes)})
            self._places[self._root] = len(self._places)
        return self._places.get(node, -1)

    def output_node(self) -> Node:
        """Return the node of the result."""
        node = self._root.prev
        if node.op != "output":
            raise AssertionError(f"Expected output node, got op={node.op}")
        return node

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """Return the nodes with an operation, and with a target if one is given."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        found = [node for node in self.nodes if node.op == op]
        return found if target is None else [node for node in found if node.target == target]

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Return a context manager in which new nodes are inserted before `n`, by default before the first node."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Return a context manager in which new nodes are inserted after `n`, by default after the last node.

        Example:
            >>> graph = torch.fx.symbolic_trace(torch.relu).graph
            >>> x, relu, output = graph.nodes
            >>> with graph.inserting_after(relu):
            ...     double = graph.call_function(torch.add, (relu, relu))
            >>> output.args = (double,)
            >>> [node.name for node in graph.nodes]
            ['input_1', 'relu', 'add', 'output']
        """
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node without users."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} "
                f"users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            warn(f"erase_node({to_erase}) on an already erased node")
            return
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase._set_arguments((), {})

    # New nodes ------------------------------------------------------------------------------------

    def create_node(
        self, op: str, target: Any, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None,
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Insert a node, at the end of the list unless `inserting_before` or `inserting_after` say otherwise."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        name = self._graph_namespace.create_name(self._target_to_str(target) if name is None else name, None)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Any) -> str:
        """Return the name that a node with this target should have."""
        if callable(target):
            return _snake_case(own_name(target))
        if not isinstance(target, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        return _snake_case(target[2:-2] if _is_magic(target) else target)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = _REQUIRED) -> Node:
        """Insert a parameter."""
        args = () if default_value is _REQUIRED else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Insert a node that reads a parameter, a buffer or a module of the owning module."""
        if self.owning_module is not None and not _has_member(self.owning_module, qualified_name):
            warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to add the "
                "necessary Parameter, or nn.Module.register_buffer to add the necessary buffer"
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Insert a call of the module at a dotted path of the owning module."""
        if self.owning_module is not None and self.owning_module.get_submodule(module_name) is None:
            warn(
                "Attempted to insert a call_module Node with no underlying reference in the owning GraphModule! Call "
                "GraphModule.add_submodule to add the necessary submodule"
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Insert a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None, type_expr: Any = None, name: str | None = None,
    ) -> Node:  # fmt: skip
        """Insert a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Insert the result."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Insert a copy of a node of any graph."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Insert copies of all nodes of a graph, except its output.

        Returns:
            The value here of the result of `g`; None if `g` has no output.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        copied = made.graph_copy(self, memo if memo else {}, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if copied is not None:
            result, old = copied
            made.output(result, type_expr=old.type).meta = copy.copy(old.meta)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Return the nodes as a list: pickling a linked list would recurse."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("_root", "_insert", "_places")}
        numbers = {node: number for number, node in enumerate(self.nodes)}
        steps = []
        for node in self.nodes:
            args, kwargs = (
                map_arg(node.args, lambda n: _Number(numbers[n])),
                map_arg(node.kwargs, lambda n: _Number(numbers[n])),
            )
            steps.append((node.name, node.op, node.target, args, kwargs, node.type, node.meta))
        state["_steps"] = steps
        del state["_graph_namespace"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        steps = state.pop("_steps")
        self.__init__(state["_owning_module"])  # type: ignore[misc]
        made: list[Node] = []

        def found(value: Any) -> Any:
            return made[value] if isinstance(value, _Number) else value

        for name, op, target, args, kwargs, kind, meta in steps:
            args, kwargs = map_aggregate(args, found), map_aggregate(kwargs, found)
            node = self.create_node(op, target, args, kwargs, name, kind)
            node.name, node.meta = name, meta
            made.append(node)
        self.__dict__.update(state)

    # Passes ---------------------------------------------------------------------------------------

    def lint(self) -> None:
        """Check that each node uses earlier nodes of the graph, and that the owning module has its targets."""
        names: set[str] = set()
        defined: set[Node] = set()
        for node in self.nodes:
            if node.op not in _legal_ops:
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for used in node._input_nodes:
                if used.graph is not self:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' does not belong to this Graph, "
                        "but was used as an argument! If you are copying nodes from another graph, make "
                        f"sure to use ``arg_transform`` on node_copy() to remap values\n{self}"
                    )
                if used not in defined:
                    raise RuntimeError(
                        f"Argument '{used}' of Node '{node}' was used before it has been "
                        f"defined! Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            defined.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module:
            for node in self.nodes:
                self._check_target(node)

    def _check_target(self, node: Node) -> None:
        target: Any = node.target
        start = f"Node {node} target {target}"
        if node.op == "call_function":
            if not callable(target):
                raise ValueError(f"{start} has type {typename(target)} but a Callable is expected")
        elif not isinstance(target, str):
            raise ValueError(f"{start} has type {typename(target)} but a str is expected")
        if node.op not in ("get_attr", "call_module"):
            return
        owner, path = self.owning_module, target.split(".")
        for depth, name in enumerate(path):
            above = ".".join(path[:depth])
            owner = getattr(owner, name, None)
            if owner is None:
                raise RuntimeError(f"{start} references nonexistent attribute {name} of {above}")
            if node.op == "call_module" and not isinstance(owner, Module):
                raise RuntimeError(f"{start} {name} of {above} does not reference an nn.Module")

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes whose values are not used and that have no effect.

        Returns:
            Whether nodes were removed.

        Example:
            >>> def f(x):
            ...     y = x + 1
            ...     return x * 2
            >>> graph = torch.fx.symbolic_trace(f).graph
            >>> graph.eliminate_dead_code(), [node.name for node in graph.nodes]
            (True, ['x', 'mul', 'output'])
        """
        self.lint()
        count = self._len
        for node in reversed(self.nodes):  # (users before what they use)
            impure = node.is_impure() if is_impure_node is None else is_impure_node(node)
            if not impure and not node.users:
                self.erase_node(node)
        changed = self._len != count
        if self.owning_module is not None:
            used = {node.target for node in self.find_nodes(op="get_attr")}
            for name, child in self.owning_module.named_children():
                graph = getattr(child, "graph", None)
                if name in used and isinstance(graph, Graph):
                    changed |= graph.eliminate_dead_code()
                    child.recompile()
        return changed

    # Texts ----------------------------------------------------------------------------------------

    def __str__(self) -> str:
        lines = [node.format_node([], [""]) or "" for node in self.nodes]
        return "\n    ".join(["graph():", *lines])

    def print_tabular(self) -> None:
        """Print the nodes as a table, by the package `tabulate`."""
        try:
            tabulate = importlib.import_module("tabulate").tabulate
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip "
                "install tabulate` to install the library."
            )
            raise
        rows = [[node.op, node.name, node.target, node.args, node.kwargs] for node in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def process_inputs(self, *args: Any) -> Any:
        """Return the values of the parameters for the arguments of the generated function."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """Return the result of the generated function for the value of the output."""
        return self._codegen.process_outputs(out)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let the code be generated by another object."""
        self._codegen = codegen

    def python_code(
        self, root_module: str, *, verbose: bool = False, include_stride: bool = False, include_device: bool = False,
        **unused: Any,
    ) -> PythonCode:  # fmt: skip
        """Return the graph as Python code.

        Example:
            >>> print(torch.fx.symbolic_trace(lambda x: x + 1).graph.python_code("self").src.strip())
            def forward(self, x):
                add = x + 1;  x = None
                return add
        """
        names = _Namespace()

        def name_of(node: Node) -> str:
            return names.create_name(node.name, node)

        before = [(node, node._repr_fn) for node in self.nodes]
        for node, _ in before:
            node._repr_fn = name_of
        try:
            return self._codegen._gen_python_code(
                self.nodes, root_module, names, verbose=verbose, include_stride=include_stride,
                include_device=include_device,
            )  # fmt: skip
        finally:
            for node, function in before:
                node._repr_fn = function


class _Number(int):
    """The number of a node, in place of the node in a pickle."""


def _has_member(owner: Module, path: str) -> bool:
    """Return whether a module has a parameter, a buffer or a module at a path."""
    home, _, name = path.rpartition(".")
    try:
        owner = owner.get_submodule(home)
    except AttributeError:
        warn(f"Failed to fetch module {home}!")
        return False
    found = getattr(owner, name, None)
    return isinstance(found, (Module, Parameter)) or name in owner._buffers
