"""Taking steps of a program again: dormant copies of the process, which go on from the past with something changed.

`os.fork` copies the process, its memory shared until it is written to: the state of the script, of all random number
generators and of the iterators over data. `Replay.keep` forks a copy that waits. When a counterfactual is wanted, the
copy forks another one, which returns from `keep` into the program and takes the same steps, bit for bit, except for
what a patch changes; it sends back what it saw and ends. Copies print nothing, write no files and use no network: one
that would ends there, with the steps that it has taken.
"""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import pickle
import random
import select
import shutil
import signal
import stat
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["Copy", "Order", "Replay"]


#: How many copies take steps at the same time.
_AT_ONCE = 2 if (os.cpu_count() or 1) > 1 else 1


class Order:
    """What a copy is to do: `steps` backward passes with a patch, and where to write what it saw."""

    def __init__(self, patch: Any, steps: int, file: str, seconds: float) -> None:
        self.patch, self.steps, self.file, self.seconds = patch, steps, file, seconds


class Copy:
    """A dormant copy of the process.

    Attributes:
        pid: its process id.
        orders, answers: the pipes to it and from it.
        backwards: the number of backward passes before the point of time from which it goes on.
    """

    def __init__(self, pid: int, orders: int, answers: int, backwards: int) -> None:
        self.pid, self.orders, self.answers, self.backwards = pid, orders, answers, backwards


