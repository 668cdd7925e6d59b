"""Whether operations are recorded: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode` (floor 2).

The state is one small object per thread, `local.state`; an operation reads it once. What else wants to see operations
(forward mode, hooks on saved tensors, anomaly detection, the profiler) is a `DispatchMode`, and costs nothing while
it is off.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = [
    "enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


class State:
    """What a thread's operations look at.

    Attributes:
        grad: a graph is recorded.
        inference: new tensors are inference tensors.
        asked: what `enable_grad` and `no_grad` last said inside inference mode, where no graph is recorded anyway.
        autocast: how the thread autocasts (an `Autocast`); None while it does not.
        modes: the `DispatchMode`s that are on, the innermost last; None where there are none.
    """

    __slots__ = ("asked", "autocast", "grad", "inference", "modes")

    modes: tuple[DispatchMode, ...] | None

    def __init__(self) -> None:
        self.grad = True
        self.inference = False
        self.asked = False
        self.autocast: Any = None
        self.modes = None


_threads = itertools.count()
alone = True  # whether one thread only has run operations: then nothing need be locked


class _Local(threading.local):
    def __init__(self) -> None:
        global alone
        alone = next(_threads) == 0
        self.state = State()
        self.multithreading = True


local = _Local()


class DispatchMode:
    """What sees every call of an op, and every step backward, in the thread that entered it (a context manager).

    While it works on a call it is off, so that what it does itself goes to the modes around it: modes nest as levels.
    """

    differentiates = False  # whether it takes derivatives of what it sees

    def __enter__(self) -> Any:
        state = local.state
        modes = state.modes or ()
        # Autocasting stays the innermost: the others see what it makes of a call.
        inner = len(modes) - (state.autocast is not None and state.autocast in modes[-1:])
        state.modes = (*modes[:inner], self, *modes[inner:])
        return self

    def __exit__(self, *exc: object) -> None:
        state = local.state
        state.modes = tuple([mode for mode in state.modes or () if mode is not self]) or None

    def call(
        self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return `caller(*args, **kwargs)`, a call of `op` (an `Op`, or a subclass of `Function`)."""
        return caller(*args, **kwargs)

    def step(self, node: Any, run: Callable[[], Any]) -> Any:
        """Return `run()`, the gradients of the inputs of `node`, which a walk backward has come to."""
        return run()

    def tangent(self, x: Any) -> Any:
        """Return the tangent that this mode knows of a tensor, or None."""
        return None

    def before_write(self, x: Any) -> None:
        """Notice that a tensor will be written to, but not by an op."""

    def forget(self, x: Any) -> None:
        """Notice that a tensor is cut off from what made it (`detach_`)."""


def dispatch(
    op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Hand a call to the innermost mode."""
    state = local.state
    modes = state.modes
    assert modes is not None
    state.modes = modes[:-1] or None
    try:
        return modes[-1].call(op, caller, args, kwargs)
    finally:
        state.modes = modes


def dispatch_step(node: Any, run: Callable[[], Any]) -> Any:
    """Run a step backward in sight of all modes; the ops in it are seen as any others."""
    for mode in local.state.modes or ():
        run = functools.partial(mode.step, node, run)
    return run()


class _Decorator:
    """A context manager that also decorates functions, generator functions and classes' methods."""

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly "
                "decorate the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=3,
            )
        if inspect.isgeneratorfunction(function):
            return _wrap_generator(self._again, function)  # type: ignore[return-value]

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]

    def _again(self) -> Any:
        return self.__class__()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError


