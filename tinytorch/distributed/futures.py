"""`torch.futures`: results of asynchronous work."""

from __future__ import annotations

import concurrent.futures
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that one part of a program will set and others wait for.

    Example:
        >>> future = torch.futures.Future()
        >>> double = future.then(lambda done: 2 * done.value())
        >>> future.set_result(21)
        >>> double.wait()
        42
    """

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        if devices:
            raise ValueError(f"Expected devices to have indices, got {devices[0]}")
        self._outcome: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def done(self) -> bool:
        """Return whether the result or an error is set."""
        return self._outcome.done()

    def wait(self) -> T:
        """Wait for the result, and return it; raise the error if that is set instead."""
        return cast(T, self._outcome.result())

    def value(self) -> T:
        """Return the result; raise the error if that is set instead."""
        if not self._outcome.done():
            raise RuntimeError("the future is not completed: wait() waits for its result")
        return cast(T, self._outcome.result())

    def set_result(self, result: T) -> None:
        """Set the result, wake the waiting threads, and call the callbacks."""
        self._set(self._outcome.set_result, result)

    def set_exception(self, result: Exception) -> None:
        """Set an error in place of a result: `wait` and `value` raise it."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._set(self._outcome.set_exception, result)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Return a future of the result of `callback`, which is called with this future when it is done."""
        after: Future[S] = self._another()

        def call(_: object) -> None:
            try:
                result = callback(self)
            except Exception as error:
                after.set_exception(
                    RuntimeError(f"Got the following error when running the callback: {type(error).__name__}: {error}")
                )
            else:
                after.set_result(result)

        self._outcome.add_done_callback(call)
        return after

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback` with this future when it is done; an error in it is printed, and not propagated."""

        def call(_: object) -> None:
            try:
                callback(self)
            except Exception:
                print("Got the following error when running the callback:", file=sys.stderr)
                traceback.print_exc()

        self._outcome.add_done_callback(call)

    def _another(self) -> Future[Any]:
        """Return a new future, for `then`."""
        return Future()

    def _set(self, setter: Callable[[Any], None], value: Any) -> None:
        try:
            setter(value)
        except concurrent.futures.InvalidStateError:
            raise RuntimeError(
                "Attempting to mark a completed Future as complete again. Note that a Future can only be marked "
                "completed once."
            ) from None


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a future of a list of futures, which is done when all of them are.

    Its error is the first error in the order of the list.
    """
    combined: Future[list[Future[Any]]] = Future()
    lock = threading.Lock()
    pending = [len(futures)]

    def count(done: Future[Any]) -> None:
        with lock:
            pending[0] -= 1
            if pending[0]:
                return
        error = next(filter(None, [future._outcome.exception() for future in futures]), None)
        if isinstance(error, Exception):
            combined.set_exception(error)
        else:
            combined.set_result(futures)

    for future in futures:
        future.add_done_callback(count)
    if not futures:
        combined.set_result(futures)
    return combined


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Wait for all futures, and return their results; raise the first error.

    Example:
        >>> from tinytorch.futures import Future, wait_all
        >>> futures = [Future(), Future()]
        >>> futures[1].set_result("b")
        >>> futures[0].set_result("a")
        >>> wait_all(futures)
        ['a', 'b']
    """
    return [future.wait() for future in collect_all(futures).wait()]
