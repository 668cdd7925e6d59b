"""Forward-mode automatic differentiation: dual tensors, which consist of a primal and a tangent.

A `Level` is a dispatch mode that holds the tangents of tensors: while it is on, it also computes, for every op
`y = f(x)`, the tangent of `y`, the Jacobian of `f` times the tangent of `x`. No op needs a rule of its own for that:

- the gradient formula of an op, `g -> J^T g`, is linear in `g`, so its derivative by `g` is the transpose, `t -> J t`;
- the Jacobian of a pointwise op is diagonal, so its formula is its own transpose;
- a product of matrices is linear in each factor: `d(XY) = dX Y + X dY`;
- the tangent of a view is the same view of the tangent.

Levels nest: the operations of a level are seen by the levels around it, and are recorded as usual, so forward over
forward, forward over reverse and reverse over forward work. Source: PyTorch's `torch.autograd.forward_ad`.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinytorch.autograd.api import grad
from tinytorch.autograd.function import Function, FunctionNode
from tinytorch.autograd.grad_mode import _DecoratorContextManager, enable_grad
from tinytorch.core import mode as core_mode
from tinytorch.core.complex import HOLOMORPHIC, OWN
from tinytorch.core.graph import Edge, Start, numbers
from tinytorch.core.mode import Event, ForwardLevel, local, on, recording, without_bits
from tinytorch.core.node import INPUT, KEPT, PLAIN, Plan
from tinytorch.core.op import Op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.view import WITHOUT_GRAD
from tinytorch.kernels import places
from tinytorch.kernels.dtypes import DIFFERENTIABLE
from tinytorch.ops.batching import at_levels, batched, levels, plain, value_of, without_levels
from tinytorch.ops.bits import through_bits, with_bits

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

Tangents = list[Tensor | None]


class Level(ForwardLevel):
    """The tangents of one level; a context manager, which forgets them on exit.

    A tangent belongs to the array of a tensor, so that a saved tensor that is unpacked still has it. The tangent of a
    view is computed from that of its base when it is needed.

    Example:
        >>> from tinytorch.autograd.forward_ad import Level
        >>> with Level() as level:
        ...     x = level.dual(torch.tensor(3.0), torch.tensor(1.0))
        ...     level.unpack(x * x)
        UnpackedDualTensor(primal=tensor(9.), tangent=tensor(6.))
    """

    def __init__(self) -> None:
        #: By id of an array: a weak reference to it, its tangent, and for a view the tangent of its base.
        self._tangents: dict[int, tuple[Any, Tensor, Tensor | None]] = {}

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self._tangents.clear()

    def dual(self, primal: Tensor, tangent: Tensor) -> Tensor:
        """Return a tensor with the memory and the edge of `primal`, and the tangent `tangent`."""
        for what, tensor in (("primal", primal), ("tangent", tangent)):
            if tensor._array.dtype.kind not in DIFFERENTIABLE:
                raise ValueError(f"Expected {what} to be floating point or complex, but got: {tensor.dtype}")
        dual = _alias(primal)
        if core_mode.is_lazy(dual):
            self._set(dual._under, without_bits(with_bits(tangent, dual._conjugated, dual._negated)))
        else:
            self._set(dual, without_bits(tangent))
        return dual

    def unpack(self, tensor: Tensor) -> UnpackedDualTensor:
        """Return a tensor without its tangent, and the tangent or None."""
        return self.unseen(lambda: UnpackedDualTensor(_alias(tensor), self.tangent(tensor)))

    def tangent(self, x: Tensor) -> Tensor | None:
        """Return the tangent of a tensor, or None."""
        if core_mode.is_lazy(x):
            found = self.tangent(x._under)
            return None if found is None else with_bits(found, x._conjugated, x._negated)
        if type(x) is not Tensor and (
            batches := levels(x)
        ):  # (the plain tensor has it, so that what the graph has saved has it, too)
            found = self.tangent(plain(x))
            return None if found is None else at_levels(found, batches)
        entry = self._tangents.get(id(x._array))
        view = x._view
        if view is None or (entry is not None and entry[2] is None):
            return None if entry is None else entry[1]
        base_entry = self._tangents.get(id(view.base._array))
        if base_entry is None:
            return None
        if entry is None or entry[2] is not base_entry[1]:
            with recording(view.kind != WITHOUT_GRAD):  # as when the view was created
                self._set(x, view.replay(_with_strides_of(base_entry[1], view.base)), base_entry[1])
            entry = self._tangents[id(x._array)]
        return entry[1]

    @on(Event.FORGOTTEN)
    def forget(self, x: Tensor) -> None:
        """Remove the tangent of a tensor."""
        x = plain(x)
        self._tangents.pop(id(x._array), None)

    def _set(self, x: Tensor, tangent: Tensor, taken_from: Tensor | None = None) -> None:
        if tangent._array.shape != x._array.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this "
                f"is not supported. Tensor is of size {list(x.shape)} while the given forward gradient is of size "
                f"{list(tangent.shape)}."
            )
        if batches := levels(x):
            x, tangent = plain(x), without_levels(tangent, batches)
        key, tangents = id(x._array), self._tangents
        forget = functools.partial(_forget, tangents, key)
        tangents[key] = (weakref.ref(x._array, forget), tangent, taken_from)

    def _write(self, x: Tensor, tangent: Tensor) -> None:
        """Write the tangent of a tensor that was written to into a copy of its former one; of a view, of the base's.

        So where nothing is recorded the tangent stays what it is in the graph, as the tensor does.
        """
        if batches := levels(x):
            x, tangent = plain(x), without_levels(tangent, batches)
        own = self._tangents.get(id(x._array))
        whole = x._view is None or (own is not None and own[2] is None)
        base = x if whole else x._view.base  # type: ignore[union-attr]
        former = own[1] if whole and own is not None else self.tangent(base)
        if whole and (former is None or local.state.grad):
            self._set(x, tangent)
            return
        copy = _zeros_like(base, tangent) if former is None else _zeros_like(base, former, tangent)
        if former is not None:
            with enable_grad():
                copy.copy_(former)
        (copy if whole else x._view.replay(copy)).copy_(tangent)  # type: ignore[union-attr]
        self._set(base, copy)

    def _set_saved_tangent(self, x: Tensor, op: Op, tangent: Tensor | None, start: int) -> None:
        """Set the tangent of the copy of `x` from before a write in place, which the node of the write has saved."""
        if batches := levels(x):
            x, tangent = plain(x), None if tangent is None else without_levels(tangent, batches)
        edge: Any = x._edge if x._view is None else x._view.base._edge
        if edge is not None and edge[0].number > start and x._view is not None:
            edge = (edge[0].inner, 0)  # the node inside of `CopySlices`
        if tangent is None or edge is None or edge[0].number <= start:
            return  # the write was not recorded
        for (kind, position), item in zip(edge[0].plan.sources, edge[0].saved, strict=True):
            if kind == INPUT and position == op.inputs[0]:
                self._set(item[0], tangent)

    # Calls of ops ---------------------------------------------------------------------------------

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call, having set the tangents of its outputs."""
        if local.state.inference:
            return caller(*args, **kwargs)
        if not isinstance(op, Op):
            return self._call_function(op, caller, *args)
        values = op.bind(args, kwargs)
        inputs = values[op.inputs[0]] if op.many is not None else [values[i] for i in op.inputs]
        if isinstance(inputs, Tensor):
            inputs = (inputs,)
        tangents: list[Any] = [self.tangent(x) if isinstance(x, Tensor) else None for x in inputs or ()]
        if all(tangent is None for tangent in tangents):
            return caller(*args, **kwargs)
        x = values[0]
        writes = caller.writes  # type: ignore[attr-defined]
        used = {op.arguments[0], f"{op.arguments[0]}_kept"} if writes else set()
        if any(not used.isdisjoint(names) for names in op.wants.values()):
            values = (x.clone(), *values[1:])  # from before the write
        start = next(numbers)
        saves = local.state.grad and any(
            [isinstance(x, Tensor) and x._requires_grad and levels(x) for x in inputs or ()]
        )
        with _Within(self) if saves else contextlib.nullcontext():
            result = caller(*args, **kwargs)
        if values[0] is not x:
            self._set_saved_tangent(x, op, tangents[0], start)
        if op.view:
            (tangent,) = tangents
            views = op.caller(_with_strides_of(tangent, x), *values[1:])
            for out, view in zip(_as_tuple(result), _as_tuple(views), strict=True):
                of_out = plain(out)._view
                base = None if of_out is None else self._tangents.get(id(of_out.base._array))
                # If the base has a tangent, that of the view follows from it.
                self._set(out, view, None if base is None else base[1])
            return result
        if not op.wants:
            return result
        outs = _as_tuple(result)
        try:
            pushed = push_forward(op, values, outs, tangents)
        except NotImplementedError as error:  # raised by a formula
            raise NotImplementedError(
                f"Trying to use forward AD with {op.name} that does not support it because it has not been "
                "implemented yet."
            ) from error
        for out, tangent in zip(outs, pushed, strict=True):
            if tangent is not None and (writes or not local.state.grad) and any(tangent is other for other in tangents):
                tangent = tangent.clone()  # with memory, and a place in the graph, of its own
            if writes:
                self._write(out, _zeros_like(out) if tangent is None else tangent)
            elif tangent is not None and out._array.dtype.kind in DIFFERENTIABLE:
                self._set(out, tangent)
        return result

    def _call_function(
        self, function: type[Function], caller: Callable[..., Any], ctx: FunctionNode, args: tuple[Any, ...]
    ) -> Any:
        tangents = [self.tangent(x) if isinstance(x, Tensor) else None for x in args]
        result = caller(ctx, args)
        if all(tangent is None for tangent in tangents):
            return result
        outs = result if isinstance(result, tuple) else (result,)
        passed: list[Tensor | None] = []
        for x, tangent in zip(args, tangents, strict=True):
            if tangent is None and ctx._materialize and isinstance(x, Tensor) and x._array.dtype.kind in DIFFERENTIABLE:
                tangent = _zeros_like(x)
            passed.append(tangent)
        versions = [0 if tangent is None else tangent._version for tangent in passed]
        if ctx._for_forward is None:
            ctx._for_forward = ()  # `jvp` does not see the tensors saved for backward
        tangents_out = function.jvp(ctx.shown(), *passed)
        tangents_out = tangents_out if isinstance(tangents_out, tuple) else (tangents_out,)
        ctx._for_forward = None
        if len(tangents_out) != len(outs):
            raise RuntimeError(
                f"Function's jvp returned an invalid number of forward gradients (expected {len(outs)} but got "
                f"{len(tangents_out)})"
            )
        for k, (out, tangent) in enumerate(zip(outs, tangents_out, strict=True)):
            if tangent is None:
                continue
            if not isinstance(tangent, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {k}.")
            if not isinstance(out, Tensor) or out._array.dtype.kind not in DIFFERENTIABLE or k in ctx.constant:
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {k}, but the corresponding forward output is "
                    "not a differentiable Tensor. You should return None at that position instead."
                )
            if not any(out is x for x in args):
                _check_view(out, tangent, args, tangents)
                self._set(out, tangent)
            elif any(
                tangent is other and other._version != version for other, version in zip(passed, versions, strict=True)
            ):
                self._write(out, tangent)
            else:
                raise RuntimeError(
                    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward "
                    "is modifying an input inplace, then the jvp function must modify the corresponding gradient "
                    "inplace."
                )
        return result


