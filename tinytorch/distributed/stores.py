"""Stores: small values by name that processes leave for each other, in memory, in a file, or at an address.

All are a table and a few operations on it, each of which happens as a whole; they differ in where the table is.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from tinytorch.distributed.work import DistNetworkError, DistStoreError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

Table = dict[str, str]  # values are bytes, as characters 0 … 255
_PAUSE = 0.005  # seconds between two looks


def _text(value: str | bytes) -> str:
    return (value.encode() if isinstance(value, str) else bytes(value)).decode("latin-1")


# What can be done with a table --------------------------------------------------------------------


def _set(table: Table, keys: list[str], values: list[str]) -> None:
    table.update(zip(keys, values, strict=True))


def _get(table: Table, keys: list[str]) -> list[str] | None:
    return [table[key] for key in keys] if all(key in table for key in keys) else None


def _add(table: Table, key: str, amount: int) -> int:
    total = int(table.get(key, "0")) + amount
    table[key] = str(total)
    return total


def _append(table: Table, key: str, value: str) -> None:
    table[key] = table.get(key, "") + value


def _compare_set(table: Table, key: str, expected: str, desired: str) -> str:
    if table.get(key, "") == expected:
        table[key] = desired
    return table.get(key, expected)


def _delete(table: Table, key: str) -> bool:
    return table.pop(key, None) is not None


_OPERATIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each for each in (_set, _get, _add, _append, _compare_set, _delete)
} | {"_keys": lambda table: list(table)}


# Stores -------------------------------------------------------------------------------------------


class Store:
    """The base of stores: values by name, seen by several processes or threads."""

    def __init__(self) -> None:
        self._timeout = timedelta(seconds=300)

    def _do(self, operation: str, *args: Any) -> Any:
        """Do one of the operations above as a whole."""
        raise NotImplementedError(f"{type(self).__name__} says not where its table is")

    def _key(self, key: str) -> str:
        return key

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Set a value."""
        self.multi_set([key], [value])

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several values."""
        self._do("_set", [self._key(key) for key in keys], [_text(value) for value in values])

    def get(self, key: str) -> bytes:
        """Return a value; wait until there is one.

        Raises:
            DistStoreError: there is none in time.
        """
        return self.multi_get([key])[0]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return several values; wait until they are there."""
        return self._await(keys, self.timeout)

    def _await(self, keys: Sequence[str], timeout: timedelta) -> list[bytes]:
        end = time.monotonic() + timeout.total_seconds()
        names = [self._key(key) for key in keys]
        while (found := self._do("_get", names)) is None:
            if time.monotonic() > end:
                milliseconds = round(timeout.total_seconds() * 1000)
                raise DistStoreError(f"wait timeout after {milliseconds}ms, keys: {', '.join(names)}")
            time.sleep(_PAUSE)
        return [value.encode("latin-1") for value in found]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all of these names have values.

        Raises:
            DistStoreError: they have not in time.
        """
        self._await(keys, self.timeout if timeout is None else timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all of these names have values."""
        return self._do("_get", [self._key(key) for key in keys]) is not None

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which is 0 in the beginning, and return it."""
        return int(self._do("_add", self._key(key), int(amount)))

    def append(self, key: str, value: str | bytes) -> None:
        """Append to a value, which is empty in the beginning."""
        self._do("_append", self._key(key), _text(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set a value if it is the expected one (empty if there is none); return what it is then."""
        found = self._do("_compare_set", self._key(key), _text(expected_value), _text(desired_value))
        return str(found).encode("latin-1")

    def delete_key(self, key: str) -> bool:
        """Take a value out; return whether there was one."""
        return bool(self._do("_delete", self._key(key)))

    def list_keys(self) -> list[str]:
        """Return the names that have values."""
        return list(self._do("_keys"))

    def num_keys(self) -> int:
        """Return how many names have values."""
        return len(self.list_keys())

    def has_extended_api(self) -> bool:
        """Return True: there are `append`, `multi_get` and `multi_set`."""
        return True


class HashStore(Store):
    """A store in the memory of this process.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> store.set("loss", "0.5")
        >>> store.get("loss"), store.add("steps", 3)
        (b'0.5', 3)
    """

    def __init__(self) -> None:
        super().__init__()
        self._table: Table = {}
        self._lock = threading.Lock()

    def _do(self, operation: str, *args: Any) -> Any:
        with self._lock:
            return _OPERATIONS[operation](self._table, *args)


