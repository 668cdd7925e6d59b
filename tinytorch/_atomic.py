"""`replacing`: a file that is written whole or not at all, with nothing left over.

Where the system has files without a name (`O_TMPFILE`, on Linux), the bytes go into such a one, which vanishes with the
process that writes it; it gets its name when it is whole. Elsewhere they go into a file beside the target, with a name
of its own and a lock on it, which the system takes away when the process ends, however it ends. Whoever writes next
into that directory removes the files with such names that nobody has locked.
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

__all__ = ["replacing"]

_PREFIX, _SUFFIX = ".tinytorch-", ".part"
_LONG = 3600.0  # seconds without a write after which a file is left over, where locks do not tell
_CHUNK = 1 << 20  # bytes copied at a time


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Give a file to write into, whose bytes are those of the file at `path` once the block has ended well.

    If the block raises, or the process is killed, `path` is as it was before. A link stays a link, to the new file; a
    file's permissions stay. A device or a pipe is written to as it is.

    A file that may be written but not replaced (its directory may not be changed, or it is mounted) is overwritten when
    the block has ended. If that fails, its old bytes are put back, which a process that is killed then cannot do.

    Raises:
        OSError: the file cannot be written, or there is no space for it.

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
    known = None
    with suppress(FileNotFoundError):
        known = os.stat(path)
    target = _followed(path)
    if known is not None:
        if stat.S_ISDIR(known.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        # A link in /proc may lead to a file that has no path any more.
        if not stat.S_ISREG(known.st_mode) or not os.path.exists(target):
            with open(path, "wb") as file:
                yield file
            return
        os.close(os.open(target, os.O_WRONLY))  # what may not be written may not be replaced
    folder = os.path.dirname(target) or os.curdir
    _sweep(folder)
    opened, part = _temporary(folder, known is None)
    try:
        with opened as file:
            if known is not None:
                _take_permissions(file, known)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if part is None:
                _overwrite(target, file)
            else:
                _give_name(file, part, target, known is None)
    finally:
        if part is not None:
            with suppress(OSError):
                os.unlink(part)
    _sync(folder)


def _followed(path: str) -> str:
    """Return where a link leads, or would lead; `path` if it is none."""
    for _ in range(40):  # Linux does not follow more, either
        if not os.path.islink(path):
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return path


# The temporary file -------------------------------------------------------------------------------


def _temporary(folder: str, new: bool) -> tuple[IO[bytes], str | None]:
    """Return an empty file, locked, and the name in `folder` that it has or can get.

    The name is None if nothing can be made there; unless the target is `new`, that is no error.
    """
    while True:
        part = os.path.join(folder, f"{_own_prefix()}{os.urandom(8).hex()}{_SUFFIX}")
        file = _unnamed(folder, part)
        if file is not None:
            return file, part
        try:
            file = open(part, "x+b")  # noqa: SIM115 (it is handed on)
        except OSError:
            if new:
                raise
            import tempfile  # loaded by a program that needs it, not at import

            return tempfile.TemporaryFile(), None
        _lock(file, wait=True)
        if os.path.exists(part):
            return file, part
        file.close()  # another process took it for left over before it was locked


_can_be_named: bool | None = None  # whether a file without a name can get one: unknown until it is tried


def _unnamed(folder: str, part: str) -> IO[bytes] | None:
    """Return a new file without a name, locked, or None where there are none, or none that could get a name."""
    global _can_be_named
    if not hasattr(os, "O_TMPFILE") or _can_be_named is False:
        return None
    try:
        file = open(os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666), "w+b")  # noqa: SIM115
    except OSError:  # not on this disk
        return None
    _lock(file, wait=True)
    if _can_be_named:
        return file
    with file:  # a first one, to try: without /proc, or where links are forbidden (Android), it cannot
        try:
            _link(file, part)
            os.unlink(part)
        except OSError:
            _can_be_named = False
        else:
            _can_be_named = True
    return _unnamed(folder, part)


def _lock(file: Any, wait: bool = False) -> bool:
    """Lock a file for as long as it is open; return whether it is locked: not if another has, or locks are unknown."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _own_prefix() -> str:
    """Return what the names begin with that are made on this machine."""
    return f"{_PREFIX}{''.join(filter(str.isalnum, platform.node()))[:64]}-"


def _sweep(folder: str) -> None:
    """Remove what writers that were killed have left in `folder`."""
    with suppress(OSError):  # it may be one that cannot be listed
        for name in os.listdir(folder):
            if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
                with suppress(OSError):
                    _remove_left_over(os.path.join(folder, name), name.startswith(_own_prefix()))


def _remove_left_over(part: str, own: bool) -> None:
    # A lock may be unknown to other machines that write to the same disk.
    if (fcntl is None or not own) and time.time() - os.lstat(part).st_mtime < _LONG:
        return
    if fcntl is None:
        os.unlink(part)  # Windows refuses to while its writer lives
        return
    # Nor wait for a pipe, nor follow a link: neither is of our making.
    harmless = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    file = os.open(part, os.O_RDWR | harmless)
    try:
        if _lock(file):
            os.unlink(part)
    finally:
        os.close(file)


# What becomes of it -------------------------------------------------------------------------------


def _take_permissions(file: IO[bytes], known: os.stat_result) -> None:
    """Give a new file the permissions and, as far as that is allowed, the owner of the old one."""
    if not hasattr(os, "fchown"):  # Windows
        return
    with suppress(OSError):
        os.fchown(file.fileno(), -1, known.st_gid)
        os.fchown(file.fileno(), known.st_uid, -1)
    with suppress(OSError):
        os.chmod(file.fileno(), stat.S_IMODE(known.st_mode))


def _give_name(file: IO[bytes], part: str, target: str, new: bool) -> None:
    """Put the file in the place of the target; overwrite that if it cannot be replaced."""
    if fcntl is None:
        file.close()  # Windows renames no open file
    try:
        if not os.path.exists(part):  # it has no name yet
            if new:
                with suppress(FileExistsError):  # by now it is there
                    return _link(file, target)
            _link(file, part)  # a link cannot replace a file
        os.replace(part, target)
    except OSError:
        if new:
            raise
        with open(part, "rb") if file.closed else nullcontext(file) as source:
            _overwrite(target, source)


def _link(file: IO[bytes], name: str) -> None:
    # Given a descriptor, which plays no part here, Python calls `linkat`, which can follow the link in /proc.
    number = file.fileno()
    os.link(f"/proc/self/fd/{number}", name, src_dir_fd=number, follow_symlinks=True)


def _overwrite(target: str, source: IO[bytes]) -> None:
    """Write what `source` holds over a file; if that fails, put back what it held."""
    with open(target, "r+b", buffering=0) as file:
        _lock(file, wait=True)  # two that overwrite it take turns
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
    """Let a new name reach the disk, where a directory can be synced."""
    if hasattr(os, "O_DIRECTORY"):
        with suppress(OSError):  # the file is there; that it outlives a power cut is as may be
            directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
