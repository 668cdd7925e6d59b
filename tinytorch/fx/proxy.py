"""`torch.fx.proxy`: the symbolic values that a program handles while it is traced."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import dis
import enum
import functools
import inspect
import operator
import sys
import traceback
from bisect import bisect_left
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from tinytorch.fx._codegen import magic_methods, reflectable_magic_methods
from tinytorch.fx.graph import Graph
from tinytorch.fx.node import Node, base_types, map_aggregate, map_arg
from tinytorch.nn.functional.resampling import _deprecated
from tinytorch.nn.parameter import Parameter
from tinytorch.ops import overrides
from tinytorch.ops.register import Builtin, Function, functions

__all__ = [
    "Attribute", "GraphAppendingTracer", "MetaProxy", "ParameterProxy", "Proxy", "Scope", "ScopeContextManager",
    "TraceError", "TracerBase",
]  # fmt: skip

_COPIED_META = (
    "nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "ac_graph_id", "has_backward_hook",
    "from_node", "quantization_tag", "_numeric_debug_handle", "custom", "partitioner_tag",
)  # fmt: skip
_FOLDER = __file__.rpartition("proxy.py")[0]


def check_for_mutable_operation(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise an error if a call changes its arguments."""
    if not isinstance(target, Function):
        return
    writes = target.__name__.endswith("_") and not target.__name__.endswith("__")
    given = kwargs.get("out") is not None
    if writes or given:
        raise RuntimeError(
            f"Tried to trace mutable operation aten::{target.__name__}{'.out' * given}. FX only supports functional "
            "code, so operations that mutate operands in-place (e.g. via `out` arguments) "
            "are not supported"
        )


# The `meta` of new nodes: the module `torch.fx.traceback` --------------------------------------------


class _State:
    """The `meta` that new nodes get, and whether they get it."""

    def __init__(self) -> None:
        self.meta: dict[str, Any] = {}
        self.preserves = False


_state = _State()


@contextlib.contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Give nodes that are recorded in a `with` block the `meta` of the node that runs (`fx.Interpreter`)."""
    before = _state.preserves, _state.meta
    _state.preserves, _state.meta = enable, dict(_state.meta)
    try:
        yield
    finally:
        _state.preserves, _state.meta = before


def has_preserved_node_meta() -> bool:
    """Return whether `preserve_node_meta` is in effect."""
    return _state.preserves


@contextlib.contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """Let new nodes have the `meta` of a node in a `with` block, if `preserve_node_meta` is in effect."""
    if not (_state.preserves and node.meta):
        yield
        return
    before = _state.meta
    _state.meta = dict(node.meta)
    try:
        yield
    finally:
        _state.meta = before


def get_current_meta() -> dict[str, Any]:
    """Return the `meta` that new nodes get."""
    return _state.meta


# Tracers ------------------------------------------------------------------------------------------


class TraceError(ValueError):
    """A program asks for something that a symbolic value does not have: its truth, or its number of items."""


class Scope:
    """Where a trace is: the path of a module, and its class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path, self.module_type = module_path, module_type


