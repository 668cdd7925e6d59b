"""Small parameters updated as one.

For a parameter of twenty numbers the arithmetic is nothing and the calls are everything: some twenty microseconds of
Python and NumPy for each. An optimizer that treats every element by itself can just as well treat the elements of many
parameters in one go. So the small parameters of a group that are in the same step make a `Pack`. It gathers them, and
their gradients, into one flat array each, calls `_update` once, and hands the parameters back; what is kept for them
lies in flat arrays for good, of which each parameter's tensors are views.

Nobody has to know. A pack checks before every step that all is as it left it; where it is not (a gradient is missing, a
state was replaced), its parameters are updated one by one, and after a few such steps the group is planned anew.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, repeat
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any

import numpy as np

from tinytorch.core.tensor import wrap
from tinytorch.ops.memory import is_shared

if TYPE_CHECKING:
    from tinytorch.core.tensor import Tensor

#: Most elements of a parameter that is worth the copies.
LARGEST = 2**13
#: Steps that a plan may fail before the group is planned anew.
PATIENCE = 4

_array_of = attrgetter("_array")
_grad_of = attrgetter("_grad")


class Pack:
    """Parameters that are updated as one.

    Args:
        states: what is kept for each: the same names for all, and the same counts; or None.
        counts: names of what is a number and not a buffer of the parameter's shape.
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
        #: By name: what is kept, as `_update` sees it.
        self.state: dict[str, Any] = {}
        #: Name, tensors and their arrays, by which a change is noticed.
        self.buffers: list[tuple[str, list[Any], list[Any]]] = []
        #: The numbers, one for each parameter, and what they were after the last step.
        self.counted: list[list[Any]] = []
        full = [kept for kept in states if kept]
        for name in full[0] if full else ():
            tensors = [kept[name] for kept in full]
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
        """Update the parameters by the optimizer's `_update` and return True, or change nothing and return False."""
        params, states = self.params, self.states
        grads = list(map(_grad_of, params))
        names = len(self.state)
        if not (
            not any(map(is_, grads, repeat(None)))
            and all(map(is_, map(_array_of, params), self.arrays))
            and all(map(is_, map(state.get, params), states))
            and all(len(kept or ()) == names for kept in states)
        ):
            return False
        full: Any = states  # where there are buffers, there is a dict for each
        for name, tensors, views in self.buffers:
            if not (
                all(kept.get(name) is tensor for kept, tensor in zip(full, tensors, strict=True))
                and all(map(is_, map(_array_of, tensors), views))
            ):
                return False
        for flat, expected in self.counted:
            if flat.tobytes() != expected:
                return False

        np.concatenate(self.arrays, axis=None, out=self.p)
        np.concatenate([grad._array for grad in grads], axis=None, out=self.g)
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
    """How the parameters of a group are updated: which as one, and which one by one.

    Args:
        params: the group's parameters.
        state: the optimizer's; every parameter with a gradient has its entry.
        counts: names of what is a number and not a buffer of the parameter's shape.
    """

    __slots__ = ("packs", "params", "patience", "rest", "waiting")

    def __init__(self, params: list[Tensor], state: dict[Any, Any], counts: tuple[str, ...]) -> None:
        self.params = list(params)
        #: Parameters of no pack, in order.
        self.rest: list[Tensor] = []
        #: Those of them that may join one once they have a gradient, or all that is kept for them.
        self.waiting: list[Tensor] = []
        self.patience = PATIENCE
        alone = _overlapping(params)
        together: dict[Any, list[Tensor]] = {}
        for p in params:
            if id(p) in alone or not _is_small(p._array):
                continue
            kept = state.get(p, {})
            if p._grad is None or any(value is None for value in kept.values()):
                self.waiting.append(p)
            elif _is_regular(p._array, kept, counts):
                numbers = [(name, float(kept[name]._array)) for name in counts if name in kept]
                key = p._array.dtype, tuple(kept), tuple(numbers)
                together.setdefault(key, []).append(p)
        self.packs = [
            Pack(members, [state.get(p) for p in members], counts) for members in together.values() if len(members) > 1
        ]
        packed = {id(p) for pack in self.packs for p in pack.params}
        self.rest = [p for p in params if id(p) not in packed]

    def fits(self, params: list[Tensor]) -> bool:
        """Return whether this is a plan for `params`, and has not failed too often."""
        return self.patience > 0 and len(params) == len(self.params) and all(map(is_, params, self.params))

    def carry_out(self, state: dict[Any, Any], update: Callable[..., None], group: dict[str, Any]) -> list[Tensor]:
        """Update packs, and return the parameters that are left to be updated one by one."""
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
    """Return whether an array is one whose update costs calls, not arithmetic."""
    return (
        type(array) is np.ndarray
        and array.size <= LARGEST
        and array.dtype.kind == "f"
        and array.dtype.itemsize >= 4
        and array.flags.carray
    )


def _is_regular(array: Any, kept: dict[str, Any], counts: tuple[str, ...]) -> bool:
    """Return whether what is kept for a parameter is numbers and buffers of its kind, to move."""
    for name, value in kept.items():
        own = getattr(value, "_array", None)
        if type(own) is not np.ndarray or is_shared(value):
            return False
        if name in counts:
            if own.ndim:
                return False
        elif own.shape != array.shape or own.dtype != array.dtype:
            return False
    return True


def _overlapping(params: list[Tensor]) -> set[int]:
    """Return the ids of parameters that share memory with another, or come twice."""
    places = []
    for p in params:
        if _is_small(p._array) and p._array.size:
            start = p._array.__array_interface__["data"][0]
            places.append((start, start + p._array.nbytes, id(p)))
    places.sort()
    found: set[int] = set()
    end, last = -1, 0
    for start, stop, number in places:
        if start < end:
            found |= {last, number}
        if stop > end:
            end, last = stop, number
    seen: set[int] = set()
    for p in params:
        if id(p) in seen:
            found.add(id(p))
        seen.add(id(p))
    return found
