"""`Work`, the handle of a communication in progress. It polls MPI, so that ranks that are late or dead are noticed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tinytorch.distributed.futures import Future

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "Work"]

_BUSY_TESTS = 2000  # tests of a request before the process starts to yield between two tests
_LONGEST_SLEEP = 1e-3  # seconds


class DistError(RuntimeError):
    """An error of communication between processes."""


class DistBackendError(DistError):
    """A communication failed: a rank timed out, or called another function."""


class DistNetworkError(DistError):
    """Processes could not connect."""


class DistStoreError(DistError):
    """A store does not answer, or a key was not set in time."""


def poll(ready: Callable[[], Any], seconds: float, late: Callable[[], str]) -> None:
    """Wait until `ready` returns a true value, busily at first, later with pauses.

    MPI makes progress only inside its functions, and its own `Wait` has no timeout: hence the polling.

    Raises:
        DistBackendError: `ready` was not true within `seconds`; `late` returns the message.
    """
    for _ in range(_BUSY_TESTS):
        if ready():
            return
    begin = time.monotonic()
    while not ready():
        waited = time.monotonic() - begin
        if waited > seconds:
            raise DistBackendError(late())
        if waited < _LONGEST_SLEEP:
            os.sched_yield() if hasattr(os, "sched_yield") else time.sleep(0)
        else:
            time.sleep(min(_LONGEST_SLEEP, waited / 20))


class Work:
    """The handle of a communication in progress, which functions return for `async_op=True`.

    The program must not use the tensors until `wait` has returned.

    Args:
        group: the process group.
        name: the function's name, for errors.
        start: starts the communication, and returns MPI's request (or another object with a method `Test`).
        finish: is called when the communication is complete, and stores the results.
        results: the tensors that `result` returns.
        check: a request that is complete when all ranks have made this call, and a function to call then, before
            `start`, which raises an error if the calls differ.
    """

    def __init__(
        self,
        group: Any,
        name: str,
        start: Callable[[], Any],
        finish: Callable[[], None] | None = None,
        results: list[Any] | None = None,
        check: tuple[Any, Callable[[], None]] | None = None,
    ) -> None:
        self._group, self._name, self._start, self._finish = group, name, start, finish
        self._results, self._check = results, check
        self._request: Any = None
        self._error: Exception | None = None
        self._future: _WorkFuture | None = None
        self._done = False

    # Steps: `begin` when it is this communication's turn (see `ProcessGroup`), then `_test` until it is complete.

    def begin(self) -> bool:
        """Start the communication if all ranks have called it; return whether it has started or failed."""
        if self._check is not None:
            request, agree = self._check
            if not request.Test():
                return False
            self._check = None
            try:
                agree()
            except Exception as error:
                self._end(error)
                return True
        self._request = self._start()
        return True

    def _test(self) -> bool:
        if not self._done:
            self._group.advance()
        if not self._done and self._request is not None:
            error: Exception | None = None
            try:
                if not self._request.Test():
                    return False
                if self._finish is not None:
                    self._finish()
            except DistError as failure:
                error = failure
            except RuntimeError as failure:  # MPI's own
                error = DistBackendError(f"[rank {self._group.global_rank}] {self._name}: {failure}")
            self._end(error)
        return self._done

    def _end(self, error: Exception | None) -> None:
        # Free the buffers, which the functions refer to.
        self._done, self._error, self._request, self._finish = True, error, None, None
        del self._start
        if self._future is not None:
            self._future.complete()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the communication is complete.

        Raises:
            DistBackendError: it timed out, or the ranks call different functions.
        """
        if not self._done and not self._test():
            seconds = timeout.total_seconds() if timeout else self._group.seconds
            poll(self._test, seconds, lambda: self._late(seconds))
        if self._error is not None:
            raise self._error
        return True

    def _late(self, seconds: float) -> str:
        return (
            f"[rank {self._group.global_rank}] {self._name} did not end within {seconds:g} s: "
            "another rank is late, has died, or calls something else"
        )

    synchronize = wait

    def Test(self) -> bool:
        """Return whether the communication is complete; raise its error if it failed."""
        return self._test() and self.wait()

    def is_completed(self) -> bool:
        """Return whether the communication is complete, without waiting."""
        return self._test()

    def is_success(self) -> bool:
        """Return whether the communication is complete and succeeded."""
        return self._test() and self._error is None

    def exception(self) -> Exception | None:
        """Return the error of a communication that failed; else None."""
        return self._error if self._test() else None

    def result(self) -> list[Any]:
        """Return the tensors that hold the result."""
        if not self._test():
            raise RuntimeError(
                "Work needs to be completed before calling result(). Should call wait() before result()."
            )
        return self._results or []

    def get_future(self) -> Future[Any]:
        """Return a future of `result()`; to wait for it, or for a future of its `then`, waits for the communication."""
        if self._future is None:
            self._future = _WorkFuture(self)
            if self._done:
                self._future.complete()
        return self._future


class _WorkFuture(Future[Any]):
    """The future of a communication, which makes progress only while it is polled."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def complete(self) -> None:
        """Take over the result or the error of the communication."""
        if self._work._error is None:
            self.set_result(self._work._results or [])
        else:
            self.set_exception(self._work._error)

    def _another(self) -> Future[Any]:
        return _WorkFuture(self._work)

    def done(self) -> bool:
        self._work.is_completed()
        return super().done()

    def wait(self) -> Any:
        if not super().done():
            self._work.wait()
        return super().wait()


class Together:
    """Several requests or works with the interface of one request."""

    def __init__(self, requests: list[Any]) -> None:
        self._requests = requests

    def Test(self) -> bool:
        """Return whether all are complete."""
        self._requests = [request for request in self._requests if not request.Test()]
        return not self._requests
