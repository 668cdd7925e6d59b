"""Context managers that switch recording on or off: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Self, TypeVar, overload

from tinytorch.core.mode import local, set_grad, traced_as
from tinytorch.core.warning import warn

__all__ = [
    "enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "is_multithreading_enabled",
    "no_grad", "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip

__traced_as__ = "op"  # by `torch.compile`

F = TypeVar("F", bound=Callable[..., Any])


class _DecoratorContextManager:
    """A context manager that also decorates functions, generator functions and classes' methods."""

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly "
                "decorate the `__init__` method and nothing else.",
                FutureWarning,
            )
        if inspect.isgeneratorfunction(function):
            return _wrap_generator(self.clone, function)  # type: ignore[return-value]

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]

    def clone(self) -> Any:
        """Return a new context manager with the same settings, for another call."""
        return self.__class__()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError


def _wrap_generator(context: Callable[[], Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a generator function whose steps, but not the code between them, run inside `context`."""

    def resumed(step: Callable[..., Any], *given: Any) -> Any:
        with context():
            return step(*given)

    @functools.wraps(function)
    def inside(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        try:
            value = resumed(next, generator)
            while True:
                try:
                    request = yield value
                except GeneratorExit:
                    resumed(generator.close)
                    raise
                except BaseException as error:
                    value = resumed(generator.throw, error)
                else:
                    value = resumed(generator.send, request)
        except StopIteration as stop:
            return stop.value

    return inside


class _GradMode(_DecoratorContextManager):
    """Sets on entry whether this thread records, and restores the previous setting on exit."""

    mode: bool

    def __init__(self) -> None:
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(set_grad(self.mode))

    def __exit__(self, *exc: object) -> None:
        set_grad(self._before.pop())


class no_grad(_GradMode):
    """Switch recording off in this thread: results do not require grad.

    A context manager (`with no_grad():`) and a decorator (`@no_grad()` or `@no_grad`).

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    mode = False

    @overload
    def __new__(cls, function: None = None) -> Self: ...
    @overload
    def __new__(cls, function: F) -> F: ...  # type: ignore[misc]

    def __new__(cls, function: Any = None) -> Any:
        """Return the context manager, or `function` decorated."""
        context = super().__new__(cls)
        if function is None:
            return context
        context.__init__()  # type: ignore[misc]
        return context(function)

    def __init__(self, function: Callable[..., Any] | None = None) -> None:
        super().__init__()


class enable_grad(no_grad):
    """Switch recording on in this thread, also inside `no_grad`.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.no_grad():
        ...     with torch.enable_grad():
        ...         y = x * 2
        >>> y.requires_grad
        True
    """

    mode = True


class set_grad_enabled(_GradMode):
    """Switch recording on (True) or off at once; as a context manager, restore the previous setting at the end.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> with torch.set_grad_enabled(False):
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                f"set_grad_enabled(): argument 'enabled' (position 1) must be bool, not {type(mode).__name__}"
            )
        super().__init__()
        self.mode = mode
        self._called_from = set_grad(mode)

    def __enter__(self) -> None:
        self._before.append(self._called_from)
        set_grad(self.mode)

    def __call__(self, function: F) -> F:
        """Decorate `function`."""
        set_grad(self._called_from)  # a decorator applies inside the function only
        return super().__call__(function)

    def clone(self) -> Any:  # noqa: D102
        return self.__class__(self.mode)


class inference_mode(_DecoratorContextManager):
    """Switch recording and version counting off: tensors created inside can never take part in recording.

    `inference_mode(False)` inside switches it off again.

    Example:
        >>> with torch.inference_mode():
        ...     y = torch.ones(2) * 2
        >>> y.is_inference()
        True
    """

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]

    def __new__(cls, mode: Any = True) -> Any:
        """Return the context manager, or the function `mode` decorated."""
        context = super().__new__(cls)
        if isinstance(mode, bool):
            return context
        context.__init__()  # type: ignore[misc]
        return context(mode)

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

    def clone(self) -> Any:  # noqa: D102
        return self.__class__(self.mode)


class set_multithreading_enabled(_DecoratorContextManager):
    """Accepted for compatibility: backward runs in the thread that calls it, whatever `mode` says.

    Example:
        >>> x = torch.ones(1, requires_grad=True)
        >>> with torch.autograd.set_multithreading_enabled(False):
        ...     x.sum().backward()
    """

    def __init__(self, mode: bool) -> None:
        self.mode, self._before = mode, local.multithreading
        local.multithreading = mode

    def __call__(self, function: F) -> F:
        """Decorate `function`."""
        local.multithreading = self._before  # a decorator applies inside the function only
        return super().__call__(function)

    def clone(self) -> Any:  # noqa: D102
        return self.__class__(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        local.multithreading = self._before


def is_multithreading_enabled() -> bool:
    """Return the last setting of `set_multithreading_enabled`; backward runs in one thread whatever it is.

    Example:
        >>> torch.autograd.is_multithreading_enabled()
        True
    """
    return local.multithreading


@traced_as("pure")
def is_grad_enabled() -> bool:
    """Return whether this thread records operations.

    Example:
        >>> with torch.no_grad():
        ...     torch.is_grad_enabled()
        False
    """
    state = local.state
    return state.asked if state.inference else state.grad


@traced_as("pure")
def is_inference_mode_enabled() -> bool:
    """Return whether this thread is inside `inference_mode`.

    Example:
        >>> torch.is_inference_mode_enabled()
        False
    """
    return local.state.inference
