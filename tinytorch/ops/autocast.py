"""Autocasting, as the functions that it changes see it. What users call is in `amp/`.

While a thread autocasts, `local.state.autocast` is an `Autocast`; else it is None. Which functions it changes, and how,
they say where they are declared (`autocast=`, see `register.public`). They are reached in three ways, none of which
costs anything to speak of while no thread autocasts:

- Functions that look at dtypes before they call an op, and are called often, begin with
  `if autocast.on: input, other = autocast.lowered(input, other)`: `matmul`, `mm`, `bmm`, convolutions, attention;
  `mse_loss`, `l1_loss`, `pad`, `grid_sample` and `nn.functional.max_pool3d`; `cat` and `stack`; recurrent layers.
- The others have a form that `lowering`, `raising`, `promoting` or `leaving` makes of them, once, at the declaration,
  which the public function takes while somebody autocasts, and which is the method.
- An op that is itself a public function (`linear`) is met by `Autocast` as a dispatch mode: always the first one, so
  that other modes see what it made of a call.

As in PyTorch, what a changed function itself calls is not changed once more.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from tinytorch.core.mode import DispatchMode, local
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes

Function = Callable[..., Any]

on = 0  # how many threads autocast
_counting = threading.Lock()

#: The public functions that are ops themselves, and run in low precision.
ops: set[Function] = set()


class Autocast(DispatchMode):
    """How a thread autocasts.

    Attributes:
        dtype: the low precision.
        caching: whether converted parameters are kept.
        kept: converted parameters by their `id`, with the parameters.
    """

    def __init__(self) -> None:
        self.dtype = dtypes.bfloat16
        self.caching = True
        self.kept: dict[int, tuple[Tensor, Tensor]] = {}

    def call(self, op: Any, caller: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Convert the arguments of ops in `ops` to low precision."""
        if caller in ops:
            args, kwargs = self.converted((args, kwargs), self.dtype)
        return caller(*args, **kwargs)

    def converted(self, value: Any, target: dtypes.dtype) -> Any:
        """Return a value with the tensors in it of floating point, but for float64, as of dtype `target`."""
        if isinstance(value, Tensor):
            have = value.dtype
            if have is target or not have.is_floating_point or have is dtypes.float64:
                return value
            if (
                self.caching
                and target is self.dtype
                and have is dtypes.float32
                and value._requires_grad
                and value._edge is None
                and value._view is None
                and local.state.grad
            ):
                kept = self.kept.get(id(value))
                if kept is None:
                    kept = self.kept[id(value)] = value, value.to(target)
                return kept[1]
            return value.to(target)
        if type(value) in (tuple, list):
            return type(value)([self.converted(each, target) for each in value])
        if type(value) is dict:
            return {key: self.converted(each, target) for key, each in value.items()}
        return value

    def widest(self, value: Any, found: dtypes.dtype) -> dtypes.dtype:
        """Return the dtype that the tensors in a value are promoted to, and `found` before them.

        Raises:
            RuntimeError: there is a low precision that is not this one.
        """
        if isinstance(value, Tensor):
            have = value.dtype
            if found is dtypes.float64:
                raise RuntimeError("promote type is double in at::autocast::prioritize")
            if not have.is_floating_point or have is dtypes.float64:
                return found
            if dtypes.float32 in (found, have):
                return dtypes.float32
            if have is not self.dtype:
                raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
        elif isinstance(value, (tuple, list)):
            for each in value:
                found = self.widest(each, found)
        return found


def switch(mode: Autocast, enabled: bool) -> None:
    """Let this thread autocast as `mode` says, or no longer."""
    global on
    state = local.state
    if enabled is (state.autocast is not None):
        return
    with _counting:
        on += 1 if enabled else -1
    if enabled:
        state.autocast = mode
        state.modes = (*(state.modes or ()), mode)
    else:
        state.autocast = None
        state.modes = tuple([each for each in state.modes or () if each is not mode]) or None


def outside(function: Function, *args: Any, **kwargs: Any) -> Any:
    """Return `function(*args, **kwargs)`, called without autocasting."""
    state = local.state
    mode, modes = state.autocast, state.modes
    state.autocast = None
    state.modes = tuple([each for each in modes or () if each is not mode]) or None
    try:
        return function(*args, **kwargs)
    finally:
        state.autocast, state.modes = mode, modes


def active() -> bool:
    """Return whether this thread autocasts."""
    return local.state.autocast is not None


# What a function makes of its arguments -----------------------------------------------------------


def lowered(*values: Any) -> Any:
    """Return arguments in low precision, if this thread autocasts."""
    mode = local.state.autocast
    return values if mode is None else mode.converted(values, mode.dtype)


def raised(*values: Any) -> Any:
    """Return arguments in float32 at least, if this thread autocasts."""
    mode = local.state.autocast
    return values if mode is None else mode.converted(values, dtypes.float32)


def promoted(values: Any) -> Any:
    """Return arguments in one precision, the widest of theirs, if this thread autocasts."""
    mode = local.state.autocast
    return values if mode is None else mode.converted(values, mode.widest(values, mode.dtype))


# … and the same as wrappers -----------------------------------------------------------------------

_NOT_GIVEN: Any = object()


def _changed(function: Function, change: Callable[[Autocast, Any, Any], Any]) -> Function:
    """Return `function` as one that gets what `change` makes of its arguments while its thread autocasts.

    Calls with one and two arguments are written out: `*args` would cost twice as much.
    """

    @functools.wraps(function)
    def call(x: Any = _NOT_GIVEN, y: Any = _NOT_GIVEN, /, *more: Any, **kwargs: Any) -> Any:
        if not on and not kwargs and not more:
            if y is not _NOT_GIVEN:
                return function(x, y)
            if x is not _NOT_GIVEN:
                return function(x)
        args = tuple([each for each in (x, y, *more) if each is not _NOT_GIVEN])
        if on and (mode := local.state.autocast) is not None:
            args, kwargs = change(mode, args, kwargs)
            return outside(function, *args, **kwargs)
        return function(*args, **kwargs)

    return call


def low_op(function: Function) -> Function:
    """Have an op run in low precision while its thread autocasts, also where other functions call it."""
    ops.add(function)
    return function


def lowering(function: Function) -> Function:
    """Return `function` as one that runs in low precision while its thread autocasts."""
    return _changed(function, lambda mode, *given: mode.converted(given, mode.dtype))


def raising(function: Function) -> Function:
    """Return `function` as one that runs in float32 while its thread autocasts."""
    return _changed(function, lambda mode, *given: mode.converted(given, dtypes.float32))


def promoting(function: Function) -> Function:
    """Return `function` as one that runs in the widest precision among its arguments while its thread autocasts."""

    def change(mode: Autocast, args: Any, kwargs: dict[str, Any]) -> Any:
        widest = mode.widest([*args, *kwargs.values()], mode.dtype)
        return mode.converted((args, kwargs), widest)

    return _changed(function, change)


def leaving(function: Function) -> Function:
    """Return `function` as one that autocasting does not change, whatever it calls."""
    return _changed(function, lambda mode, *given: given)
