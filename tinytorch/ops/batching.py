"""Batching: `Batch`, the mode of `torch.vmap`, and `Batched`, its tensors, which carry a dimension that nobody sees.

Inside `vmap` a function gets `Batched` tensors. Such a tensor shows the shape of one example, and refers to a plain
tensor, `_under`, that holds all examples along its first dimension. A `Batch` receives the calls of ops: it takes the
tensors under the batched ones, and calls the op on them once, as the op's rule says (`op.batch`, a name in
`ops/batch_rules.py`). So the ops of a level are calls of ops on tensors of the level outside of it, which other modes
see and which the graph records: levels nest, and gradients of batches are those of the plain tensors.

An op without a rule is called once per example, with PyTorch's warning, and so is a function that reads elements
without calling an op, which says so (`per_example`): the array of a batched tensor has none.

Gradients inside of `vmap`. What a `grad` inside of a level differentiates by is often not batched, such as the
parameters in gradients per sample. Its gradient is batched all the same, and must not be summed over the examples: a
tensor like that enters ops with batched ones through a `_Lift` or a `_Mixed` node. Backward through these turns the
gradients of all examples into a batched one, while the level is on; afterwards it sums them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np

from tinytorch.core import mode
from tinytorch.core.complex import HOLOMORPHIC, is_complex
from tinytorch.core.declaration import Op
from tinytorch.core.engine import _as_gradient_of_input
from tinytorch.core.graph import FREED, Edge, Node, enter, leaf_edge, numbers
from tinytorch.core.mode import BatchLevel, Event, local, on, recording
from tinytorch.core.node import INPUT, OUTPUT, PLAIN, PROPERTY, SHAPE, Plan, modified
from tinytorch.core.supplied import batches
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.core.view import refresh
from tinytorch.core.warning import warn
from tinytorch.kernels import meta
from tinytorch.kernels.dtypes import DIFFERENTIABLE
from tinytorch.ops import batch_rules
from tinytorch.ops.bits import by_under, of_under, through_bits
from tinytorch.ops.overrides import disabled
from tinytorch.ops.register import functions

__all__ = ["Batch", "Batched", "levels", "mapped", "physical", "wrapped"]

CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
    "yet, please shout over at https://github.com/pytorch/functorch/issues/257 ."
)
ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, "
    "please try to rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch "
    "internals, please file a bug report."
)
ESCAPED = (
    "your tensor may have escaped from inside a function being vmapped. This could also be an internal error (in "
    "gen_vmap_plumbing: the level of the batched tensor has ended)."
)
IN_PLACE = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
    "that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped "
    "over in a vmap. Please try to use out-of-place operators instead of inplace arithmetic. If said operator is being "
    "called inside the PyTorch framework, please file a bug report instead."
)
RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' "
    "randomness flags on vmap or perform the randomness operation out of vmap"
)
NO_EXAMPLES = "The fallback path does not support vmap over dims of size 0"
SAME_RANDOM = (
    "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
)
STATISTICS = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, "
    "were not batched. If you are using a module and do not need eval mode, please set `track_running_stats` to be "
    "False."
)
UNBATCHED_RANDOM = (
    "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. "
    "If this is necessary for your usage, please file an issue with functorch."
)


# Tensors ------------------------------------------------------------------------------------------


class _Facts(meta.WithoutElements):
    """The array of a batched tensor: the shape, dtype and strides of one example, and no elements.

    Attributes:
        under, level: of the batched tensor; None for a view of the array.
        of: the array of `under`.
        origin: the level, also of a view.
    """

    under: Any = None
    level: Any = None
    of: Any = None
    origin: Any = None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        raise _unread(f"{ufunc.__name__} of NumPy reads the elements of a batched tensor", inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.full_like and isinstance(args[1] if len(args) > 1 else None, _Facts):
            raise RuntimeError(ITEM)
        if func in _CREATING or func in meta.OF_METADATA:  # what is created like it is an array of one example
            like = self.view(np.ndarray)
            named = {key: like if each is self else each for key, each in kwargs.items() if key != "subok"}
            return func(*[like if each is self else each for each in args], **named)
        raise _unread(f"{func.__name__} of NumPy reads the elements of a batched tensor", args)

    def level_of(self) -> Any:
        """Return the level of the batched tensor, which a view of its array has lost."""
        if self.level is None:
            raise _unread("a view of an array without elements is read", (self,))
        return self.level

    def copy(self, order: Any = "C") -> Any:
        if self.under is None:
            raise _unread("the elements of a batched tensor are copied", (self,))
        return self  # (of indices, which are read as they are when the op runs)

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise _unread("the elements of a batched tensor are read", (self,))

    def __array_finalize__(self, other: Any) -> None:
        self.origin = getattr(other, "origin", None)

    astype = item = tolist = __bool__ = __int__ = __float__ = __index__ = __getitem__ = __setitem__ = _refuse
    all = any = sum = min = max = argmax = argmin = nonzero = tobytes = __iter__ = __array__ = _refuse
    __complex__ = _refuse


def _unread(what: str, arrays: Any) -> RuntimeError:
    """Return the error for a read of elements outside of an op; PyTorch's, if the level of the tensor has ended."""
    for each in arrays:
        if type(each) is _Facts and each.origin is not None and each.origin not in (local.state.modes or ()):
            return RuntimeError(ESCAPED)
    return RuntimeError(f"vmap: {what} outside of an op")


