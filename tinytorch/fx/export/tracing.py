"""A call of a model as a graph of public functions, for tensors of any size.

`traced` runs a call once, and `Transcript` writes it down as the nodes of a graph: the public functions that the model
calls, with sizes as nodes. `joined` compares the graphs of two calls whose inputs differ in the dynamic sizes: they
must be the same. A size that is the same in both becomes a number; one that decides what is done is an error.
"""

from __future__ import annotations

import ast
import builtins
import math
import operator
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.compiler import trace as base
from tinytorch.compiler.compiled import recording
from tinytorch.compiler.general import without_sizes
from tinytorch.compiler.recorder import Recorder, Value, is_ours, tensors_of
from tinytorch.compiler.sources import FOLDER
from tinytorch.compiler.trace import UNKNOWN, Dimension, Unwritten, plain
from tinytorch.compiler.tracing import Late, Tracer
from tinytorch.core.layout import strided
from tinytorch.core.mode import Event, on
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.func.pytree import TreeSpec, flatten, unflatten
from tinytorch.fx.graph import Graph
from tinytorch.fx.node import Node, map_arg
from tinytorch.nn.modules import _fast_path
from tinytorch.nn.modules.module import Module
from tinytorch.ops.overrides import declared
from tinytorch.ops.register import Function, functions

#: Operators of sizes, by the class of their node in a syntax tree.
_CALCULATIONS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip


class ExportError(RuntimeError):
    """A model cannot be exported; the message has the line of its code.

    Attributes:
        function: the public function whose source was followed, if the reason is in that.

    Example:
        >>> class M(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x if x.sum() > 0 else -x
        >>> torch.export.export(M(), (torch.ones(2),))
        Traceback (most recent call last):
        tinytorch.fx.export.tracing.ExportError: ...a tensor's value decides what is done: torch.where may do the same
    """

    function: str = ""


class Described(NamedTuple):
    """What is known of the value of a node: the shape and dtype of a tensor, in the call that was traced.

    Attributes:
        shape: the shape; None in the place of a size that is not the same in all calls.
        dtype: the dtype.
        cell: a number which tensors that share memory have in common.
        example: the shape in the call that was traced.
        sizes: for each dimension, its size in each call that was traced.
    """

    shape: tuple[int | None, ...]
    dtype: Any
    cell: int
    example: tuple[int, ...]
    sizes: tuple[tuple[int, ...], ...] = ()


class Traced(NamedTuple):
    """The graph of a call.

    Attributes:
        graph: the graph; its output is a tuple of the tensors and numbers in the result.
        structure: of the result.
        states: by placeholder, the parameters, buffers and constants, and their names in the model.
        inputs: the placeholders of the inputs.
        checks: what the sizes of this call decide, in order, each with the user's line.
    """

    graph: Graph
    structure: TreeSpec
    states: dict[Node, tuple[str, Tensor]]
    inputs: list[Node]
    checks: list[tuple[str, str]]


#: Returns whether a function is followed rather than written down, as its source calls other public functions.
Follows = Callable[[Any], bool]


