"""Key-value stores by which processes share small values: in memory, in a file, or over TCP.

A store is a table and a few atomic operations on it; the kinds of stores differ in where the table is.
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

Table = dict[str, str]  # values are bytes, decoded as Latin-1
_PAUSE = 0.005  # seconds between two polls


def _text(value: str | bytes) -> str:
    return (value.encode() if isinstance(value, str) else bytes(value)).decode("latin-1")


# Operations on a table ----------------------------------------------------------------------------


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
    operation.__name__: operation for operation in (_set, _get, _add, _append, _compare_set, _delete)
} | {"_keys": lambda table: list(table)}


# Stores -------------------------------------------------------------------------------------------


class Store:
    """The base class of stores: values by key, shared by several processes or threads."""

    def __init__(self) -> None:
        self._timeout = timedelta(seconds=300)

    def _do(self, operation: str, *args: Any) -> Any:
        """Execute one of the operations above atomically."""
        raise NotImplementedError(f"{type(self).__name__} implements no operations")

    def _key(self, key: str) -> str:
        return key

    @property
    def timeout(self) -> timedelta:
        """The timeout of `get` and `wait`."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the timeout of `get` and `wait`."""
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Set a value."""
        self.multi_set([key], [value])

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several values."""
        self._do("_set", [self._key(key) for key in keys], [_text(value) for value in values])

    def get(self, key: str) -> bytes:
        """Return a value; wait until it is set.

        Raises:
            DistStoreError: the value was not set in time.
        """
        return self.multi_get([key])[0]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Return several values; wait until all are set."""
        return self._await(keys, self.timeout)

    def _await(self, keys: Sequence[str], timeout: timedelta) -> list[bytes]:
        end = time.monotonic() + timeout.total_seconds()
        names = [self._key(key) for key in keys]
        while (values := self._do("_get", names)) is None:
            if time.monotonic() > end:
                milliseconds = round(timeout.total_seconds() * 1000)
                raise DistStoreError(f"wait timeout after {milliseconds}ms, keys: {', '.join(names)}")
            time.sleep(_PAUSE)
        return [value.encode("latin-1") for value in values]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until the values of all keys are set.

        Raises:
            DistStoreError: a value was not set in time.
        """
        self._await(keys, self.timeout if timeout is None else timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether the values of all keys are set."""
        return self._do("_get", [self._key(key) for key in keys]) is not None

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which is 0 initially, and return the sum."""
        return int(self._do("_add", self._key(key), int(amount)))

    def append(self, key: str, value: str | bytes) -> None:
        """Append to a value, which is empty initially."""
        self._do("_append", self._key(key), _text(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Replace a value if it equals the expected one (empty for no value); return the resulting value."""
        value = self._do("_compare_set", self._key(key), _text(expected_value), _text(desired_value))
        return str(value).encode("latin-1")

    def delete_key(self, key: str) -> bool:
        """Delete a value; return whether it was set."""
        return bool(self._do("_delete", self._key(key)))

    def list_keys(self) -> list[str]:
        """Return the keys."""
        return list(self._do("_keys"))

    def num_keys(self) -> int:
        """Return the number of keys."""
        return len(self.list_keys())

    def has_extended_api(self) -> bool:
        """Return True: the store has `append`, `multi_get` and `multi_set`."""
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
    """A store in a file that all processes can write."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = os.fspath(file_name)

    def _do(self, operation: str, *args: Any) -> Any:
        if sys.platform == "win32":
            raise NotImplementedError("FileStore locks its file by flock, which Windows does not have: use a TCPStore")
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
    """A view of another store whose keys all start with a prefix.

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
        """The timeout of the underlying store."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the timeout of the underlying store."""
        self.underlying_store.set_timeout(timeout)


class _Server(socketserver.ThreadingTCPServer):
    """Executes the operations that clients send, one JSON list per line."""

    allow_reuse_address = daemon_threads = True

    def __init__(self, address: tuple[str, int]) -> None:
        self.store = HashStore()
        super().__init__(address, _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        for line in self.rfile:
            operation, *args = json.loads(line)
            try:
                answer = {"result": self.server.store._do(operation, *args)}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            self.wfile.write(json.dumps(answer).encode() + b"\n")


def _close(connection: socket.socket, responses: Any, server: _Server | None) -> None:
    responses.close()
    connection.close()
    if server is not None:
        server.shutdown()
        server.server_close()


class TCPStore(Store):
    """A store in one process, the master, to which the others connect by TCP.

    Everybody who can reach the address can read and write: use it in trusted networks only.

    For port 0 the master uses any free port. `multi_tenant`, `master_listen_fd` and `use_libuv` have no effect.

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
        self._responses = self._socket.makefile("rb")
        weakref.finalize(self, _close, self._socket, self._responses, getattr(self, "_server", None))
        self._lock = threading.Lock()
        joined = self.add("init/", 1)
        while is_master and wait_for_workers and world_size and joined < world_size:
            if time.monotonic() > end:
                raise DistNetworkError(f"Timed out waiting for clients: {joined}/{world_size} clients joined")
            time.sleep(_PAUSE)
            joined = self.add("init/", 0)

    def _do(self, operation: str, *args: Any) -> Any:
        try:
            with self._lock:
                self._socket.sendall(json.dumps([operation, *args]).encode() + b"\n")
                line = self._responses.readline()
        except OSError as error:
            raise DistNetworkError(f"the store at {self.host}:{self.port} has gone: {error}") from error
        if not line:
            raise DistNetworkError(f"the store at {self.host}:{self.port} has gone")
        answer = json.loads(line)
        if "error" in answer:
            raise DistStoreError(answer["error"])
        return answer["result"]
