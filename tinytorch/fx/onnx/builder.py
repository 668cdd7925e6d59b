"""The nodes of an ONNX graph, and the table of the functions that are written as such nodes.

A function in `tinytorch/fx/onnx/ops/` says how one public function is written: `@says("softmax")` above it enters it in
the table. It is called with the `Builder`, then with the arguments of the public function, in which tensors are
`Value`s and sizes that are not known are `Length`s; it returns the name of its result, or a tuple of names. What it
cannot write raises `Unsaid`.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.ops import later
from tinytorch.ops.register import Function, functions, methods


class Unsaid(Exception):
    """Raised with the reason why a call of a function cannot be written."""


class Value(NamedTuple):
    """A tensor of the ONNX graph.

    Attributes:
        name: its name.
        shape: the shape, with None in the place of a size that is not known.
        dtype: the dtype.
    """

    name: str
    shape: tuple[int | None, ...]
    dtype: Any

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def dim(self, k: int) -> int:
        """Return the index of a dimension, which may be counted from the end."""
        return k + self.ndim if k < 0 else k


class Length(NamedTuple):
    """A size that is not known: the name of a tensor of shape (1,) and dtype int64."""

    name: str


#: A size, or a number.
Size = int | Length
_entries: list[tuple[tuple[Any, ...], Callable[..., Any]]] = []
_table: dict[Any, Callable[..., Any]] = {}


def says(*names: Any) -> Callable[[Any], Any]:
    """Return a decorator that enters a function in the table.

    Args:
        names: of public functions, which are paths below `torch` ("Tensor.view" is a method); or other functions.
    """

    def enter(function: Any) -> Any:
        _entries.append((names, function))
        return function

    return enter


def table() -> dict[Any, Callable[..., Any]]:
    """Return the function of this package that writes a public function, by the declared function of that."""
    if not _table:
        importlib.import_module("tinytorch.fx.onnx.ops")
        later.load()  # (public functions are declared when they are first used)
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
        method = methods.get(each) if owner in ("", "Tensor") else None
        # (The arguments of a method may have another order than those of the function.)
        if method is not None and (owner or each != own or method in found):
            found.append(method)
    if not found:
        raise KeyError(name)
    return found


def entry(target: Any) -> Callable[..., Any] | None:
    """Return the function that writes calls of a public function or method, or None.

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
    """

    def __init__(self, onnx: Any, opset: int) -> None:
        self.onnx, self.opset = onnx, opset
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.out: Any = None
        self.prefix, self.line = "", ""
        self._names: set[str] = set()
        self._known: dict[Any, str] = {}
        self._sizes: dict[tuple[str, int], Length] = {}

    # Names and constants --------------------------------------------------------------------------

    def new_name(self, wish: str) -> str:
        """Return a name that no other value has."""
        name, k = wish, 0
        while name in self._names:
            k += 1
            name = f"{wish}_{k}"
        self._names.add(name)
        return name

    def constant(self, x: Any, dtype: Any = None) -> str:
        """Return the name of a constant.

        Args:
            x: an array, or a number.
            dtype: its dtype.
        """
        array = np.asarray(x, dtype=None if dtype is None else dtype.numpy)
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._known:
            name = self._known[key] = self.new_name(f"constant_{len(self.constants)}")
            self.constants[name] = array
        return self._known[key]

    def type_of(self, dtype: Any) -> int:
        """Return ONNX's number of a dtype."""
        number: int = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype.numpy))
        return number

    # Nodes ----------------------------------------------------------------------------------------

    def op(self, kind: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node.

        Args:
            kind: the operator.
            inputs: names, `Value`s, `Length`s, arrays, or None.
            outputs: the number of results.
            attributes: those of the operator; None for those that are not set.

        Returns:
            The name of the result; a tuple if there are several.
        """
        names = [self.named(x) for x in inputs]
        while names and not names[-1]:
            names.pop()
        results = [self.new_name(f"{self.prefix}_{kind.lower()}") for _ in range(outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        node = self.onnx.helper.make_node(kind, names, results, name=f"node_{results[0]}", **given)
        if self.line:
            node.doc_string = self.line
        self.nodes.append(node)
        return results[0] if outputs == 1 else tuple(results)

    def named(self, x: Any) -> str:
        """Return the name of an input of a node."""
        if x is None:
            return ""
        if isinstance(x, str):
            return x
        if isinstance(x, (Value, Length)):
            return x.name
        return self.constant(x)

    def ints(self, sizes: Sequence[Size]) -> str:
        """Return the name of a tensor of shape (n,) with sizes in it."""
        parts: list[Any] = []
        for each in sizes:
            if isinstance(each, Length):
                parts.append(each)
            elif parts and isinstance(parts[-1], list):
                parts[-1].append(int(each))
            else:
                parts.append([int(each)])
        parts = [np.array(part, np.int64) if isinstance(part, list) else part for part in parts]
        if not parts:
            return self.constant(np.zeros(0, np.int64))
        return self.named(parts[0]) if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def scalar(self, x: Size) -> str:
        """Return the name of a tensor of shape () with a size in it."""
        if isinstance(x, Length):
            return self.op("Squeeze", x, np.array([0], np.int64))
        return self.constant(np.array(x, np.int64))

    def size(self, x: Value, k: int) -> Size:
        """Return the size of a dimension."""
        k = x.dim(k)
        known = x.shape[k]
        if known is not None:
            return known
        if (x.name, k) not in self._sizes:
            self._sizes[x.name, k] = Length(self.op("Shape", x, start=k, end=k + 1))
        return self._sizes[x.name, k]

    def sizes(self, x: Value) -> list[Size]:
        """Return the sizes of all dimensions."""
        return [self.size(x, k) for k in range(x.ndim)]

    def calculated(self, kind: str, x: Size, y: Size) -> Size:
        """Return the result of a calculation with sizes: `Add`, `Sub`, `Mul`, `Div` (rounded down) or `Mod`."""
        if not (isinstance(x, Length) or isinstance(y, Length)):
            number = {"Add": x + y, "Sub": x - y, "Mul": x * y}.get(kind)
            return number if number is not None else x // y if kind == "Div" else x % y
        first, second = [each if isinstance(each, Length) else np.array([each], np.int64) for each in (x, y)]
        if kind == "Div":  # that of ONNX rounds to zero
            first = self.op("Sub", first, self.op("Mod", first, second))
        return Length(self.op(kind, first, second))

    def product(self, sizes: Sequence[Size]) -> Size:
        """Return the product of sizes."""
        number = 1
        found: Size | None = None
        for each in sizes:
            if isinstance(each, Length):
                found = each if found is None else self.calculated("Mul", found, each)
            else:
                number *= each
        if found is None:
            return number
        return found if number == 1 else self.calculated("Mul", found, number)

    # Tensors --------------------------------------------------------------------------------------

    def cast(self, x: Any, dtype: Any) -> str:
        """Return a value with a dtype; a number becomes a constant."""
        if isinstance(x, Length):
            name = self.scalar(x)
            return name if dtype == dtypes.int64 else self.op("Cast", name, to=self.type_of(dtype))
        if not isinstance(x, Value):
            with np.errstate(all="ignore"):
                return self.constant(np.array(x).astype(dtype.numpy))
        if x.dtype == dtype:
            return x.name
        return self.op("Cast", x, to=self.type_of(dtype))

    def common(self, *operands: Any) -> Any:
        """Return the dtype in which operands meet."""
        given = [x for x in operands if isinstance(x, Value)]
        if not given:
            return self.out.dtype
        stand_ins: list[Any] = []
        for x in operands:
            if isinstance(x, Value):
                stand_ins.append(wrap(np.zeros((0,) * x.ndim, x.dtype.numpy)))
            else:
                stand_ins.append(1 if isinstance(x, Length) else x)
        found = stand_ins[0]
        result = functions["result_type"]
        for k, x in enumerate(stand_ins[1:]):
            dtype = result(found, x)
            shape = np.zeros((0,) * max(getattr(each, "ndim", 0) for each in stand_ins[: k + 2]), dtype.numpy)
            found = wrap(shape)
        return found.dtype if isinstance(found, Tensor) else given[0].dtype

    def reshaped(self, x: Any, sizes: Sequence[Size]) -> str:
        """Return a tensor with another shape."""
        sizes = list(sizes)
        if sum(isinstance(each, Length) for each in sizes) == 1 and 0 not in sizes and -1 not in sizes:
            sizes = [-1 if isinstance(each, Length) else each for each in sizes]
        zero = any(each == 0 for each in sizes if not isinstance(each, Length))
        return self.op("Reshape", x, self.ints(sizes), allowzero=1 if zero else None)

    def like_out(self, x: Any) -> str | None:
        """Return a tensor with the shape of the result, if no more than one size of that is unknown; else None."""
        shape = self.out.shape
        if sum(n is None for n in shape) > 1 or (None in shape and 0 in shape):
            return None
        return self.reshaped(x, [-1 if n is None else n for n in shape])

    def squeezed(self, x: Any, *dims: int) -> str:
        """Return a tensor without dimensions of size 1."""
        return self.op("Squeeze", x, np.array(dims, np.int64)) if dims else self.named(x)

    def unsqueezed(self, x: Any, *dims: int) -> str:
        """Return a tensor with additional dimensions of size 1."""
        return self.op("Unsqueeze", x, np.array(dims, np.int64)) if dims else self.named(x)

    def sliced(self, x: Any, dim: int, start: Size, stop: Size, step: int = 1) -> str:
        """Return a part of a tensor along a dimension."""
        return self.op("Slice", x, self.ints([start]), self.ints([stop]), np.array([dim]), np.array([step]))

    def number(self, x: Any, what: str) -> Any:
        """Return a number of Python; a size that is not known, or a tensor, raises Unsaid."""
        if isinstance(x, (Value, Length)):
            raise Unsaid(f"{what} is not the same number in all calls")
        return x

    def refuse(self, reason: str) -> NoReturn:
        """Raise Unsaid."""
        raise Unsaid(reason)


__all__ = ["Builder", "Length", "Size", "Unsaid", "Value", "entry", "says", "table"]
