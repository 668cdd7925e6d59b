"""How the error of one process is told to others: by a file, whose name is in `TORCHELASTIC_ERROR_FILE`."""

from __future__ import annotations

import datetime
import faulthandler
import functools
import json
import os
import signal
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

_NOT_AVAILABLE = "<N/A>"


@dataclass
class ProcessFailure:
    """How a process failed: by its error file, if it has written one, or by its exit code.

    Args:
        local_rank, pid, exitcode: of the process; the exit code is negative for a signal.
        error_file: path of the file.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: Any = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        self.error_file_data, self.message, self.timestamp = {"message": "<NONE>"}, "", int(time.time())
        if os.path.isfile(self.error_file):
            with open(self.error_file, encoding="utf-8") as file:
                self.error_file_data = json.load(file)
            self.message = self.error_file_data["message"]
            inside = self.error_file_data if isinstance(self.message, str) else self.message["extraInfo"]
            self.timestamp = int(inside.get("timestamp", 0))
        else:
            self.error_file = _NOT_AVAILABLE
        if not self.message:
            self.message = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
            if self.exitcode < 0:
                self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"

    def signal_name(self) -> str:
        """Return the name of the signal that ended the process: "SIGKILL", or "<N/A>"."""
        with suppress(ValueError):
            if self.exitcode < 0:
                return signal.Signals(-self.exitcode).name
        return _NOT_AVAILABLE

    def timestamp_isoformat(self) -> str:
        """Return when it failed: "2026-01-31_12:59:59"."""
        return datetime.datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Processes failed; the message tells how, with the traceback of the first, where it is known.

    Args:
        name: what was run.
        failures: by rank.

    Example:
        >>> from tinytorch.distributed.elastic.multiprocessing import errors
        >>> failure = errors.ProcessFailure(local_rank=1, pid=4711, exitcode=-9, error_file="")
        >>> print(errors.ChildFailedError("train.py", {1: failure}))
        <BLANKLINE>
        =...
        train.py FAILED
        -...
        Failures:
          <NO_OTHER_FAILURES>
        -...
        Root Cause (first observed failure):
        [0]:
          time      : ...
          host      : ...
          rank      : 1 (local_rank: 1)
          exitcode  : -9 (pid: 4711) (SIGKILL)
          error_file: <N/A>
          traceback : Signal 9 (SIGKILL) received by PID 4711
        =...
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        if not failures:
            raise AssertionError
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """Return the rank that failed first, and how."""
        return min(self.failures.items(), key=lambda each: each[1].timestamp)

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """Return the message, between two lines of one sign, and parted by lines of another."""
        title, root = f"{self.name} FAILED", self.get_first_failure()[0]
        told = {rank: _told(i, rank, failure) for i, (rank, failure) in enumerate(self.failures.items())}
        others = [text for rank, text in told.items() if rank != root] or ["  <NO_OTHER_FAILURES>"]
        width = min(60, max(len(line) for text in [title, *told.values()] for line in text.split("\n")))
        border, section = boarder_delim * width, section_delim * width
        head = ["", border, title, section, "Failures:", *others, section, "Root Cause (first observed failure):"]
        return "\n".join([*head, told[root], border])


def _told(index: int, rank: int, failure: ProcessFailure) -> str:
    message, name = failure.message, failure.signal_name()
    if isinstance(message, dict):
        message = message.get("extraInfo", {}).get("py_callstack", message.get("message", _NOT_AVAILABLE))
        message = message.replace("\n", "\n  ")
    return f"""[{index}]:
  time      : {failure.timestamp_isoformat()}
  host      : {socket.gethostname()}
  rank      : {rank} (local_rank: {failure.local_rank})
  exitcode  : {failure.exitcode} (pid: {failure.pid}) {f"({name})" if name != _NOT_AVAILABLE else ""}
  error_file: {failure.error_file}
  traceback : {message}"""


class ErrorHandler:
    """Writes an exception, with its traceback, into the file that `TORCHELASTIC_ERROR_FILE` names."""

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self) -> None:
        """Let Python tell of crashes, by `faulthandler`."""
        with suppress(Exception):  # where stderr is no file
            faulthandler.enable(all_threads=True)

    def record_exception(self, e: BaseException) -> None:
        """Write the exception that is being handled."""
        path = self._get_error_file_path()
        if path:
            extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": extra}}, file)

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Make the error of a child process, with its exit code, the one of this process."""
        path = self._get_error_file_path()
        with open(rootcause_error_file, encoding="utf-8") as file:
            error = json.load(file)
        if error_code and isinstance(error.get("message"), dict):
            error["message"]["errorCode"] = error_code
        if path:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(error, file)


def get_error_handler() -> ErrorHandler:
    """Return what `record` uses where it is given nothing else."""
    return ErrorHandler()


def record(fn: Callable[..., Any], error_handler: ErrorHandler | None = None) -> Callable[..., Any]:
    """Return a program's main function such that what it raises is written into a file, from where `torchrun` tells it.

    Without the environment variable `TORCHELASTIC_ERROR_FILE` nothing is written. The exception goes on.

    Args:
        fn: the function.
        error_handler: what writes the file.

    Example:
        >>> from tinytorch.distributed.elastic.multiprocessing.errors import record
        >>> @record
        ... def main():
        ...     return "done"
        >>> main()
        'done'
    """
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as error:
            if error.code != 0:
                raise
        except ChildFailedError as error:
            _, failure = error.get_first_failure()
            if failure.error_file != _NOT_AVAILABLE:
                handler.dump_error_file(failure.error_file, failure.exitcode)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise
        return None

    return wrapper
