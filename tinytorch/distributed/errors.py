"""Error reports of processes: each writes its error to the file named by `TORCHELASTIC_ERROR_FILE`."""

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
    """The failure of a process, from its error file if it exists, or from its exit code."""

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
            details = self.error_file_data if isinstance(self.message, str) else self.message["extraInfo"]
            self.timestamp = int(details.get("timestamp", 0))
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
        """Return the time of the failure: "2026-01-31_12:59:59"."""
        return datetime.datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """The error that processes failed; its message lists the failures, with the traceback of the first if known.

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
        """Return the rank that failed first, and its failure."""
        return min(self.failures.items(), key=lambda item: item[1].timestamp)

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """Return the message, between two border lines, with sections divided by lines of another character."""
        title, root = f"{self.name} FAILED", self.get_first_failure()[0]
        texts = {rank: _description(i, rank, failure) for i, (rank, failure) in enumerate(self.failures.items())}
        others = [text for rank, text in texts.items() if rank != root] or ["  <NO_OTHER_FAILURES>"]
        width = min(60, max(len(line) for text in [title, *texts.values()] for line in text.split("\n")))
        border, section = boarder_delim * width, section_delim * width
        head = ["", border, title, section, "Failures:", *others, section, "Root Cause (first observed failure):"]
        return "\n".join([*head, texts[root], border])


def _description(index: int, rank: int, failure: ProcessFailure) -> str:
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
    """Writes an exception with its traceback to the file named by `TORCHELASTIC_ERROR_FILE`."""

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self) -> None:
        """Enable `faulthandler`, which prints a traceback when Python crashes."""
        with suppress(Exception):  # stderr may not be a file
            faulthandler.enable(all_threads=True)

    def record_exception(self, e: BaseException) -> None:
        """Write the exception that is being handled."""
        path = self._get_error_file_path()
        if path:
            extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": extra}}, file)

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Copy the error file of a child process, with its exit code, to the error file of this process."""
        path = self._get_error_file_path()
        with open(rootcause_error_file, encoding="utf-8") as file:
            error = json.load(file)
        if error_code and isinstance(error.get("message"), dict):
            error["message"]["errorCode"] = error_code
        if path:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(error, file)


def get_error_handler() -> ErrorHandler:
    """Return the default error handler of `record`."""
    return ErrorHandler()


def record(fn: Callable[..., Any], error_handler: ErrorHandler | None = None) -> Callable[..., Any]:
    """Wrap a program's main function: an exception is written to the error file, from which `torchrun` reports it.

    Without the environment variable `TORCHELASTIC_ERROR_FILE` nothing is written. The exception propagates.

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
