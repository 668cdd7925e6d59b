"""`torch.fx.experimental.proxy_tensor`: `make_fx` records a call as a graph of ATen's operators.

The function runs with its tensors, and two modes observe it. A mode of public functions (`_Creations`) records what
creates tensors, and notes the tensors that the program gives to functions: these are constants of the graph. A
`DispatchMode` (`_Recorder`) receives each op, of the function as of the formulas of gradients. A rule (`_aten`)
tells which of ATen's operators PyTorch would call in its place; they run at once, and are recorded if they compute what
the op has computed, bit by bit. So a graph never computes something else than the function did.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.declaration import Op
from tinytorch.core.device import device
from tinytorch.core.facts import fact, subject
from tinytorch.core.mode import DispatchMode, Event, on
from tinytorch.core.tensor import Tensor
from tinytorch.func.pytree import tree_flatten, tree_map
from tinytorch.fx._aten import Drawing, UnsupportedOp, as_tensors, aten, rules_of
from tinytorch.fx._symbolic_trace import PH, Tracer
from tinytorch.fx.graph_module import GraphModule
from tinytorch.fx.node import Node
from tinytorch.fx.proxy import Proxy
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.overrides import TorchFunctionMode

__all__ = ["PythonKeyTracer", "get_proxy_mode", "make_fx"]


class PythonKeyTracer(Tracer):
    """Records a graph without modules: what they do is recorded, and their parameters are constants."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a module."""
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Return the value of an attribute itself."""
        return attr_val

    def create_arg(self, a: Any) -> Any:
        """Return the argument of a node; a parameter becomes an attribute of the graph module."""
        if isinstance(a, Parameter):
            name = next((name for name, each in self.root.named_parameters() if each is a), None)
            if name is None:
                name = self.get_fresh_qualname("_param_constant")
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)


class _Creations(TorchFunctionMode):
    """Records calls of functions that create tensors, and notes the tensors that functions are given."""

    def __init__(self, recorder: _Recorder) -> None:
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Return the result of a call."""
        recorder, kwargs = self.recorder, kwargs or {}
        if recorder.paused:
            return func(*args, **kwargs)
        for each in tree_flatten((args, kwargs))[0]:
            if isinstance(each, Tensor):
                recorder.given(each)
        declared = getattr(func, "raw", func)
        if getattr(declared, "__traced_as__", None) not in ("creates", "draws"):
            rule = None if isinstance(subject(func), Op) else fact(func, "aten")
            result = func(*args, **kwargs) if rule is None else recorder.function(rule, func, args, kwargs)
            recorder.lose(result)
            return result
        with recorder.pause():
            made = func(*args, **kwargs)
        recorder.creation(func.__name__, args, dict(kwargs), made)
        return made