class ScopeContextManager:
    """Changes a scope inside a `with` block."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._scope, self._before = scope, copy.copy(scope)
        vars(scope).update(vars(current_scope))

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args: object) -> None:
        vars(self._scope).update(vars(self._before))


class TracerBase:
    """What all tracers have in common: they make nodes of calls, and arguments of nodes of what calls are given.

    Attributes:
        graph: the graph that is recorded.
        record_stack_traces: whether nodes get the lines of the program, as `Node.stack_trace`.
        check_mutable_operations: whether calls that write into their arguments raise an error.
        trace_asserts: whether `assert` of a symbolic value is recorded.
        proxy_buffer_attributes: whether buffers are read as symbolic values.
        traced_func_name: the method of a module that is traced.
    """

    graph: Graph
    record_stack_traces = False
    _record_forward_stack_traces_only = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"
    scope: Scope
    module_stack: collections.OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, Any]]

    def create_node(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Insert a node into the graph; tracers override it to check or change what is recorded."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if has_preserved_node_meta():
            meta = get_current_meta()
            if meta.get("stack_trace"):
                node.stack_trace = meta["stack_trace"]
            node.meta.update({key: copy.copy(meta[key]) for key in _COPIED_META if key in meta})
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            lines = self._filter_traceback_frames(traceback.extract_stack(sys._getframe()))
            if lines:
                node.stack_trace = "".join(lines.format()).strip()
        return node

    def _filter_traceback_frames(self, user_stack_summary: traceback.StackSummary) -> traceback.StackSummary:
        """Return the frames of the program: those from the first `forward` on that are not of this package."""
        frames: list[Any] = list(user_stack_summary)
        if self._record_forward_stack_traces_only:
            frames = [frame for frame in frames if frame.name == "forward"]
        else:
            first = next((k for k, frame in enumerate(frames) if frame.name == "forward"), len(frames))
            frames = frames[first:]
        package = _FOLDER.rpartition("fx")[0]
        return traceback.StackSummary.from_list([each for each in frames if not each.filename.startswith(package)])

    def proxy(self, node: Node) -> Proxy:
        """Return the symbolic value of a node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None,
        type_expr: Any = None, proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:  # fmt: skip
        """Insert a node, and return its symbolic value."""
        node_args, node_kwargs = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, node_args, node_kwargs, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Any:
        """Return the argument of a node for a value that a call is given; tracers override it for further types."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(each) for each in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(*[self.create_arg(each) for each in (a.start, a.stop, a.step)])
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {field.name: self.create_arg(getattr(a, field.name)) for field in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        if a is None or a is ... or isinstance(a, (*base_types, enum.Enum)):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        if isinstance(key, str):
            return key

        def refuse(node: Node) -> Any:
            raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {node}")

        key = self.create_arg(key)
        map_arg(key, refuse)
        return key

    def to_bool(self, obj: Proxy) -> bool:
        """Return the truth of a symbolic value: raise TraceError, unless a tracer knows it."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Return the items of a symbolic value: raise TraceError, unless a tracer knows them."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Return the keys of a symbolic value, which is asked for them as `**obj` too."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that appends calls to a graph: that of proxies that a program makes of nodes."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: object) -> None:
    """Raise AssertionError if a value is not true: the target of recorded assertions."""
    if not x:
        raise AssertionError("Assertion failed")


def _instruction(frame: FrameType) -> tuple[list[dis.Instruction], int]:
    """Return the instructions of a frame's function, and the number of the one that runs."""
    instructions = list(dis.get_instructions(frame.f_code))
    return instructions, bisect_left(instructions, frame.f_lasti, key=lambda each: each.offset)


def _is_assertion(frame: FrameType) -> bool:
    """Return whether a frame is testing the condition of an `assert`."""
    instructions, number = _instruction(frame)
    if not instructions[number].opname.startswith("POP_JUMP"):
        return False
    following = [each for each in instructions[number + 1 :] if each.opname not in ("CACHE", "NOT_TAKEN")]
    first = following[0] if following else None
    return first is not None and (
        first.opname == "LOAD_ASSERTION_ERROR"
        or (first.opname in ("LOAD_GLOBAL", "LOAD_COMMON_CONSTANT") and "AssertionError" in str(first.argval))
    )


