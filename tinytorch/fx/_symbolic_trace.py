"""`torch.fx.symbolic_trace`: runs a program with symbolic values, and records what it calls."""

from __future__ import annotations

import builtins
import collections
import contextlib
import copy
import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.func.pytree import TreeSpec, tree_flatten, tree_map, tree_unflatten
from tinytorch.fx._codegen import _PyTreeCodeGen, _PyTreeInfo
from tinytorch.fx._names import is_ours, type_name
from tinytorch.fx._names import root as package
from tinytorch.fx.graph import Graph
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.node import base_types, map_aggregate
from tinytorch.fx.proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase
from tinytorch.nn.modules.container import Sequential
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter

__all__ = [
    "PH", "PHBase", "ProxyableClassMeta", "Tracer", "is_fx_symbolic_tracing", "is_fx_tracing",
    "symbolic_trace", "wrap",
]  # fmt: skip

F = TypeVar("F", bound=str | Callable[..., Any])

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_proxyable_classes: dict[type, None] = {}
_orig_module_call, _orig_module_getattr = Module.__call__, Module.__getattr__


class _Traces:
    """Counts the traces that run."""

    running = 0


def is_fx_tracing() -> bool:
    """Return whether a trace runs."""
    return _Traces.running > 0


def is_fx_symbolic_tracing() -> bool:
    """Return whether a trace runs, and not inside `torch.compile`."""
    return is_fx_tracing()


class ProxyableClassMeta(type):
    """The metaclass of classes whose construction from symbolic values is recorded.

    Example:
        >>> class Pair(metaclass=torch.fx.ProxyableClassMeta):
        ...     def __init__(self, left, right):
        ...         self.left, self.right = left, right
        >>> def total(x, y):
        ...     pair = Pair(x, y)
        ...     return pair.left + pair.right
        >>> [node.name for node in torch.fx.symbolic_trace(total).graph.nodes]
        ['x', 'y', 'pair', 'getattr_1', 'getattr_2', 'add', 'output']
    """

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = cls.__new__(cls)  # type: ignore[call-overload]
        if not is_fx_tracing():
            cls.__init__(made, *args, **kwargs)  # type: ignore[misc]
            return made
        proxy = _find_proxy(args, kwargs)
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(made, *args, **kwargs)  # type: ignore[misc]
        return made