_CREATING = {np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.zeros, np.ones, np.empty, np.full, np.arange}


class Batched(Tensor):
    """A tensor inside of `vmap`: it shows one example of the tensor `_under`, all of whose examples it stands for."""

    # _under        the tensor with all examples along its first dimension; at an inner level itself a batched one
    # _level        the `Batch` whose dimension this is
    # _facts        the array without elements that `_array` returns, once there is one
    __slots__ = ("_facts", "_level", "_under")

    __module__ = "tinytorch"
    __torch_function__ = disabled

    _under: Any
    _level: Batch
    _facts: Any

    def level_of(self) -> Any:
        """Return the level whose batch this is."""
        return self._level

    @property
    def _array(self) -> Any:
        facts = self._facts
        under = self._under._array
        if facts is None or facts.of is not under:
            strides = tuple(map(abs, under.strides[1:]))
            try:
                facts = _new_array(_Facts, under.shape[1:], under.dtype, meta.reserved(), 0, strides)
            except TypeError:  # (NumPy's, for memory that is too small)
                facts = meta.empty(under.shape[1:], under.dtype, strides).view(_Facts)
            facts.under, facts.level, facts.of = self._under, self._level, under
            facts.origin = self._level
            self._facts = facts
        return facts

    @_array.setter
    def _array(self, array: Any) -> None:
        if array.under is None or array.level is not self._level:
            raise NotImplementedError("vmap: the memory of a batched tensor cannot be replaced")
        self._under._array = array.under._array

    _memory = _array
    _view = property(lambda self: None)
    _grad = property(lambda self: None, lambda self, g: None)

    _hooks = property(lambda self: self._under._hooks, lambda self, hooks: setattr(self._under, "_hooks", hooks))
    _cell, _accumulator, _version, dtype, device, is_cpu, is_meta, is_leaf = of_under(
        "_cell", "_accumulator", "_version", "dtype", "device", "is_cpu", "is_meta", "is_leaf"
    )
    shape = property(lambda self: Size(self._under.shape[1:]))
    ndim = property(lambda self: self._under.ndim - 1)
    _base = property(lambda self: None if self._under._base is None else batched(self._under._base, self._level))
    # Those of the tensor with all examples, whose first one it is.
    storage_offset, data_ptr = by_under("storage_offset"), by_under("data_ptr")
    _is_view = by_under("_is_view")

    @property
    def _requires_grad(self) -> bool:
        under = self._under
        if under._view is not None:
            refresh(under)
        requires: bool = under._requires_grad
        return requires

    @_requires_grad.setter
    def _requires_grad(self, requires: bool) -> None:
        self._under._requires_grad = requires

    @property
    def _edge(self) -> Any:
        under = self._under
        if under._view is not None:
            refresh(under)
        return under._edge or (leaf_edge(under) if under._requires_grad and not isinstance(under, Batched) else None)

    @_edge.setter
    def _edge(self, edge: Any) -> None:
        self._under._edge = edge

    @property
    def data(self) -> Tensor:
        """Raises RuntimeError, as in PyTorch: use `detach()`."""
        raise RuntimeError("accessing `data` under vmap transform is not allowed")

    @data.setter
    def data(self, value: Tensor) -> None:
        raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed.")

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        inner = "\n".join(["    " + line for line in repr(self._under).split("\n")])
        return f"BatchedTensor(lvl={self._level.depth}, bdim=0, value=\n{inner}\n)"

    def detach(self) -> Tensor:
        """Return the same examples, detached."""
        return batched(self._under.detach(), self._level)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Return whether each example is contiguous."""
        _check_format(memory_format)
        return bool(self._array.flags.c_contiguous)

    def contiguous(self, memory_format: Any = None) -> Tensor:
        """Return the examples, each contiguous."""
        _check_format(memory_format)
        made: Tensor = self if self.is_contiguous() else Tensor.contiguous(self)
        return made

    def numpy(self, *, force: bool = False) -> Any:
        """Raise RuntimeError: there is no array of one example."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) not in memo:
            memo[id(self)] = batched(self._under.detach().clone(), self._level)
        made: Tensor = memo[id(self)]
        return made

    def __copy__(self) -> Tensor:
        return batched(self._under, self._level)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        raise RuntimeError("vmap: a batched tensor cannot be saved")


