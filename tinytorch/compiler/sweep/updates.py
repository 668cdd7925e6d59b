"""`Update`: the step of the optimizers of several runs, by one call for each parameter and each set of options."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from operator import attrgetter, is_, itemgetter
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.optim.optimizer import Optimizer

_array_of = attrgetter("_array")


def _cut(spans: list[tuple[int, int]], counts: list[Any]) -> list[tuple[int, int]]:
    """Return ranges of runs, cut where one of their step counts changes."""
    if not any((count != count[0]).any() for count in counts):
        return spans
    places = {k for count in counts for k in range(1, len(count)) if count[k] != count[k - 1]}
    found: list[tuple[int, int]] = []
    for begin, end in spans:
        edges = [begin, *sorted(k for k in places if begin < k < end), end]
        found += itertools.pairwise(edges)
    return found


def address(array: Any) -> int:
    """Return where an array begins in memory."""
    return array.__array_interface__["data"][0]


def whole_of(arrays: Sequence[Any], like: Any) -> Any:
    """Return the array, laid out as `like`, of which the given ones are the parts in their order, or None."""
    base, step = arrays[0].base, like.strides[0]
    if type(base) is not np.ndarray or not base.flags.c_contiguous or not like.size:
        return None
    first = address(arrays[0])
    for k, x in enumerate(arrays):
        if x.base is not base or x.strides != like.strides[1:] or address(x) != first + k * step:
            return None
    return np.ndarray(like.shape, like.dtype, base, first - address(base), like.strides)


class Update:
    """The step of optimizers whose update is elementwise, on stacks of parameters and of their gradients.

    Args:
        optimizers: one for each run.
        has_grad: for each parameter, whether it has a gradient.
        adopted: a function that moves the arrays of tensors into a stack, and returns it.
        earlier: places of the parameters whose gradients were there before the program.
        steps: the steps of the optimizers, for when other parameters have gradients.
    """

    __name__ = "update"

    def __init__(
        self, optimizers: Sequence[Any], has_grad: Sequence[bool], adopted: Callable[[Sequence[Tensor]], Any],
        earlier: Sequence[int], steps: Sequence[Callable[[], Any]],
    ) -> None:  # fmt: skip
        self.optimizers, self.has_grad, self._earlier, self._alone = optimizers, has_grad, earlier, steps
        self.kernel = type(optimizers[0])._update.kernel
        self.params = [[p for group in x.param_groups for p in group["params"]] for x in optimizers]
        numbers = [[g] * len(group["params"]) for g, group in enumerate(optimizers[0].param_groups)]
        self._group_of = list(itertools.chain.from_iterable(numbers))
        self._names = [[name for name in group if name not in ("params", "param_names")]
                       for group in optimizers[0].param_groups]  # fmt: skip
        #: For each parameter with a gradient, its place, and the stacks of its state by name.
        self._states: list[tuple[int, dict[str, Any]]] = []
        for place, present in enumerate(has_grad):
            if present:
                states = [x.state.get(params[place]) or {} for x, params in zip(optimizers, self.params, strict=True)]
                stacks = {
                    name: adopted([state[name] for state in states])
                    for name, value in states[0].items() if isinstance(value, Tensor)
                }  # fmt: skip
                self._states.append((place, stacks))
        self._counts = optimizers[0]._counts
        self.stale = False  # whether the stacks are not the whole state any more
        #: For each run, the states of its parameters with a gradient; and all entries of these that are in stacks.
        self._of_runs = [
            [optimizer.state.get(params[place]) for place, _ in self._states]
            for optimizer, params in zip(optimizers, self.params, strict=True)
        ]
        self._entries = [
            (state, name, x)
            for states in self._of_runs for state in states
            for name, x in (state or {}).items() if isinstance(x, Tensor)
        ]  # fmt: skip
        self._tensors = [x for _, _, x in self._entries]
        self._updated = [params[place] for params in self.params for place, _ in self._states]
        self._arrays = [x._array for x in self._tensors]

    @staticmethod
    def applies(optimizers: Sequence[Any]) -> bool:
        """Return whether the step of the optimizers can be made at once: it is elementwise, and each has a state."""
        first = optimizers[0]
        kind = type(first)
        if not isinstance(first, Optimizer) or not first._elementwise or not hasattr(kind._update, "kernel"):
            return False
        if kind.step is not Optimizer.step or any(type(x) is not kind for x in optimizers):
            return False
        shapes = [[[p.shape for p in group["params"]] for group in x.param_groups] for x in optimizers]
        if any(shape != shapes[0] for shape in shapes) or first.defaults.get("differentiable"):
            return False
        params = [[p for group in x.param_groups for p in group["params"]] for x in optimizers]
        if any(p._array.dtype.kind == "c" for p in params[0]):
            return False
        keys = [
            [sorted(x.state[p]) if p in x.state else None for p in own]
            for x, own in zip(optimizers, params, strict=True)
        ]
        return all(key == keys[0] for key in keys)

    def _spans(self, group: int) -> list[tuple[int, int]]:
        """Return the ranges of runs whose optimizers have the same options."""
        options_of = itemgetter(*self._names[group])
        options = [options_of(x.param_groups[group]) for x in self.optimizers]
        ends = [0, *itertools.accumulate([len(list(same)) for _, same in itertools.groupby(options)])]
        return list(itertools.pairwise(ends))

    def __call__(self, *stacks: Any) -> None:
        """Make the step, with the stacks of all parameters and of the gradients."""
        params, known = stacks[: len(self.has_grad)], iter(stacks[len(self.has_grad) :])
        grads = []
        for place, present in enumerate(self.has_grad):
            if place not in self._earlier:
                grads += [next(known)] * present
                continue
            found = [x[place]._grad for x in self.params]
            if any((g is not None) is not present for g in found):
                for step in self._alone:
                    step()
                self.stale = True
                return
            arrays = [g._array for g in found if present]
            whole = whole_of(arrays, params[place]) if present else None
            grads += [np.stack(arrays) if whole is None else whole] * present
        spans = [self._spans(g) for g in range(len(self._names))]
        for (place, state), g in zip(self._states, grads, strict=True):
            p, number = params[place], self._group_of[place]
            counts = [state[name] for name in self._counts if name in state]
            for begin, end in _cut(spans[number], counts):
                here = {
                    name: stack[begin, ...] if name in self._counts else stack[begin:end]
                    for name, stack in state.items()
                }
                self.kernel(p[begin:end], g[begin:end], here, self.optimizers[begin].param_groups[number])
                for name in here.keys() - state.keys():  # a buffer that begins with this step
                    self.stale = True
                    for k in range(begin, end):
                        self.optimizers[k].state[self.params[k][place]][name] = wrap(here[name][k - begin].copy())
                for name in self._counts:
                    if name in here:
                        state[name][begin + 1 : end] = here[name]
        for p in self._updated:
            p._bump()

    def is_valid(self) -> bool:
        """Return whether the parameters and the state are still those in the stacks."""
        if self.stale or not all(map(is_, map(_array_of, self._tensors), self._arrays)):
            return False
        if not all(state.get(name) is x for state, name, x in self._entries):
            return False
        for optimizer, params, states in zip(self.optimizers, self.params, self._of_runs, strict=True):
            groups = optimizer.param_groups
            given = groups[0]["params"] if len(groups) == 1 else [p for group in groups for p in group["params"]]
            if len(given) != len(params) or not all(map(is_, given, params)):
                return False
            if not all(map(is_, map(optimizer.state.get, [params[place] for place, _ in self._states]), states)):
                return False
        return True


__all__ = ["Update", "address", "whole_of"]