class _Within(ForwardLevel):
    """Gives what a rule of `vmap` makes of batched tensors its tangents, too: the graph saves it in their place.

    It is the outermost mode, so it receives the ops of the rule on the tensors without levels.
    """

    def __init__(self, level: Level) -> None:
        self.level = level

    def __enter__(self) -> Any:
        self.modes = local.state.modes
        local.state.modes = (self, *(self.modes or ()))
        return self

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call, which no mode receives; the formulas of its tangents are received by all."""

        @functools.wraps(caller)
        def alone(*args: Any, **kwargs: Any) -> Any:
            local.state.modes = None
            try:
                return caller(*args, **kwargs)
            finally:
                local.state.modes = self.modes

        local.state.modes = self.modes
        return self.level.call(op, alone, args, kwargs)


def _check_view(out: Tensor, tangent: Tensor, args: tuple[Any, ...], tangents: Tangents) -> None:
    """Raise PyTorch's error if a Function returns a view of an input, but its `jvp` no view of that input's tangent."""
    if out._view is None or out._cell is None:
        return
    for x, tangent_of_x in zip(args, tangents, strict=True):
        if tangent_of_x is None or x._cell is not out._cell:
            continue
        if tangent._view is None:
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a "
                "view."
            )
        base = tangent_of_x if tangent_of_x._view is None else tangent_of_x._view.base
        if tangent._view.base is not base:
            what = "the given" if tangent_of_x._view is None else "the same base as the given"
            raise RuntimeError(
                f"A custom Function is returning a view but the jvp is not returning a view of {what} grad input."
            )


def _forget(tangents: dict[int, Any], key: int, reference: Any) -> None:
    entry = tangents.get(key)
    if entry is not None and entry[0] is reference:
        del tangents[key]


def push_forward(op: Op, values: tuple[Any, ...], outs: tuple[Tensor, ...], tangents: Tangents) -> Tangents:
    """Return the tangents of the outputs of a call, given those of its inputs (None for an input without one)."""
    are_tensors = tuple([isinstance(values[i], Tensor) for i in op.inputs])
    needs = tuple([tangent is not None for tangent in tangents])
    plan, sources = _plan(op, needs, are_tensors)
    saved = [values[source[1]] if source[0] == KEPT else value_of(source, values, outs) for source in sources]
    complex = outs[0]._array.dtype.kind == "c" or any(t is not None and t._array.dtype.kind == "c" for t in tangents)
    if not (op.elementwise and not (complex and op.complex == OWN)) and not op.linear:
        if complex and op.complex == HOLOMORPHIC:
            plan = plan.conjugated()
        return _by_transposed_formulas(op, plan, saved, outs, tangents)
    total: Tensor | None = None
    for k, formula, indices in plan.rules:
        tangent = tangents[k]
        if op.linear:
            i = op.inputs[k]
            part = op.caller(*values[:i], tangent, *values[i + 1 :])
        else:
            part = formula(tangent, *[saved[i] for i in indices])
        total = part if total is None else total + part
    return [None if total is None else _broadcast_and_cast(total, outs[0])]


def _by_transposed_formulas(
    op: Op, plan: Plan, saved: list[Any], outs: tuple[Tensor, ...], tangents: Tangents
) -> Tangents:
    """Return the tangents of the outputs as the derivatives of the op's formulas with respect to `g`."""
    node = _new(op.node_class)
    node.plan, node.saved = plan, saved
    node.edges = tuple([None if tangent is None else _ANY_EDGE for tangent in tangents])
    if not op.outputs:
        node.outputs = len(outs)
    # (A formula may differentiate by copies of its inputs: alone they are no reason to record.)
    given = [x for x in (*saved, *outs, *tangents) if isinstance(x, Tensor)]
    recording = local.state.grad and any([x.requires_grad for x in given])
    with enable_grad():
        gs = [
            _leaf_like(out) if out._array.dtype.kind in DIFFERENTIABLE and number not in op.nondiff else None
            for number, out in enumerate(outs)
        ]
        grads = node.backward(tuple(gs) if node.outputs > 1 else gs[0], True, None)
        ends, vectors = [], []
        for g, tangent in zip(grads, tangents, strict=True):
            if g is not None and tangent is not None and g.requires_grad:
                ends.append(g)
                vectors.append(tangent)
    differentiable = [g for g in gs if g is not None]
    if not ends or not differentiable:
        return [None if g is None else _zeros_like(g) for g in gs]
    vectors = [_broadcast_and_cast(vector, end) for vector, end in zip(vectors, ends, strict=True)]
    tangents_out = iter(grad(ends, differentiable, vectors, None, recording, True, True, False, True))
    return [None if g is None else next(tangents_out) for g in gs]