class Proxy:
    """The symbolic value of a node: what a traced program handles in place of tensors.

    Operators, methods, attributes and functions of `torch` are recorded as new nodes. The truth of a symbolic value,
    its length and its items are not known; it can be unpacked into a fixed number of names.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = torch.fx.Proxy(graph.placeholder("x"))
        >>> y = torch.relu(x)[0] + 1
        >>> y.node, [node.name for node in graph.nodes]
        (add, ['x', 'relu', 'getitem', 'add'])
    """

    node: Node
    tracer: TracerBase

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)  # (the graph gets a node when it is used, and not called)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        copied: dict[str, Any] = {}
        for name, value in self.__dict__.items():
            try:
                copied[name] = copy.deepcopy(value, memo)
            except Exception:
                copied[name] = copy.copy(value)
        made = Proxy(copied["node"], copied["tracer"])
        made.__dict__.update(copied)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        """Record a call of the value."""
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = sys._getframe(1)
        instructions, number = _instruction(frame)
        if number < len(instructions) and instructions[number].opname.startswith("UNPACK_SEQUENCE"):
            return (self[k] for k in range(instructions[number].argval))  # type: ignore[index]
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _is_assertion(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Return the keys of the value."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want "
            "this call to be recorded, please call torch.fx.wrap('len') at "
            "module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Record a call of a function of `torch`, or of a method of Tensor, with symbolic values."""
        args, kwargs = args or (), kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def look(value: Any) -> Any:
            if isinstance(value, cls):
                tracers[value.tracer] = None
            return value

        map_aggregate((args, kwargs), look)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        (tracer,) = tracers
        if overrides.is_tensor_method_or_property(orig_method):
            name = "eq" if orig_method.__name__ == "__eq__" else orig_method.__name__  # (as of a tensor and a proxy)
            return tracer.create_proxy("call_method", name, args, kwargs)
        if isinstance(orig_method, Function):
            asked_again = _calls_another(orig_method, args, kwargs)
            if asked_again is not None:
                return asked_again()
            orig_method, args, kwargs = _passed_on(orig_method, args, kwargs)
        name = tracer.graph._target_to_str(orig_method)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


# What PyTorch's functions pass to `__torch_function__` --------------------------------------------


def _calls_another(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
    """Return the call that PyTorch's function consists of, if it does not ask for overrides itself."""
    home, _, own = function.name.rpartition(".")
    if home != "nn.functional":
        return None
    if own in ("tanh", "sigmoid"):
        return lambda: getattr(_first(args, kwargs), own)()
    if own.startswith("upsample"):
        mode = own.removeprefix("upsample").removeprefix("_")
        options = {"mode": mode, "align_corners": True} if mode == "bilinear" else {"mode": mode} if mode else {}
        _deprecated(own)
        return lambda: functions["nn.functional.interpolate"](*args, **kwargs, **options)
    return None


def _first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs["input"]


@functools.cache
def _parameters(function: Function) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


@functools.cache
def _compiled(function: Function) -> Any:
    """Return a function under the name of the compiled function that PyTorch's calls."""
    return Builtin(function)


def _passed_on(
    function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return a function and its arguments as PyTorch's function passes them to `__torch_function__`.

    A function that PyTorch defines in Python passes its required parameters by position, and all others by name; one
    that is compiled passes what it was given. So does one of any number of tensors that is given a list: it asks the
    compiled function that it calls.
    """
    signature = _parameters(function) if function.binds else None
    if signature is None:
        return function, args, kwargs
    if function.python and any(each.kind is each.VAR_POSITIONAL for each in signature.parameters.values()):
        *first, last = args or (None,)
        if function.name == "einsum" and len(args) == 2 and isinstance(last, (list, tuple)):
            args = (*first, *last)
        elif isinstance(last, (list, tuple)) and not first:
            return _compiled(function), args, kwargs
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    positional: list[Any] = []
    named: dict[str, Any] = {}
    all_named = function.name.startswith("nn.init.")
    for name, parameter in signature.parameters.items():
        value = bound.arguments[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            named |= value
        elif parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty or all_named:
            named[name] = value
        else:
            positional.append(value)
    own = function.name.rpartition(".")[2]
    if own in ("l1_loss", "chain_matmul"):  # (what is None is left out)
        left_out = "weight" if own == "l1_loss" else "out"
        named = {key: value for key, value in named.items() if key != left_out or value is not None}
    if own == "unravel_index":
        positional, named = positional[:1], {"shape": positional[1]}
    if own == "multi_head_attention_forward":
        begin = ("training", "key_padding_mask", "need_weights", "attn_mask", "is_causal")
        named = {key: named[key] for key in dict.fromkeys([*begin, *named])}
    if named.get("return_indices") is True:
        function = functions.get(f"{function.name}_with_indices", function)
    return function, tuple(positional), named


class MetaProxy(Proxy):
    """In PyTorch, a symbolic value with an example that a fake mode computes: there are no fake modes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("torch.fx.proxy.MetaProxy: tinytorch has no fake modes")


class Attribute(Proxy):
    """An attribute of a symbolic value: a method that is called, or else a value, whose node is made on first use."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr = root, attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        """Record a call of the method."""
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The symbolic value of a parameter, whose shape is known: programs may depend on it."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Parameter) -> None:
        super().__init__(node, tracer)
        self.param, self.name = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    shape, ndim, size, dim, numel, nelement = (  # (those of the parameter)
        property(operator.attrgetter(f"param.{name}")) for name in ("shape", "ndim", "size", "dim", "numel", "nelement")
    )


def _operator(name: str) -> Any:
    def operate(*args: Any, **kwargs: Any) -> Proxy:
        tracer: TracerBase = args[0].tracer
        return tracer.create_proxy("call_function", getattr(operator, name), args, kwargs)

    operate.__name__ = name
    return operate


def _reflected(name: str) -> Any:
    def operate(self: Proxy, rhs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", getattr(operator, name), (rhs, self), {})

    operate.__name__ = operate.__qualname__ = f"__r{name.strip('_')}__"
    return operate


for _name in magic_methods:
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name))
for _name in reflectable_magic_methods:
    setattr(Proxy, f"__r{_name.strip('_')}__", _reflected(_name))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # (`==` is recorded)