def _check_format(memory_format: Any) -> None:
    if memory_format is not None and str(memory_format) != "torch.contiguous_format":
        raise RuntimeError(
            "NYI: querying is_contiguous inside of vmap for memory_format other than torch.contiguous_format"
        )


_new: Any = object.__new__
_new_array: Any = np.ndarray.__new__


def batched(under: Tensor, level: Batch) -> Any:
    """Return the batched tensor of a tensor whose first dimension is the batch of `level`."""
    made: Any = _new(Batched)
    made._under, made._level, made._facts = under, level, None
    return made


def levels(x: Any) -> list[Batch]:
    """Return the levels at which a tensor is batched, the innermost first."""
    found = []
    x = x._under if mode.is_lazy(x) else x
    while type(x) is Batched:
        found.append(x._level)
        x = x._under
    return found


def all_levels(xs: Sequence[Any]) -> list[Batch]:
    """Return the levels at which any of some tensors is batched, the innermost first."""
    return sorted({level for x in xs for level in levels(x)}, key=lambda level: level.number, reverse=True)


def is_batchedtensor(x: Any) -> bool:
    """Return whether a tensor is a batched one, inside of `vmap`."""
    return bool(levels(x))


def plain(x: Any) -> Any:
    """Return the plain tensor under a batched one, with a dimension for each level, the outermost first."""
    if mode.is_lazy(x) and type(x._under) is Batched:
        return through_bits(plain, x)
    while type(x) is Batched:
        x = x._under
    return x


def physical(x: Any, level: Batch) -> Any:
    """Return all examples of a tensor along a first dimension, of a tensor that is not batched as copies of it.

    The result may still be batched at other levels.
    """
    if type(x) is Batched:
        if x._level is level:
            return x._under
        if x._level.number > level.number:
            return batched(physical(x._under, level).transpose(0, 1), x._level)
    elif mode.is_lazy(x):
        return through_bits(functools.partial(physical, level=level), x)
    return x.unsqueeze(0).expand(level.size, *x.shape)


def wrapped(x: Any, level: Batch) -> Any:
    """Return the batched tensor of all examples along a first dimension: the inverse of `physical`."""
    if mode.is_lazy(x):
        return through_bits(functools.partial(wrapped, level=level), x)
    if type(x) is Batched and x._level.number > level.number:
        return batched(wrapped(x._under.transpose(0, 1), level), x._level)
    return batched(x, level)


def at_levels(x: Any, inner_first: Sequence[Batch]) -> Any:
    """Return a tensor that has dimensions for levels as one that is batched at these."""
    for level in reversed(inner_first):
        x = wrapped(x, level)
    return x


def without_levels(x: Any, inner_first: Sequence[Batch]) -> Any:
    """Return a tensor with dimensions for levels in place of the batches."""
    for level in inner_first:
        x = physical(x, level)
    return x


# The mode -----------------------------------------------------------------------------------------