class Transcript(base.Trace):
    """Writes the calls of a traced function down as nodes of a graph.

    Attributes:
        graph: the graph.
        checks: what sizes decide, in order, each with the user's line.
    """

    def __init__(self, tracer: Tracer, follows: Follows) -> None:
        recorder = tracer.recorder
        super().__init__(recorder.has_effects, lambda: recorder.line, tracer.guards.inputs)
        self.graph, self.checks = Graph(), list[tuple[str, str]]()
        self.states: dict[Node, tuple[str, Tensor]] = {}
        self.inputs: list[Node] = []
        self.failed_at = ""
        self.failed_in = ""
        self._following: list[str] = []  # the public functions whose source runs
        stops = tracer.recorder.stops

        def stopped() -> None:
            stops()
            self._note()

        tracer.recorder.stops = stopped
        self._tracer, self._follows = tracer, follows
        self._numbers: dict[str, Any] = {}  # by expression, the node or number of a size
        self._sizes: dict[str, tuple[Node, int]] = {}  # by name, the tensor and the dimension that a size is of
        self._cells: dict[int, tuple[int, Any]] = {}  # by id of a version counter, its number (it is kept alive)
        self._known: dict[int, str] = {}  # by id of a parameter or buffer, its name
        self._kept: list[Any] = []  # constants, and the parameters' tensors

    # Inputs ---------------------------------------------------------------------------------------

    def given(self, name: str, x: Any) -> None:
        """Add an input."""
        node = self.graph.placeholder(name)
        node.name = name  # (also if that is the name of a builtin function, such as `input`)
        self.inputs.append(node)
        if isinstance(x, Tensor):
            self._enter(x, node)
        else:
            node.meta["val"] = x

    def state(self, name: str, x: Tensor, prefix: str) -> Node:
        """Add a parameter, buffer or constant."""
        first = self.inputs[0] if self.inputs else None
        kept = prefix + name.replace(".", "_")
        if first is None:
            node = self.graph.placeholder(kept)
        else:
            with self.graph.inserting_before(first):
                node = self.graph.placeholder(kept)
        node.target = node.name
        self._enter(x, node)
        self.states[node] = name, x
        self._kept.append(x)
        return node

    # Values ---------------------------------------------------------------------------------------

    def fail(self, reason: str) -> None:
        """Note why the function cannot be written down; the first reason is kept."""
        if self.reason is None:
            self.failed_at = self.place()
            self._note()
        super().fail(reason)

    def _note(self) -> None:
        self.failed_in = self.failed_in or next(iter(self._following), "")

    def place(self) -> str:
        """Return the file and line of the user's code."""
        line = self._line()
        return f"{line[0]}:{line[1]}" if line else ""

    def _enter(self, x: Tensor, node: Any, name: str | None = None) -> None:
        if name is not None and not is_ours(type(x)):
            self.fail(f"{name} returns a {type(x).__name__}")
        super()._enter(x, node, name)
        if node.op != "placeholder":
            made: Any = self._tracer.recorder
            made.made_by_calls[id(x._array)] = weakref.ref(x._array)
        node.meta["val"] = x.shape
        cell: Any = getattr(x, "_cell", None)
        number, _ = self._cells.setdefault(id(cell), (len(self._cells), cell)) if cell is not None else (-1, None)
        node.meta["tensor"] = Described(tuple(x.shape), x.dtype, number, tuple(x.shape))
        node.meta["line"] = self.place()

    def node(self, x: Tensor) -> Node:
        """Return the node of a tensor."""
        known: Node | None = self._named(x)
        if known is not None:
            return known
        if x.layout is not strided:
            raise Unwritten(f"a tensor of layout {x.layout} is used")
        given = self._inputs.get(id(x))
        if given is not None:
            return self.state(given.name or "tensor", x, "c_")
        value = self._tracer.recorder.find(x._array)
        if value is None or not value.constant or value.initial is None:
            raise Unwritten(UNKNOWN)
        node = self.state("tensor", wrap(value.initial.copy()), "c_")
        super()._enter(x, node)
        return node

    def name(self, x: Tensor) -> str:
        """Return the name of a tensor's node."""
        return self.node(x).name

    def _taken(self, x: Any) -> Any:
        """Return an argument with nodes in the place of the tensors and sizes in it."""
        kind = type(x)
        if isinstance(x, Tensor):
            return self.node(x)
        if kind is Dimension:
            return self.number(x.text)
        if kind in (tuple, Size):
            return tuple([self._taken(each) for each in x])
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return tuple([self._taken(each) for each in x])
        if kind is list:
            return [self._taken(each) for each in x]
        if kind is dict:
            return {key: self._taken(each) for key, each in x.items()}
        if kind is slice:
            return slice(self._taken(x.start), self._taken(x.stop), self._taken(x.step))
        if isinstance(x, (tuple, list, dict, set, types.GeneratorType)) or hasattr(x, "__next__"):
            raise Unwritten(f"a {kind.__name__} is an argument")
        return plain(x)

    def number(self, text: str) -> Any:
        """Return the node, or the number, of a size's expression."""
        if text not in self._numbers:
            self._numbers[text] = self._calculated(ast.parse(text, mode="eval").body)
        return self._numbers[text]

    def _calculated(self, part: Any) -> Any:
        text = ast.unparse(part)
        if text not in self._numbers:
            if isinstance(part, ast.Constant):
                made: Any = part.value
            elif isinstance(part, ast.UnaryOp):
                made = -self._calculated(part.operand)
            elif isinstance(part, ast.Name):
                of, dim = self._sizes[part.id]
                made = of if dim < 0 else self.graph.call_method("size", (of, dim))
                made.meta["val"] = of.meta["val"] if dim < 0 else of.meta["val"][dim]
            else:
                function = _CALCULATIONS[type(part.op)]
                operands = self._calculated(part.left), self._calculated(part.right)
                numbers = [x.meta["val"] if isinstance(x, Node) else x for x in operands]
                made = self.graph.call_function(function, operands)
                made.meta["val"] = function(*numbers)
            self._numbers[text] = made
        return self._numbers[text]

    def _shape(self, x: Tensor) -> Size:
        node = self.node(x)
        return x.shape if node in self.states else Size([self._size(node, k, n) for k, n in enumerate(x._array.shape)])

    def _size(self, node: Node, dim: int, number: int) -> Dimension:
        text = f"{node.name}_size{dim}" if dim >= 0 else f"{node.name}_number"
        self._sizes[text] = node, dim
        return self.dimension(number, text, False)

    def check(self, condition: str, early: bool = False) -> None:
        """Note what sizes decide."""
        self.checks.append((condition, self.place()))

    # Calls ----------------------------------------------------------------------------------------

    def _instead(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], method: bool) -> Any:
        """Return the shape that a method reads, or the result of a public function that is followed."""
        known = self._read(function, args) if method and not kwargs else None
        source = followed(function) if known is None and self.reason is None else None
        if source is None or not self._follows(function):
            return NotImplemented if known is None else known
        self._following.append(getattr(function, "name", function.__name__))
        try:
            return self._tracer.run(source, *args, **kwargs)
        finally:
            self._following.pop()

    def _noting(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], method: bool, in_place: bool
    ) -> Callable[[Any], Any]:
        """Return what adds a node when a call has run."""
        taken: Any = (self._taken(args), self._taken(kwargs))
        operands = [*tensors_of(args), *tensors_of(kwargs)]
        versions = [x._version for x in operands]
        name = getattr(function, "__name__", "")
        if in_place and not isinstance(args[0], Tensor):  # `x += y` for a number `x`
            function = getattr(operator, name[1:], None) or getattr(operator, f"{name[1:]}_")

        def note(result: Any) -> Any:
            written = [x for x, version in zip(operands, versions, strict=True) if x._version != version]
            known = isinstance(result, Tensor) and self._is_known(result)
            if not written and (known or result is None):
                shown = self.node(result).name if known else "None"
                self.checks.append((f"{name} returns {shown}", self.place()))
                return result
            if function is builtins.tuple:
                node = self.graph.call_method("unbind", taken[0])
            elif function is builtins.len:
                node = self.graph.call_method("size", (*taken[0], 0))
            elif method and getattr(Tensor, name, None) is function:
                node = self.graph.call_method(name, *taken)
            else:
                node = self.graph.call_function(_public(function), *taken)
            node.meta["line"] = self.place()
            if not written:
                return self._entered(result, node, name)
            target = result if known else written[0]
            several = len({id(x._cell) for x in written}) > 1
            if several or not (known or result is None) or all(x is not target for x in written):
                self.fail(f"{name} writes to several tensors")
            node.meta["writes"] = self.node(target)
            return result

        return note

    def _read(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Return what a method returns that reads a tensor's shape; None for any other function."""
        name = getattr(function, "__name__", "")
        if getattr(Tensor, name, None) is not function:
            return None
        x, *dims = args
        if name == "size" and all(type(k) is int for k in dims):
            shape = self.shape(x)
            return shape[dims[0]] if dims else shape
        if name in ("numel", "nelement"):
            return math.prod(self.shape(x))
        return x.ndim if name in ("dim", "ndimension") else None

    def _number(self, x: int, node: Any) -> Dimension:
        node.meta["val"] = x
        return self._size(node, -1, x)

    def _parts(self, x: Any, node: Any) -> Iterator[Node]:
        for k in range(len(x)):
            part = self.graph.call_function(operator.getitem, (node, k))
            part.meta["line"] = node.meta["line"]
            yield part

    def _returns_known(self, x: Tensor, node: Any, name: str) -> None:
        self.checks.append((f"{name} returns {self.node(x).name}", self.place()))

    def _returns_constant(self, x: Any, node: Any, name: str) -> None:
        self.checks.append((f"{name} returns {x!r}", self.place()))
        if not (x is None or type(x) in (bool, str, float) or module_of(type(x)).startswith("tinytorch")):
            self.fail(f"{name} returns a {type(x).__name__}")
        self.graph.erase_node(node)

    def output(self, result: Any) -> TreeSpec:
        """Add the result."""
        leaves, structure = flatten(result)
        found = []
        for x in leaves:
            if type(x) is Late:
                raise Unwritten("a tensor's value is returned as a number of Python")
            found.append(self._taken(x))
        self.graph.output(tuple(found))
        return structure


def followed(function: Any) -> Any:
    """Return the Python function that a public function is, if that is composed of other functions; else None."""
    raw = function.raw if isinstance(function, Function) else declared(function)
    return raw if isinstance(raw, types.FunctionType) and not hasattr(raw, "op") else None


def _public(function: Any) -> Any:
    """Return the public function of a declared one, if it has one."""
    function = declared(function)
    if not isinstance(function, types.FunctionType) or function.__name__ == "<lambda>":
        return function
    for name in (function.__name__, f"nn.functional.{function.__name__}"):
        found = functions.get(name)
        if found is not None and found.raw is function:
            return found
    return function


def _failed(reason: str, transcript: Transcript) -> ExportError:
    error = ExportError(reason)
    error.function = transcript.failed_in
    return error


class _Recorder(Recorder):
    """Sees which tensors exist and are read; the kernels that run are of no interest."""

    def __init__(self) -> None:
        super().__init__()
        self.made_by_calls: dict[int, weakref.ref[Any]] = {}  # by id, arrays of tensors that functions have returned

    def find(self, array: Any) -> Value | None:
        """Return the value of a known array."""
        known = self.made_by_calls.get(id(array))
        if known is not None and known() is array and array is not None:
            return Value(array.shape, array.dtype, array.strides, None, False, place=-1)
        return super().find(array)

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call of an op."""
        if getattr(op, "data_dependent", False):
            where = f"{self.line[0]}:{self.line[1]}: " if self.line else ""
            self.stop(f"{where}the shape of the result of {op.name.strip('_')} depends on values")
        return caller(*args, **kwargs)

    @on(Event.FILLED, Event.WROTE, Event.COPIED)
    def _unobserved(self, **facts: Any) -> None:
        """See a fill with random numbers, a write, or a copy."""


class _Tracer(Tracer):
    """Follows functions of the package, too, which may read what users' code may not."""

    def attribute(self, x: Any, name: str) -> Any:
        """Return `x.name`; shapes of arrays, which differ where sizes are dynamic, are plain numbers."""
        if isinstance(x, np.ndarray) and name in ("shape", "ndim", "dtype", "size"):
            return getattr(x, name)
        self._see_line()
        return super().attribute(x, name)

    def _see_line(self) -> None:
        """Note which line of the user's code reads, for messages."""
        frame: Any = sys._getframe(2)
        code = frame.f_code
        if code in self._codes and not code.co_filename.startswith(FOLDER):
            self.recorder.line = code.co_filename, frame.f_lineno

    def _attribute_of_tensor(self, x: Tensor, name: str, value: Any) -> Any:
        private = name.startswith("_") or name in ("is_sparse", "is_meta", "is_nested", "is_quantized", "is_mkldnn")
        return value if private else super()._attribute_of_tensor(x, name, value)


def _noting_line(name: str) -> Any:
    """Return a method of `_Tracer` that notes the line of the user's code before it does what that of `Tracer` does."""
    plain = getattr(Tracer, name)

    def method(self: _Tracer, *args: Any) -> Any:
        self._see_line()
        return plain(self, *args)

    return method


for _name in ("item", "set_item", "compare", "unary", "truth"):
    setattr(_Tracer, _name, _noting_line(_name))


def traced(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any], names: Sequence[str], follows: Follows
) -> Traced:  # fmt: skip
    """Return the graph of a call.

    Args:
        model: a module or function.
        args, kwargs: the arguments; their tensors are not changed.
        names: the names of the leaves of the arguments.
        follows: which functions are followed.
    """
    leaves, structure = flatten((args, kwargs))
    leaves = [wrap(x._array.copy()) if isinstance(x, Tensor) else x for x in leaves]
    args, kwargs = unflatten(leaves, structure)
    recorder = _Recorder()
    tracer = _Tracer(recorder, strict=True)
    transcript = tracer.trace = Transcript(tracer, follows)
    if isinstance(model, Module):
        for prefix, tensors in (("p_", model.named_parameters()), ("b_", model.named_buffers())):
            for name, x in tensors:
                transcript.state(name, x, prefix)
    for name, x in zip(names, leaves, strict=True):
        transcript.given(name, x)
    recording.count += 1
    imitates = _fast_path.get_fastpath_enabled()
    _fast_path.set_fastpath_enabled(False)  # (which asks for the values of masks)
    try:
        with no_grad(), recorder:
            result = tracer.start(model, args, kwargs)
        if recorder.stopped is not None:
            raise _failed(recorder.stopped, transcript)
        if tracer.assigned:
            owner, name, _ = tracer.assigned[0]
            raise ExportError(f"the attribute {name} of a {type(owner).__name__} is set to another tensor")
        if transcript.reason is None:
            try:
                outputs = transcript.output(result)
            except Unwritten as error:
                transcript.fail(str(error))
        if transcript.reason is not None:
            raise _failed(f"{transcript.failed_at}: {transcript.reason}".removeprefix(": "), transcript)
        without_sizes(result)
    finally:
        _fast_path.set_fastpath_enabled(imitates)
        recording.count -= 1
        transcript.close()
        tracer.guards.close()
        recorder.close()
    return Traced(transcript.graph, outputs, transcript.states, transcript.inputs, transcript.checks)


