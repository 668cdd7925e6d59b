"""`torch.onnx.export`."""

from __future__ import annotations

import contextlib
import enum
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tinytorch.core.mode import traced_as
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.func.pytree import flatten, unflatten
from tinytorch.fx.export.dynamic_shapes import Dim, leaf_names, names_of
from tinytorch.fx.export.exported_program import ExportedProgram
from tinytorch.fx.export.exporting import exported
from tinytorch.fx.export.tracing import ExportError
from tinytorch.fx.onnx.errors import OnnxExporterError, OnnxExporterWarning, UnsupportedOperatorError
from tinytorch.fx.onnx.program import ONNXProgram, needed
from tinytorch.fx.onnx.writing import Writer, follows
from tinytorch.nn.modules.module import Module

#: The versions of the operators that can be written, and the one that is by default.
OLDEST, NEWEST, DEFAULT = 18, 23, 18


class TrainingMode(enum.IntEnum):
    """In which mode a model is exported.

    Example:
        >>> torch.onnx.TrainingMode.EVAL
        <TrainingMode.EVAL: 0>
    """

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.IntEnum):
    """Which operators a model may have; all but ONNX's own raise an error."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


_running = False


@traced_as("pure")
def is_in_onnx_export() -> bool:
    """Return whether a model is being exported.

    Example:
        >>> torch.onnx.is_in_onnx_export()
        False
    """
    return _running


@contextlib.contextmanager
def select_model_mode_for_export(model: Any, mode: TrainingMode | None) -> Iterator[None]:
    """Set the training mode of a model and its layers for a `with` block."""
    if not isinstance(model, Module) or mode not in (TrainingMode.EVAL, TrainingMode.TRAINING):
        yield
        return
    before = {module: module.training for module in model.modules()}
    try:
        for module in before:
            module.training = mode is TrainingMode.TRAINING
        yield
    finally:
        for module, training in before.items():
            module.training = training


@contextlib.contextmanager
def _exporting() -> Iterator[None]:
    global _running
    before, _running = _running, True
    try:
        yield
    finally:
        _running = before


def export(
    model: Any, args: Any = (), f: str | os.PathLike[str] | Any = None, *, kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None, input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
    opset_version: int | None = None, dynamo: bool = True, external_data: bool = True, dynamic_shapes: Any = None,
    custom_translation_table: dict[Callable[..., Any], Callable[..., Any]] | None = None, report: bool = False,
    optimize: bool = True, verify: bool = False, profile: bool = False, dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".", export_params: bool = True, keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str]] | Mapping[str, Sequence[int]] | None = None,
    training: TrainingMode = TrainingMode.EVAL, operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True, custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: Any = False, autograd_inlining: bool = True,
) -> ONNXProgram | None:  # fmt: skip
    """Write a model as ONNX.

    The model is called, once and with other sizes in the place of the dynamic ones (see `torch.export.export`). Its
    parameters have the names that they have in the model.

    Args:
        model: a module, or an `ExportedProgram`.
        args: a tuple of the arguments of a call; a dictionary at its end has the arguments by name, as `kwargs` does.
        f: the path of the file, or an open binary file; None to write none.
        input_names, output_names: the names of the inputs and outputs; by default those of the arguments, and of the
            functions that return the outputs.
        opset_version: the version of the operators, from 18 to 23; 18 by default.
        dynamo: True: the program is returned, and parameters are stored beside the file (`external_data`); False: None
            is returned, and the file has the parameters. There is one exporter for both.
        dynamic_shapes: which sizes may differ, as `torch.export.export` takes it.
        dynamic_axes: the same by name of an input: the dimensions, or names by dimension.
        verify: whether to run the model with ONNX Runtime, and to raise an error if its outputs differ.
        export_params: whether the parameters are in the file; else they are inputs.
        keep_initializers_as_inputs: whether the parameters are inputs as well.
        training: the mode in which the model is called.
        verbose, report, optimize, profile, dump_exported_program, artifacts_dir, do_constant_folding,
            autograd_inlining: have no effect.

    Returns:
        The program if `dynamo` is set, else None.

    Raises:
        ModuleNotFoundError: the package `onnx` is not installed (`pip install onnx`).
        torch.onnx.errors.UnsupportedOperatorError: ONNX has no expression for a function; the message has the line.
        torch.onnx.OnnxExporterError: the model cannot be exported for another reason.

    Example:
        >>> program = torch.onnx.export(
        ...     torch.nn.Linear(3, 2), (torch.ones(4, 3),), input_names=["x"], dynamic_axes={"x": {0: "batch"}}
        ... )
        >>> [node.op_type for node in program.model_proto.graph.node]
        ['Gemm']
    """
    onnx = needed("onnx")
    if custom_translation_table or custom_opsets or export_modules_as_functions:
        raise NotImplementedError(
            "torch.onnx.export: custom_translation_table, custom_opsets and export_modules_as_functions"
        )
    if operator_export_type != OperatorExportTypes.ONNX:
        raise NotImplementedError(f"torch.onnx.export: operator_export_type={operator_export_type!r}")
    opset = DEFAULT if opset_version is None else opset_version
    if not OLDEST <= opset <= NEWEST:
        raise ValueError(f"Unsupported ONNX opset version: {opset}; versions {OLDEST} to {NEWEST} are written")
    if not dynamo and f is None:
        raise ValueError("The path to save the ONNX model to must be provided when dynamo=False")
    given, named = _arguments(args, kwargs)
    inputs, outputs = list(input_names or ()), list(output_names or ())
    if isinstance(model, ExportedProgram):
        dynamic_shapes = dynamic_shapes or _of_program(model)
        given, named = tuple(flatten(model.example_inputs)[0]), {}
        model, own_names = model.flat_module()
    else:
        own_names = names_of(model, given, named)
    leaves, structure = flatten((given, named))
    tensors = _names_of_tensors(leaves, leaf_names(own_names, [*given, *named.values()]), inputs)
    axes = _named_axes(dynamic_axes or {}, tensors, outputs)
    if axes and dynamic_shapes is None:
        dims = [{dim: Dim.DYNAMIC for dim in axes[name]} if name in axes else None for name in tensors]
        dynamic_shapes = _like_arguments(given, named, dims)
    try:
        with select_model_mode_for_export(model, training), _exporting():
            program = exported(model, given, named, dynamic_shapes, follows)
    except ExportError as error:
        if error.function:
            raise UnsupportedOperatorError(error.function, opset, None, "", str(error)) from error
        raise OnnxExporterError(f"Failed to export the model: {error}") from error
    writer = Writer(onnx, program, opset, inputs, outputs, axes)
    kind = "inputs" if not export_params else "both" if keep_initializers_as_inputs else "initializers"
    made = ONNXProgram(writer, program, kind)
    if verify:
        _verify(made, model, unflatten(leaves, structure), training)
    if f is not None:
        if hasattr(f, "write"):
            f.write(made.model_proto.SerializeToString())
        else:
            made.save(f, external_data=external_data and dynamo)
    return made if dynamo else None


def _arguments(args: Any, kwargs: dict[str, Any] | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    given = args if isinstance(args, tuple) else tuple(args) if isinstance(args, list) else (args,)
    named = dict(kwargs or {})
    if given and type(given[-1]) is dict and kwargs is None:
        given, named = given[:-1], dict(given[-1])
    return given, named


def _names_of_tensors(leaves: list[Any], own: list[str], names: list[str]) -> list[str]:
    """Return the name of each leaf of the arguments; "" for those that are no tensors."""
    count = sum(isinstance(x, Tensor) for x in leaves)
    if len(names) > count:
        raise ValueError(f"number of input names provided ({len(names)}) exceeded number of inputs ({count})")
    given = iter(names)
    return [next(given, name) if isinstance(x, Tensor) else "" for name, x in zip(own, leaves, strict=True)]


def _named_axes(axes: Mapping[str, Any], tensors: list[str], outputs: list[str]) -> dict[str, dict[int, str]]:
    """Return `dynamic_axes` with a name for each dimension."""
    found: dict[str, dict[int, str]] = {}
    for name, dims in axes.items():
        if name not in tensors and name not in outputs:
            warn(f"Provided key {name} for dynamic axes is not a valid input/output name", OnnxExporterWarning)
        elif isinstance(dims, Mapping):
            found[name] = {int(dim): str(axis) for dim, axis in dims.items()}
        else:
            found[name] = {int(dim): f"{name}_dynamic_axes_{k + 1}" for k, dim in enumerate(dims)}
    return found


def _like_arguments(args: tuple[Any, ...], kwargs: dict[str, Any], flat: list[Any]) -> Any:
    """Return a value for each argument: its leaves are those of a list."""
    shapes: list[Any] = []
    count = 0
    for value in [*args, *kwargs.values()]:
        leaves, structure = flatten(value)
        shapes.append(unflatten(flat[count : count + len(leaves)], structure))
        count += len(leaves)
    return shapes if any(each is not None for each in flat) else None


def _of_program(program: ExportedProgram) -> Any:
    """Return the `dynamic_shapes` with which a program was exported, for the leaves of its arguments."""
    flat: list[Any] = [None] * len(flatten(program.example_inputs)[0])
    for each in program.dynamic:
        flat[each.leaf] = {**(flat[each.leaf] or {}), each.dim: each.size or each.name or Dim.DYNAMIC}
    return flat if program.dynamic else None


def register_custom_op_symbolic(
    symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int, **options: Any
) -> None:
    """Do nothing: in PyTorch it registers the conversion of an operator of TorchScript, which `export` does not use."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Do nothing: in PyTorch it removes the conversion of an operator of TorchScript."""


def _verify(program: ONNXProgram, model: Any, arguments: Any, training: TrainingMode) -> None:
    """Raise OnnxExporterError if ONNX Runtime gives other outputs than the model."""
    args, kwargs = arguments
    with select_model_mode_for_export(model, training):
        expected = [x for x in flatten(model(*args, **kwargs))[0] if x is not None]
    for k, (x, y) in enumerate(zip(program(*args, **kwargs), expected, strict=True)):
        if isinstance(y, Tensor) and not np.allclose(x.numpy(), y.detach().numpy(), 1e-3, 1e-4, equal_nan=True):
            raise OnnxExporterError(f"output {k} of the model is another with ONNX Runtime")
