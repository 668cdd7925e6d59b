"""The call of an op: one definition, from which the function of Tensors of each op is made (`Caller`).

The function binds its arguments, passes the call to the modes, unwraps the tensors, calls the kernel, wraps the result
and records a node. `_definition` says how, for any op: it asks the op's `Facts`, and the arguments, their arrays and
edges are elements of lists. Run as it stands, that takes several times as long as what a call has to do. So it is
specialised when an op is declared (`core/specialise.py`): questions about facts are answered, loops over inputs
unrolled, and the elements of the lists become variables: the first of `values` is `values0`, or has the name of the
argument. Ops with the same facts share the code, and tracebacks and debuggers show the lines of the definition.

All forms of a call (`CALL`, `OPERATOR`, `IN_PLACE`, `WRITING`) are made from it, as is the witnessed function
(`Caller.witnessed`), which reports to a mode what was computed: the op, the arrays in, the arrays out.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from tinytorch.core.complex import HOLOMORPHIC
from tinytorch.core.declaration import MISSING, Op, record_several
from tinytorch.core.graph import enter, leaf_edge
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
from tinytorch.core.node import INFERENCE_NOT_SAVED, INPUT, OUTPUT, Plan, saved_values
from tinytorch.core.notes import leave
from tinytorch.core.specialise import Specialiser
from tinytorch.core.supplied import layouts, native, overriding
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.unusual import PLAIN_NUMBERS, promoted, translated, unusual, without_data
from tinytorch.core.view import SEVERAL, USUAL, count_write, expanded, make_view, refresh, shared_places
from tinytorch.kernels import parallel, silence
from tinytorch.kernels.dtypes import DIFFERENTIABLE, get_default_dtype, number
from tinytorch.kernels.meta import NoData, is_meta
from tinytorch.kernels.programs import as_array

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
#: Ufuncs that are faster with a 0-d array than with a Python number.
_QUICK = (np.add, np.subtract, np.multiply, np.true_divide)

#: The forms of a call: out of place; Python's operator (NotImplemented for operands of other types); the in-place form
#: that is derived from an op; and the in-place form of an op whose kernel writes into its first argument.
CALL, OPERATOR, IN_PLACE, WRITING = "call", "operator", "in place", "writing"


class Facts(NamedTuple):
    """The properties of an op that the code of its call depends on: ops with the same facts share it.

    Attributes:
        form: the form of the call (`CALL`, ...); `witnessed` if it reports to the witness.
        arguments: the number of the op's arguments; `positional` is the number of those that are not keyword-only.
        keywords: the names of the keyword-only arguments.
        incomplete: the position of the last argument without a default, or None.
        inputs: the positions of the tensors among the arguments; `many` if the only one is a sequence of tensors.
        single: whether the op has one tensor, and one output.
        constant: per input, whether it has no gradient.
        records: whether the result may require grad.
        outputs, residuals: how many arrays the kernel returns (0 outputs: any number).
        several: whether the kernel returns several outputs, or residuals, or the op converts what it returns.
        overload: the position of the argument that decides the name of the node, or None.
        direct: whether the kernel is first called directly (`kernels/native`).
        saved: see `Plan.saved`, where all inputs need a gradient and the sources are common ones.
        Others: as in `Op`; for attributes that are functions, whether the op has one.
    """

    form: str
    witnessed: bool
    arguments: int
    positional: int
    keywords: tuple[str, ...]
    incomplete: int | None
    inputs: tuple[int, ...]
    many: bool
    single: bool
    constant: tuple[bool, ...]
    records: bool
    outputs: int
    residuals: int
    several: bool
    result: bool
    view: bool
    overload: int | None
    operands: int
    elementwise: bool
    of_floats: bool
    direct: bool
    saved: tuple[bool, tuple[tuple[int, Any], ...]] | None

    @property
    def writes(self) -> bool:
        """Whether the function writes into its first argument."""
        return self.form in (IN_PLACE, WRITING)


#: The commonest sources of saved values: the code of a call contains them.
_COMMON = ((), ((INPUT, 0),), ((OUTPUT, 0),), ((INPUT, 1), (INPUT, 0)))


def _plan(op: Op) -> Plan:
    """Return the plan of a call all of whose inputs are tensors that need a gradient."""
    all_inputs = (True,) * len(op.inputs)
    return op._plan(all_inputs, all_inputs)


def _of_arrays(op: Op) -> Any:
    """Return the twin or the ufunc of an op, if it has one; a kernel around it refuses dtypes other than floats."""
    return op.of_floats or getattr(op.kernel, "ufunc", op.kernel)


def _facts(op: Op, form: str, witnessed: bool) -> Facts:
    """Return the facts of an op for a form of call; facts that the code does not depend on are left empty."""
    operands, writes, outward = op.operands, form in (IN_PLACE, WRITING), form in (CALL, OPERATOR)
    several = outward and op.several
    single = len(op.inputs) == 1 and not (several or op.many or op.joint)
    records = outward and op.records
    saved = _plan(op).saved if records and (single or operands == 2) else None
    return Facts(
        form=form, witnessed=witnessed, arguments=len(op.arguments), positional=op.positional,
        keywords=op.arguments[op.positional :] if outward else (),
        incomplete=op.required[-1] if outward and op.required and not operands else None,
        inputs=op.inputs, many=op.many is not None, single=single,
        constant=tuple(op._constant) if records and not (single or operands) else (False,) * len(op.inputs),
        records=records, outputs=op.outputs if outward else 1, residuals=len(op.residuals), several=several,
        result=outward and op.result is not None, view=outward and op.view,
        overload=None if writes or op.overload is None else op.overload[0],
        operands=operands, elementwise=operands == 2 and op.elementwise,
        of_floats=operands == 2 and op.of_floats is not None,
        direct=outward and native.direct(_of_arrays(op)) is not None,
        saved=saved if saved is not None and saved[1] in _COMMON else None,
    )  # fmt: skip


class Caller:
    """A function of Tensors that is made for an op.

    Attributes:
        op: the op.
        form: the form of the call (`CALL`, ...).
        function: the function, or one that makes it when it is first called.
        scope: further objects that the definition names, for a `WRITING` call: see `writing` in `ops/writing.py`.
    """

    def __init__(self, op: Op, form: str, **scope: Any) -> None:
        self.op, self.form, self.scope = op, form, scope
        self._generated: Any = None
        self._witnessed: Any = None
        # To specialise the definition takes a millisecond. Ops of operands and of one tensor share few facts; the
        # functions of other ops are made at the first call.
        one = len(op.inputs) == 1 and not (op.several or op.many or op.joint)
        definition = self.generated if op.operands or (one and form == CALL) else self._waiting()
        self.function: Any = function_of(op, definition, _of_arrays(op), self.writes)
        self.function.op, self.function.caller, self.function.writes = op, self, self.writes

    @property
    def writes(self) -> bool:
        """Whether the function writes into its first argument."""
        return self.form in (IN_PLACE, WRITING)

    @property
    def generated(self) -> Any:
        """The function that the specialised definition makes."""
        if self._generated is None:
            self._generated = self._generate(witnessed=False)
        return self._generated

    def _waiting(self) -> Any:
        """Return a function that makes the function when it is first called."""
        function: Any = None

        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal function
            if function is None:
                function = self.generated
            return function(*args, **kwargs)

        def write(input: Any, *args: Any, **kwargs: Any) -> Any:
            return call(input, *args, **kwargs)

        return write if self.writes else call

    @property
    def witnessed(self) -> Any:
        """The same function, but it reports to `local.state.witness` what it computes: see `DispatchMode.computed`."""
        if self._witnessed is None:
            self._witnessed = self._generate(witnessed=True)
        return self._witnessed

    def _generate(self, witnessed: bool) -> Any:
        """Return a new function, made from the specialised definition."""
        op = self.op
        facts = _facts(op, self.form, witnessed)
        template = _specialised(facts)(facts, *self._objects(facts))
        # Give the arguments their own names.
        names = ("input", "other")[: op.operands] if op.operands else op.arguments
        if self.writes:
            names = ("input",)
        code = template.__code__
        code = code.replace(co_varnames=(*names, *code.co_varnames[len(names) :]))
        defaults = None if self.writes or op.operands else op.defaults[: op.positional]
        call: Any = FunctionType(code, template.__globals__, op.name, defaults, template.__closure__)
        if defaults is not None and op.positional < len(names):
            call.__kwdefaults__ = dict(zip(names[op.positional :], op.defaults[op.positional :], strict=True))
        return call

    def _objects(self, facts: Facts) -> list[Any]:
        """Return the objects of the op that the definition names."""
        op, outward = self.op, not self.writes
        first, quick = op.arguments[op.inputs[0]], op.kernel in _QUICK or not op.numbers
        plan = _plan(op) if facts.records and (facts.single or facts.saved is not None) else None
        return [
            op, self, op.kernel, native.direct(_of_arrays(op)), getattr(op.kernel, "ufunc", op.kernel),
            op.of_floats, op.accepted if op.selects else None, op.floating, quick, outward and op.laid, op.node_class,
            None if op.overload is None else op.overload[1], op.plans, plan, op.result,
            any([first in names for names in op.wants.values()]),
            *map(self.scope.get, ("WRITE", "REPEATS", "READS")), layouts.settled, layouts.ordered,
            layouts.arranged,
        ]  # fmt: skip

    def receive(self, x: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the class of a tensor makes of the call, or NotImplemented."""
        return x._receives(f"{self.op.name}_" if self.form == IN_PLACE else self.op.name, self.function, args, kwargs)