class _Recorder(DispatchMode):
    """Records the operators that compute what ops compute.

    Attributes:
        nodes: the nodes of arrays, by their ids; `kept` keeps the arrays, so that no other gets the id.
        constants: tensors of the program, by the ids of their arrays.
        tensors: all of these tensors.
        lost: the ids of the arrays of results that are not recorded: nothing that is recorded may use them.
        paused: above 0 while what runs is not recorded.
    """

    def __init__(self, tracer: PythonKeyTracer, decompositions: Any) -> None:
        self.tracer, self.decompositions = tracer, decompositions or {}
        self.nodes: dict[int, Node] = {}
        self.kept: list[Any] = []
        self.constants: dict[int, Tensor] = {}
        self.tensors: dict[int, Tensor] = {}
        self.lost: set[int] = set()
        self.paused = 0

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Record nothing in a `with` block."""
        self.paused += 1
        try:
            yield
        finally:
            self.paused -= 1

    def bind(self, x: Tensor, node: Node) -> None:
        """Let a node stand for a tensor's array from now on."""
        self.nodes[id(x._array)] = node
        self.tensors[id(x._array)] = x
        self.kept.append(x._array)

    @on(Event.KNOWN, Event.MADE)  # (a tensor whose elements do not depend on those of others)
    def given(self, x: Tensor) -> None:
        """Note a tensor that the program gives to a function: if it is not recorded, it is a constant."""
        key = id(x._array)
        if key not in self.nodes and key not in self.constants and key not in self.lost:
            self.constants[key] = self.tensors[key] = x
            self.kept.append(x._array)

    def lose(self, result: Any) -> None:
        """Note the tensors of a result that are not recorded."""
        for each in tree_flatten(result)[0]:
            if isinstance(each, Tensor) and not self.is_known(each):
                self.lost.add(id(each._array))
                self.kept.append(each._array)

    def node_of(self, x: Tensor) -> Any:
        """Return the node of a tensor; of a constant a new one, which reads it."""
        node = self.nodes.get(id(x._array))
        if node is not None:
            return node
        constant = self.constants.get(id(x._array))
        if constant is None and isinstance(x, Parameter):
            constant = x
        if constant is None:
            raise NotImplementedError(
                "make_fx: a function computes with a tensor that was not recorded, nor given to it by the program"
            )
        return self.tracer.create_arg(constant)

    def argument(self, value: Any) -> Any:
        """Return an argument with symbolic values in place of its tensors."""
        return tree_map(lambda x: Proxy(self.node_of(x), self.tracer) if isinstance(x, Tensor) else x, value)

    def emit(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        """Record an operator's call and run it; return its result, whose tensors have nodes."""
        if target in self.decompositions or target.overloadpacket in self.decompositions:
            raise NotImplementedError(f"make_fx: a decomposition of {target} is not applied")
        node = self.insert(target, args, kwargs)
        with self.pause(), no_grad():
            result = target(*args, **kwargs)
        self.bind_all(node, result)
        return result

    def insert(self, target: Any, args: Any, kwargs: Any) -> Node:
        """Record a call."""
        args, kwargs = self.argument(args), self.argument(kwargs)
        made = self.tracer.create_proxy("call_function", target, args, kwargs, target.overloadpacket.__name__)
        return made.node

    def bind_all(self, node: Node, result: Any) -> None:
        """Let a node stand for a result; of several tensors each gets a node that reads it."""
        if isinstance(result, Tensor):
            self.bind(result, node)
            return
        for number, each in enumerate(result if isinstance(result, (tuple, list)) else ()):
            item = self.tracer.create_proxy("call_function", operator.getitem, (Proxy(node, self.tracer), number), {})
            self.bind(each, item.node)

    # What is observed -----------------------------------------------------------------------------

    def creation(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], made: Any) -> None:
        """Record a call that has created a tensor."""
        if name in ("tensor", "as_tensor"):
            self.given(made)
            self.bind(made, self.insert(aten.lift_fresh_copy.default, (made,), {}))
            return
        like = name.endswith("_like") or name.startswith("new_")
        options = {key: value for key, value in kwargs.items() if value is not None and key != "requires_grad"}
        if not like:
            sizes = name in ("ones", "zeros", "empty", "rand", "randn")
            if sizes and args:
                args = (list(args[0] if isinstance(args[0], (tuple, list)) else args),)
            options.setdefault("device", device("cpu"))
        if name == "full":
            args = (list(args[0]), *args[1:])
        options["pin_memory"] = False
        if "generator" in options:
            raise NotImplementedError(f"make_fx: torch.{name} with a generator")
        overload = "memory_format" if name == "empty" else "default"
        if name == "arange":
            overload = ("default", "start", "start_step")[min(len(args), 3) - 1]
        self.bind(made, self.insert(getattr(getattr(aten, name), overload), args, options))

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an op, and record what computes the same."""
        if self.paused:
            return caller(*args, **kwargs)
        if not all(self.is_known(x) for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)):
            result = caller(*args, **kwargs)
            self.lose(result)
            return result
        writes = caller.__name__.endswith("_") and isinstance(args[0], Tensor)
        if writes:
            node = self._write(op, caller, args, kwargs)
            result = caller(*args, **kwargs)
            self.bind(args[0], node)
            return result
        result = caller(*args, **kwargs)
        self._record(op, args, kwargs, result)
        return result

    def is_told(self, x: Tensor) -> bool:
        """Return whether a tensor depends on the function's arguments, or is created by it."""
        return id(x._array) in self.nodes

    def is_known(self, x: Tensor) -> bool:
        """Return whether a tensor has a node, or is a constant."""
        return self.is_told(x) or id(x._array) in self.constants or isinstance(x, Parameter)

    def function(self, rule: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a public function, and record what computes the same."""
        if not any(isinstance(x, Tensor) and self.is_told(x) for x in args):
            return func(*args, **kwargs)
        bound = inspect.signature(func).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.arguments.pop("out", None) is not None:
            raise NotImplementedError(f"make_fx: torch.{func.name} with out=")
        before = self.tracer.graph._root.prev
        with self.pause():
            result = func(*args, **kwargs)
        found = rule(self.emit, result, **bound.arguments)
        if isinstance(found, Drawing):  # (another run would draw other numbers)
            self.bind(result, self.insert(found.target, found.args, {}))
            return result
        return result if self._is_bound(result, found, before) else func(*args, **kwargs)

    def _is_bound(self, result: Any, found: Any, before: Node) -> bool:
        """Let the nodes of what operators have computed stand for a result, if it is the same; else remove them."""
        if found is not None and (found is result or _same(found, result)):
            for mine, its in zip(_tensors(result), _tensors(found), strict=True):
                self.bind(mine, self.nodes[id(its._array)])
            return True
        graph = self.tracer.graph
        while graph._root.prev is not before:
            graph.erase_node(graph._root.prev)
        return False

    def _record(self, op: Any, args: Any, kwargs: Any, result: Any) -> None:
        before = self.tracer.graph._root.prev

        def as_tensor(x: Any) -> Any:
            return self.tensors.get(id(x), x) if isinstance(x, np.ndarray) else x

        args, kwargs = tree_map(as_tensor, (args, kwargs))
        for rule in rules_of(op):
            try:
                found = rule(self.emit, op, result, *args, **kwargs)
            except (UnsupportedOp, TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
                if isinstance(error, NotImplementedError) and str(error).startswith("make_fx"):
                    raise
                found = None
            if self._is_bound(result, found, before):
                return
        raise NotImplementedError(
            f"make_fx: no operators of ATen are known that compute what {op.name.strip('_')} computes"
        )

    def _write(self, op: Any, caller: Any, args: Any, kwargs: Any) -> Node:
        """Record a call that writes into its first argument; return its node."""
        name = op.name.strip("_")
        given = [each for each in args[1:] if each is not None]
        number = bool(given) and not isinstance(given[0], Tensor)
        scalar = number and as_tensors not in rules_of(op)
        overload = "default" if not given or name in ("copy", "clamp") else "Scalar" if scalar else "Tensor"
        if len(given) > 1 or (given and not isinstance(given[0], (Tensor, int, float, bool))):
            raise NotImplementedError(f"make_fx: {caller.__name__} with these arguments")
        return self.insert(getattr(getattr(aten, f"{name}_"), overload), (args[0], *given), kwargs)

    def _refuse_write(self, array: Any, what: str) -> None:
        """Raise an error if something that is not recorded writes into an array that is."""
        if not self.paused and (id(array) in self.nodes or id(array) in self.constants):
            raise NotImplementedError(f"make_fx: {what} is not recorded")

    @on(Event.FILLED)
    def _filled(self, x: Any, **facts: Any) -> None:
        """Refuse to fill a tensor with random numbers in place."""
        self._refuse_write(x._array, "filling a tensor with random numbers")

    @on(Event.WROTE)
    def _wrote(self, array: Any, **facts: Any) -> None:
        """Refuse a write that no op does."""
        self._refuse_write(array, "what writes into a tensor")

    @on(Event.WRITES)
    def _writes(self, x: Any) -> None:
        """Refuse a write that no op does."""
        self._refuse_write(x._array, "what writes into a tensor")

    @on(Event.READ)
    def _read(self, x: Any, truth: bool) -> None:
        """Refuse to give a recorded tensor's values to Python: the graph would not depend on them."""
        if not self.paused and self.is_told(x):
            raise RuntimeError(
                "It appears that you're trying to get value out of a tracing tensor with "
                "aten._local_scalar_dense.default - erroring out! It's likely that this is caused by data-dependent "
                "control flow or similar."
            )


def _tensors(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else [each for each in value if isinstance(each, Tensor)]


def _same(one: Any, other: Any) -> bool:
    """Return whether two results are the same, bit by bit."""
    pairs = list(zip(_tensors(one), _tensors(other), strict=False))
    if len(_tensors(one)) != len(_tensors(other)):
        return False
    return all(
        mine.dtype == its.dtype
        and mine.shape == its.shape
        and np.array_equal(mine._array, its._array, equal_nan=mine._array.dtype.kind in "fc")
        for mine, its in pairs
    )


def get_proxy_mode() -> None:
    """Return None: no mode with symbolic sizes is on."""


def _with_names(function: Any, count: int) -> Any:
    """Return a function with plain parameters `arg0`, `arg1` …, which calls another one."""
    names = ", ".join([f"arg{k}" for k in range(count)])
    made: Any = eval(f"lambda {names}: fn({names})", {"fn": function})
    return made


def _leaves(values: Any, given: Any) -> Iterator[tuple[Any, Any]]:
    return zip(tree_flatten(values)[0], tree_flatten(given)[0], strict=True)


def make_fx(
    f: Callable[..., Any], decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real", _allow_non_fake_inputs: bool = False, *, pre_dispatch: bool = False,
    record_module_stack: bool = False, **options: Any,
) -> Callable[..., GraphModule]:  # fmt: skip
    """Return a function that records a call of `f` as a graph of ATen's operators.

    The graph has the sizes of the recorded call. What `f` does with gradients (`torch.func.grad`,
    `torch.autograd.grad`) is recorded, too.

    Args:
        f: the function, or a module.
        decomposition_table: operators that would be replaced: those must not occur.
        tracing_mode: "real", or "fake", which records the same here.
        _allow_non_fake_inputs, pre_dispatch, record_module_stack, **options: have no effect.

    Raises:
        ValueError: there is no such mode.
        NotImplementedError: the mode is "symbolic"; or, by the function that is returned, `f` does something that no
            known operators of ATen compute.

    Example:
        >>> from tinytorch.fx.experimental.proxy_tensor import make_fx
        >>> print(make_fx(lambda x: x.sin() + 1)(torch.ones(2)).code.strip())
        def forward(self, x_1):
            sin = torch.ops.aten.sin.default(x_1);  x_1 = None
            add = torch.ops.aten.add.Tensor(sin, 1);  sin = None
            return add
    """
    if tracing_mode == "symbolic":
        raise NotImplementedError("make_fx: tracing_mode='symbolic': tinytorch has no symbolic sizes")
    if tracing_mode not in ("real", "fake"):
        raise ValueError(f"Unexpected tracing type: {tracing_mode}")

    @functools.wraps(f)
    def record(*args: Any) -> GraphModule:
        tracer = PythonKeyTracer()
        recorder = _Recorder(tracer, decomposition_table)
        plain = inspect.unwrap(f)
        code = getattr(plain, "__code__", None)
        takes_any = code is None or code.co_flags & inspect.CO_VARARGS
        function: Any = _with_names(f, len(args)) if takes_any else f

        @functools.wraps(function)
        def observed(*proxies: Any) -> Any:
            for proxy, value in _leaves(proxies, args):
                if isinstance(value, Tensor):
                    recorder.bind(value, proxy.node)
            with recorder, _Creations(recorder):
                result = function(*args)
            return tree_map(lambda x: _proxied(x, recorder), result)

        graph = tracer.trace(observed, concrete_args=tuple([tree_map(lambda _: PH, each) for each in args]))
        name = f.__class__.__name__ if isinstance(f, Module) else getattr(f, "__name__", type(f).__name__)
        return GraphModule(tracer.root, graph, name)

    return record


def _proxied(value: Any, recorder: _Recorder) -> Any:
    if not isinstance(value, Tensor):
        return value
    return Proxy(recorder.node_of(value), recorder.tracer)