def joined(first: Traced, others: Sequence[Traced]) -> None:
    """Make the graph of a call that for all sizes, or for its own.

    Args:
        first: the graph, which is changed.
        others: those of the same calls with other sizes in the place of the dynamic ones (see `difference`); none if
            there are no dynamic sizes.
    """
    alike = [list(other.graph.nodes) for other in others]
    for k, node in enumerate(list(first.graph.nodes)):
        same = [nodes[k] for nodes in alike]
        value = node.meta.get("val")
        # (What is calculated with sizes that differ may be the same number by chance.)
        varies = any(type(each.meta.get("val")) is int for each in node.all_input_nodes)
        number = type(value) is int and node.op != "placeholder" and not varies
        if number and all(each.meta["val"] == value for each in same):
            _replace(node, value)
        described = node.meta.get("tensor")
        if described is not None:
            sizes = tuple(zip(*[each.meta["tensor"].example for each in (node, *same)], strict=True))
            shape = tuple([n[0] if len({*n}) == 1 else None for n in sizes])
            node.meta["tensor"] = described._replace(shape=shape, sizes=sizes)
    for node in list(first.graph.nodes):
        numbers = [x for x in node.args if type(x) is int]
        if node.target in _CALCULATIONS.values() and len(numbers) == 2 and type(node.meta.get("val")) is int:
            _replace(node, node.meta["val"])
    for node in reversed(list(first.graph.nodes)):
        number = type(node.meta.get("val")) is int and node.op != "placeholder"
        if not node.users and (number or node.target is operator.getitem) and not node.meta.get("writes"):
            first.graph.erase_node(node)