@functools.cache
def _plan(op: Op, needs: tuple[bool, ...], are_tensors: tuple[bool, ...]) -> tuple[Plan, list[Any]]:
    """Return the plan of the formulas with plain values as its sources, and its original sources."""
    plan = op._plan(needs, are_tensors)
    sources = plan.sources
    plan.sources = [(PLAIN, None)] * len(sources)
    return plan, sources


def _broadcast_and_cast(tangent: Tensor, like: Tensor) -> Tensor:
    """Return a tangent broadcast to the shape, and cast to the dtype, of its primal."""
    if tangent._array.shape != like._array.shape:
        tangent = tangent.expand(like.shape)
    if tangent._array.dtype != like._array.dtype:
        tangent = tangent.to(like.dtype)
    return tangent


def _with_strides_of(tangent: Tensor, x: Tensor) -> Tensor:
    """Return a tangent with the strides of `x`, so that the same views can be taken of both."""
    if tangent._array.strides == x._array.strides:
        return tangent
    return _zeros_like(x, tangent).copy_(tangent)


def _zeros_like(x: Tensor, *batches: Tensor) -> Tensor:
    """Return zeros with the strides of `x`, even if these leave gaps between its elements.

    Args:
        batches: tensors at whose levels of `vmap` the zeros are batched, besides those of `x`.
    """
    own, array = levels(x), plain(x)._array
    more = {level.number: level for each in batches for level in levels(each) if level not in own}
    outer_first = [more[number] for number in sorted(more)]
    sizes = tuple([level.size for level in outer_first])
    if not array.size or 0 in array.strides or places.is_dense(array):
        zeros = wrap(np.zeros_like(array) if not sizes else np.zeros((*sizes, *array.shape), array.dtype))
        if sizes and array.size and 0 not in array.strides and not array.flags.c_contiguous:
            order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
            memory = np.zeros((*sizes, *[array.shape[d] for d in order]), array.dtype)
            back = [len(sizes) + order.index(d) for d in range(array.ndim)]
            zeros = wrap(memory.transpose(*range(len(sizes)), *back))
    else:
        reach = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))
        length = reach // array.itemsize + 1
        memory = np.zeros((*sizes, length), array.dtype)
        strides = (*memory.strides[:-1], *array.strides)
        zeros = wrap(np.ndarray((*sizes, *array.shape), array.dtype, memory, 0, strides))
    for level in outer_first:
        zeros = batched(zeros, level)
    return at_levels(zeros, own)