class FileStore(Store):
    """A store in a file, which all processes can write.

    Args:
        file_name: the file; made if it is not there.
        world_size: accepted; the file stays when the processes end.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = os.fspath(file_name)

    def _do(self, operation: str, *args: Any) -> Any:
        if sys.platform == "win32":
            raise NotImplementedError("FileStore locks its file by flock, which Windows has not: use a TCPStore")
        import fcntl

        with open(self.path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
            file.seek(0)
            before = file.read()
            table = json.loads(before or "{}")
            result = _OPERATIONS[operation](table, *args)
            after = json.dumps(table).encode()
            if after != before:
                file.truncate(0)
                file.write(after)
        return result


class PrefixStore(Store):
    """Another store, whose names all begin with the same.

    Example:
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.PrefixStore("first", store).set("name", "value")
        >>> store.list_keys()
        ['first/name']
    """

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self.prefix, self.underlying_store = prefix, store

    def _key(self, key: str) -> str:
        return self.underlying_store._key(f"{self.prefix}/{key}")

    def _do(self, operation: str, *args: Any) -> Any:
        return self.underlying_store._do(operation, *args)

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait: as long as the other store's."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long both wait."""
        self.underlying_store.set_timeout(timeout)


class _Server(socketserver.ThreadingTCPServer):
    """Does for others, line by line, what they ask of a store."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, address: tuple[str, int]) -> None:
        self.store = HashStore()
        super().__init__(address, _Answers)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Answers(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        for line in self.rfile:
            operation, *args = json.loads(line)
            try:
                answer = {"is": self.server.store._do(operation, *args)}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            self.wfile.write(json.dumps(answer).encode() + b"\n")


def _close(connection: socket.socket, answers: Any, server: _Server | None) -> None:
    answers.close()
    connection.close()
    if server is not None:
        server.shutdown()
        server.server_close()


class TCPStore(Store):
    """A store in one process, the master, which answers the others at an address.

    Whoever can reach the address can read and write: it is for networks that are trusted.

    Args:
        host_name, port: the address; the master takes any free port for 0.
        world_size: how many processes come, this one too; None if that is not known.
        is_master: whether this process has the table.
        timeout: how long to wait: for the master, for the others, and later for values.
        wait_for_workers: the master waits until all have come.
        multi_tenant, master_listen_fd, use_libuv: accepted; they have no meaning here.

    Raises:
        DistNetworkError: the address is taken; the master does not answer; not all have come.

    Example:
        >>> from datetime import timedelta
        >>> store = torch.distributed.TCPStore("127.0.0.1", 0, 1, True, timedelta(seconds=30))
        >>> store.set("first_key", "first_value")
        >>> store.get("first_key")
        b'first_value'
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self._timeout, self.host, self.port = timeout, host_name, int(port)
        end = time.monotonic() + timeout.total_seconds()
        if is_master:
            try:
                self._server = _Server((host_name, self.port))
            except OSError as error:
                raise DistNetworkError(
                    f"The server socket has failed to listen on {host_name}:{port}: {error.strerror}"
                ) from error
            self.port = self._server.server_address[1]
        while True:
            try:
                self._socket = socket.create_connection((host_name, self.port), max(0.1, end - time.monotonic()))
                break
            except OSError as error:
                if time.monotonic() > end:
                    raise DistNetworkError(
                        f"The client socket has timed out while trying to connect to ({host_name}, {port}): {error}"
                    ) from error
                time.sleep(_PAUSE)
        self._socket.settimeout(None)
        self._answers = self._socket.makefile("rb")
        weakref.finalize(self, _close, self._socket, self._answers, getattr(self, "_server", None))
        self._lock = threading.Lock()
        here = self.add("init/", 1)
        while is_master and wait_for_workers and world_size and here < world_size:
            if time.monotonic() > end:
                raise DistNetworkError(f"Timed out waiting for clients: {here}/{world_size} clients joined")
            time.sleep(_PAUSE)
            here = self.add("init/", 0)

    def _do(self, operation: str, *args: Any) -> Any:
        try:
            with self._lock:
                self._socket.sendall(json.dumps([operation, *args]).encode() + b"\n")
                line = self._answers.readline()
        except OSError as error:
            raise DistNetworkError(f"the store at {self.host}:{self.port} has gone: {error}") from error
        if not line:
            raise DistNetworkError(f"the store at {self.host}:{self.port} has gone")
        answer = json.loads(line)
        if "error" in answer:
            raise DistStoreError(answer["error"])
        return answer["is"]