class Batch(BatchLevel):
    """A level of `vmap`; a context manager.

    Attributes:
        size: the number of examples.
        randomness: "error", "different" or "same", as for `vmap`.
        number: by which levels are ordered, and told from nodes of the graph: inner ones have greater numbers.
        depth: the number of levels that it is in, itself included.
        tracked: nodes with greater numbers may depend on what a `grad` inside of the level differentiates by.

    Example:
        >>> from tinytorch.ops.batching import Batch, batched
        >>> with Batch(2) as level:
        ...     x = batched(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), level)
        ...     y = x.sum()
        >>> x.shape, y._under
        (torch.Size([2]), tensor([3., 7.]))
    """

    def __init__(self, size: int, randomness: str = "error", transforms: bool = False) -> None:
        self.size, self.randomness, self.transforms = size, randomness, transforms
        self.number: Any = next(numbers)
        self.tracked: Any = None
        self.depth = 0

    def __enter__(self) -> Any:
        self.depth = self.depth or 1 + sum([isinstance(each, Batch) for each in local.state.modes or ()])
        return super().__enter__()

    # Calls of ops ---------------------------------------------------------------------------------

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a call, batched if an argument is."""
        for each in args:
            kind = type(each)
            if kind is Batched:
                if each._level is self:
                    break
            elif kind is _Facts:
                if each.level is self:
                    break
            elif isinstance(each, (list, tuple)) and self._has_ours(each):
                break
        else:
            if not kwargs or not self._has_ours(kwargs):
                return self._unbatched(op, caller, args, kwargs)
        if not isinstance(op, Op):
            return self._call_function(op, caller, *args)
        values = op.bind(args, kwargs)
        if caller.writes and not self._is_ours(values[0]):  # type: ignore[attr-defined]
            raise RuntimeError(IN_PLACE)
        batch = op.batch
        tracked = self.tracked is not None and local.state.grad
        if batch == "elementwise" and op.operands and not caller.writes:  # type: ignore[attr-defined]
            found = self._elementwise(op, caller, values, tracked)
            if found is not None:
                return found
        if batch == "random":
            return self._random(caller, values, op)
        if callable(batch) and not caller.writes:  # type: ignore[attr-defined]
            state = local.state
            outer = state.modes
            state.modes = (*(outer or ()), self)
            try:
                result = batch(*values)
            finally:
                state.modes = outer
            if result is not NotImplemented:
                return result
        if tracked and op.wants:
            apart = any([self._is_tracked(values[i]) for i in op.inputs])
            if apart and (op.many or caller.writes or op.lifts):  # type: ignore[attr-defined]
                values = tuple([self._lifted(x) if self._is_tracked(x) else x for x in values])
            elif apart:
                return self._mixed(op, caller, values)
        return self._compute(op, caller, values)

    def _elementwise(self, op: Op, caller: Any, values: tuple[Any, ...], tracked: bool) -> Any:
        """Return the result for operands whose shapes need no alignment; None for others (see `batch_rules`)."""
        if len(values) == 1:
            return batched(caller(values[0]._under), self)
        given, kinds = [], set()
        for each in values:
            if type(each) is Batched and each._level is self:
                each = each._under
                kinds.add((each._array.ndim, each._array.dtype))
            given.append(each)
        if len(kinds) > 1:
            return None
        ((ndim, dtype),) = kinds
        for each, under in zip(values, given, strict=True):
            if under is not each:
                continue
            if type(each) is Tensor or type(each) is Batched:
                array = each._array
                if array.ndim >= ndim or array.dtype is not dtype or (tracked and self._is_tracked(each)):
                    return None
                if not batch_rules.is_ufunc(op):
                    return None
            elif type(each) is not float and type(each) is not int:
                return None
        made = caller(*given)
        return made if made is NotImplemented else batched(made, self)

    def _compute(self, op: Op, caller: Any, values: tuple[Any, ...]) -> Any:
        """Return the batched result of a call by the rule of the op."""
        target = values[0] if caller.writes else None
        call = batch_rules.Call(op, caller, self.size)
        call.set(*self._unwrapped(values))
        try:
            result = batch_rules.rule_of(op)(call)
        except batch_rules.NoRule:
            result = self._loop(op, caller, values)
        if target is not None:
            if not call.written:
                target._under.copy_(result)
            return target
        return self._wrapped(result)

    def _unwrapped(self, values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return arguments with the tensors under batched ones in their place, and which were batched."""
        found: list[Any] = []
        which: list[Any] = []
        for each in values:
            kind = type(each)
            if kind is Batched:
                ours = each._level is self
                found.append(each._under if ours else each)
                which.append(ours)
            elif kind is _Facts and each.level is self:
                found.append(each.under._array)
                which.append(True)
            elif isinstance(each, (list, tuple)) and self._has_ours(each):
                parts, ours_of = self._unwrapped(each)
                found.append(_rebuilt(each, parts))
                which.append(ours_of)
            else:
                found.append(each)
                which.append(False)
        return found, which

    def _wrapped(self, result: Any) -> Any:
        if isinstance(result, Tensor):
            return batched(result, self)
        if type(result) in (tuple, list):
            return type(result)([self._wrapped(each) for each in result])
        return _rebuilt(result, list(map(self._wrapped, result))) if isinstance(result, tuple) else result

    def _is_ours(self, x: Any) -> bool:
        return (type(x) is Batched or type(x) is _Facts) and x.level_of() is self

    def _has_ours(self, tree: Any) -> bool:
        """Return whether a container holds a batched tensor, or its array."""
        for each in tree.values() if isinstance(tree, dict) else tree:
            kind = type(each)
            if kind is Batched or kind is _Facts:
                if each.level_of() is self:
                    return True
            elif isinstance(each, (tuple, list, dict)) and self._has_ours(each):
                return True
        return False

    # Ops without a rule ---------------------------------------------------------------------------

    def _loop(self, op: Op, caller: Any, values: tuple[Any, ...]) -> Any:
        """Return the results of one call per example, stacked."""
        _fall_back(op.name.strip("_"))
        count, named = op.positional, op.arguments[op.positional :]
        function = op.caller if caller.writes else caller
        return self.per_example(function, values[:count], dict(zip(named, values[count:], strict=True)), False)

    def _example(self, k: int) -> Callable[[Any], Any]:
        """Return the function that returns example `k` of a batched tensor, or array."""

        def example(x: Any) -> Any:
            if type(x) is _Facts:
                return x.under.select(0, k)._array if x.level is self else x
            return x._under.select(0, k) if type(x) is Batched and x._level is self else x

        return example

    def per_example(self, function: Callable[..., Any], args: Any, kwargs: Any, wrap: bool = True) -> Any:
        """Return the results of one call of any function per example, stacked, as batched tensors if `wrap`."""
        state = local.state
        if self.tracked is not None and state.grad:
            args, kwargs = mapped(self._lifted_if_tracked, (args, kwargs))
        modes = state.modes
        others = rest = tuple([mode for mode in modes or () if mode is not self])
        if self.randomness == "error":  # (random functions ask the level)
            others = (*others, self) if modes is None or self not in modes else modes
        results = []
        try:
            for k in range(self.size):
                state.modes = others or None
                given, named = mapped(self._example(k), (args, kwargs))
                results.append(function(*given, **named))
            if not results:
                raise RuntimeError(NO_EXAMPLES)
            state.modes = rest or None  # (levels of forward mode give the stack its tangent)
            found = _stacked(results)
            return self._wrapped(found) if wrap else found
        finally:
            state.modes = modes

    # Random numbers -------------------------------------------------------------------------------

    def _unbatched(self, op: Any, caller: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(op, Op) and op.batch == "random":
            return self._random(caller, op.bind(args, kwargs), op)
        return caller(*args, **kwargs)

    def _random(self, caller: Any, values: tuple[Any, ...], op: Op) -> Any:
        """Return samples: those of each example its own, or the same for all."""
        if self.randomness == "error":
            raise RuntimeError(RANDOM)
        ours = any([self._is_ours(each) for each in values])
        if self.randomness == "same" and not ours:
            return caller(*values)
        if self.randomness == "same":
            raise RuntimeError(SAME_RANDOM)
        whole = [physical(each, self) if isinstance(each, Tensor) else each for each in values]
        if op.name == "_multinomial" and whole[0].ndim == 3:
            flat = whole[0].reshape(-1, whole[0].shape[2])
            return self._wrapped(caller(flat, *whole[1:]).unflatten(0, (self.size, whole[0].shape[1])))
        rank = max([each.ndim for each in whole if isinstance(each, Tensor)])
        whole = [batch_rules.padded(each, rank) if isinstance(each, Tensor) else each for each in whole]
        return self._wrapped(caller(*whole))

    def apart(self, x: Any) -> Any:
        """Return a new tensor for random numbers of each example, or that for all: see `BatchLevel.apart`."""
        if self.randomness == "error":
            raise RuntimeError(RANDOM)
        if self.randomness == "same" or self in levels(x):
            return x
        array = plain(x)._array
        made = wrap(np.empty((self.size, *array.shape), array.dtype))
        return at_levels(made, [*levels(x), self])

    @on(Event.WROTE)
    def _wrote(self, array: Any, args: tuple[Any, ...], **facts: Any) -> None:
        """Refuse to write the statistics of examples into those of all."""
        if self._has_ours(args) and not self._is_ours(array):
            raise RuntimeError(STATISTICS)

    def fills(self, x: Any, again: Callable[..., Tensor], args: tuple[Any, ...]) -> bool:
        """Fill a batched tensor with random numbers: see `BatchLevel.fills`."""
        if self.randomness == "error":
            raise RuntimeError(RANDOM)
        ours = self._is_ours(x)
        batched_args = any([self._is_ours(each) for each in args])
        if self.randomness == "same" and batched_args:
            raise RuntimeError(SAME_RANDOM)
        if batched_args and not ours:
            raise RuntimeError(IN_PLACE)
        if self.randomness == "different":
            if not ours:
                raise RuntimeError(UNBATCHED_RANDOM)
            given = [
                batch_rules.padded(each.under, x._under.ndim)._array if self._is_ours(each) else each for each in args
            ]
            with self._outside():
                again(x._under, *given)
            return True
        if not ours:
            return False
        one = wrap(np.empty(x._array.shape, x._array.dtype))
        with self._outside():
            x._under.copy_(again(one, *args))
        return True

    @contextmanager
    def _outside(self) -> Iterator[None]:
        """Switch this mode, and those inside of it, off."""
        state = local.state
        modes = state.modes or ()
        state.modes = modes[: modes.index(self)] or None if self in modes else modes or None
        try:
            yield
        finally:
            state.modes = modes or None

    # Reads ----------------------------------------------------------------------------------------

    @on(Event.READ)
    def _read(self, x: Any, truth: bool) -> None:
        """Raise PyTorch's error: Python cannot read the elements of all examples at once."""
        if levels(x):
            raise RuntimeError(CONTROL_FLOW if truth else ITEM)

    # Gradients by what is not batched -------------------------------------------------------------

    def _is_tracked(self, x: Any) -> bool:
        """Return whether a tensor is not batched here, but a `grad` inside of this level may differentiate by it."""
        if not isinstance(x, Tensor) or self._is_ours(x):
            if type(x) in (list, tuple):
                return any([self._is_tracked(each) for each in x])
            return False
        if x._view is not None:
            refresh(x)
        if not x._requires_grad:
            return False
        edge = x._edge or leaf_edge(plain(x))
        return bool(edge[0].number > self.tracked)

    def _lifted(self, x: Any) -> Any:
        """Return copies of a tensor for all examples, whose gradients stay apart while the level is on."""
        if type(x) in (list, tuple):
            return type(x)([self._lifted(each) if self._is_tracked(each) else each for each in x])
        edge = x._edge or leaf_edge(plain(x))
        with recording(False):
            made = batched(physical(x, self), self)
        under = plain(made)
        under._view = None
        under._edge, under._requires_grad = (_Lift(edge, under._array, levels(x), levels(made)), 0), True
        return made

    def _lifted_if_tracked(self, x: Any) -> Any:
        return self._lifted(x) if isinstance(x, Tensor) and self._is_tracked(x) else x

    def _mixed(self, op: Op, caller: Any, values: tuple[Any, ...]) -> Any:
        """Return the result of a call some of whose arguments are tracked and not batched."""
        edges = op.edges_of([values[i] for i in op.inputs])
        with recording(False):
            result = self._compute(op, caller, values)
        assert edges is not None
        outs = (result,) if isinstance(result, Tensor) else tuple(result)
        edges = [None if op._constant[k] else edge for k, edge in enumerate(edges)]
        if not any(edges):
            return result
        node = _Mixed(op, values, edges, outs, self)
        for k, out in enumerate(outs):
            if out is not None and out._array.dtype.kind in DIFFERENTIABLE and k not in op.nondiff:
                under = plain(out)
                if under._view is not None:
                    under._view = None
                under._edge, under._requires_grad = (node, k), True
        return result

    # Functions ------------------------------------------------------------------------------------

    def _call_function(self, function: Any, caller: Callable[..., Any], ctx: Any, args: tuple[Any, ...]) -> Any:
        return batches.function_of_batch(self, function, caller, ctx, args)


#: The names of ops that were called per example, for want of a rule.
fallen_back: set[str] = set()


def _stacked(results: list[Any]) -> Any:
    """Return results of one structure with the tensors in it stacked along a first dimension."""
    first = results[0]
    if isinstance(first, Tensor):
        return functions["stack"](results, 0)
    if isinstance(first, (tuple, list)):
        parts = [_stacked(list(column)) for column in zip(*results, strict=True)]
        return _rebuilt(first, parts)
    return first


def mapped(change: Callable[[Any], Any], tree: Any) -> Any:
    """Return arguments with all elements of lists, tuples and dicts changed."""
    if isinstance(tree, (tuple, list)):
        return _rebuilt(tree, [mapped(change, each) for each in tree])
    return {key: mapped(change, each) for key, each in tree.items()} if type(tree) is dict else change(tree)


def _rebuilt(like: Any, parts: list[Any]) -> Any:
    """Return a list, tuple, or named tuple like another one."""
    return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)


