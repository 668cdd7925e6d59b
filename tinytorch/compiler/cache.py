"""Code that is kept between processes, in the folder that the variable TINYTORCH_COMPILE_CACHE names.

Two thirds of the time of a first call are spent on Python's code: reading the source of each function, checking it,
rewriting and compiling it, and compiling the programs and their guards. The code of each is kept in a file of its own,
whose name is a digest of all that the code follows from: the text that is compiled; or the function's code and its
file's text, and the source of the compiler. What is read is therefore never stale. The call itself is recorded in each
process: its guards refer to that process's objects.

A file begins with a digest of what follows, so that a damaged one is not used, and appears only when it is complete.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import linecache
import logging
import marshal
import os
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tinytorch import _atomic

VARIABLE = "TINYTORCH_COMPILE_CACHE"
#: What distinguishes code from other code, besides its constants.
_FIELDS = (
    "filename qualname firstlineno flags argcount posonlyargcount kwonlyargcount names varnames freevars cellvars code "
    "linetable exceptiontable"
).split()
_PYTHON = importlib.util.MAGIC_NUMBER + sys.version.encode() + bytes([sys.flags.optimize])  # the format of code
_warned: set[str] = set()  # folders that cannot be written to


def compiled(text: str, file: str) -> types.CodeType:
    """Return the code of the text of a module, kept or compiled, with the given name of its file."""
    if not os.environ.get(VARIABLE):
        return compile(text, file, "exec")
    code = _kept((b"text", text.encode()), lambda: compile(text, "", "exec"))
    return _in_file(code, file)


def rewritten(code: types.CodeType, make: Callable[[], types.CodeType]) -> types.CodeType:
    """Return what `make` returns for the code of a function, and for the text of its file."""
    if not os.environ.get(VARIABLE):
        return make()
    return _kept((b"function", _digest_of_compiler(), *_parts(code), _text(code.co_filename)), make)


def _kept(parts: tuple[bytes, ...], make: Callable[[], types.CodeType]) -> types.CodeType:
    """Return the code that is kept for a key, or make and keep it."""
    digest = hashlib.sha256(_PYTHON)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    name = digest.hexdigest()
    folder = os.environ[VARIABLE]
    path = Path(folder, name[:2], name[2:])
    code = _read(path)
    if code is None:
        code = make()
        _write(path, code, folder)
    return code


def _read(path: Path) -> types.CodeType | None:
    """Return the code in a file; None if there is none, or the file is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    size = hashlib.sha256().digest_size
    if content[:size] != hashlib.sha256(content[size:]).digest():
        return None
    code = marshal.loads(content[size:])
    return code if isinstance(code, types.CodeType) else None


def _write(path: Path, code: types.CodeType, folder: str) -> None:
    """Write code to a file, and warn once of a folder that cannot be written to."""
    content = marshal.dumps(code)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _atomic.replacing(path) as file:
            file.write(hashlib.sha256(content).digest() + content)
    except OSError as error:
        if folder not in _warned:
            _warned.add(folder)
            logging.getLogger(__name__).warning("torch.compile: nothing is kept in %s: %s", folder, error)


@functools.cache
def _digest_of_compiler() -> bytes:
    """Return a digest of the source of the modules that rewrite functions."""
    digest = hashlib.sha256()
    for name in ("sources.py", "rewriting.py"):
        digest.update(Path(__file__).with_name(name).read_bytes())
    return digest.digest()


def _parts(code: types.CodeType) -> Iterator[bytes]:
    """Yield all that distinguishes code from other code."""
    yield repr([getattr(code, f"co_{name}") for name in _FIELDS]).encode()
    for constant in code.co_consts:
        yield from _parts(constant) if isinstance(constant, types.CodeType) else [_shown(constant).encode()]


def _shown(x: Any) -> str:
    """Return a constant as text; the order of a set's elements differs from process to process."""
    if isinstance(x, frozenset):
        return f"frozenset({sorted(map(_shown, x))})"
    return f"({', '.join(map(_shown, x))})" if isinstance(x, tuple) else repr(x)


@functools.lru_cache(256)
def _of_file(file: str, size: int, changed: int) -> bytes:
    with suppress(OSError):
        return hashlib.sha256(Path(file).read_bytes().replace(b"\r\n", b"\n").rstrip(b"\n")).digest()
    return b""


def _text(file: str) -> bytes:
    """Return a digest of the text of a file as `linecache` has it, or will have it."""
    known: Any = linecache.cache.get(file)
    if known is not None and len(known) > 2:
        return hashlib.sha256("".join(known[2]).rstrip("\n").encode()).digest()
    with suppress(OSError):
        status = os.stat(file)
        return _of_file(file, status.st_size, status.st_mtime_ns)
    return hashlib.sha256("".join(linecache.getlines(file)).rstrip("\n").encode()).digest()


def _in_file(code: types.CodeType, file: str) -> types.CodeType:
    """Return code with another name of its file."""
    constants = tuple([_in_file(x, file) if isinstance(x, types.CodeType) else x for x in code.co_consts])
    return code.replace(co_filename=file, co_consts=constants)


__all__ = ["compiled", "rewritten"]
