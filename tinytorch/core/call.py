"""The call of an op: the functions of Tensors that are made for it, in each of its forms (`Caller`).

A call binds its arguments, passes itself to the modes, unwraps the tensors, calls the kernel, wraps the result and
records a node. What is known of an op is looked up when its function is made; the twin in C (`core/native.py`) does the
common case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.declaration import Op, record_several
from tinytorch.core.inplace import (
    arrays_of_write,
    check_operands_of_write,
    check_result,
    edges_of_write,
    fits,
    record_write,
)
from tinytorch.core.mode import dispatch, function_modes, local, plain
from tinytorch.core.native import function_of
from tinytorch.core.notes import leave
from tinytorch.core.supplied import overriding
from tinytorch.core.tensor import Tensor, received, wrap
from tinytorch.core.unusual import PLAIN_NUMBERS, promoted, translated, without_data, written_without_data
from tinytorch.core.view import SEVERAL, USUAL, count_write, expanded, make_view, shared_places
from tinytorch.kernels import layouts, parallel
from tinytorch.kernels.dtypes import DIFFERENTIABLE, get_default_dtype, number
from tinytorch.kernels.meta import MetaArray, is_meta
from tinytorch.kernels.programs import as_array
from tinytorch.kernels.silence import context

_ARRAY, _F32, _F64 = np.ndarray, np.dtype(np.float32), np.dtype(np.float64)
#: Ufuncs that are faster with a 0-d array than with a Python number.
_QUICK = (np.add, np.subtract, np.multiply, np.true_divide)

#: The forms of a call: out of place; Python's operator (NotImplemented for operands of other types); the in-place form
#: that is derived from an op; and the in-place form of an op whose kernel writes into its first argument.
CALL, OPERATOR, IN_PLACE, WRITING = "call", "operator", "in place", "writing"


class Caller:
    """The function of Tensors of an op, in one of its forms.

    Attributes:
        op: the op.
        form: the form of the call (`CALL`, ...).
        writes: whether the function writes into its first argument.
        function: the function; where it has a twin, that, which calls it for what it leaves to it.
        run: computes a call from its arguments, the state of the thread, and a mode that is told of it, or None.
        write, repeats, reads: of a `WRITING` call, see `writing` in `ops/writing.py`.
    """

    def __init__(self, op: Op, form: str, write: Any = None, repeats: Any = None, reads: Any = None) -> None:
        self.op, self.form, self.write, self.repeats, self.reads = op, form, write, repeats, reads
        self.writes = form in (IN_PLACE, WRITING)
        self.run: Any = _writing(self) if self.writes else _computing(self)
        definition: Any = _function(self)
        twin = op.of_floats or getattr(op.kernel, "ufunc", op.kernel)
        self.function = function_of(op, definition, twin, self.writes)
        self.function.op, self.function.caller, self.function.writes = op, self, self.writes

    def witnessed(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, which reports to `local.state.witness` what it computes: see `Witness`."""
        return self.run(list(self.op.bind(args, kwargs)), local.state, local.state.witness)

    def received(self, values: Any) -> Any:
        """Return what the class of an input makes of the call, or NotImplemented: asked before anything runs."""
        name = f"{self.op.name}_" if self.form == IN_PLACE else self.op.name
        return received(name, self.function, *self.op.given(values))