def _leaf_like(x: Tensor) -> Tensor:
    zeros = _zeros_like(x)
    plain(zeros)._requires_grad = True
    return zeros


def _alias(x: Tensor) -> Tensor:
    """Return a tensor with the same memory and edge, but an array object of its own."""
    if core_mode.is_lazy(x):
        return through_bits(_alias, x)
    alias: Tensor = x.view_as(x)
    if (
        x._edge is not None or not x._requires_grad
    ):  # a view of a leaf that requires grad stays one, since it must not be written to
        plain(alias)._view = None
    return alias


def _as_tuple(result: Any) -> tuple[Any, ...]:
    return (result,) if isinstance(result, Tensor) else tuple(result)


_new: Any = object.__new__
_ANY_EDGE: Edge = (Start((), None), 0)  # marks the inputs that need a gradient


# PyTorch's names ----------------------------------------------------------------------------------


class UnpackedDualTensor(NamedTuple):
    """The result of `unpack_dual`: a tensor without its tangent, and the tangent, of the same shape, or None.

    Example:
        >>> import tinytorch.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        ...     primal, tangent = fwAD.unpack_dual(x * x)
        >>> primal, tangent
        (tensor(9.), tensor(6.))
    """

    primal: Tensor
    tangent: Tensor | None


def __getattr__(name: str) -> int:
    if name == "_current_level":  # a variable of PyTorch's that programs read
        return len(_dual_levels()) - 1
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def _dual_levels() -> list[Level]:
    """Return the levels that this thread has entered by `enter_dual_level`: at most one, as in PyTorch."""
    return [mode for mode in local.state.modes or () if isinstance(mode, _DualLevel)]


