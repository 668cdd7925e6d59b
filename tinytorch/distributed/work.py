"""What is under way between processes: `Work`, which polls, so that a rank that is late or dead is noticed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tinytorch.distributed.futures import Future

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "Work"]

_AT_ONCE = 2000  # times that a request is tested before the process lets others run between two tests
_LONGEST_SLEEP = 1e-3  # seconds


class DistError(RuntimeError):
    """An error of exchange between processes."""


class DistBackendError(DistError):
    """What carries tensors failed: a rank did not come, or came with something else."""


class DistNetworkError(DistError):
    """Processes did not find each other."""


class DistStoreError(DistError):
    """A store does not answer, or has not got a key in time."""


def poll(ready: Callable[[], Any], seconds: float, late: Callable[[], str]) -> None:
    """Wait until `ready` returns something true: in a hurry at first, later leaving the processor to others.

    MPI moves data only while it is called, and waits for ever in its own `Wait`: so it is asked again and again.

    Raises:
        DistBackendError: that took longer than `seconds`; its words are those that `late` returns.
    """
    for _ in range(_AT_ONCE):
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
    """An exchange that is under way: what functions return for `async_op=True`.

    Its tensors are to be left alone until `wait` has returned.

    Args:
        group: the processes.
        name: of the function, for errors.
        start: begins the exchange, and returns MPI's request (or whatever has a `Test`).
        finish: is called when it has ended: puts results where they belong.
        results: the tensors that `result` returns.
        check: a request that ends when all ranks call the same, and what to do then, before the exchange begins.
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
        self._future: _Driven | None = None
        self._done = False

    # Steps: `begin` once it is this exchange's turn (see `ProcessGroup`), then `_test` until it has ended.

    def begin(self) -> bool:
        """Start the exchange if all ranks have come to it; return whether it has started, or cannot."""
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
        # What the exchange held (buffers, through what is called) is let go.
        self._done, self._error, self._request, self._finish = True, error, None, None
        del self._start
        if self._future is not None:
            self._future.complete()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the exchange has ended.

        Args:
            timeout: how long; the group's if None.

        Returns:
            True.

        Raises:
            DistBackendError: it took too long, or the ranks do not call the same.
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
        """Return whether the exchange has ended; raise the error that it ended with."""
        return self._test() and self.wait()

    def is_completed(self) -> bool:
        """Return whether the exchange has ended; does not wait."""
        return self._test()

    def is_success(self) -> bool:
        """Return whether the exchange has ended without an error."""
        return self._test() and self._error is None

    def exception(self) -> Exception | None:
        """Return the error that it ended with, if it did."""
        return self._error if self._test() else None

    def result(self) -> list[Any]:
        """Return the tensors that hold the result.

        Raises:
            RuntimeError: it is not there yet.
        """
        if not self._test():
            raise RuntimeError(
                "Work needs to be completed before calling result(). Should call wait() before result()."
            )
        return self._results or []

    def get_future(self) -> Future[Any]:
        """Return a future of `result()`; waiting for it, or for what `then` makes of it, waits for the exchange."""
        if self._future is None:
            self._future = _Driven(self)
            if self._done:
                self._future.complete()
        return self._future


class _Driven(Future[Any]):
    """The future of an exchange, which goes on only while somebody asks for it."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def complete(self) -> None:
        """Take over how the exchange ended."""
        if self._work._error is None:
            self.set_result(self._work._results or [])
        else:
            self.set_exception(self._work._error)

    def _another(self) -> Future[Any]:
        return _Driven(self._work)

    def done(self) -> bool:
        self._work.is_completed()
        return super().done()

    def wait(self) -> Any:
        if not super().done():
            self._work.wait()
        return super().wait()


class Together:
    """Several requests, or works, as one."""

    def __init__(self, requests: list[Any]) -> None:
        self._requests = requests

    def Test(self) -> bool:
        """Return whether all have ended."""
        self._requests = [each for each in self._requests if not each.Test()]
        return not self._requests
