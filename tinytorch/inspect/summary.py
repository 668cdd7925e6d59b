"""`summary(model, input_size)`: a table of a model's layers, output shapes, parameters, multiply-adds and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tinytorch.autograd.profiler import allocated, tensors_in
from tinytorch.core.declaration import Op
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.calls import Call, ModuleTracer, call_once
from tinytorch.inspect.notebook import Row, size_text, table
from tinytorch.kernels import dtypes
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.create import zeros
from tinytorch.ops.random import fork_rng, rand

__all__ = ["LayerSummary", "ModelSummary", "summary"]


@dataclass
class LayerSummary:
    """One call of a layer; its numbers do not include those of the layers that it calls.

    Attributes:
        name: the name of the layer in its parent; the class name for the model.
        path: the full name, as in `named_modules()`; "" for the model.
        type: the name of the class.
        depth: the number of enclosing calls.
        output_shape: the shape of the output as a tuple, or for several tensors a list or dict of tuples.
        parameters: the number of parameters of the layer and of sublayers that are not called; every parameter is
            counted once, in the first layer that has it.
        trainable_parameters: the number of those that require grad.
        multiply_adds: the number of multiply-adds in the layer's operations.
        output_bytes: memory of the output that is not shared with the input; 0 if the layer calls other layers.
        recursive: whether the layer was called before.
    """

    name: str
    path: str
    type: str
    depth: int
    output_shape: Any = None
    parameters: int = 0
    trainable_parameters: int = 0
    multiply_adds: int = 0
    output_bytes: int = 0
    recursive: bool = False
    children: list[LayerSummary] = field(default_factory=list, repr=False)

    def __iter__(self) -> Iterator[LayerSummary]:
        """Iterate over this call and nested calls, in the order of their start."""
        yield self
        for child in self.children:
            yield from child


@dataclass(repr=False)
class ModelSummary:
    """The result of `summary`; its `str` is a table.

    Attributes:
        layers: a `LayerSummary` per call of a layer, in the order of the calls; the first is the model.
        total_parameters: the number of the model's parameters; shared ones are counted once.
        trainable_parameters: the number of those that require grad.
        multiply_adds: the number of multiply-adds in one forward pass.
        activation_bytes: memory of the outputs of all layers that call no others.
        input_bytes, parameter_bytes, buffer_bytes: memory of the inputs, of the parameters and of the buffers.
        depth: the largest depth shown in the table, None for no limit.
    """

    layers: list[LayerSummary]
    total_parameters: int
    trainable_parameters: int
    multiply_adds: int
    input_bytes: int
    activation_bytes: int
    parameter_bytes: int
    buffer_bytes: int
    depth: int | None = None

    @property
    def total_bytes(self) -> int:
        """The total memory of inputs, activations, parameters and buffers."""
        return self.input_bytes + self.activation_bytes + self.parameter_bytes + self.buffer_bytes

    def __str__(self) -> str:
        rows = [_HEAD]
        for layer in self.layers:
            if self.depth is None or layer.depth <= self.depth:
                name, shape, count, work = _row(layer, self.depth).cells
                rows.append(("  " * layer.depth + name, shape, count, work))
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            f"{name:<{widths[0]}}  {shape:<{widths[1]}}  {count:>{widths[2]}}  {work:>{widths[3]}}"
            for name, shape, count, work in rows
        ]
        double, single = "=" * len(lines[0]), "-" * len(lines[0])
        totals = [
            f"Parameters: {self.total_parameters:,}",
            f"  trainable: {self.trainable_parameters:,}",
            f"  not trainable: {self.total_parameters - self.trainable_parameters:,}",
            f"Multiply-adds: {self.multiply_adds:,}",
            single,
            f"Input: {size_text(self.input_bytes)}",
            f"Activations: {size_text(self.activation_bytes)}",
            f"Parameters: {size_text(self.parameter_bytes)}",
            f"Buffers: {size_text(self.buffer_bytes)}",
            f"Together: {size_text(self.total_bytes)}",
        ]
        table = [double, lines[0], double, *lines[1:], double, *totals, double]
        return "\n".join(line.rstrip() for line in table)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = sum(self.depth is None or layer.depth <= self.depth for layer in self.layers)

        def tree(layer: LayerSummary) -> Row:
            row = _row(layer, layer.depth)
            below = [] if layer.depth == self.depth else map(tree, layer.children)
            share = row.parameters / max(1, self.total_parameters)
            return Row(row.cells, share, below, open=shown <= _OPEN or layer.depth < 1)

        trained = f"{self.trainable_parameters:,} trainable" * (self.trainable_parameters < self.total_parameters)
        foot = (
            f"{self.total_parameters:,} parameters{f' ({trained})' if trained else ''} · "
            f"{self.multiply_adds:,} multiply-adds · {size_text(self.total_bytes)}: "
            f"input {size_text(self.input_bytes)}, activations {size_text(self.activation_bytes)}, "
            f"parameters {size_text(self.parameter_bytes)}"
        )
        return table(_HEAD, [tree(self.layers[0])], foot)


_HEAD = ("Layer", "Output shape", "Parameters", "Multiply-adds")
_OPEN = 40  # rows up to which notebooks show all levels


class _Row(NamedTuple):
    """The cells of a layer, and how many parameters the third counts."""

    cells: tuple[str, str, str, str]
    parameters: int


def _row(layer: LayerSummary, depth: int | None) -> _Row:
    """Return the cells of a layer; at the largest depth shown, they include nested layers."""
    calls = list(layer) if layer.depth == depth else [layer]
    parameters = sum(call.parameters for call in calls)
    trainable = sum(call.trainable_parameters for call in calls)
    work = sum(call.multiply_adds for call in calls)
    count = f"{parameters:,}" if parameters else "-"
    if parameters and not trainable:
        count = f"({count})"
    if layer.recursive:
        count = "(recursive)"
    name = layer.type if not layer.path else f"{layer.name}: {layer.type}"
    cells = (name, _shape_text(layer.output_shape), count, f"{work or '-':{',' if work else ''}}")
    return _Row(cells, 0 if layer.recursive else parameters)


# Structures of tensors ----------------------------------------------------------------------------


def _shape_of(value: Any) -> Any:
    """Return the shape of a tensor as a tuple; for nested structures, lists and dicts of tuples."""
    if isinstance(value, Tensor):
        return tuple(value.shape)
    if isinstance(value, Mapping):
        return {key: _shape_of(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_shape_of(item) for item in value]
    return None


def _shapes(shape: Any) -> Iterator[tuple[int, ...]]:
    if isinstance(shape, tuple):
        yield shape
    elif shape is not None:
        for item in shape.values() if isinstance(shape, dict) else shape:
            yield from _shapes(item)


def _shape_text(shape: Any) -> str:
    texts = [str(list(sizes)) for sizes in _shapes(shape)]
    return "-" if not texts else texts[0] + (", ..." if len(texts) > 1 else "")


class _LayerTracer(ModuleTracer):
    """Records the calls of a model's layers, and the multiply-adds of their ops."""

    def __init__(self, model: Module) -> None:
        super().__init__(model)
        self.root: LayerSummary | None = None
        self.open: list[LayerSummary] = []
        self.raised: list[LayerSummary] = []
        self.called: dict[int, Module] = {}
        self.first: list[tuple[LayerSummary, Module]] = []

    def _begin(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        path = self.paths[module]
        name = path.rpartition(".")[2] or type(module).__name__
        row = LayerSummary(name, path, type(module).__name__, len(self.open))
        row.recursive = id(module) in self.called
        if not row.recursive:
            self.called[id(module)] = module
            self.first.append((row, module))
        if self.open:
            self.open[-1].children.append(row)
        elif self.root is None:
            self.root = row
        self.open.append(row)

    def _end(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        row = self.open.pop()
        if output is None:  # the call raised
            self.raised.append(row)
            return
        self.raised.clear()  # an earlier error was caught
        row.output_shape = _shape_of(output)
        if not row.children:
            row.output_bytes = allocated(output, args)

    def listen(self, call: Call) -> Iterator[None]:
        """Count the multiply-adds of a call."""
        yield
        if self.open and isinstance(call.op, Op):
            self.open[-1].multiply_adds += call.op.products(call.out, call.args, call.kwargs)

    def count_parameters(self) -> None:
        """Count the parameters of each layer, including those of sublayers that are not called."""
        seen: set[int] = set()

        def parameters_of(module: Module) -> Iterator[Parameter]:
            yield from (parameter for parameter in module._parameters.values() if parameter is not None)
            for child in module.children():
                if id(child) not in self.called:
                    yield from parameters_of(child)

        for row, module in self.first:
            for parameter in parameters_of(module):
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    row.parameters += parameter.numel()
                    row.trainable_parameters += parameter.numel() if parameter.requires_grad else 0


# Inputs and calls ---------------------------------------------------------------------------------


def is_size(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(
        isinstance(length, int) and not isinstance(length, bool) for length in value
    )


def inputs_of(input_size: Any, dtype: Any, model: Module, caller: str = "summary()") -> list[Tensor]:
    """Return inputs of sizes `input_size`: uniform random numbers from [0, 1) for floating-point dtypes, else zeros."""
    several = isinstance(input_size, (list, tuple)) and len(input_size) > 0 and all(map(is_size, input_size))
    sizes = list(input_size) if several else [input_size]
    for size in sizes:
        if not is_size(size):
            raise TypeError(
                f"{caller}: input_size should be a size such as (1, 3, 32, 32), or a list of sizes, "
                f"but got {input_size!r:.60}"
            )
        if any(length < 0 for length in size):
            raise ValueError(f"{caller}: a size cannot be negative, but got input_size={input_size!r}")
    if dtype is None:
        floats = (p.dtype for p in model.parameters() if p.dtype.is_floating_point)
        dtype = next(floats, dtypes.get_default_dtype())
    kinds = list(dtype) if isinstance(dtype, (list, tuple)) else [dtype] * len(sizes)
    for kind in kinds:
        if not isinstance(kind, dtypes.dtype):
            raise TypeError(f"summary(): dtype should be a dtype or a list of dtypes, but got {kind!r:.60}")
    if len(kinds) != len(sizes):
        raise ValueError(f"summary(): got {len(sizes)} sizes but {len(kinds)} dtypes")
    return [
        rand(tuple(size), dtype=kind) if kind.is_floating_point else zeros(tuple(size), dtype=kind)
        for size, kind in zip(sizes, kinds, strict=True)
    ]


def summary(
    model: Module,
    input_size: Any = None,
    input_data: Any = None,
    *,
    dtype: dtypes.dtype | Sequence[dtypes.dtype] | None = None,
    depth: int | None = None,
    **kwargs: Any,
) -> ModelSummary:
    """Return a summary of a model's layers, with their output shapes, parameters, multiply-adds and memory.

    The model is called once, in evaluation mode and without gradients; its modes, its buffers and the state of the
    random generator are then restored. (Lazy layers get their parameters.) Multiply-adds are counted in matrix
    products, convolutions, recurrent layers and attention, but not in other ops or for biases.

    Args:
        input_size: the size of the input, including the batch; or a list of sizes, for several inputs. Tensors are
            taken for `input_data`.
        input_data: alternatively, the input: a tensor, a list or tuple of arguments, or a dict of keyword arguments.
        dtype: the dtype of inputs created from sizes, or a list of dtypes; by default that of the parameters. Inputs
            of integer dtypes are 0.
        depth: the largest depth shown; deeper layers are included in their parents. By default all are shown.

    Returns:
        a `ModelSummary`, which can be printed as a table.

    Raises:
        TypeError: the model is not a Module, or a size or dtype is not valid.
        ValueError: not exactly one of `input_size` and `input_data` is passed, or sizes and dtypes do not match.
        RuntimeError: the model raised an exception; the message names the layer that failed.

    Example:
        >>> from tinytorch import nn
        >>> model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 26 * 26, 10))
        >>> print(torch.summary(model, (1, 1, 28, 28)))
        =======================================================
        Layer         Output shape    Parameters  Multiply-adds
        =======================================================
        Sequential    [1, 10]                  -              -
          0: Conv2d   [1, 8, 26, 26]          80         48,672
          1: ReLU     [1, 8, 26, 26]           -              -
          2: Flatten  [1, 5408]                -              -
          3: Linear   [1, 10]             54,090         54,080
        =======================================================
        Parameters: 54,170
          trainable: 54,170
          not trainable: 0
        Multiply-adds: 102,752
        -------------------------------------------------------
        Input: 3.14 kB
        Activations: 43.30 kB
        Parameters: 216.68 kB
        Buffers: 0 B
        Together: 263.12 kB
        =======================================================
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary(): model should be a Module, but got {type(model).__name__}")
    if (input_size is None) == (input_data is None):
        raise ValueError("summary(): give either input_size or input_data")
    if depth is not None and (not isinstance(depth, int) or depth < 0):
        raise ValueError(f"summary(): depth should be None or a number from 0, but got {depth!r:.60}")
    if input_data is None and next(tensors_in(input_size), None) is not None:
        input_size, input_data = None, input_size
    tracer = _LayerTracer(model)
    with fork_rng():
        args: Sequence[Any] = ()
        if input_data is None:
            args = inputs_of(input_size, dtype, model)
        elif isinstance(input_data, Mapping):
            kwargs = {**input_data, **kwargs}
        else:
            args = input_data if isinstance(input_data, (list, tuple)) else (input_data,)
        try:
            call_once(model, tracer, args, kwargs)
        except Exception as error:
            text = _failure(tracer, args, kwargs, error)
            if dtype is None and input_size is not None and "Long" in str(error):
                text += "; inputs made of sizes are floats: pass dtype=torch.int64, or the data as input_data"
            raise RuntimeError(text) from error
    tracer.count_parameters()
    assert tracer.root is not None
    layers = list(tracer.root)
    parameters = list(model.parameters())
    return ModelSummary(
        layers=layers,
        total_parameters=sum(p.numel() for p in parameters),
        trainable_parameters=sum(p.numel() for p in parameters if p.requires_grad),
        multiply_adds=sum(layer.multiply_adds for layer in layers),
        input_bytes=sum(x.nbytes for x in tensors_in([args, kwargs])),
        activation_bytes=sum(layer.output_bytes for layer in layers),
        parameter_bytes=sum(p.nbytes for p in parameters),
        buffer_bytes=sum(buffer.nbytes for buffer in model.buffers()),
        depth=depth,
    )


def _failure(tracer: _LayerTracer, args: Any, kwargs: Any, error: Exception) -> str:
    """Return the error message for a call of the model that raised `error`."""
    shapes = ", ".join(str(list(x.shape)) for x in tensors_in([args, kwargs])) or "no tensors"
    text = f"summary(): the model failed on inputs of {shapes}"
    if tracer.raised:
        row = tracer.raised[0]
        text += f", in {row.path or 'the model'} ({row.type})"
    done = [row for row in tracer.root or () if row.output_shape is not None and not row.children]
    if done:
        last = done[-1]
        text += f", after {last.path} ({last.type}) had given {_shape_text(last.output_shape)}"
    return f"{text}: {type(error).__name__}: {error}"
