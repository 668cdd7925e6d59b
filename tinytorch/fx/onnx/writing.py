"""An exported program as an ONNX model.

The nodes of the graph are written in order, each by the function that the table has for it (`builder`). ONNX has no
writes: what a node writes to a tensor is a new value, which takes the place of the old one. If the tensor is a view,
its base gets a new value, too, in which the elements of the view are replaced; other views of the base are then written
again where they are used.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinytorch._version import __version__
from tinytorch.core.declaration import NUMPY
from tinytorch.core.tensor import Tensor
from tinytorch.fx.export.exported_program import ExportedProgram
from tinytorch.fx.export.graph_signature import InputKind
from tinytorch.fx.export.tracing import followed
from tinytorch.fx.node import Node, map_arg
from tinytorch.fx.onnx.builder import Builder, Length, UnsupportedCall, Value, entry
from tinytorch.fx.onnx.errors import UnsupportedOperatorError
from tinytorch.fx.onnx.ops.index import places, put
from tinytorch.kernels import dtypes
from tinytorch.ops.register import Function

#: The version of the file format, by that of the operators.
_IR_VERSIONS = {18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
_CALCULATIONS = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)


def follows(function: Any) -> bool:
    """Return whether the source of a function is followed, as there is no operator for the whole."""
    return entry(function) is None and followed(function) is not None


class Writer:
    """Writes a program as an ONNX model.

    Args:
        onnx: the package.
        program: the program.
        opset: the version of the operators.
        input_names, output_names: the names of the inputs and outputs, as far as they are given.
        axes: by name of an input or output, names of its dynamic sizes.

    Attributes:
        weights: the parameters, buffers and constants, by name.
    """

    def __init__(
        self, onnx: Any, program: ExportedProgram, opset: int, input_names: Sequence[str],
        output_names: Sequence[str], axes: Mapping[str, Mapping[int, str]],
    ) -> None:  # fmt: skip
        self.onnx, self.program, self.opset, self.axes = onnx, program, opset, axes
        self.builder = Builder(onnx, opset)
        self.weights: dict[str, Tensor] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.types: dict[str, Any] = {}  # by name of a parameter, its type
        self._values: dict[Node, Any] = {}
        self._stale: set[Node] = set()
        self._cells: dict[int, list[Node]] = {}
        self._dims: dict[tuple[int, ...], set[str]] = {}  # by a size in each call, the names of inputs' sizes
        self._states: set[Node] = set()
        for name in output_names:
            self.builder.new_name(name)
        self._place(list(input_names))
        for node in program.graph.nodes:
            if node.op in ("call_function", "call_method"):
                self._write(node)
        self._return(list(output_names))
        self._clean()

    # Inputs and outputs ---------------------------------------------------------------------------

    def _place(self, names: list[str]) -> None:
        """Make the inputs and parameters values."""
        specs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        placeholders = self.program.graph.find_nodes(op="placeholder")
        tensors = [node for node in placeholders if specs[node.name].kind is InputKind.USER_INPUT]
        dynamic = {(each.leaf, each.dim): each for each in self.program.dynamic}
        given = iter(names)
        for leaf, node in enumerate(tensors):
            described = node.meta.get("tensor")
            if described is None:
                self._values[node] = node.meta["val"]
                continue
            name = self.builder.new_name(next(given, node.name))
            shape: list[Any] = []
            for dim, n in enumerate(described.shape):
                size = dynamic.get((leaf, dim))
                own = self.axes.get(name, {}).get(dim) or (size.name if size is not None else "")
                shape.append(own or f"{name}_dim_{dim}" if size is not None and n is None else n)
                if isinstance(shape[-1], str):
                    self._dims.setdefault(described.sizes[dim], set()).add(shape[-1])
            self.inputs.append(self._info(name, described.dtype, shape))
            self._enter(node, Value(self.builder, name, described.shape, described.dtype))
        for node in placeholders:
            if node in tensors:
                continue
            spec = specs[node.name]
            x, described = self.program.tensor_of(spec), node.meta["tensor"]
            name = self.builder.new_name(spec.target or node.name)
            self._states.add(node)
            self.weights[name] = x
            self.types[name] = self._info(name, described.dtype, list(described.shape))
            self._enter(node, Value(self.builder, name, described.shape, described.dtype))

    def _info(self, name: str, dtype: Any, shape: Any) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, self.builder.type_of(dtype), shape)

    def _return(self, names: list[str]) -> None:
        (returned,) = self.program.graph.output_node().args
        count = sum(x is not None for x in returned)
        if len(names) > count:
            raise ValueError(f"number of output names provided ({len(names)}) exceeded number of outputs ({count})")
        given = iter(names)
        self.builder.prefix, self.builder.line = "output", ""
        for x in returned:
            if x is None:
                continue
            value = self._value(x) if isinstance(x, Node) else x
            if isinstance(value, Length):
                value = self.builder.scalar(value)
            elif not isinstance(value, Value):
                dtype = {float: dtypes.float32, int: dtypes.int64, bool: dtypes.bool}[type(value)]
                value = self.builder.cast(value, dtype)
            described = x.meta.get("tensor") if isinstance(x, Node) else None
            wish = next(given, None)
            name = wish or self.builder.new_name(x.name if isinstance(x, Node) else "constant")
            self.builder.nodes.append(self.onnx.helper.make_node("Identity", [value.name], [name], f"node_{name}"))
            shape: list[Any] = list(value.shape)
            for dim, n in enumerate(shape):
                if n is None:
                    own = self.axes.get(name, {}).get(dim)
                    known = self._dims.get(described.sizes[dim], set()) if described is not None else set()
                    shape[dim] = own or (next(iter(known)) if len(known) == 1 else f"{name}_dim_{dim}")
            self.outputs.append(self._info(name, value.dtype, shape))

    # Nodes ----------------------------------------------------------------------------------------

    def _enter(self, node: Node, value: Any) -> None:
        self._values[node] = value
        described = node.meta.get("tensor")
        if described is not None and described.cell >= 0:
            self._cells.setdefault(described.cell, []).append(node)

    def _value(self, node: Node) -> Any:
        """Return the value of a node; that of a view whose base was written to is written again."""
        if node in self._stale:
            base = _base(node)
            assert base is not None
            self._stale.discard(node)
            self._values[node] = self._call(node, {base: self._value(base)}, fresh=True)
        return self._values[node]

    def _write(self, node: Node) -> None:
        builder = self.builder
        target = node.meta.get("writes")
        builder.prefix, builder.line = node.name, node.meta.get("line", "")
        try:
            if target is None:
                self._enter(node, self._call(node, {}))
            else:
                described = target.meta["tensor"]
                result = self._call(node, {}, described)
                self._store(target, result)
        except UnsupportedCall as reason:
            raise UnsupportedOperatorError(
                _name_of(node), self.opset, None, node.meta.get("line", ""), str(reason)
            ) from None

    def _call(self, node: Node, replaced: dict[Node, Any], described: Any = None, fresh: bool = False) -> Any:
        """Return the value of a node.

        Args:
            node: the node.
            replaced: values of some of the nodes that it uses.
            described: the shape and dtype of the result, if they are not the node's.
            fresh: whether the value of a node without a tensor of its own is written again.
        """

        def value(x: Node) -> Any:
            if x in replaced:
                return replaced[x]
            if fresh and "tensor" not in x.meta and type(x.meta.get("val")) is not int:  # a tuple of views
                return self._call(x, replaced, fresh=True)
            return self._value(x)

        builder = self.builder
        if "tensor" not in node.meta and type(node.meta.get("val")) is int:
            return self._size(node, value)
        args: Any = map_arg(node.args, value)
        kwargs: Any = map_arg(dict(node.kwargs), value)
        described = described or node.meta.get("tensor")
        if node.target is operator.getitem and isinstance(args[0], tuple):
            item = args[0][args[1]]
            return item if described is None else Value(builder, item.name, described.shape, described.dtype)
        write = entry(node.target)
        if write is None:
            raise UnsupportedCall("ONNX has no operator for it")
        if "out" in kwargs:
            raise UnsupportedCall("out= is given")
        args, kwargs = _in_order(node.target, write, args, kwargs)
        try:
            inspect.signature(write).bind(builder, *args, **kwargs)
        except TypeError as error:
            raise UnsupportedCall(str(error)) from None
        before, builder.out = builder.out, described
        try:
            result = write(builder, *args, **kwargs)
        except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
            raise UnsupportedCall(f"these arguments are not expected: {type(error).__name__}: {error}") from error
        finally:
            builder.out = before
        if isinstance(result, tuple):
            return result
        if described is None:
            raise UnsupportedCall("its results are not tensors")
        return Value(builder, result.name, described.shape, described.dtype)

    def _size(self, node: Node, value: Callable[[Node], Any]) -> Any:
        args = [value(x) if isinstance(x, Node) else x for x in node.args]
        if node.target in _CALCULATIONS:
            return node.target(*args)
        if node.target == "size":
            return args[0].size(args[1])
        if _name_of(node).rpartition(".")[2] in ("numel", "nelement"):
            return Length(self.builder, args[0].Size().Reshape([1]).name)
        raise UnsupportedCall("it returns a number")

    # Writes ---------------------------------------------------------------------------------------

    def _store(self, node: Node, new: Value) -> None:
        """Give a tensor a new value, also as a part of those with which it shares memory."""
        if node in self._states:
            raise UnsupportedCall("a parameter or buffer is written to")
        chain = [node]
        value = new
        self._values[node] = new
        self._stale.discard(node)
        base = _base(node)
        while base is not None:
            if base in self._states:
                raise UnsupportedCall("a parameter or buffer is written to")
            old = self._value(base)
            at = self._call(chain[-1], {base: places(self.builder, old)}, _described_as_places(chain[-1]), fresh=True)
            value = Value(self.builder, put(self.builder, old, at, value).name, old.shape, old.dtype)
            self._values[base] = value
            chain.append(base)
            base = _base(base)
        for other in self._cells.get(node.meta["tensor"].cell, ()):
            if other not in chain:
                if _base(other) is None:
                    raise UnsupportedCall("memory is written to that another tensor shares")
                self._stale.add(other)

    # The model ------------------------------------------------------------------------------------

    def _clean(self) -> None:
        """Remove nodes whose results are not used, and those that only rename a value."""
        wanted = {each.name for each in self.outputs}
        names: dict[str, str] = {}
        for node in self.builder.nodes:
            for k, name in enumerate(node.input):
                node.input[k] = names.get(name, name)
            if node.op_type == "Identity" and node.output[0] not in wanted:
                names[node.output[0]] = node.input[0]
        used, kept = set(wanted), []
        for node in reversed(self.builder.nodes):
            if any(name in used for name in node.output):
                used.update(node.input)
                kept.append(node)
        self.builder.nodes = kept[::-1]
        self._rename({*wanted, *[each.name for each in self.inputs], *self.weights})
        self.builder.constants = {name: x for name, x in self.builder.constants.items() if name in used}
        self.used = used

    def _rename(self, fixed: set[str]) -> None:
        """Let a node return an output itself where that is but another name of its result."""
        made = {name: node for node in self.builder.nodes for name in node.output}
        new: dict[str, str] = {}
        kept = []
        for node in self.builder.nodes:
            old = node.input[0] if node.op_type == "Identity" else ""
            if old in made and old not in fixed and old not in new:
                new[old] = node.output[0]
            else:
                kept.append(node)
        for node in kept:
            for names in (node.input, node.output):
                for k, name in enumerate(names):
                    names[k] = new.get(name, name)
        self.builder.nodes = kept

    def model(self, parameters: str = "initializers") -> Any:
        """Return the model.

        Args:
            parameters: whether the parameters are "initializers", "inputs", or "both".
        """
        helper, numpy_helper = self.onnx.helper, self.onnx.numpy_helper
        initializers = [numpy_helper.from_array(x, name) for name, x in self.builder.constants.items()]
        inputs = list(self.inputs)
        for name, x in self.weights.items():
            if name not in self.used:
                continue
            if parameters != "initializers":
                inputs.append(self.types[name])
            if parameters != "inputs":
                initializers.append(numpy_helper.from_array(np.ascontiguousarray(x._array), name))
        graph = helper.make_graph(self.builder.nodes, "main_graph", inputs, self.outputs, initializers)
        model = helper.make_model(
            graph, producer_name="tinytorch", producer_version=__version__,
            opset_imports=[helper.make_opsetid("", self.opset)], ir_version=_IR_VERSIONS[self.opset],
        )  # fmt: skip
        return model


def _base(node: Node) -> Node | None:
    """Return the tensor of which a node is a view, or None."""
    cell = node.meta["tensor"].cell
    waiting: list[Node] = [*node.all_input_nodes]
    for each in waiting:
        described = each.meta.get("tensor")
        if described is not None:
            if described.cell == cell and cell >= 0:
                return each
        elif node.target is operator.getitem:  # of a tuple of views
            waiting += each.all_input_nodes
    return None


def _in_order(
    target: Any, write: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call of a function under names that the function which writes it knows, or in order."""
    function = getattr(Tensor, target, None) if isinstance(target, str) else target
    raw = function.raw if isinstance(function, Function) else function
    if not kwargs:
        return args, kwargs
    named = list(inspect.signature(raw).parameters.values()) if inspect.isfunction(raw) else []
    known = inspect.signature(write).parameters
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values())
    kwargs = {key if key in known else NUMPY.get(key, key): value for key, value in kwargs.items()}
    for each in named[len(args) :]:
        positional = each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        if not positional or each.name not in kwargs or takes_all or known.keys() >= kwargs.keys():
            break
        args = (*args, kwargs.pop(each.name))
    return args, kwargs


def _described_as_places(node: Node) -> Any:
    return node.meta["tensor"]._replace(dtype=dtypes.int64)


def _name_of(node: Node) -> str:
    target = node.target
    if isinstance(target, str):
        return f"Tensor.{target}"
    return target.name if isinstance(target, Function) else getattr(target, "__name__", str(target))