# The definition -----------------------------------------------------------------------------------


def _definition(
    F: Facts, OP: Any, THIS: Caller, KERNEL: Any, DIRECT: Any, UFUNC: Any, OF_FLOATS: Any, ACCEPTED: Any,
    FLOATING: bool, QUICK: bool, LAID: bool, NODE: Any, OVERLOAD: Any, PLANS: Any, PLAN: Any, RESULT: Any,
    HOLDS_FIRST: bool, WRITE: Any, REPEATS: Any, READS: Any, SETTLED: Any, ORDERED: Any, ARRANGED: Any,
) -> Any:  # fmt: skip
    """Return the function of Tensors of an op: the names in capitals belong to it."""

    def call(values: Any, args: Any, kwargs: Any) -> Any:
        """Return the result, given the arguments (of a write the first one), more by place, and others by name."""
        try:  # (which is free)
            state: Any = local.state

            # Modes, and classes of operands that override Python's operator by `__torch_function__`.
            if F.form == OPERATOR:
                is_tensor = [type(values[i]) is Tensor for i in F.inputs]
                if (
                    function_modes.on
                    or not (is_tensor[0] or type(values[0]) in plain)
                    or not (is_tensor[1] or type(values[1]) in plain)
                ):
                    found = overriding.asked(values, {})
                    if found is not None:
                        return overriding.operator_overridden(OP.name, found, *values)
            if state.modes is not None:
                if F.writes:
                    return dispatch(OP, THIS.function, (values[0], *args), kwargs)
                if not F.operands:
                    return dispatch(OP, THIS.function, *OP.given(values, args, kwargs))
                try:
                    return dispatch(OP, OP.caller if F.form == OPERATOR else THIS.function, values, {})
                except TypeError:
                    if F.form == OPERATOR:
                        return NotImplemented
                    raise

            # Bind the arguments.
            if F.writes:
                if type(values[0]) is not Tensor:
                    if not isinstance(values[0], Tensor):
                        OP.refuse(values[0], 0)
                    if values[0]._receives is not None:
                        received = THIS.receive(values[0], (values[0], *args), kwargs)
                        if received is not NotImplemented:
                            return received
                target = values[0]._array
                if state.run is not None:
                    state.run.check(values[0])
                values = list(OP.bind((values[0], *args), kwargs))
                recorded = None
                if state.grad and (F.form == IN_PLACE or target.dtype.kind in DIFFERENTIABLE):
                    recorded = edges_of_write(OP, values[0], values)
                if F.form == IN_PLACE:
                    check_operands_of_write(OP, values[0], values)
                elif expanded(target) and not (REPEATS and REPEATS(*values)):
                    raise shared_places()
            elif not F.operands and (args or kwargs or (F.incomplete is not None and values[F.incomplete] is MISSING)):
                values = list(OP.bound(values, args, kwargs))

            # Unwrap the tensors; a class that computes some calls in its own way receives them.
            if F.form == WRITING:
                arrays = list(arrays_of_write(OP, values[0], values, READS))
            elif F.writes and not F.operands:
                arrays = list(OP.arrays(values))
            elif F.many:
                is_tensor = [False]
                arrays = list(values)
                try:
                    arrays[F.inputs[0]] = [x._array for x in values[F.inputs[0]]]
                except AttributeError:
                    arrays[F.inputs[0]] = OP.elements(values[F.inputs[0]], F.inputs[0])
            else:
                if F.form != OPERATOR:
                    is_tensor = [type(values[i]) is Tensor for i in F.inputs]
                for k, i in enumerate(F.inputs):
                    if not is_tensor[k]:
                        is_tensor[k] = isinstance(values[i], Tensor)
                        if F.single and not is_tensor[k]:
                            values[i] = OP.adopted(values[i], i)
                        if (F.single or is_tensor[k]) and values[i]._receives is not None:
                            received = THIS.receive(values[i], *OP.given(values, (), {}))
                            if received is not NotImplemented:
                                return received
                if F.operands == 2:
                    try:
                        if not is_tensor[0]:
                            arrays = list(promoted(OP, *values))
                        else:
                            kind = values[0]._array.dtype
                            if is_tensor[1]:
                                arrays = [values[0]._array, values[1]._array]
                                if kind is not arrays[1].dtype or (
                                    kind is not _F32
                                    and kind is not _F64
                                    and (FLOATING or (ACCEPTED is not None and kind not in ACCEPTED))
                                ):
                                    arrays = list(promoted(OP, *values))
                            elif (kind is _F32 or kind is _F64) and (
                                type(values[1]) is float or type(values[1]) is int
                            ):
                                arrays = [values[0]._array, values[1]]
                                if QUICK:
                                    arrays[1] = number(values[1], kind) if values[1] else np.asarray(values[1], kind)
                            else:
                                arrays = list(promoted(OP, *values))
                    except TypeError:
                        if F.form == OPERATOR:
                            return NotImplemented
                        raise
                elif F.single:
                    arrays = [values[i]._array if i in F.inputs else values[i] for i in range(F.arguments)]
                else:
                    arrays = list(values)
                    for k, i in enumerate(F.inputs):
                        if is_tensor[k]:
                            arrays[i] = values[i]._array
                        elif values[i] is not None and type(values[i]) not in PLAIN_NUMBERS:
                            arrays[i] = OP.checked(values[i], i)

            # Refuse dtypes that the kernel does not compute with, or convert them (most tensors are of float32).
            if F.many or (F.writes and not F.operands):
                if ACCEPTED is not None and not ACCEPTED.issuperset(
                    [x.dtype for x in (arrays[F.inputs[0]] if F.many else arrays) if F.many or type(x) is np.ndarray]
                ):
                    OP.refuse_dtypes(arrays)
            elif F.operands != 2 and ACCEPTED is not None:
                for k, i in enumerate(F.inputs):
                    if F.single or is_tensor[k]:
                        kind = arrays[i].dtype
                        if kind is not _F32:
                            if kind not in ACCEPTED:
                                OP.refuse_dtypes(arrays)
                            if F.operands and FLOATING and kind.kind not in DIFFERENTIABLE:
                                arrays[i] = arrays[i].astype(get_default_dtype().numpy)
            if F.witnessed and F.writes:
                state.witness.writes(OP, values, arrays, WRITE)

            # Compute; large arrays are shared among threads (the kernel for float32 does so itself).
            if F.form == IN_PLACE and F.operands == 2 and recorded is None and fits(target, KERNEL, *arrays):
                if F.of_floats and kind is _F32:
                    state.quietly(OF_FLOATS, *arrays, out=target)
                elif target.size < parallel.LARGE:
                    state.quietly(KERNEL, *arrays, out=target)
                else:
                    state.quietly(parallel.blockwise, KERNEL, *arrays, out=target)
                count_write(values[0])
                return values[0]
            try:
                if F.form == WRITING:
                    state.quietly(WRITE, *arrays)
                elif F.form == IN_PLACE and not F.operands:
                    array = state.quietly(OP.compute, arrays)
                elif F.operands == 1 and arrays[0].size >= parallel.LARGE:
                    kernel = UFUNC if arrays[0].dtype.kind == "f" else KERNEL
                    array = state.quietly(parallel.blockwise, kernel, *arrays)
                elif (
                    F.elementwise
                    and not (F.of_floats and is_tensor[0] and kind is _F32)
                    and (arrays[0] if is_tensor[0] else arrays[1]).size >= parallel.LARGE
                ):
                    array = state.quietly(ORDERED if LAID and not F.witnessed else parallel.blockwise, KERNEL, *arrays)
                elif F.view:  # (which computes nothing)
                    array = KERNEL(
                        *arrays[: F.positional], **{x: arrays[F.positional + n] for n, x in enumerate(F.keywords)}
                    )
                else:
                    if F.direct and (UFUNC is KERNEL or arrays[0].dtype.kind == "f"):
                        array = DIRECT(
                            *arrays[: F.positional], **{x: arrays[F.positional + n] for n, x in enumerate(F.keywords)}
                        )
                    elif F.direct:
                        array = NotImplemented
                    if not F.direct or array is NotImplemented:
                        array = state.quietly(
                            OF_FLOATS if F.of_floats and is_tensor[0] and kind is _F32 else KERNEL,
                            *arrays[: F.positional],
                            **{x: arrays[F.positional + n] for n, x in enumerate(F.keywords)},
                        )  # fmt: skip
            except (ValueError, TypeError, AttributeError) as error:
                raise translated(OP, values, error) from None
            except NoData:
                if F.form == WRITING:
                    if not is_meta(arrays[0]):
                        raise
                else:
                    array = without_data(OP, arrays)

            # Write, and record that.
            if F.writes:
                residuals: Any = ()
                before = None
                if F.form == IN_PLACE:
                    if F.residuals:
                        array, *residuals = array
                    if recorded is not None and HOLDS_FIRST:
                        before = target.copy()
                        if F.witnessed:
                            state.witness.overwrites(target, before)
                    check_result(array, target)
                    state.quietly(np.copyto, target, array, casting="unsafe")
                count_write(values[0])
                if recorded is not None:
                    record_write(OP, recorded, values, values[0], tuple(residuals), before)
                return values[0]

            # Wrap the result, or several of them: None (a gradient that is not needed) stays None.
            if F.several:
                results, outs, made = array, list[Any](), list[Any]()
                for array in results[: -F.residuals] if F.residuals else results if F.outputs != 1 else (results,):
                    if type(array) is not np.ndarray:
                        array = unusual(OP, arrays, array, len(made))
                        if array is None:
                            made.append(None)
                            outs.append(None)
                            continue
                    if LAID:
                        array = ARRANGED(array, *arrays)
                    made.append(array)
                    out = wrap(array, Tensor, F.view, state)
                    if F.view:
                        make_view(out, values[F.inputs[0]], state, SEVERAL if F.outputs != 1 else USUAL)
                    outs.append(out)
                residuals = tuple([as_array(each) for each in results[-F.residuals :]]) if F.residuals else ()
                if F.witnessed:
                    state.witness.computed(OP, values, arrays, [*made, *residuals])
            else:
                if not (not F.view and LAID and not F.witnessed and SETTLED(array, *arrays)):
                    if type(array) is not np.ndarray:
                        array = unusual(OP, arrays, array)
                    if F.witnessed:
                        state.witness.computed(OP, values, arrays, [array])
                    if not F.view and LAID:
                        raw = array
                        if F.operands:  # (of operands, not of copies of them in another dtype)
                            shown = [values[i]._array if F.single or is_tensor[i] else values[i] for i in F.inputs]
                        else:
                            shown = list(arrays)
                        array = ARRANGED(raw, *shown)
                        if F.witnessed and array is not raw:
                            state.witness.laid(raw, array, list(shown))
                out = wrap(array, Tensor, F.view, state)
                if F.view:
                    make_view(out, values[F.inputs[0]], state, USUAL)

            # Record a node, if an input needs a gradient.
            if F.records and state.grad:
                if F.many:
                    edges = [OP.edges_of(values[F.inputs[0]])]
                    needed = edges[0] is not None
                else:
                    edges = [None for _ in F.inputs]
                    needed = False
                    for k, i in enumerate(F.inputs):
                        if F.single or is_tensor[k]:
                            if values[i]._view is not None:
                                refresh(values[i])
                            if not F.constant[k] and values[i]._requires_grad:
                                edges[k] = values[i]._edge or leaf_edge(values[i])
                                needed = True
                if needed and F.several:
                    key = key_of(F.inputs, is_tensor, edges)
                    record_several(OP, key, edges[0] if F.many else edges, values, outs, tuple(made), residuals)
                elif needed:
                    kind = array.dtype
                    if kind is _F32 or kind.kind in DIFFERENTIABLE:
                        node = NODE() if F.overload is None or values[F.overload] is None else OVERLOAD()
                        enter(node, tuple(edges[0] if F.many else edges), array.shape, kind)
                        try:
                            if F.saved is not None and (F.single or (edges[0] is not None and edges[1] is not None)):
                                node.plan = PLAN
                                node.saved = saved_values(PLAN, F.saved, values, array, out._cell, ())
                            elif F.single:
                                node.plan = PLAN
                                node.saved = PLAN.keep(*values, array, out._cell, ())
                            else:
                                key = key_of(F.inputs, is_tensor, edges)
                                node.plan = PLANS.get(key) or OP.plan_of(key)
                                node.saved = node.plan.keep(*values, array, out._cell, ())
                            if kind is not _F32 and kind.kind == "c" and OP.complex == HOLOMORPHIC:
                                node.plan = node.plan.conjugated()
                        except TypeError:
                            raise RuntimeError(INFERENCE_NOT_SAVED) from None
                        out._edge = (node, 0)
                        out._requires_grad = True
            if F.result:
                return RESULT(outs)
            return out if not F.several else outs[0] if F.outputs == 1 else tuple(outs)
        except Exception as error:
            if silence.is_entered(state.quietly, error):  # by a finalizer inside of a kernel
                state.quietly = silence.runner()
                again = THIS.witnessed if F.witnessed else THIS.function
                if F.writes:
                    return again(values[0], *args, **kwargs)
                by_place, by_name = OP.given(values, (), {})
                return again(*by_place, **by_name)
            leave()  # an error that leaves the package gets its notes
            raise

    return call


def key_of(inputs: Any, is_tensor: Any, edges: Any) -> int:
    """Return the key of the plan of a call (see `Op.plan_of`)."""
    key = 0
    for k in range(len(inputs)):
        if edges[k] is not None:
            key |= 257 << k
        elif is_tensor[k]:
            key |= 256 << k
    return key


# Specialising -------------------------------------------------------------------------------------

_SPECIALISER = Specialiser(_definition, "values arrays is_tensor edges", wrap, enter, saved_values, key_of)


def _specialised(facts: Facts) -> Any:
    """Return the definition specialised for some facts."""
    count, inputs = facts.arguments, len(facts.inputs)
    names = [f"values{k}" for k in range(1 if facts.writes else count)]
    positional, more = facts.positional if facts.keywords else len(names), facts.writes or not facts.operands
    lengths = {"values": count, "arrays": count, "is_tensor": inputs, "edges": inputs}
    return _SPECIALISER.made(facts, names, positional, more, **lengths)