class _DualLevel(Level):
    """A level entered by `enter_dual_level`."""


def enter_dual_level() -> int:
    """Enter a level of forward mode and return its index, 0.

    Raises:
        RuntimeError: a level is on already; use `tinytorch.func.jvp` to nest.

    Example:
        >>> import tinytorch.autograd.forward_ad as fwAD
        >>> level = fwAD.enter_dual_level()
        >>> fwAD.make_dual(torch.tensor([3.0]), torch.tensor([1.0])).square()
        tensor([9.], tangent=tensor([6.]))
        >>> fwAD.exit_dual_level(level=level)
    """
    if any(isinstance(mode, Level) for mode in local.state.modes or ()):
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _DualLevel().__enter__()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Exit the level and forget its tangents.

    Raises:
        RuntimeError: no level was entered, or `level` is not the current one.

    Example:
        >>> import tinytorch.autograd.forward_ad as fwAD
        >>> level = fwAD.enter_dual_level()
        >>> x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        >>> fwAD.exit_dual_level()
        >>> fwAD.unpack_dual(x).tangent is None
        True
    """
    levels = _dual_levels()
    if not levels and level is None:
        raise RuntimeError("Dual level must be a positive number.")
    if level not in (None, len(levels) - 1):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        )
    levels[-1].__exit__()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a tensor with the memory of `tensor` and a tangent: the direction in which to differentiate.

    Raises:
        RuntimeError: no level was entered, or `level` is another; the shapes differ; the tensor has a tangent.

    Example:
        >>> import tinytorch.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     x = fwAD.make_dual(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0]))
        ...     fwAD.unpack_dual(x ** 3).tangent
        tensor([3., 0.])
    """
    levels = _dual_levels()
    if not levels and level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if not levels:
        raise RuntimeError(
            "Trying to access a forward AD level with an invalid index. This index was either not created or is "
            "already deleted."
        )
    if level not in (None, 0):
        raise RuntimeError("Invalid level given to _make_dual")
    current = levels[-1]
    if current.tangent(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported."
        )
    if current.tangent(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported."
        )
    return current.dual(tensor, tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return `(primal, tangent)` of a tensor; the tangent is None if it has none.

    Example:
        >>> import tinytorch.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     fwAD.unpack_dual(torch.tensor(1.0))
        UnpackedDualTensor(primal=tensor(1.), tangent=None)
    """
    levels = _dual_levels()
    if not levels or level not in (None, 0):
        return UnpackedDualTensor(tensor, None)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type(tensor).__name__}")
    return levels[-1].unpack(tensor)


class dual_level(_DecoratorContextManager):
    """A level of forward mode, as a context manager or decorator: inside, `make_dual` and `unpack_dual` work.

    Example:
        >>> import tinytorch.autograd.forward_ad as fwAD
        >>> with fwAD.dual_level():
        ...     y = fwAD.make_dual(torch.tensor([0.0]), torch.tensor([2.0])).sin()
        ...     y
        tensor([0.], tangent=tensor([2.]))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exc: object) -> None:
        exit_dual_level()