def of_batched(
    function: Callable[..., Any],
    read: Sequence[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic: str | None,
) -> Any:
    """Return the result of a function of one example, called per example, if an argument that it reads is batched.

    Else NotImplemented. The results for the innermost level are those of examples that outer levels may batch.
    """
    for each in reversed(local.state.modes or ()):
        if isinstance(each, Batch) and each._has_ours(read):
            if dynamic is not None:
                raise RuntimeError(batch_rules.DYNAMIC.format(f"aten::{dynamic}"))
            _fall_back(function.__name__.strip("_"))
            return each.per_example(function, args, kwargs)
    return NotImplemented


def _fall_back(name: str) -> None:
    fallen_back.add(name)
    warn(
        f"There is a performance drop because we have not yet implemented the batching rule for aten::{name}. "
        "Please file us an issue on GitHub so that we can prioritize its implementation.",
        once=True,
    )


def refuse_out(name: str, tree: Any) -> None:
    """Raise PyTorch's error for `out=` if an argument is batched."""
    if any([isinstance(each, Batch) and each._has_ours(tree) for each in local.state.modes or ()]):
        raise RuntimeError(
            f"Batching rule not implemented for aten::{name}.out; the fallback path doesn't work on out= or view ops."
        )


# Nodes --------------------------------------------------------------------------------------------


def _to_input(g: Any, out_levels: Sequence[Batch], in_levels: Sequence[Batch]) -> Any:
    """Return a batched gradient as that of an input: summed over the levels that are off, if it was not batched."""
    active = local.state.modes or ()
    for level in out_levels:
        if level not in in_levels and level not in active:
            g = physical(g, level).sum(0)
    return without_levels(g, in_levels)


class _Lift(Node):
    """The node of copies of a tensor for all examples."""

    __slots__ = ("_levels",)

    def __init__(self, edge: Edge, array: Any, in_levels: list[Batch], out_levels: list[Batch]) -> None:
        enter(self, (edge,), array.shape, array.dtype)
        self.saved, self._levels = (), (in_levels, out_levels)

    def name(self) -> str:
        """Return PyTorch's name of the node of an expanded tensor."""
        return "ExpandBackward0"

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of all examples as a batched one, or their sum if the level is off."""
        in_levels, out_levels = self._levels
        with _entered(out_levels):
            g = at_levels(g, out_levels)
        return (_to_input(g, out_levels, in_levels),)


def _entered(inner_first: Sequence[Batch]) -> Any:
    """Return a context manager that switches those levels on that are off."""
    active = local.state.modes or ()
    return nullcontext() if all([level in active for level in inner_first]) else _switched_on(inner_first)


@contextmanager
def _switched_on(inner_first: Sequence[Batch]) -> Iterator[None]:
    with ExitStack() as stack:
        for level in reversed(inner_first):
            if level not in (local.state.modes or ()):
                stack.enter_context(level)
        yield


class _Mixed(Node):
    """The node of a call at a level: its formulas are called on batched tensors."""

    __slots__ = ("_level", "_out_levels", "_values", "of", "outputs")

    def __init__(self, of: Op, values: tuple[Any, ...], edges: Any, outs: tuple[Any, ...], level: Batch) -> None:
        enter(self, tuple(edges), (), None)
        self.of, self._level, self._values = of, level, values
        self.outputs = len(outs)
        arrays = [None if out is None else plain(out)._array for out in outs]
        self.take_outputs(arrays)
        self._out_levels = [[] if out is None else levels(out) for out in outs]
        inputs = [values[i] for i in of.inputs]
        versions = [x._version if isinstance(x, Tensor) else None for x in inputs]
        cells = [None if out is None else plain(out)._cell for out in outs]
        # (array, not tensor: a node does not hold its own outputs)
        self.saved = (versions, arrays, [cell and (cell, cell[0]) for cell in cells])

    def name(self) -> str:
        """Return the name of the op's node."""
        return self.of.node_class.__name__

    def release(self) -> None:
        """Free the saved values."""
        self.saved = None

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the inputs: batched ones of those that are not batched themselves."""
        if self.saved is None:
            raise RuntimeError(FREED)
        op, values = self.of, self._values
        versions, arrays, cells = self.saved
        inputs = [values[i] for i in op.inputs]
        for x, seen in zip(inputs, versions, strict=True):
            if seen is not None and x._version != seen:
                raise modified(self, plain(x)._array, None, x._version, seen)
        out_levels = self._out_levels[0]
        edges = self.edges
        with _entered(out_levels):
            gs = [g] if self.outputs == 1 else list(g)
            gs = [
                None if each is None else at_levels(each, own) for each, own in zip(gs, self._out_levels, strict=True)
            ]
            outs = [None if array is None else self._output(k, array) for k, array in enumerate(arrays)]
            needs = tuple([edge is not None for edge in edges])
            plan, sources = _plan(op, needs, tuple([isinstance(x, Tensor) for x in inputs]))
            for kind, k in sources:
                if kind == OUTPUT and cells[k] is not None and cells[k][0][0] != cells[k][1]:
                    raise modified(self, arrays[k], self.output(k), cells[k][0][0], cells[k][1])
            node = op.node_class()
            node.plan = plan.conjugated() if op.complex == HOLOMORPHIC and is_complex(gs) else plan
            node.edges = edges
            node.saved = [value_of(source, values, outs) for source in sources]
            if not op.outputs:
                node.outputs = self.outputs
            grads = list(node.backward(gs[0] if self.outputs == 1 else tuple(gs), True, needed))
            for k, x in enumerate(inputs):
                if grads[k] is not None and edges[k] is not None:
                    grads[k] = _as_gradient_of_input(self, grads, grads[k], tuple(x.shape), x.dtype.numpy)
        return [
            None if each is None or edges[k] is None else _to_input(each, out_levels, levels(inputs[k]))
            for k, each in enumerate(grads)
        ]

    def _output(self, k: int, array: Any) -> Any:
        out = wrap(array)
        if local.state.grad and array.dtype.kind in DIFFERENTIABLE and k not in self.of.nondiff:
            out._edge, out._requires_grad = (self, k), True
        return at_levels(out, self._out_levels[k])


@functools.cache
def _plan(op: Op, needs: tuple[bool, ...], are_tensors: tuple[bool, ...]) -> tuple[Plan, list[Any]]:
    """Return the plan of the formulas with plain values as its sources, and its original sources."""
    plan = op._plan(needs, are_tensors)
    sources = plan.sources
    plan.sources = [(PLAIN, None)] * len(sources)
    return plan, sources


def value_of(source: tuple[int, Any], values: tuple[Any, ...], outs: Sequence[Any]) -> Any:
    """Return the value of a source, see `Plan`, given the arguments and the outputs of a call."""
    kind, position = source
    if kind in (PLAIN, INPUT):
        return values[position]
    if kind == OUTPUT:
        return outs[position]
    if kind == SHAPE:
        return tuple(values[position].shape) if isinstance(values[position], Tensor) else ()
    if kind == PROPERTY:
        return position(values)
    return None  # a residual, which the formula computes from the inputs, or a kept input, which it can do without


# Gradients ----------------------------------------------------------------------------------------


def batched_grad(
    grad: Callable[..., Any], outputs: Any, inputs: Any, grad_outputs: Any, materialize: bool, rest: dict[str, Any]
) -> Any:
    """Return what `autograd.grad` returns, of batched tensors: the walk is one through the graph of the plain ones.

    NotImplemented if no output or input is batched.
    """
    outs = [outputs] if not isinstance(outputs, (tuple, list)) else list(outputs)
    targets = list(inputs.values()) if isinstance(inputs, dict) else inputs
    targets = [targets] if not isinstance(targets, (tuple, list)) else list(targets)
    if not any([type(x) is Batched for x in (*outs, *targets)]):
        return NotImplemented
    given = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs or [None] * len(outs))
    vectors = []
    for k, (out, g) in enumerate(zip(outs, given, strict=False)):
        if type(out) is not Batched:
            vectors.append(g)
            continue
        if g is None:
            if out.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            vectors.append(wrap(np.ones_like(plain(out)._array)))
            continue
        if g.shape != out.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{k}] has a shape of {g.shape} and output[{k}] has a shape of "
                f"{out.shape}."
            )
        vectors.append(without_levels(g, levels(out)))
    found = grad([plain(x) for x in outs], [plain(x) for x in targets], vectors, **rest)
    found = [None if g is None else at_levels(g, levels(x)) for g, x in zip(found, targets, strict=True)]
    found = [zeros_like(x) if g is None and materialize else g for g, x in zip(found, targets, strict=True)]
    return dict(zip(inputs, found, strict=True)) if isinstance(inputs, dict) else tuple(found)


def zeros_like(x: Any) -> Any:
    """Return zeros like a tensor, batched if it is."""
    return at_levels(wrap(np.zeros_like(plain(x)._array)), levels(x))


Batched.__name__ = Batched.__qualname__ = Tensor.__name__  # (which users see)