def _wrap_generator(context: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with its own steps, and only these, run inside `context`."""

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        with context():
            try:
                value = next(generator)
            except StopIteration as stop:
                return stop.value
        while True:
            try:
                request = yield value
            except GeneratorExit:
                with context():
                    generator.close()
                raise
            except BaseException as error:
                with context():
                    try:
                        value = generator.throw(error)
                    except StopIteration as stop:
                        return stop.value
            else:
                with context():
                    try:
                        value = generator.send(request)
                    except StopIteration as stop:
                        return stop.value

    return inside


def _set_grad(mode: bool) -> bool:
    """Set what `is_grad_enabled` says, and return what it said before; inside inference mode that is all it does."""
    state = local.state
    if state.inference:
        before, state.asked = state.asked, mode
    else:
        before, state.grad = state.grad, mode
    return before


class _GradMode(_Decorator):
    """Sets the recording of this thread on entry and puts the old one back on exit."""

    mode: bool

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(_set_grad(self.mode))

    def __exit__(self, *exc: object) -> None:
        _set_grad(self._before.pop())


class no_grad(_GradMode):
    """Switch recording off in this thread: results do not require grad.

    A context manager (`with no_grad():`) and a decorator (`@no_grad()` or `@no_grad`).

    Example:
        >>> import tinytorch as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    mode = False

    def __new__(cls, function: Callable[..., Any] | None = None) -> Any:
        """Make the context manager, or decorate `function` at once."""
        made = super().__new__(cls)
        if function is None:
            return made
        made.__init__()  # type: ignore[misc]
        return made(function)

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__()


class enable_grad(no_grad):
    """Switch recording on in this thread, also inside `no_grad`.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     with torch.enable_grad():
        ...         y = x * 2
        >>> y.requires_grad
        True
    """

    mode = True


class set_grad_enabled(_GradMode):
    """Switch recording on or off at once; as a context manager, put the old state back at its end.

    Args:
        mode: whether to record.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.set_grad_enabled(False):
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        super().__init__()
        self.mode = mode
        self._called_from = _set_grad(mode)

    def __enter__(self) -> None:
        self._before.append(self._called_from)
        _set_grad(self.mode)

    def __call__(self, function: F) -> F:
        """Decorate `function`."""
        _set_grad(self._called_from)  # as a decorator it acts inside the function only
        return super().__call__(function)

    def _again(self) -> Any:
        return self.__class__(self.mode)


class inference_mode(_Decorator):
    """Switch recording and version counting off: tensors made inside can never take part in recording.

    Args:
        mode: whether to switch it on (`inference_mode(False)` inside switches it off again), or the function that
            it decorates.

    Example:
        >>> import tinytorch as torch
        >>> with torch.inference_mode():
        ...     y = torch.ones(2) * 2
        >>> y.is_inference()
        True
    """

    def __new__(cls, mode: Any = True) -> Any:
        """Make the context manager, or decorate a function at once."""
        made = super().__new__(cls)
        if isinstance(mode, bool):
            return made
        made.__init__()  # type: ignore[misc]
        return made(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode
        self._before: list[tuple[bool, bool, bool]] = []

    def __enter__(self) -> None:
        state = local.state
        self._before.append((state.grad, state.inference, state.asked))
        state.grad, state.inference, state.asked = not self.mode, self.mode, False

    def __exit__(self, *exc: object) -> None:
        state = local.state
        state.grad, state.inference, state.asked = self._before.pop()

    def _again(self) -> Any:
        return self.__class__(self.mode)


class set_multithreading_enabled(_Decorator):
    """Accepted for compatibility: backward runs in the thread that calls it, whatever `mode` says.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.ones(1, requires_grad=True)
        >>> with torch.autograd.set_multithreading_enabled(False):
        ...     x.sum().backward()
    """

    def __init__(self, mode: bool) -> None:
        self.mode, self._before = mode, local.multithreading
        local.multithreading = mode

    def __call__(self, function: F) -> F:
        """Decorate `function`."""
        local.multithreading = self._before  # as a decorator it acts inside the function only
        return super().__call__(function)

    def _again(self) -> Any:
        return self.__class__(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        local.multithreading = self._before


def is_multithreading_enabled() -> bool:
    """Return what `set_multithreading_enabled` was told last; backward runs in one thread all the same.

    Example:
        >>> import tinytorch as torch
        >>> torch.autograd.is_multithreading_enabled()
        True
    """
    return local.multithreading


def is_grad_enabled() -> bool:
    """Return whether this thread records operations.

    Example:
        >>> import tinytorch as torch
        >>> with torch.no_grad():
        ...     torch.is_grad_enabled()
        False
    """
    state = local.state
    return state.asked if state.inference else state.grad


def is_inference_mode_enabled() -> bool:
    """Return whether this thread is inside `inference_mode`.

    Example:
        >>> import tinytorch as torch
        >>> torch.is_inference_mode_enabled()
        False
    """
    return local.state.inference
