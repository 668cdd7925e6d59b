"""Updates of many small parameters by one call of `_update`.

The update of a small parameter costs about twenty microseconds of calls in Python and NumPy, and hardly any arithmetic.
An elementwise optimizer can update the elements of many parameters at once. Small parameters of a group that have the
same dtype and step count therefore form a `Pack`. It concatenates the parameters and their gradients into flat arrays,
calls `_update` once, and copies the results back. The optimizer state of a pack stays in flat arrays: the state tensors
of each parameter are views of them.

Before every step a pack checks that nothing was replaced since its last step. If a gradient is missing or a state was
replaced, its parameters are updated one by one; after a few such steps the group gets a new plan.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, repeat
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any

import numpy as np

from tinytorch.core.layout import NoArray
from tinytorch.core.tensor import wrap
from tinytorch.ops.memory import is_shared

if TYPE_CHECKING:
    from tinytorch.core.tensor import Tensor

#: Largest number of elements of a parameter for which packing saves more than its copies cost.
LARGEST = 2**13
#: Consecutive steps that may deviate from a plan before the group gets a new one.
PATIENCE = 4

_array_of = attrgetter("_array")
_grad_of = attrgetter("_grad")


class Pack:
    """Parameters that are updated by one call.

    Args:
        states: the optimizer state of each parameter, or None; all have the same keys and the same scalars.
        counts: keys of scalars; the other state tensors have the parameter's shape.
    """

    __slots__ = ("arrays", "buffers", "counted", "g", "p", "params", "places", "state", "states")

    def __init__(self, params: list[Tensor], states: list[dict[str, Any] | None], counts: tuple[str, ...]) -> None:
        self.params, self.states = params, states
        self.arrays = [p._array for p in params]
        ends = list(accumulate(array.size for array in self.arrays))
        cuts = [slice(end - array.size, end) for end, array in zip(ends, self.arrays, strict=True)]
        shapes = [array.shape for array in self.arrays]

        def pieces(flat: Any) -> list[Any]:
            return [flat[cut].reshape(shape) for cut, shape in zip(cuts, shapes, strict=True)]

        self.p = np.empty(ends[-1], self.arrays[0].dtype)
        self.g = np.empty_like(self.p)
        self.places = pieces(self.p)
        #: The joint state that `_update` gets: a flat array per buffer, and one scalar for all parameters.
        self.state: dict[str, Any] = {}
        #: Key, state tensors and their views, to detect that one was replaced.
        self.buffers: list[tuple[str, list[Any], list[Any]]] = []
        #: Per scalar, an array with one element per parameter, and its bytes after the last step.
        self.counted: list[list[Any]] = []
        full = [entries for entries in states if entries]
        for name in full[0] if full else ():
            tensors = [entries[name] for entries in full]
            if name in counts:
                flat = np.array([tensor._array for tensor in tensors])
                views = [flat[i : i + 1].reshape(()) for i in range(flat.size)]
                self.state[name] = wrap(views[0])
                self.counted.append([flat, flat.tobytes()])
            else:
                flat = np.concatenate([tensor._array for tensor in tensors], axis=None)
                views = pieces(flat)
                self.state[name] = wrap(flat)
            for tensor, view in zip(tensors, views, strict=True):
                tensor._array = view
            self.buffers.append((name, tensors, views))

    def update(self, state: dict[Any, Any], update: Callable[..., None], group: dict[str, Any]) -> bool:
        """Update the parameters by `update` and return True; return False and change nothing if the pack is stale."""
        params, states = self.params, self.states
        grads = list(map(_grad_of, params))
        names = len(self.state)
        if not (
            not any(map(is_, grads, repeat(None)))
            and all(map(is_, map(_array_of, params), self.arrays))
            and all(map(is_, map(state.get, params), states))
            and all(len(entries or ()) == names for entries in states)
        ):
            return False
        full: Any = states  # if there are buffers, no state is None
        for name, tensors, views in self.buffers:
            if not (
                all(entries.get(name) is tensor for entries, tensor in zip(full, tensors, strict=True))
                and all(map(is_, map(_array_of, tensors), views))
            ):
                return False
        for flat, expected in self.counted:
            if flat.tobytes() != expected:
                return False

        try:
            gradients = [grad._array for grad in grads]
        except NoArray:  # one is sparse
            return False
        np.concatenate(self.arrays, axis=None, out=self.p)
        np.concatenate(gradients, axis=None, out=self.g)
        update(self.p, self.g, self.state, group)
        for array, place in zip(self.arrays, self.places, strict=True):
            array[...] = place
        for p in params:
            p._bump()
        for counted in self.counted:
            flat = counted[0]
            flat.fill(flat[0])
            counted[1] = flat.tobytes()
        return True


class Plan:
    """The split of a group's parameters into packs and parameters that are updated one by one.

    Args:
        params: the group's parameters.
        state: the optimizer's state, which has an entry for every parameter with a gradient.
        counts: keys of scalars; the other state tensors have the parameter's shape.
    """

    __slots__ = ("packs", "params", "patience", "rest", "waiting")

    def __init__(self, params: list[Tensor], state: dict[Any, Any], counts: tuple[str, ...]) -> None:
        self.params = list(params)
        #: Parameters in no pack, in their order.
        self.rest: list[Tensor] = []
        #: Parameters that cannot be packed yet, for want of a gradient or of a complete state.
        self.waiting: list[Tensor] = []
        self.patience = PATIENCE
        alone = _overlapping(params)
        together: dict[Any, list[Tensor]] = {}
        for p in params:
            if id(p) in alone or not _is_small(p._array):
                continue
            entries = state.get(p, {})
            if p._grad is None or any(value is None for value in entries.values()):
                self.waiting.append(p)
            elif _is_packable(p._array, entries, counts):
                numbers = [(name, float(entries[name]._array)) for name in counts if name in entries]
                key = p._array.dtype, tuple(entries), tuple(numbers)
                together.setdefault(key, []).append(p)
        self.packs = [
            Pack(members, [state.get(p) for p in members], counts) for members in together.values() if len(members) > 1
        ]
        packed = {id(p) for pack in self.packs for p in pack.params}
        self.rest = [p for p in params if id(p) not in packed]

    def fits(self, params: list[Tensor]) -> bool:
        """Return whether the plan is for `params` and still in use."""
        return self.patience > 0 and len(params) == len(self.params) and all(map(is_, params, self.params))

    def carry_out(self, state: dict[Any, Any], update: Callable[..., None], group: dict[str, Any]) -> list[Tensor]:
        """Update the packs, and return the parameters that remain to be updated one by one."""
        left = self.rest
        for pack in self.packs:
            if not pack.update(state, update, group):
                left = left + pack.params
        if left is not self.rest or any(p._grad is not None for p in self.waiting):
            self.patience -= 1
        else:
            self.patience = PATIENCE
        return left


def _is_small(array: Any) -> bool:
    """Return whether an array is small enough, and of a dtype and layout, to be packed."""
    return (
        type(array) is np.ndarray
        and array.size <= LARGEST
        and array.dtype.kind == "f"
        and array.dtype.itemsize >= 4
        and array.flags.carray
    )


def _is_packable(array: Any, entries: dict[str, Any], counts: tuple[str, ...]) -> bool:
    """Return whether a parameter's state has only scalars and buffers of its shape and dtype, in private memory."""
    for name, value in entries.items():
        buffer = getattr(value, "_array", None)
        if type(buffer) is not np.ndarray or is_shared(value):
            return False
        if name in counts:
            if buffer.ndim:
                return False
        elif buffer.shape != array.shape or buffer.dtype != array.dtype:
            return False
    return True


def _overlapping(params: list[Tensor]) -> set[int]:
    """Return the ids of parameters that share memory with another, or are listed twice."""
    places = []
    for p in params:
        if _is_small(p._array) and p._array.size:
            start = p._array.__array_interface__["data"][0]
            places.append((start, start + p._array.nbytes, id(p)))
    places.sort()
    overlapping: set[int] = set()
    end, last = -1, 0
    for start, stop, number in places:
        if start < end:
            overlapping |= {last, number}
        if stop > end:
            end, last = stop, number
    seen: set[int] = set()
    for p in params:
        if id(p) in seen:
            overlapping.add(id(p))
        seen.add(id(p))
    return overlapping
