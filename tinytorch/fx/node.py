"""`torch.fx.node`: one step of a graph."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tinytorch.core.device import device
from tinytorch.core.layout import layout, memory_format
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.fx._names import pretty_target, qualified_name, root, type_name
from tinytorch.fx.immutable_collections import immutable_dict, immutable_list
from tinytorch.kernels.dtypes import dtype
from tinytorch.ops.members import typename
from tinytorch.ops.register import Function

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

F = TypeVar("F", bound=Callable[..., Any])
ArgumentT = TypeVar("ArgumentT")

BaseArgumentTypes = str | int | float | bool | complex | dtype | Tensor | device | memory_format | layout
base_types = BaseArgumentTypes.__args__
Target = Callable[..., Any] | str
Argument = (
    tuple["Argument", ...] | Sequence["Argument"] | Mapping[str, "Argument"] | slice | range | BaseArgumentTypes | None
)

_legal_ops = dict.fromkeys(["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"])
_side_effectful_functions: set[Any] = {operator.setitem}
_EFFECTS = ("torch._ops.profiler",)  # the modules of operators that all have an effect
_get_qualified_name = qualified_name
_type_repr = type_name


def has_side_effect(fn: F) -> F:
    """Register a function whose calls `Graph.eliminate_dead_code` keeps, used or not; a decorator.

    Example:
        >>> @torch.fx.node.has_side_effect
        ... def show(x):
        ...     print(x)
    """
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Return an argument with `fn` applied to all of its leaves; its lists and dicts become immutable.

    Example:
        >>> torch.fx.node.map_aggregate(([1, 2], {"a": 3}), lambda x: x * 10)
        ([10, 20], {'a': 30})
    """
    if isinstance(a, tuple):
        items = [map_aggregate(each, fn) for each in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict([(key, map_aggregate(value, fn)) for key, value in a.items()])
    if isinstance(a, slice):
        return slice(*[map_aggregate(each, fn) for each in (a.start, a.stop, a.step)])
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Return an argument with `fn` applied to all of its nodes."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """Return the text of an argument in a printed graph."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        text: str = arg._custom_fx_repr_fn()
        return text
    if isinstance(arg, (list, tuple)):
        shown = [_format_arg(each) for k, each in enumerate(arg) if k < max_list_len]
        more = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        text = ", ".join(shown) + more
        if isinstance(arg, list):
            return f"[{text}]"
        return f"({text},)" if len(arg) == 1 else f"({text})"
    if isinstance(arg, dict):
        return "{" + ", ".join([f"{key}: {_format_arg(value)}" for key, value in arg.items()]) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def is_random(function: Any) -> bool:
    """Return whether a function of `torch` draws random numbers to create a tensor, or seeds the generator."""
    if not isinstance(function, Function) or function.binds:
        return False
    home = module_of(inspect.unwrap(function.raw))
    return home in ("tinytorch.ops.random", "tinytorch.ops.rejection")


@functools.total_ordering
class Node:
    """One step of a graph: an operation, the target that it calls, and the arguments.

    Attributes:
        graph: the graph that the node belongs to.
        name: the name of its value, unique in the graph.
        op: `placeholder` (a parameter), `get_attr` (a parameter or buffer of the module), `call_function`,
            `call_method`, `call_module`, or `output` (the result, which is its only argument).
        target: the function that is called; the name of the method; the path of the module or attribute.
        args, kwargs: the arguments, among which nodes stand for their values.
        users: the nodes that use the value, as the keys of a dict.
        type: the type of the value, or None.
        meta: a dict for what passes find out about the node.

    Example:
        >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
        >>> for node in graph.nodes:
        ...     print(node.op, node.name, node.args, list(node.users))
        placeholder x () [relu]
        call_function relu (x,) [add]
        call_function add (relu, 1) [output]
        output output (add,) []
    """

    _args: tuple[Any, ...]
    _kwargs: dict[str, Any]
    name: str

    def __init__(
        self, graph: Any, name: str, op: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:  # fmt: skip
        expected = "a Callable" if op == "call_function" else "a str"
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if not (callable(target) if op == "call_function" else isinstance(target, str)):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {typename(target)} "
                f"but {expected} is expected"
            )
        self.graph, self.op, self.target, self.type = graph, op, target, return_type
        self.name = name
        self._prev = self._next = self
        self._erased = False
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._repr_fn: Callable[[Node], str] | None = None
        self._set_arguments(args, kwargs)

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    # The order ------------------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        """The next node of the graph's list, which is circular."""
        return self._next

    @property
    def prev(self) -> Node:
        """The previous node of the graph's list."""
        return self._prev

    def __lt__(self, other: Node) -> bool:
        return self.graph._place(self) < other.graph._place(other)

    def prepend(self, x: Node) -> None:
        """Move or insert the node `x` before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        self.graph._places.clear()

    def append(self, x: Node) -> None:
        """Move or insert the node `x` after this one."""
        self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev
        self.graph._places.clear()

    _remove_from_list = _unlink

    # The arguments --------------------------------------------------------------------------------

    def _set_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for each in self._input_nodes:
            each.users.pop(self, None)
        self._input_nodes = {}
        self._args = tuple(map_aggregate(args, self._use))
        self._kwargs = map_aggregate(kwargs, self._use)

    def _use(self, value: Any) -> Any:
        if isinstance(value, Node):
            self._input_nodes.setdefault(value)
            value.users.setdefault(self)
        return value

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments; assigning to them updates `users` of the nodes among them."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._set_arguments(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments; assigning to them updates `users` of the nodes among them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._set_arguments(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once, in order."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace the positional argument number `idx`."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert a positional argument before number `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_args index must be between 0 and len(self.args), got {idx}")
        self._args = (*self.args[:idx], map_aggregate(arg, self._use), *self.args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set the keyword argument `key`."""
        self.kwargs = {**self.kwargs, key: arg}

    def _replace_input_with(self, old_input: Node, new_input: Any) -> None:
        def replaced(node: Node) -> Any:
            return new_input if node is old_input else node

        self._set_arguments(map_arg(self._args, replaced), map_arg(self._kwargs, replaced))

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replace a node wherever it is among the arguments."""
        self._replace_input_with(old_input, new_input)

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Let all users of this node use another node.

        Returns:
            The users that were changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
                    "but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = []
        for user in list(self.users):
            if delete_user_cb is None or delete_user_cb(user):
                changed.append(user)
                user._replace_input_with(self, replace_with)
        return changed

    def _rename(self, candidate: str) -> None:
        """Give the node a name like `candidate` that is not in use."""
        if candidate != self.name:
            names = self.graph._graph_namespace
            self.name = names.create_name(candidate, None)
            names._rename_object(self, self.name)

    # What is known of the node --------------------------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """The lines of the program that the node was recorded at, if the tracer records them."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Return whether the node has an effect besides its value: then dead code elimination keeps it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            if self.graph.owning_module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False)
        if self.op != "call_function":
            return False
        target: Any = self.target
        asserts = (root()._assert, root()._assert_async)
        if target in _side_effectful_functions or any(target is each for each in asserts):
            return True
        if getattr(target, "__module__", "") in _EFFECTS:
            return True
        schema = getattr(target, "_schema", None)  # (of an operator's overload)
        return getattr(schema, "is_mutable", False) or is_random(target)

    _pretty_print_target = staticmethod(pretty_target)

    def format_node(
        self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None, *,
        include_tensor_metadata: bool = False,
    ) -> str | None:  # fmt: skip
        """Return the line of the printed graph that shows the node."""
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_name(self.type)}"
            return f"return {self.args[0]}"
        if self.op == "placeholder" and placeholder_names:
            placeholder_names.append(f"{self.target}{self.target}: {type_name(self.type)}" if self.type else "")
            return None
        typed = f"{type_name(self.type)} " if self.type is not None else ""
        value = self.meta.get("val", self.meta.get("tensor_meta", self.meta.get("example_value")))
        if include_tensor_metadata and isinstance(value, Tensor) and self.op not in ("placeholder", "get_attr"):
            kind = dtype_abbrs[value.dtype]
            typed = f'Tensor "{kind}{list(value.shape)}{list(value.stride())}{value.device}"'
        start = f"%{self.name} : {typed}[num_users={len(self.users)}] = {self.op}[target={pretty_target(self.target)}]"
        if self.op == "placeholder":
            return start + (f"(default={self.args[0]})" if self.args else "")
        if self.op == "get_attr":
            return start
        return f"{start}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"


def last_uses(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """Return by node the values that no later node uses."""
    found: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for user in reversed(nodes):
        for used in user._input_nodes:
            if used not in seen:
                seen.add(used)
                found.setdefault(user, []).append(used)
    return found


class _Abbreviations(dict[Any, str]):
    """The short names of dtypes: `f32` for float32, `b8` for bool."""

    def __missing__(self, kind: Any) -> str:
        name = str(kind).rpartition(".")[2]
        for word, short in (("bfloat", "bf"), ("float", "f"), ("complex", "c"), ("uint", "u"), ("int", "i")):
            if name.startswith(word):
                return short + name.removeprefix(word)
        return "b8" if name == "bool" else name


dtype_abbrs = _Abbreviations()