class Difference(NamedTuple):
    """What two calls with different sizes do differently.

    Attributes:
        reason: words for it, with the user's line.
        bound: whether it is a limit of a size, such as the length of a table, that one of the calls exceeds.
    """

    reason: str
    bound: bool


def difference(first: Traced, second: Traced) -> Difference | None:
    """Return what two calls with different sizes do differently, apart from sizes; None if there is nothing."""
    for one, other in zip(first.checks, second.checks, strict=False):
        if one != other:
            bound = one[1] == other[1] and any(sign in one[0] for sign in (" < ", " <= ", " > ", " >= "))
            words = f"{one[1]}: a dynamic size decides what is done: {_shown(one[0])}, and for other sizes: "
            return Difference(words + _shown(other[0]), bound)
    pairs: dict[Node, Node] = {}
    ones, twos = list(first.graph.nodes), list(second.graph.nodes)
    for node, twin in zip(ones, twos, strict=False):
        pairs[node] = twin
        alike = node.op == twin.op and (node.target is twin.target or node.target == twin.target)
        if alike:
            mapped: Any = map_arg((node.args, dict(node.kwargs)), lambda each: pairs[each])
            mine, theirs = node.meta.get("tensor"), twin.meta.get("tensor")
            if mine is not None and theirs is not None:
                own, other_own = [(len(x.example), x.dtype, x.cell) for x in (mine, theirs)]
                alike = own == other_own
            alike = alike and _equal(mapped, (twin.args, dict(twin.kwargs)))
        if not alike:
            shown = f"{node.format_node()}, and for other sizes: {twin.format_node()}"
            return Difference(f"{node.meta.get('line', '')}: {node.name} depends on a dynamic size: {shown}", False)
    if len(ones) != len(twos) or len(first.checks) != len(second.checks):
        return Difference("other functions are called for other dynamic sizes", False)
    if first.structure != second.structure:
        return Difference("the structure of the result depends on a dynamic size", False)
    return None


def _equal(x: Any, y: Any) -> bool:
    if isinstance(x, (tuple, list)):
        return type(x) is type(y) and len(x) == len(y) and all(map(_equal, x, y))
    if isinstance(x, dict):
        return isinstance(y, dict) and x.keys() == y.keys() and all(_equal(x[key], y[key]) for key in x)
    if isinstance(x, slice):
        return isinstance(y, slice) and _equal([x.start, x.stop, x.step], [y.start, y.stop, y.step])
    return x is y or (type(x) is type(y) and (bool(x == y) or (x != x and y != y)))


def _shown(condition: str) -> str:
    return condition.replace("_size", ".shape ")


def _replace(node: Node, value: Any) -> None:
    for user in list(node.users):
        user._replace_input_with(node, value)


__all__ = ["Described", "Difference", "ExportError", "Follows", "Traced", "difference", "followed", "joined", "traced"]
