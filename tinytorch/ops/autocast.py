"""Autocasting of tensor functions. The public API is in `amp/`.

While a thread autocasts, `local.state.autocast` is an `Autocast`; else it is None. Each function declares how
autocasting changes it (`autocast=`, see `register.public`). The change is made in one of three ways, none of which
costs a measurable time while no thread autocasts:

- Frequently called functions that examine dtypes before they call an op begin with
  `if autocast.on: input, other = autocast.lowered(input, other)`: `matmul`, `mm`, `bmm`, convolutions, attention;
  `mse_loss`, `l1_loss`, `pad`, `grid_sample` and `nn.functional.max_pool3d`; `cat` and `stack`; recurrent layers.
- Other functions are wrapped once, at the declaration, by `lowering`, `raising`, `promoting` or `leaving`. The wrapper
  is the method, and the public function calls it while any thread autocasts.
- Calls of an op that is itself a public function (`linear`) are intercepted by `Autocast` as a dispatch mode. It is
  always the first mode, so that other modes see the converted arguments.

As in PyTorch, autocasting is off inside a function that it has changed.
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

on = 0  # the number of threads that autocast
_counting = threading.Lock()

#: The ops that are public functions, and run in low precision under autocasting.
ops: set[Function] = set()


class Autocast(DispatchMode):
    """The dispatch mode and settings by which a thread autocasts.

    Attributes:
        dtype: the low precision.
        caching: whether converted parameters are cached.
        kept: the cache: by the `id` of a parameter, the parameter and its converted copy.
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
        """Convert the floating-point tensors in a nested value, except float64 ones, to `target`."""
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
        """Return the dtype to which `found` and the tensors in a nested value are promoted."""
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
    """Turn autocasting of this thread by `mode` on or off."""
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


# Conversion of arguments --------------------------------------------------------------------------


def lowered(*values: Any) -> Any:
    """Return the arguments, in low precision if this thread autocasts."""
    mode = local.state.autocast
    return values if mode is None else mode.converted(values, mode.dtype)


def raised(*values: Any) -> Any:
    """Return the arguments, at least in float32 if this thread autocasts."""
    mode = local.state.autocast
    return values if mode is None else mode.converted(values, dtypes.float32)


def promoted(values: Any) -> Any:
    """Return the arguments, in the widest precision among them if this thread autocasts."""
    mode = local.state.autocast
    return values if mode is None else mode.converted(values, mode.widest(values, mode.dtype))


# Wrappers -----------------------------------------------------------------------------------------

_NOT_GIVEN: Any = object()


def _changed(function: Function, change: Callable[[Autocast, Any, Any], Any]) -> Function:
    """Wrap `function` so that `change` converts its arguments while the calling thread autocasts.

    Calls with one and two arguments are special cases, since `*args` would cost twice as much.
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
    """Make an op run in low precision under autocasting, also when other functions call it."""
    ops.add(function)
    return function


def lowering(function: Function) -> Function:
    """Wrap `function` to run in low precision under autocasting."""
    return _changed(function, lambda mode, *given: mode.converted(given, mode.dtype))


def raising(function: Function) -> Function:
    """Wrap `function` to run in float32 under autocasting."""
    return _changed(function, lambda mode, *given: mode.converted(given, dtypes.float32))


def promoting(function: Function) -> Function:
    """Wrap `function` to run in the widest precision among its arguments under autocasting."""

    def change(mode: Autocast, args: Any, kwargs: dict[str, Any]) -> Any:
        widest = mode.widest([*args, *kwargs.values()], mode.dtype)
        return mode.converted((args, kwargs), widest)

    return _changed(function, change)


def leaving(function: Function) -> Function:
    """Wrap `function` to run with autocasting off."""
    return _changed(function, lambda mode, *given: given)
