"""`torch.multiprocessing`: Python's `multiprocessing`, imported when first used.

Tensors in shared memory (see `share_memory_`) are shared with forked processes; queues copy the tensors sent.
"""

from __future__ import annotations

import importlib
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

__all__ = [
    "ProcessContext", "ProcessExitedException", "ProcessRaisedException", "get_all_sharing_strategies",
    "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip

_STRATEGIES = {"file_system"} if sys.platform in ("darwin", "win32") else {"file_descriptor", "file_system"}
_strategy = [min(_STRATEGIES)]


def get_all_sharing_strategies() -> set[str]:
    """Return the names of PyTorch's strategies of sharing memory.

    Example:
        >>> "file_system" in torch.multiprocessing.get_all_sharing_strategies()
        True
    """
    return _STRATEGIES


def get_sharing_strategy() -> str:
    """Return the strategy that `set_sharing_strategy` has set.

    Example:
        >>> torch.multiprocessing.get_sharing_strategy() in torch.multiprocessing.get_all_sharing_strategies()
        True
    """
    return _strategy[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """Set the strategy of sharing memory, without effect: memory is shared by forking."""
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
    _strategy[0] = new_strategy


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    importlib.import_module("multiprocessing.connection")  # (PyTorch imports it)
    return getattr(importlib.import_module("multiprocessing"), name)


# Starting processes -------------------------------------------------------------------------------


class ProcessException(Exception):
    """The base class of errors that a process of `spawn` failed."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception; the message contains its traceback."""


class ProcessExitedException(ProcessException):
    """The process ended by a signal, or with an exit code other than 0."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], sender: Any) -> None:
    """Call the function in a new process; send the traceback of an exception to the parent."""
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # (the main process gets the signal, too)
    except Exception:
        sender.send_bytes(pickle.dumps(traceback.format_exc()))
        sys.exit(1)


class ProcessContext:
    """The processes of `spawn(…, join=False)`."""

    def __init__(self, processes: list[Any], receivers: list[Any]) -> None:
        self.processes = processes
        self._receivers = receivers
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return the process ids."""
        return [process.pid for process in self.processes]

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends; return whether all have ended.

        Args:
            grace_period: seconds for the other processes to end after one has failed, before they are terminated.

        Raises:
            ProcessRaisedException: the function raised an exception.
            ProcessExitedException: a process failed in another way.
        """
        if not self.sentinels:
            return True
        connection = importlib.import_module("multiprocessing.connection")
        failed = None
        for sentinel in connection.wait(list(self.sentinels), timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels

        if grace_period is not None:
            self._wait(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._wait(30 if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()
        raise self._error(failed)

    def _error(self, failed: int) -> ProcessException:
        process, code = self.processes[failed], self.processes[failed].exitcode
        try:
            trace = pickle.loads(self._receivers[failed].recv_bytes())
        except EOFError:
            pass  # the process sent no traceback
        else:
            message = f"\n\n-- Process {failed} terminated with the following error:\n{trace}"
            return ProcessRaisedException(message, failed, process.pid)
        if code >= 0:
            message = f"process {failed} terminated with exit code {code}"
            return ProcessExitedException(message, failed, process.pid, code)
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        message = f"process {failed} terminated with signal {name}"
        return ProcessExitedException(message, failed, process.pid, code, name)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(i, *args)` in new processes 0 … `nprocs - 1`, and wait for them.

    Args:
        fn: a function at the top level of a module; it and `args` are pickled.
        start_method: "spawn", or another start method of `multiprocessing`.

    Returns:
        None, or a `ProcessContext` if not `join`.

    Raises:
        ProcessRaisedException: the function raised an exception.
        ProcessExitedException: a process failed in another way.
    """
    context = importlib.import_module("multiprocessing").get_context(start_method)
    processes, receivers = [], []
    for i in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, sender), daemon=daemon)
        process.start()
        sender.close()  # only the child holds it then, so that its end closes the pipe
        processes.append(process)
        receivers.append(receiver)
    started_processes = ProcessContext(processes, receivers)
    if not join:
        return started_processes
    while not started_processes.join():
        pass
    return None


spawn = start_processes