class Replay:
    """The dormant copies of this process, by the names of their points of time.

    Args:
        become: is called with the `Order` in a copy that takes steps, before it returns into the program.
    """

    def __init__(self, become: Callable[[Order], None]) -> None:
        self.become = become
        self.copies: dict[str, Copy] = {}
        self.order: Order | None = None  # in a copy that takes steps
        self.made = 0  # copies so far
        self.spent = 0.0  # seconds that the calls of `os.fork` took
        self.last = 0.0  # when the last copy was made
        self.taken = mmap.mmap(-1, 8)  # how many steps the copy has taken that has told last: all share it
        self._home = os.getpid()
        self._folder = ""
        self._sending = False

    def hindrance(self) -> str:
        """Return why the process cannot be copied; "" if it can."""
        if sys.platform == "win32" or not hasattr(os, "fork"):
            return "this system cannot copy a process (no fork)"
        distributed = sys.modules.get("tinytorch.distributed")
        if distributed is not None and distributed.is_initialized():
            return "several processes communicate"
        ours = [each for each in threading.enumerate() if each.name == "tinytorch" or type(each).__name__ == "TMonitor"]
        if threading.active_count() > 1 + len(ours):
            return "the program has threads of its own, which a copy of the process lacks"
        if threading.current_thread() is not threading.main_thread():
            return "the program trains in a thread"
        return ""

    def keep(self, name: str, backwards: int) -> None:
        """Keep a copy of the process as it is now, under a name; an earlier one of that name ends.

        In a copy that takes steps from here, the function returns, too, after `become`.
        """
        if self.order is not None or os.getpid() != self._home or self.hindrance():
            return
        if sys.platform == "win32":
            raise NotImplementedError("this system cannot copy a process")
        self.end(name)
        begin = time.perf_counter()
        numbers = random.getstate()  # a fork seeds `random` anew
        orders, tell = os.pipe()
        hear, answers = os.pipe()
        pid = os.fork()
        if not pid:
            random.setstate(numbers)
            self._sleep(orders, answers, (tell, hear))
            return
        os.close(orders)
        os.close(answers)
        self.copies[name] = Copy(pid, tell, hear, backwards)
        self.made += 1
        self.last = time.perf_counter()
        self.spent += self.last - begin

    def rename(self, name: str, new: str) -> None:
        """Give a copy another name; one that has that name ends."""
        self.end(new)
        if name in self.copies:
            self.copies[new] = self.copies.pop(name)

    def end(self, name: str) -> None:
        """End a copy."""
        copy = self.copies.pop(name, None)
        if copy is None or sys.platform == "win32":
            return
        os.close(copy.orders)
        os.close(copy.answers)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(copy.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            os.kill(copy.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(copy.pid, 0)

    def close(self) -> None:
        """End all copies."""
        if os.getpid() != self._home:
            return
        for name in list(self.copies):
            self.end(name)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""

    # In the first process ---------------------------------------------------------------------------

    def run(
        self, name: str, patches: list[Any], steps: int, seconds: float, tell: Callable[[int], None]
    ) -> list[dict[str, Any] | None]:
        """Return what copies saw that went on from a point of time, each with a patch; None for one that did not end.

        Args:
            name: the point of time.
            patches: what is changed in each.
            steps: how many backward passes they run.
            seconds: how long each may take.
            tell: called with the number of steps taken, now and then.
        """
        copy = self.copies.get(name)
        if copy is None:
            return [None for _ in patches]
        self._folder = self._folder or tempfile.mkdtemp(prefix="tinytorch-doctor-")
        orders = [
            Order(patch, steps, os.path.join(self._folder, f"{copy.pid}-{time.monotonic_ns()}-{k}"), seconds)
            for k, patch in enumerate(patches)
        ]
        message = pickle.dumps(orders)
        self.taken[:] = bytes(8)
        ready: list[int] = []
        until = time.monotonic() + seconds * len(orders) + 5
        with contextlib.suppress(OSError):
            os.write(copy.orders, struct.pack("<Q", len(message)))
            _write_all(copy.orders, message)
            while not ready and time.monotonic() < until:
                tell(struct.unpack("<Q", self.taken)[0])
                ready, _, _ = select.select([copy.answers], [], [], 0.2)
        if ready:
            os.read(copy.answers, 1)
        else:
            self.end(name)
        return [_load(order.file) for order in orders]

    def probe(self, function: Callable[[], Any], seconds: float = 10.0) -> Any:
        """Return `function()`, called in a copy of this process as it is now; None if it fails or takes too long."""
        if self.order is not None or os.getpid() != self._home or self.hindrance():
            return None
        if sys.platform == "win32":
            raise NotImplementedError("this system cannot copy a process")
        self._folder = self._folder or tempfile.mkdtemp(prefix="tinytorch-doctor-")
        file = os.path.join(self._folder, f"probe-{time.monotonic_ns()}")
        numbers = random.getstate()
        pid = os.fork()
        if not pid:
            try:
                random.setstate(numbers)
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                self.order = Order(None, 0, file, seconds)
                _apart()
                result = function()
                with open(file, "wb") as stream:
                    pickle.dump({"result": result}, stream)
            finally:
                os._exit(0)
        _wait(pid, seconds)
        answer = _load(file)
        return None if answer is None else answer["result"]

    # In a copy --------------------------------------------------------------------------------------

    def _sleep(self, orders: int, answers: int, others: tuple[int, ...]) -> None:
        """Wait for orders; return in a copy that takes steps."""
        if sys.platform == "win32":
            raise NotImplementedError("this system cannot copy a process")
        for each in (*others, *(fd for copy in self.copies.values() for fd in (copy.orders, copy.answers))):
            os.close(each)
        self.copies.clear()
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.disable()
        while True:
            head = _read(orders, 8)
            if head is None:
                os._exit(0)
            message = _read(orders, struct.unpack("<Q", head)[0])
            if message is None:
                os._exit(0)
            running: list[tuple[int, float]] = []
            for order in pickle.loads(message):
                if len(running) == _AT_ONCE:
                    _wait(*running.pop(0))
                numbers = random.getstate()
                pid = os.fork()
                if not pid:
                    random.setstate(numbers)
                    os.close(orders)
                    os.close(answers)
                    self._take(order)
                    return
                running.append((pid, order.seconds))
            for pid, seconds in running:
                _wait(pid, seconds)
            os.write(answers, b"1")

    def _take(self, order: Order) -> None:
        """Become a copy that takes steps."""
        gc.enable()
        self.order = order
        _apart()
        sys.addaudithook(self._audit)
        self.become(order)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        """End this copy before it changes anything outside of it."""
        if self._sending:
            return
        if event == "open":
            path, mode, flags = args
            writes = isinstance(mode, str) and set(mode) & set("wax+")
            if mode is None and isinstance(flags, int):
                writes = flags & (os.O_WRONLY | os.O_RDWR)  # type: ignore[assignment]
            if not writes or path == os.devnull or isinstance(path, int):
                return
        elif not event.startswith(("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink",
                                   "os.truncate", "os.kill", "os.system", "os.exec", "os.posix_spawn", "os.fork",
                                   "shutil.", "socket.connect", "socket.bind", "subprocess.", "sqlite3.connect",
                                   "ftplib.", "smtplib.", "urllib.Request")):  # fmt: skip
            return
        self.send(f"the program would {event} {args[0] if args else ''}")

    def send(self, ended: str = "") -> NoReturn:
        """Write what this copy saw, and end it."""
        self._sending = True
        try:
            assert self.order is not None
            result = self.order.patch.result
            result["ended"] = ended
            with open(self.order.file + ".part", "wb") as file:
                pickle.dump(result, file)
            os.rename(self.order.file + ".part", self.order.file)
        finally:
            os._exit(0)


def _write_all(fd: int, message: bytes) -> None:
    view = memoryview(message)
    while view:
        view = view[os.write(fd, view) :]


def _read(fd: int, size: int) -> bytes | None:
    """Return `size` bytes of a pipe, or None at its end."""
    parts = []
    while size:
        part = os.read(fd, size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _wait(pid: int, seconds: float) -> None:
    """Wait until a process has ended, which is killed after some seconds."""
    if sys.platform == "win32":
        raise NotImplementedError("this system cannot copy a process")
    limit, pause = time.monotonic() + seconds, 0.001
    while os.waitpid(pid, os.WNOHANG)[0] == 0:
        if time.monotonic() > limit:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def _load(file: str) -> dict[str, Any] | None:
    try:
        with open(file, "rb") as stream:
            result: dict[str, Any] = pickle.load(stream)
    except (OSError, EOFError, pickle.UnpicklingError):
        return None
    return result


def _apart() -> None:
    """Give this process files of its own: what it prints goes nowhere, and a file that it reads has its own place."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    try:
        opened = [int(name) for name in os.listdir(folder)]
    except OSError:
        opened = []
    for fd in opened:
        if fd <= 2 or fd == nowhere:
            continue
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                continue
            at = os.lseek(fd, 0, os.SEEK_CUR)
            if _only_read(fd):
                own = os.open(f"{folder}/{fd}", os.O_RDONLY)
                os.lseek(own, at, os.SEEK_SET)
            else:
                own = os.open(os.devnull, os.O_RDWR)
            os.dup2(own, fd)
            os.close(own)
        except OSError:
            continue
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    os.close(nowhere)


def _only_read(fd: int) -> bool:
    """Return whether a file was opened to be read alone."""
    if sys.platform == "win32":
        return False
    import fcntl  # (which Windows does not have)

    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
