"""The nodes of an ONNX graph, its values with their operators, and the table of the rules that write functions.

A rule in `tinytorch/fx/onnx/ops/` says how public functions are written: `@rule("softmax")` above it enters it in the
table. It is called with the `Builder`, then with the arguments of the public function, in which tensors are `Value`s
and sizes that are not known are `Length`s; it returns its result as a `Value`, or a tuple of them. What it cannot write
raises `UnsupportedCall`.
"""

from __future__ import annotations

import functools
import importlib
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from tinytorch.core.supplied import declared, load
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.ops.register import Function, functions

#: The dtypes of results that are not those of the first input.
_TYPES = {
    **dict.fromkeys(("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "IsNaN", "IsInf"), dtypes.bool),
    **dict.fromkeys(("ArgMax", "ArgMin", "Shape", "Size"), dtypes.int64),
}


class UnsupportedCall(Exception):
    """Raised with the reason why a call of a function cannot be written."""


def _operator(compute: Callable[[Any, Any], Any], reflected: bool = False) -> Any:
    """Return the method of an operator, one of whose operands may be a number."""

    def method(self: Any, other: Any) -> Any:
        other = self.operand(other)
        return compute(other, self) if reflected else compute(self, other)

    return method


def _div(x: Any, y: Any) -> Any:
    return x.Div(y)


def _remainder(x: Any, y: Any) -> Any:
    return x - (x / y).Floor() * y if x.dtype.is_floating_point else x.Mod(y)


def _quotient(x: Any, y: Any) -> Any:
    """Return a quotient that is rounded down; that of ONNX rounds to zero."""
    return (x / y).Floor() if x.dtype.is_floating_point else (x - x.Mod(y)) / y


def _add(x: Any, y: Any) -> Any:
    return x.Or(y) if x.dtype is dtypes.bool else x.Add(y)


def _sub(x: Any, y: Any) -> Any:
    if x.dtype is dtypes.bool:
        raise UnsupportedCall("truth values are subtracted")
    return x.Sub(y)


def _mul(x: Any, y: Any) -> Any:
    return x.And(y) if x.dtype is dtypes.bool else x.Mul(y)


class Operand:
    """What operators and nodes may have as inputs: `x * y + 1` and `x.Exp()` add nodes.

    A method that has the name of an operator of ONNX adds a node of that operator (see `Builder.node`), whose first
    input is `x`: `x.Gather(index, axis=0)`.
    """

    __add__, __radd__ = _operator(_add), _operator(_add, True)
    __sub__, __rsub__ = _operator(_sub), _operator(_sub, True)
    __mul__, __rmul__ = _operator(_mul), _operator(_mul, True)
    __truediv__, __rtruediv__ = _operator(_div), _operator(_div, True)
    __floordiv__, __rfloordiv__ = _operator(_quotient), _operator(_quotient, True)
    __mod__, __rmod__ = _operator(_remainder), _operator(_remainder, True)
    __and__, __or__ = _operator(lambda x, y: x.And(y)), _operator(lambda x, y: x.Or(y))
    __lt__, __le__ = _operator(lambda x, y: x.Less(y)), _operator(lambda x, y: x.LessOrEqual(y))
    __gt__, __ge__ = _operator(lambda x, y: x.Greater(y)), _operator(lambda x, y: x.GreaterOrEqual(y))

    def __init__(self, builder: Builder, name: str, dtype: Any) -> None:
        self.builder, self.name, self.dtype = builder, name, dtype

    def __neg__(self) -> Any:
        return self.Neg()

    def __invert__(self) -> Any:
        return self.Not()

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        if not kind[0].isupper():
            raise AttributeError(kind)
        return functools.partial(self.builder.node, kind, self)


class Length(Operand):
    """A size that is not known: a tensor of shape (1,) and dtype int64."""

    def __init__(self, builder: Builder, name: str) -> None:
        super().__init__(builder, name, dtypes.int64)

    def operand(self, x: Any) -> Any:
        """Return the other operand of an operator."""
        return x if isinstance(x, Length) else Length(self.builder, self.builder.constant(np.array([x], np.int64)).name)

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        add = super().__getattr__(kind)
        return lambda *others: Length(self.builder, add(*others).name)


class Value(Operand):
    """A tensor of the ONNX graph.

    Attributes:
        name: its name.
        shape: the shape, with None in the place of a size that is not known; None if a rule does not need it.
        dtype: the dtype.
    """

    def __init__(self, builder: Builder, name: str, shape: Any, dtype: Any) -> None:
        super().__init__(builder, name, dtype)
        self.shape = shape

    def operand(self, x: Any) -> Any:
        """Return the other operand of an operator; a number gets this value's dtype."""
        return x if isinstance(x, Value) else self.builder.cast(x, self.dtype)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def dim(self, k: int) -> int:
        """Return the index of a dimension, which may be counted from the end."""
        return k + self.ndim if k < 0 else k

    def axes(self, dim: Any) -> list[int]:
        """Return the dimensions along which a function works: all of them for None, or none given."""
        if dim is None or (isinstance(dim, (tuple, list)) and not dim):
            return list(range(self.ndim))
        return [self.dim(k) for k in (dim if isinstance(dim, (tuple, list)) else (dim,)) if self.ndim]

    def size(self, k: int) -> Size:
        """Return the size of a dimension."""
        k, known = self.dim(k), self.builder.lengths
        n: int | None = self.shape[k]
        if n is not None:
            return n
        if (self.name, k) not in known:
            known[self.name, k] = Length(self.builder, self.Shape(start=k, end=k + 1).name)
        return known[self.name, k]

    @property
    def sizes(self) -> list[Size]:
        """The sizes of all dimensions."""
        return [self.size(k) for k in range(self.ndim)]

    def with_shape(self, *shape: int | None) -> Value:
        """Return the value with a shape that the rule knows."""
        return Value(self.builder, self.name, shape, self.dtype)

    def cast(self, dtype: Any) -> Value:
        """Return the tensor with a dtype."""
        return self if self.dtype == dtype else self.convert(dtype)

    def convert(self, dtype: Any) -> Value:
        """Return the result of a node that converts to a dtype."""
        result: Value = self.Cast(to=self.builder.type_of(dtype))
        return Value(self.builder, result.name, self.shape, dtype)

    def flat(self) -> Value:
        """Return the elements as a vector."""
        vector: Value = self.Reshape([-1])
        return vector.with_shape(None)

    def reshape(self, sizes: Sequence[Size]) -> Value:
        """Return the tensor with another shape."""
        sizes = list(sizes)
        unknown = sum(isinstance(each, Length) for each in sizes) == 1
        if unknown and not any(each in (0, -1) for each in sizes if not isinstance(each, Length)):
            sizes = [-1 if isinstance(each, Length) else each for each in sizes]
        zero = any(each == 0 for each in sizes if not isinstance(each, Length))
        result: Value = self.Reshape(sizes, allowzero=1 if zero else None)
        return result

    def reshape_as(self, other: Value) -> Value:
        """Return the tensor with the shape of another."""
        result: Value = self.Reshape(other.Shape(), allowzero=1)
        return result

    def squeeze(self, *dims: int) -> Value:
        """Return the tensor without dimensions of size 1."""
        if not dims:
            return self
        shape = self.shape and [n for k, n in enumerate(self.shape) if k not in dims]
        return Value(self.builder, self.Squeeze(list(dims)).name, shape, self.dtype)

    def unsqueeze(self, *dims: int) -> Value:
        """Return the tensor with additional dimensions of size 1."""
        if not dims:
            return self
        shape = self.shape
        if shape is not None:
            given = iter(shape)
            shape = [1 if k in dims else next(given) for k in range(len(shape) + len(dims))]
        return Value(self.builder, self.Unsqueeze(list(dims)).name, shape, self.dtype)

    def permute(self, order: Sequence[int]) -> Value:
        """Return the tensor with its dimensions in another order."""
        result: Value = self.Transpose(perm=[int(k) for k in order]) if order else self.Identity()
        return result

    def slice(self, dim: int, start: Size, stop: Size, step: int = 1) -> Value:
        """Return a part of the tensor along a dimension."""
        result: Value = self.Slice([start], [stop], [dim], [step])
        return result


#: A size, or a number.
Size = int | Length
_entries: list[tuple[tuple[Any, ...], Callable[..., Any]]] = []
_table: dict[Any, Callable[..., Any]] = {}


def rule(*names: Any) -> Callable[[Any], Any]:
    """Return a decorator that enters a rule in the table.

    Args:
        names: of public functions, which are paths below `torch` ("Tensor.view" is a method); or other functions.
    """

    def enter(function: Any) -> Any:
        _entries.append((names, function))
        return function

    return enter


def elementwise(*names: Any) -> Callable[[Any], Any]:
    """Return a decorator that enters a rule whose operands get the dtype of the result first."""

    def enter(function: Any) -> Any:
        @functools.wraps(function)
        def write(b: Builder, *args: Any, **kwargs: Any) -> Any:
            operands = (Operand, bool, int, float)
            args = tuple([b.cast(x, b.out.dtype) if isinstance(x, operands) else x for x in args])
            return function(b, *args, **kwargs)

        return rule(*names)(write)

    return enter


def table() -> dict[Any, Callable[..., Any]]:
    """Return the function of this package that writes a public function, by the declared function of that."""
    if not _table:
        importlib.import_module("tinytorch.fx.onnx.ops")
        load(Tensor)  # (public functions are declared when they are first used)
        root: Any = importlib.import_module("tinytorch")
        for name in (*root.__all__, "nn.functional", "special"):
            operator.attrgetter(name)(root)
        for names, function in _entries:
            for name in names:
                for key in _keys(name):
                    _table.setdefault(key, function)
    return _table


def _keys(name: Any) -> list[Any]:
    if not isinstance(name, str):
        return [name]
    owner, _, own = name.rpartition(".")
    found = []
    for each in (name, f"{name}_"):
        public = functions.get(each)
        if public is not None:
            found += [public.raw, public.lowered]
    for each in (own, f"{own}_"):
        method = declared.get(each) if owner in ("", "Tensor") else None
        # (The arguments of a method may have another order than those of the function.)
        if method is not None and (owner or each != own or method in found):
            found.append(method)
    if not found:
        raise KeyError(name)
    return found


def entry(target: Any) -> Callable[..., Any] | None:
    """Return the rule that writes calls of a public function or method, or None.

    Args:
        target: the function; or the name of the method.
    """
    if isinstance(target, str):
        target = getattr(Tensor, target, None)
    if isinstance(target, Function):
        target = target.raw
    known = table()
    try:
        found = known.get(target)
        return known.get(getattr(target, "__wrapped__", None)) if found is None else found
    except TypeError:  # it has no hash
        return None


class Builder:
    """An ONNX graph in the making.

    Attributes:
        onnx: the package `onnx`.
        opset: the version of the operators.
        nodes: the nodes, in order.
        constants: arrays by name.
        out: the result of the function that is being written, as far as it is one tensor: its shape and dtype.
        prefix: what new names begin with.
        line: the user's line.
        lengths: by the name of a value and a dimension, sizes that are not known.
    """

    def __init__(self, onnx: Any, opset: int) -> None:
        self.onnx, self.opset = onnx, opset
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.out: Any = None
        self.prefix, self.line = "", ""
        self.lengths: dict[tuple[str, int], Length] = {}
        self._names: set[str] = set()
        self._known: dict[Any, str] = {}

    # Names and constants --------------------------------------------------------------------------

    def new_name(self, wish: str) -> str:
        """Return a name that no other value has."""
        name, k = wish, 0
        while name in self._names:
            k += 1
            name = f"{wish}_{k}"
        self._names.add(name)
        return name

    def constant(self, x: Any) -> Value:
        """Return a constant."""
        array = np.asarray(x)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._known:
            name = self._known[key] = self.new_name(f"constant_{len(self.constants)}")
            self.constants[name] = array
        return Value(self, self._known[key], array.shape, dtypes.from_numpy_dtype(array.dtype))

    def type_of(self, dtype: Any) -> int:
        """Return ONNX's number of a dtype."""
        number: int = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype.numpy))
        return number

    # Nodes ----------------------------------------------------------------------------------------

    def node(self, kind: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node.

        Args:
            kind: the operator.
            inputs: values and lengths; arrays; lists of sizes, which are tensors of int64; numbers, which get the
                dtype of the first input; or None.
            outputs: the number of results.
            attributes: those of the operator; None for those that are not set.

        Returns:
            The result, whose shape is not known; a tuple if there are several.
        """
        first = self.input(inputs[0])
        given = [None if x is None else self.input(x, first.dtype) for x in inputs[1:]]
        while given and given[-1] is None:
            given.pop()
        names = [first.name, *["" if x is None else x.name for x in given]]
        results = [self.new_name(f"{self.prefix}_{kind.lower()}") for _ in range(outputs)]
        options = {key: value for key, value in attributes.items() if value is not None}
        node = self.onnx.helper.make_node(kind, names, results, name=f"node_{results[0]}", **options)
        if self.line:
            node.doc_string = self.line
        self.nodes.append(node)
        made = [Value(self, name, None, _TYPES.get(kind, first.dtype)) for name in results]
        return made[0] if outputs == 1 else tuple(made)

    def input(self, x: Any, dtype: Any = None) -> Any:
        """Return an input of a node as a value; a number gets a dtype."""
        if isinstance(x, (list, tuple, range)):
            return self.ints(x)
        return self.cast(x, dtype) if isinstance(x, (bool, int, float)) else self.value(x)

    def value(self, x: Any) -> Any:
        """Return a value, length or array as a value."""
        return x if isinstance(x, Operand) else self.constant(x)

    def concat(self, *parts: Any, axis: int) -> Value:
        """Return tensors, one behind the other."""
        made: Value = self.node("Concat", *parts, axis=axis)
        return made

    def where(self, condition: Any, x: Any, y: Any) -> Value:
        """Return the elements of one tensor where a condition is true, and those of another elsewhere."""
        dtype = next((each.dtype for each in (x, y) if isinstance(each, Value)), None) or self.out.dtype
        made: Value = self.node("Where", condition, *[self.input(each, dtype) for each in (x, y)])
        return Value(self, made.name, None, dtype)

    def ints(self, sizes: Sequence[Size]) -> Value:
        """Return a tensor of shape (n,) with sizes in it."""
        parts: list[Any] = []
        for each in sizes:
            if isinstance(each, Length):
                parts.append(each)
            elif parts and isinstance(parts[-1], list):
                parts[-1].append(int(each))
            else:
                parts.append([int(each)])
        parts = [np.array(part, np.int64) if isinstance(part, list) else part for part in parts]
        if len(parts) > 1:
            return self.concat(*parts, axis=0)
        found: Value = self.value(parts[0] if parts else np.zeros(0, np.int64))
        return found

    def scalar(self, x: Size) -> Value:
        """Return a tensor of shape () with a size in it."""
        if isinstance(x, Length):
            return Value(self, self.node("Squeeze", x, [0]).name, (), dtypes.int64)
        return self.constant(np.array(x, np.int64))

    def product(self, sizes: Sequence[Size]) -> Size:
        """Return the product of sizes."""
        number = 1
        found: Size | None = None
        for each in sizes:
            if isinstance(each, Length):
                found = each if found is None else found * each
            else:
                number *= each
        if found is None:
            return number
        return found if number == 1 else found * number

    def cast(self, x: Any, dtype: Any) -> Value:
        """Return a value with a dtype; a number becomes a constant."""
        if isinstance(x, (Value, Length)):
            return (x if isinstance(x, Value) else self.scalar(x)).cast(dtype)
        with np.errstate(all="ignore"):
            return self.constant(np.array(x).astype(dtype.numpy))

    def common(self, *operands: Any) -> Any:
        """Return the dtype in which operands meet."""
        ranked = []
        for x in operands:
            if isinstance(x, Value):
                ranked.append((x.dtype, 2 if x.ndim else 1))
            else:
                ranked.append((x.dtype if isinstance(x, Length) else dtypes.of_number(x), 0))
        return dtypes.result_dtype(*ranked)

    def like_out(self, x: Value) -> Value | None:
        """Return a tensor with the shape of the result, if no more than one size of that is unknown; else None."""
        shape = self.out.shape
        if sum(n is None for n in shape) > 1 or (None in shape and 0 in shape):
            return None
        return x.reshape([-1 if n is None else n for n in shape])

    def number(self, x: Any, what: str) -> Any:
        """Return a number of Python; a size that is not known, or a tensor, raises UnsupportedCall."""
        if isinstance(x, Operand):
            raise UnsupportedCall(f"{what} is not the same number in all calls")
        return x

    def refuse(self, reason: str) -> NoReturn:
        """Raise UnsupportedCall."""
        raise UnsupportedCall(reason)
