"""`replacing`: atomic replacement of a file.

The bytes are written to a locked temporary file beside the target, which gets the target's name once it is complete.
The system releases the lock when the process ends for any reason, and the next writer to the directory removes
temporary files that are not locked.
"""

from __future__ import annotations

import errno
import io
import os
import platform
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import IO, Any

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["check_writable", "replacing"]

_PREFIX, _SUFFIX = ".tinytorch-", ".part"
_STALE_AFTER = 3600.0  # seconds since the last write after which a temporary file is stale, if locks do not tell
_CHUNK = 1 << 20  # bytes copied at a time


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Yield a temporary file that replaces the file at `path` when the block ends without an exception.

    If the block raises, or the process is killed, `path` is unchanged. A symbolic link is kept and its target replaced;
    permissions are kept. Devices and pipes are written to directly.

    A file that can be written but not replaced (in a directory without write permission, or a mount point) is
    overwritten at the end of the block. If that fails, its old bytes are restored, unless the process is killed.

    Raises:
        OSError: the file cannot be written, or there is not enough space.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "a")
        ...     with replacing(path) as file:
        ...         _ = file.write(b"some bytes")
        ...         print(os.path.exists(path))
        ...     print(os.listdir(folder), os.path.getsize(path))
        False
        ['a'] 10
    """
    path = os.fspath(path)
    existing = None
    with suppress(FileNotFoundError):
        existing = os.stat(path)
    target = _resolve_link(path)
    if existing is not None:
        if stat.S_ISDIR(existing.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        # A link in /proc may refer to a file that no longer has a path.
        if not stat.S_ISREG(existing.st_mode) or not os.path.exists(target):
            with open(path, "wb") as file:
                yield file
            return
        os.close(os.open(target, os.O_WRONLY))  # raises if writing is not permitted
    folder = os.path.dirname(target) or os.curdir
    _remove_stale_files(folder)
    opened, part = _open_temporary(folder, existing is None)
    try:
        with opened as file:
            if existing is not None:
                _copy_permissions(file, existing)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if part is None:
                _overwrite(target, file)
            else:
                _move(file, part, target, existing is None)
    finally:
        if part is not None:
            with suppress(OSError):
                os.unlink(part)
    _sync(folder)


def _resolve_link(path: str) -> str:
    """Return the target of a symbolic link, which need not exist, or `path` if it is not a link."""
    for _ in range(40):  # the limit of Linux
        if not os.path.islink(path):
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return path


# The temporary file -------------------------------------------------------------------------------


def _open_temporary(folder: str, new: bool) -> tuple[IO[bytes], str | None]:
    """Return an empty, locked file, and its path in `folder`.

    The path is None if no file can be created in `folder`, which is an error if the target is `new`.
    """
    while True:
        part = os.path.join(folder, f"{_machine_prefix()}{os.urandom(8).hex()}{_SUFFIX}")
        try:
            file = open(part, "x+b")  # noqa: SIM115 (returned to the caller)
        except OSError:
            if new:
                raise
            import tempfile  # imported lazily

            return tempfile.TemporaryFile(), None
        _lock(file, wait=True)
        if os.path.exists(part):
            return file, part
        file.close()  # another process removed it as stale before it was locked


def _lock(file: Any, wait: bool = False) -> bool:
    """Lock a file while it is open; return False if another process holds the lock, or locks are not supported."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _machine_prefix() -> str:
    """Return the prefix of the names of temporary files created on this machine."""
    return f"{_PREFIX}{''.join(filter(str.isalnum, platform.node()))[:64]}-"


def _remove_stale_files(folder: str) -> None:
    """Remove temporary files in `folder` that killed processes have left behind."""
    with suppress(OSError):  # the folder may not be readable
        for name in os.listdir(folder):
            if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
                with suppress(OSError):
                    _remove_if_stale(os.path.join(folder, name), name.startswith(_machine_prefix()))


def _remove_if_stale(part: str, own: bool) -> None:
    # Locks of other machines that write to the same disk may not be visible.
    if (fcntl is None or not own) and time.time() - os.lstat(part).st_mtime < _STALE_AFTER:
        return
    if fcntl is None:
        os.unlink(part)  # fails on Windows while the writer has it open
        return
    # Do not block on a pipe or follow a link, which this module does not create.
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    file = os.open(part, os.O_RDWR | flags)
    try:
        if _lock(file):
            os.unlink(part)
    finally:
        os.close(file)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise OSError now if a file could not be written later; leave no new file."""
    existed = os.path.exists(path)
    open(path, "ab").close()
    if not existed:
        os.remove(path)


# Replacement --------------------------------------------------------------------------------------


def _copy_permissions(file: IO[bytes], existing: os.stat_result) -> None:
    """Set the permissions and, if permitted, the owner of a new file to those of the old one."""
    if not hasattr(os, "fchown"):  # Windows
        return
    with suppress(OSError):
        os.fchown(file.fileno(), -1, existing.st_gid)
        os.fchown(file.fileno(), existing.st_uid, -1)
    with suppress(OSError):
        os.chmod(file.fileno(), stat.S_IMODE(existing.st_mode))


def _move(file: IO[bytes], part: str, target: str, new: bool) -> None:
    """Replace the target by the file, or overwrite it if it cannot be replaced."""
    if fcntl is None:
        file.close()  # Windows does not rename open files
    try:
        os.replace(part, target)
    except OSError:
        if new:
            raise
        with open(part, "rb") if file.closed else nullcontext(file) as source:
            _overwrite(target, source)


def _overwrite(target: str, source: IO[bytes]) -> None:
    """Overwrite a file with the contents of `source`; if that fails, restore its contents."""
    with open(target, "r+b", buffering=0) as file:
        _lock(file, wait=True)  # concurrent writers take turns
        before = io.BytesIO(file.read())
        try:
            _copy(source, file)
        except BaseException:
            _copy(before, file)
            raise


def _copy(source: IO[bytes], file: io.FileIO) -> None:
    source.seek(0)
    file.seek(0)
    while chunk := source.read(_CHUNK):
        view = memoryview(chunk)
        while view:
            view = view[file.write(view) :]
    file.truncate()
    os.fsync(file.fileno())


def _sync(folder: str) -> None:
    """Synchronize a directory entry to the disk, if the system supports it."""
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):  # the file is complete; only its durability after a power failure is at stake
            directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