class PHBase:
    """Marks an argument of `concrete_args` that stays symbolic."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


# Replacements during a trace ----------------------------------------------------------------------

_ABSENT: Any = object()


class _Patcher(contextlib.ExitStack):
    """Replaces attributes of classes and names of modules until the end of a `with` block."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()

    def patch(self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace a global name; a builtin function that the module does not define is hidden by one."""
        before = frame_dict.get(name, _ABSENT)
        if before is _ABSENT and not hasattr(builtins, name):
            raise KeyError(name)
        self._make(frame_dict, name, before, new_fn, deduplicate)

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace an attribute of a class."""
        self._make(cls, name, getattr(cls, name), new_fn, deduplicate)

    def _make(self, owner: Any, name: str, before: Any, now: Any, deduplicate: bool) -> None:
        if not getattr(before, "__fx_already_patched", False):
            now.__fx_already_patched = deduplicate
            self.callback(self._put, owner, name, before)
            self._put(owner, name, now)

    @staticmethod
    def _put(owner: Any, name: str, value: Any) -> None:
        if not isinstance(owner, dict):
            setattr(owner, name, value)
        elif value is _ABSENT:
            owner.pop(name, None)
        else:
            owner[name] = value

    def visit_once(self, thing: object) -> bool:
        """Return whether this is the first call for an object."""
        new = id(thing) not in self.seen
        self.seen.add(id(thing))
        return new


#: The functions that `wrap` was called for: (id of the module's names, name) and the module's names.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
#: Methods that are recorded, as (class, name).
_wrapped_methods_to_patch: list[tuple[type, str]] = []


def _find_proxy(*objects_to_search: Any) -> Proxy | None:
    """Return a symbolic value among objects and in containers, or None."""
    found: list[Proxy] = []
    map_aggregate(objects_to_search, lambda x: found.append(x) if isinstance(x, Proxy) else x)
    return found[-1] if found else None


def _recorded(function: Callable[..., Any], record: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    """Return a function whose calls with symbolic values are recorded, by a function of the tracer and arguments."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs)
        return function(*args, **kwargs) if proxy is None else record(proxy.tracer, args, kwargs)

    return wrapped


def _create_wrapped_func(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose calls with symbolic values are recorded."""

    def record(tracer: Any, args: Any, kwargs: Any) -> Any:
        made = tracer.create_proxy("call_function", orig_fn, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return _recorded(orig_fn, record)


def _create_wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    """Return a method whose calls with symbolic values are recorded."""
    return _recorded(getattr(cls, name), lambda tracer, *given: tracer.create_proxy("call_method", name, *given))


def _patch_wrapped_functions(patcher: _Patcher) -> None:
    for (_, name), names in list(_wrapped_fns_to_patch.items()):
        patcher.patch(names, name, _create_wrapped_func(names[name] if name in names else getattr(builtins, name)))
    for cls, name in _wrapped_methods_to_patch:
        patcher.patch_method(cls, name, _create_wrapped_method(cls, name))


def _autowrap_check(patcher: _Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Replace the functions of a module that a tracer records wherever they are."""
    if patcher.visit_once(frame_dict):
        for name, value in list(frame_dict.items()):
            if not name.startswith("_") and callable(value) and id(value) in function_ids:
                patcher.patch(frame_dict, name, _create_wrapped_func(value))


def wrap(fn_or_name: F) -> F:
    """Let traces record the calls of a function, rather than what it does: a decorator, or called with a global name.

    Raises:
        RuntimeError: the argument is neither a function nor a string.
        NotImplementedError: `wrap` is not called at the top level of a module.

    Example:
        >>> torch.fx.wrap("len")
        'len'
        >>> def scaled(x):
        ...     return x / len(x)
        >>> print(torch.fx.symbolic_trace(scaled).code.strip())
        torch.fx._symbolic_trace.wrap("len")
        <BLANKLINE>
        def forward(self, x):
            len_1 = len(x)
            truediv = x / len_1;  x = len_1 = None
            return truediv
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[(id(frame.f_globals), name)] = frame.f_globals
    return fn_or_name


@wrap
def _assert_is_none(value: object, msg: str) -> None:
    if value is not None:
        raise AssertionError(msg)


def _with_plain_parameters(function: Any, count: int) -> Any:
    """Return a function that takes `*args` and `**kwargs` as two plain parameters, which get symbolic values."""
    code = function.__code__
    plain = code.replace(
        co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=code.co_flags & ~HAS_VARSTUFF
    )
    return FunctionType(plain, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


def _annotation(function: Any, name: str) -> Any:
    """Return the annotation of a parameter, or of the result. Those of this package are texts, and tell of any type."""
    kind = inspect.get_annotations(function).get(name)
    if isinstance(kind, str) and is_ours(function):
        names = {"Tensor": Tensor, **function.__globals__}
        try:
            kind = eval(kind, names)
        except NameError:
            return None
        return None if kind is Any else kind
    return kind


class Tracer(TracerBase):
    """Records a program: runs it with symbolic values.

    Subclasses override `is_leaf_module`, `call_module`, `create_arg` and others to change what is recorded.

    Example:
        >>> class EveryLayer(torch.fx.Tracer):
        ...     def is_leaf_module(self, m, module_qualified_name):
        ...         return False
        >>> graph = EveryLayer().trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
        >>> [node.name for node in graph.nodes]
        ['input_1', '_0_weight', '_0_bias', 'linear', 'relu', 'output']
    """

    root: Any
    submodule_paths: dict[Module, str] | None

    def __init__(
        self, autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (), param_shapes_constant: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        functions = [
            value for each in autowrap_modules for name, value in vars(each).items() if not name.startswith("_")
        ]
        self._autowrap_function_ids = {id(each) for each in functions if callable(each)}
        self._autowrap_function_ids |= {id(each) for each in autowrap_functions}
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths = None
        self.root_module_name = ""
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope = {}

    def get_fresh_qualname(self, prefix: str) -> str:
        """Return a name of an attribute that the root does not have: the prefix and a number."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    def create_arg(self, a: Any) -> Any:
        """Return the argument of a node for a value; a tensor becomes a node that reads it from the root."""
        search: Any = None
        if isinstance(a, Parameter):
            search = self.root.named_parameters()
        elif isinstance(a, Tensor):
            search = self.root.named_buffers()
        elif isinstance(a, Module):
            search = self.root.named_modules()
        for name, each in search or ():
            if each is a:
                return self.create_node("get_attr", name, (), {})
        if isinstance(a, Parameter):
            raise NameError("parameter is not a member of this module")
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple([self.create_arg(each) for each in a]), {})
        if isinstance(a, (Tensor, TreeSpec)):
            name = self.tensor_attrs.get(a, "")
            if not name:
                name = self.get_fresh_qualname("_tensor_constant" if isinstance(a, Tensor) else "_tree_spec_constant")
                self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Return whether calls of a module are recorded, rather than what it does: those of `torch.nn`'s are."""
        home = type_name(type(m))
        return home.startswith(("torch.nn", "torch.ao.nn")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """Return the path of a module below the root."""
        paths = self.submodule_paths or {each: name for name, each in self.root.named_modules()}
        if mod not in paths:
            raise NameError("module is not installed as a submodule")
        return paths[mod]

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record a module's call: run it, or for a leaf insert a node."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = calls + 1
            if self.is_leaf_module(m, path):
                result = self.create_proxy("call_module", path, args, kwargs)
            else:
                result = forward(*args, **kwargs)
            self.module_stack.popitem()
        return result

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return the value of a module's attribute in the trace: a symbolic one for a parameter of the root."""
        if isinstance(attr_val, Parameter):
            found = self._symbolic_member(attr_val, self.root.named_parameters(), parameter_proxy_cache)
            if found is not None:
                return found
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            found = self._symbolic_member(attr_val, self.root.named_buffers(), parameter_proxy_cache)
            if found is not None:
                return found
        return attr_val

    def _symbolic_member(self, value: Any, members: Iterable[tuple[str, Any]], cache: dict[str, Any]) -> Any:
        path = next((name for name, each in members if each is value), None)
        if path is None:
            return None
        if path not in cache:
            options: dict[str, Any] = {}
            if self.param_shapes_constant and "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
                options["proxy_factory_fn"] = lambda node: ParameterProxy(self, node, path, value)
            cache[path] = self.create_proxy("get_attr", path, (), {}, **options)
        return cache[path]

    # The parameters -------------------------------------------------------------------------------

    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        """Insert the parameters of a function."""
        function: Any = inspect.unwrap(root_fn)
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if count == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            args.append(self.root)
        signature = inspect.signature(function)
        own = names[len(args) : count]
        if isinstance(concrete_args, tuple):
            if concrete_args and code.co_flags & HAS_VARSTUFF and count == 1:
                made = [self.create_proxy("placeholder", f"input_{k}", (), {}) for k in range(len(concrete_args))]
                return root_fn, args + made
            if len(own) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(own)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(own, concrete_args, strict=True))
        args += [self._proxy_placeholder(name, concrete_args, signature, function) for name in own]
        if code.co_kwonlyargcount or code.co_flags & HAS_VARSTUFF:
            stars = [
                star
                for star, flag in (("*", inspect.CO_VARARGS), ("**", inspect.CO_VARKEYWORDS))
                if code.co_flags & flag
            ]
            for star, name in zip(stars, names[count:], strict=False):
                args.append(self._proxy_placeholder(star + name, concrete_args, signature, function))
            root_fn = _with_plain_parameters(root_fn, len(args))
        flat, structure = tree_flatten(tuple(args))
        if all(child.is_leaf() for child in structure.children()):
            return root_fn, args
        info = _PyTreeInfo(names[:count], structure, None)
        self.graph._codegen = _PyTreeCodeGen(info)

        def flatten_fn(*values: Any) -> Any:
            results, out_spec = tree_flatten(root_fn(*tree_unflatten(list(values), structure)))
            codegen: Any = self.graph._codegen
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return results

        del flatten_fn.__annotations__["return"]  # (that of the function itself counts)
        return flatten_fn, flat

    def _proxy_placeholder(self, name: str, concrete_args: Any, sig: inspect.Signature, fn_for_analysis: Any) -> Any:
        """Insert a parameter; of one with a concrete value, a check that later calls give the same."""
        required = name.startswith("*") or sig.parameters[name].default is inspect.Parameter.empty
        default = () if required else (sig.parameters[name].default,)
        if concrete_args is None or name not in concrete_args:
            kind = _annotation(fn_for_analysis, name)
            return self.create_proxy("placeholder", name, default, {}, type_expr=kind)
        count = 0

        def specialized(value: Any) -> Any:
            nonlocal count
            count += 1
            out: Any = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(value, PHBase):
                return out
            if type(value) in base_types and type(value) is not Tensor:
                text = f"{name} has been specialized to have value {value} but got another value"
                package()._assert(out == value, text)
            elif value is None:
                text = f"{name} has been specialized to have value None but got another value"
                self.create_proxy("call_function", _assert_is_none, (out, text), {})
            else:
                warn(
                    f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is "
                    "up to the user to make sure that your inputs match the inputs you specialized the function with."
                )
            return value

        return tree_map(specialized, concrete_args[name])

    # The trace ------------------------------------------------------------------------------------

    def trace(self, root: Module | Callable[..., Any], concrete_args: Any = None) -> Graph:
        """Record a module or a function.

        Args:
            root: the module or function. `self.root` is the module afterwards, or one that holds constants.
            concrete_args: values that parameters have, by name; `PH` in a container stands for a symbolic value.

        Raises:
            TraceError: the program depends on the truth or the items of a symbolic value.
        """
        _Traces.running += 1
        try:
            return self._trace(root, concrete_args)
        finally:
            _Traces.running -= 1

    def _trace(self, root: Module | Callable[..., Any], concrete_args: Any) -> Graph:
        if isinstance(root, Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            fn: Any = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, fn = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        code = getattr(fn, "__code__", None)
        if code is not None:
            self.graph._co_fields = {key: getattr(code, key) for key in ("co_name", "co_filename", "co_firstlineno")}
        self.tensor_attrs: dict[Any, str] = {}
        self._collect_tensors(self.root, "")
        self._record(fn, isinstance(root, Module), concrete_args)
        self.submodule_paths = None
        return self.graph

    def _collect_tensors(self, module: Module, prefix: str) -> None:
        """Note the tensors that modules have as plain attributes."""
        for name, value in module.__dict__.items():
            if isinstance(value, (Tensor, TreeSpec)):
                self.tensor_attrs[value] = f"{prefix}{name}"
        for name, child in module.named_children():
            self._collect_tensors(child, f"{prefix}{name}.")

    def _record(self, fn: Any, is_module: bool, concrete_args: Any) -> None:
        if not hasattr(fn, "__globals__") and not hasattr(fn, "__wrapped__"):
            raise AssertionError(f"Expected FunctionType, got {type(fn)}")
        names = getattr(inspect.unwrap(fn), "__globals__", {})
        called, args = self.create_args_for_root(fn, is_module, concrete_args)
        cache: dict[str, Any] = {}

        @functools.wraps(_orig_module_getattr)
        def traced_getattr(mod: Any, attr: str) -> Any:
            return self.getattr(attr, _orig_module_getattr(mod, attr), cache)

        @functools.wraps(_orig_module_call)
        def traced_call(mod: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _orig_module_call(mod, *args, **kwargs)

            own = getattr(getattr(mod, "forward", mod), "__globals__", {})
            _autowrap_check(patcher, own, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        with _Patcher() as patcher:
            patcher.patch_method(Module, "__getattr__", traced_getattr, deduplicate=False)
            patcher.patch_method(Module, "__call__", traced_call, deduplicate=False)
            _patch_wrapped_functions(patcher)
            _autowrap_check(patcher, names, self._autowrap_function_ids)
            for module in self._autowrap_search:
                _autowrap_check(patcher, module.__dict__, self._autowrap_function_ids)
            kind = _annotation(inspect.unwrap(called), "return")
            self.create_node("output", "output", (self.create_arg(called(*args)),), {}, type_expr=kind)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = type(self).__new__(type(self))
        for key, value in self.__dict__.items():
            shared = key in ("root", "graph", "_autowrap_search", "tensor_attrs", "submodule_paths")
            made.__dict__[key] = value if shared else copy.deepcopy(value, memo)
        return made


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: Any = None) -> GraphModule:
    """Return a module that computes the same as a module or function, and whose graph can be read and changed.

    The program runs once, with symbolic values for its arguments; the graph has what it calls.

    Args:
        root: the module or function.
        concrete_args: values of some parameters, by name: the program may depend on them. In containers, `torch.fx.PH`
            stands for a symbolic value.

    Raises:
        TraceError: the program depends on the truth or the items of a symbolic value.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
        >>> print(torch.fx.symbolic_trace(model).code.strip())
        def forward(self, input):
            input_1 = input
            _0 = getattr(self, "0")(input_1);  input_1 = None
            _1 = getattr(self, "1")(_0);  _0 = None
            return _1
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
