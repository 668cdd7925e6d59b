"""The twins in C of the call of an op and of the walk backward, where the native library has them.

They do the common case: tensors of the class `Tensor` or `Parameter` on the CPU, and no mode. The functions in Python
define what is computed, and get all other calls (`kernels/native/calls.h`).
"""

from __future__ import annotations

import weakref
from functools import partial
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from tinytorch.core.declaration import MISSING, record_several
from tinytorch.core.graph import DEEPEST, FREES_BY_RECURSION, AccumulateGrad, add_tail, leaf_edge, numbers
from tinytorch.core.mode import State, function_modes, local, runs
from tinytorch.core.node import OpNode, Plan
from tinytorch.core.tensor import Size, Tensor
from tinytorch.core.view import View, refresh
from tinytorch.kernels import dtypes, layouts, native, silence
from tinytorch.kernels.programs import out_of_place

if TYPE_CHECKING:
    from tinytorch.core.declaration import Op

__all__ = ["asking", "declared", "definition_of", "function_of", "library", "set_parameter"]

_NAMES = ("__name__", "__qualname__", "__doc__", "__module__", "__code__", "__defaults__", "__kwdefaults__",
          "__globals__", "__closure__", "__annotations__")  # fmt: skip


def _plan_of(op: Op, key: int) -> Plan:
    return op.plans.get(key) or op.plan_of(key)


def _node_of(op: Op, key: int | None, edges: Any, values: Any, array: Any, cell: Any) -> OpNode:
    return op.node(key, edges, values, (array,), cell)


def _configured() -> Any:
    """Return the native library after telling it of this package's classes; None where it has no calls."""
    if native.calls is None:
        return None
    new: Any = object.__new__
    instances = (
        new(Tensor), new(OpNode), State(), new(View), Plan(False, False, False), new(AccumulateGrad), runs,
        function_modes,
    )  # fmt: skip
    objects = (
        Tensor, None, Size, dtypes.dtype, View, OpNode, AccumulateGrad, weakref.ref,
        local, runs, function_modes, numbers, np.add, DEEPEST,
        (dtypes.float32, dtypes.float64, dtypes.int64),
        refresh, leaf_edge, _plan_of, _node_of, record_several, add_tail if FREES_BY_RECURSION else None, MethodType,
        layouts.arranged, silence.add_into,
    )  # fmt: skip
    return native.calls if native.calls.configure(instances, objects, vars(Tensor)["__slots__"][2:]) else None


library = _configured()


def function_of(op: Op, definition: Any, twin: Any, writes: bool) -> Any:
    """Return the twin of a function of Tensors, which calls its definition where it declines; or the definition.

    Args:
        op: the op.
        definition: the function.
        twin: what computes floats in place of the kernel: the twin of a kernel, or a ufunc.
        writes: whether it is the in-place form, of which those of two operands, and of kernels that write, have a twin.
    """
    kernel: Any = op.kernel
    copies = isinstance(kernel, partial) and kernel.func is out_of_place
    if library is None or not op.inputs or (writes and op.operands != 2 and not copies):
        return definition
    operands = op.operands
    names = ("input", "other")[:operands] if operands else op.arguments
    positional = operands or op.positional
    overload = -1 if op.overload is None else op.overload[0]
    function = library.function_of_op(
        definition, op, kernel, getattr(kernel, "ufunc", kernel), kernel.args[0] if copies else twin, op.node_class,
        None if op.overload is None else op.overload[1], names,
        tuple([op if value is MISSING else value for value in op.defaults]), names[positional:] or None, op.inputs,
        tuple(map(bool, op._constant)), operands, positional, overload, op.records, op.view,
        bool(operands) and op.floating, op.laid, writes, op.result, op.many is not None, op.outputs, len(op.residuals),
        op.numbers, op.of_tensors, copies,
    )  # fmt: skip
    return definition if function is None else _named_as(definition, function)


def declared(definition: Any) -> Any:
    """Return the twin that a function is declared with (`short` of core/mode.py); or the function."""
    return asking(definition, definition)


def asking(definition: Any, function: Any) -> Any:
    """Return the twin of a function that asks the classes of its arguments, and then calls another; or the function.

    Args:
        definition: the function.
        function: what it calls: that of an op, or one with a declared twin (`short` and `alike` of core/mode.py).
    """
    if library is None:
        return definition
    owner, *twin = getattr(function, "twin", (function, function))
    if owner is not function:
        return definition
    if len(twin) > 1:
        return _named_as(definition, library.method(definition, *twin))
    return _named_as(definition, library.asking(definition, *twin)) if _is_twin(twin[0]) else definition


def _is_twin(function: Any) -> bool:
    return type(function) is library.function


def definition_of(function: Any) -> Any:
    """Return the function of Python's that a twin calls where it declines; other functions as they are."""
    return function if type(function) is FunctionType else function.definition


def _named_as(definition: Any, function: Any) -> Any:
    """Give a twin what Python's tools look for in a function."""
    vars(function).update(vars(definition))
    # (The names come last: `wraps` copies those of a twin as further attributes.)
    for name in _NAMES if isinstance(definition, FunctionType) else ():
        setattr(function, name, getattr(definition, name))
    return function


def set_parameter(cls: Any) -> None:
    """Tell the library which class parameters have: tensors as any other."""
    if library is not None:
        library.set_parameter(cls)