def _function(THIS: Caller) -> Callable[..., Any]:
    """Return the function of Tensors that users call."""
    OP, RUN, LEAST, MOST = THIS.op, THIS.run, len(THIS.op.required), THIS.op.positional
    COUNT, DEFAULTS = len(OP.arguments), OP.defaults

    def write(input: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            state: Any = local.state
            if state.modes is not None:
                return dispatch(OP, THIS.function, (input, *args), kwargs)
            return RUN(list(OP.bind((input, *args), kwargs)), state, None)
        except Exception:
            leave()  # an error that leaves the package gets its notes
            raise

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            state: Any = local.state
            if kwargs or not LEAST <= len(args) <= MOST:
                values = list(OP.bind(args, kwargs))
            else:
                values = list(args)
                if len(args) < COUNT:
                    values += DEFAULTS[len(args) :]
            if state.modes is not None:
                return dispatch(OP, THIS.function, *OP.given(values))
            return RUN(values, state, None)
        except Exception:
            leave()
            raise

    def of_one(input: Any) -> Any:
        try:
            state: Any = local.state
            if state.modes is not None:
                return dispatch(OP, THIS.function, (input,), {})
            return RUN([input], state, None)
        except Exception:
            leave()
            raise

    def of_two(input: Any, other: Any) -> Any:
        try:
            state: Any = local.state
            if state.modes is not None:
                return dispatch(OP, THIS.function, (input, other), {})
            return RUN([input, other], state, None)
        except Exception:
            leave()
            raise

    def operator(input: Any, other: Any) -> Any:
        try:
            state: Any = local.state
            # Classes that override Python's operator by `__torch_function__`, modes, classes with calls of their own.
            usual = type(input) in plain and type(other) in plain
            if function_modes.on or not usual:
                found = overriding.asked((input, other), {})
                if found is not None:
                    return overriding.operator_overridden(OP.name, found, input, other)
            if state.modes is not None:
                try:
                    return dispatch(OP, OP.caller, (input, other), {})
                except TypeError:
                    return NotImplemented
            made = NotImplemented if usual else THIS.received([input, other])
            return RUN([input, other], state, None) if made is NotImplemented else made
        except Exception:
            leave()
            raise

    made = write if THIS.writes else operator if THIS.form == OPERATOR else (call, of_one, of_two)[OP.operands]
    made.__name__ = made.__qualname__ = OP.name
    return made


def _unwrapping(THIS: Caller) -> Callable[[list[Any]], Any]:
    """Return the function that replaces the tensors among the arguments of a call by arrays, or NotImplemented.

    Operands get a common dtype. A class that computes some calls in its own way has been asked already.
    """
    OP, FLOATING, SELECTS, ACCEPTED = THIS.op, THIS.op.floating, THIS.op.selects, THIS.op.accepted
    AS_ARRAY, AT = OP.kernel in _QUICK or not OP.numbers, OP.inputs[0]

    def of_sequence(values: list[Any]) -> Any:
        arrays = list(values)
        arrays[AT] = OP.elements(values[AT], AT)
        if SELECTS and not ACCEPTED.issuperset([x.dtype for x in arrays[AT]]):
            OP.refuse_dtypes(arrays)
        return arrays

    def of_one(values: list[Any]) -> Any:
        x = values[AT]
        if type(x) is not Tensor and not isinstance(x, Tensor):
            x = values[AT] = OP.adopted(x, AT)
        arrays = list(values)
        arrays[AT] = array = x._array
        if SELECTS and array.dtype is not _F32 and array.dtype not in ACCEPTED:
            OP.refuse_dtypes(arrays)
        if FLOATING and array.dtype.kind not in DIFFERENTIABLE:
            arrays[AT] = array.astype(get_default_dtype().numpy)
        return arrays

    def of_several(values: list[Any]) -> Any:
        arrays, accepted = list(values), True
        for i in OP.inputs:
            x = values[i]
            if isinstance(x, Tensor):
                arrays[i] = array = x._array
                accepted = accepted and (not SELECTS or array.dtype is _F32 or array.dtype in ACCEPTED)
            elif x is not None and type(x) not in PLAIN_NUMBERS:
                arrays[i] = OP.checked(x, i)
        if not accepted:
            OP.refuse_dtypes(arrays)
        return arrays

    def of_two(values: list[Any]) -> Any:
        x, y = values
        if isinstance(x, Tensor):
            kind = x._array.dtype
            usual = kind is _F32 or kind is _F64
            if isinstance(y, Tensor):
                if y._array.dtype is kind and (usual or not (FLOATING or (SELECTS and kind not in ACCEPTED))):
                    return [x._array, y._array]
            elif usual and not OP.of_tensors and (type(y) is float or type(y) is int):
                return [x._array, (number(y, kind) if y else np.asarray(y, kind)) if AS_ARRAY else y]
        try:
            return list(promoted(OP, x, y))
        except TypeError:
            if THIS.form == OPERATOR:
                return NotImplemented
            raise

    one = len(OP.inputs) == 1 and not (OP.several or OP.joint)
    return of_sequence if OP.many else of_two if OP.operands == 2 else of_one if one else of_several


def _kernel(THIS: Caller) -> Callable[..., Any]:
    """Return the function that calls the kernel; large arrays of operands are shared among threads."""
    OP, KERNEL, UFUNC, OPERANDS = THIS.op, THIS.op.kernel, getattr(THIS.op.kernel, "ufunc", None), THIS.op.operands
    POSITIONAL, KEYWORDS, FLOATS = OP.positional, OP.arguments[OP.positional :], OP.of_floats if OPERANDS == 2 else None
    WRITE, VIEW, INPUTS, MANY = THIS.write, OP.view and not THIS.writes, OP.inputs, OP.many

    def compute(values: list[Any], arrays: list[Any], ordered: bool = False) -> Any:
        try:
            if OPERANDS:
                first = arrays[0] if isinstance(values[0], Tensor) else arrays[-1]
                if type(first) is MetaArray or type(arrays[-1]) is MetaArray:
                    return without_data(OP, arrays)
                if FLOATS is not None and first is arrays[0] and first.dtype is _F32:  # (it shares them itself)
                    return context().run(FLOATS, *arrays)
                if first.size < parallel.LARGE or not OP.elementwise:
                    return context().run(KERNEL, *arrays)
                if OPERANDS == 1:
                    return context().run(parallel.blockwise, (first.dtype.kind == "f" and UFUNC) or KERNEL, *arrays)
                return context().run(layouts.ordered if ordered else parallel.blockwise, KERNEL, *arrays)
            for i in INPUTS:
                if type(arrays[i]) is MetaArray or (MANY and any(map(is_meta, arrays[i]))):
                    return without_data(OP, arrays) if WRITE is None else written_without_data(WRITE, arrays)
            if WRITE is not None:
                return context().run(WRITE, *arrays)
            if not KEYWORDS:
                return KERNEL(*arrays) if VIEW else context().run(KERNEL, *arrays)  # (a view computes nothing)
            named = dict(zip(KEYWORDS, arrays[POSITIONAL:]))  # noqa: B905  (a keyword costs time here)
            return context().run(KERNEL, *arrays[:POSITIONAL], **named)
        except (ValueError, TypeError, AttributeError) as error:
            raise translated(OP, values, error) from None

    return compute


def _computing(THIS: Caller) -> Callable[..., Any]:
    """Return the function that computes a call out of place."""
    OP, UNWRAP, COMPUTE = THIS.op, _unwrapping(THIS), _kernel(THIS)
    ASKED = () if OP.many or THIS.form == OPERATOR else OP.inputs
    AT, VIEW, LAID = OP.inputs[0], OP.view, OP.laid
    RECORDS, ONE, NEEDED, NODE = OP.records, not OP.several, OP.needed, OP.node

    def run(values: list[Any], state: Any, witness: Any) -> Any:
        for i in ASKED:
            if type(values[i]) not in plain:
                made = THIS.received(values)
                if made is not NotImplemented:
                    return made
                break
        arrays = UNWRAP(values)
        if arrays is NotImplemented:
            return arrays
        array = COMPUTE(values, arrays, LAID and witness is None)

        # Wrap the result.
        if not ONE:
            return several(values, arrays, array, state, witness)
        if type(array) is not _ARRAY:
            array = as_array(array)
        if witness is not None:
            witness.computed(OP, values, arrays, [array])
        if LAID:
            for x in arrays:
                if isinstance(x, _ARRAY) and not x.flags.c_contiguous:
                    array = arranged(values, arrays, array, witness)
                    break
        out = wrap(array, Tensor, VIEW, state)
        if VIEW:
            make_view(out, values[AT], state, USUAL)

        # Record a node, if an input needs a gradient.
        if RECORDS and state.grad:
            key, edges = NEEDED(values)
            if key != 0 and (array.dtype is _F32 or array.dtype.kind in DIFFERENTIABLE):
                out._edge = (NODE(key, edges, values, (array,), out._cell), 0)
                out._requires_grad = True
        return out

    def arranged(values: list[Any], arrays: list[Any], array: Any, witness: Any) -> Any:
        """Return a result in PyTorch's order in memory."""
        shown = arrays
        if OP.operands:  # (that of the operands, not of copies of them in another dtype)
            shown = [x._array if isinstance(x, Tensor) else x for x in values]
        made = layouts.arranged(array, *shown)
        if witness is not None and made is not array:
            witness.laid(array, made, list(shown))
        return made

    def several(values: list[Any], arrays: list[Any], results: Any, state: Any, witness: Any) -> Any:
        """Return several results, or what the op makes of them: None (a gradient that is not needed) stays None."""
        residuals = tuple(map(as_array, results[-len(OP.residuals) :])) if OP.residuals else ()
        results = results[: -len(residuals)] if residuals else results if OP.outputs != 1 else (results,)
        made = list(map(as_array, results))
        if LAID:
            made = [array if array is None else layouts.arranged(array, *arrays) for array in made]
        outs: list[Any] = [array if array is None else wrap(array, Tensor, VIEW, state) for array in made]
        for out in outs if VIEW else ():
            make_view(out, values[AT], state, SEVERAL if OP.outputs != 1 else USUAL)
        if witness is not None:
            witness.computed(OP, values, arrays, [*made, *residuals])
        if RECORDS and state.grad:
            key, edges = NEEDED(values)
            if key != 0:
                record_several(OP, key, edges, values, outs, tuple(made), residuals)
        return OP.result(outs) if OP.result else outs[0] if OP.outputs == 1 else tuple(outs)

    return run


def _writing(THIS: Caller) -> Callable[..., Any]:
    """Return the function that computes a call which writes into its first argument."""
    OP, UNWRAP, COMPUTE, KERNEL = THIS.op, _unwrapping(THIS), _kernel(THIS), THIS.op.kernel
    OPERANDS, IS_KERNEL = OP.operands, THIS.form == WRITING
    HOLDS_FIRST = any([OP.arguments[OP.inputs[0]] in names for names in OP.wants.values()])

    def run(values: list[Any], state: Any, witness: Any) -> Any:
        x = values[0]
        if not isinstance(x, Tensor):
            OP.refuse(x, 0)
        if x._receives is not None or (OPERANDS and not plain.issuperset(map(type, values))):
            made = THIS.received(values)
            if made is not NotImplemented:
                return made
        target = x._array
        if state.run is not None:
            state.run.check(x)
        recorded = None
        if state.grad and (not IS_KERNEL or target.dtype.kind in DIFFERENTIABLE):
            recorded = edges_of_write(OP, x, values)
        if IS_KERNEL:
            if expanded(target) and not (THIS.repeats and THIS.repeats(*values)):
                raise shared_places()
            arrays = arrays_of_write(OP, x, values, THIS.reads)
            if OP.selects and not OP.accepted.issuperset([x.dtype for x in arrays if type(x) is _ARRAY]):
                OP.refuse_dtypes(arrays)
        else:
            check_operands_of_write(OP, x, values)
            arrays = UNWRAP(values)
        if witness is not None:
            witness.writes(OP, values, arrays, THIS.write)

        # Compute, into the memory of the first argument where the kernel can.
        before, residuals = None, ()
        if OPERANDS == 2 and recorded is None and fits(target, KERNEL, *arrays):
            if OP.of_floats is not None and target.dtype is _F32:
                context().run(OP.of_floats, *arrays, out=target)
            elif target.size < parallel.LARGE:
                context().run(KERNEL, *arrays, out=target)
            else:
                context().run(parallel.blockwise, KERNEL, *arrays, out=target)
            count_write(x)
            return x
        array = COMPUTE(values, arrays)
        if not IS_KERNEL:
            if OP.residuals:
                array, *residuals = array
            if recorded is not None and HOLDS_FIRST:
                before = target.copy()
                if witness is not None:
                    witness.overwrites(target, before)
            check_result(array, target)
            context().run(np.copyto, target, array, casting="unsafe")
        count_write(x)
        if recorded is not None:
            record_write(OP, recorded, values, x, tuple(residuals), before)
        return x

    return run
