"""Files are written atomically, whatever interrupts the writer, and no temporary files are left behind."""

from __future__ import annotations

import errno
import os
import platform
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tinytorch import _atomic
from tinytorch._atomic import replacing

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX permissions, links and signals")

Patch, Make = pytest.MonkeyPatch, Callable[[str, float], Path]


@pytest.fixture(params=["with locks", "without locks"])
def way(request: pytest.FixtureRequest, monkeypatch: Patch) -> str:
    """Remove the locks of the system, or leave them."""
    if request.param == "without locks":
        monkeypatch.setattr(_atomic, "fcntl", None)
    name: str = request.param
    return name


def write(path: Any, content: bytes = b"new") -> None:
    with replacing(path) as file:
        file.write(content)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that is writable by every user."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name)


@contextmanager
def no_privileges() -> Iterator[None]:
    """Run as a user who is subject to permissions, not as root."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.parametrize("known", [False, True])
def test_a_file_is_there_when_it_is_whole(tmp_path: Path, way: str, known: bool) -> None:
    path = tmp_path / "a"
    if known:
        path.write_bytes(b"old and long")
    with replacing(path) as file:
        file.write(b"half")
        file.flush()
        assert path.read_bytes() == b"old and long" if known else not path.exists()
        file.write(b" and half")
    assert path.read_bytes() == b"half and half" and os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), MemoryError()])
def test_a_block_that_fails_changes_nothing(tmp_path: Path, way: str, known: bool, error: BaseException) -> None:
    path = tmp_path / "a"
    if known:
        path.write_bytes(b"old")
    with pytest.raises(type(error)), replacing(path) as file:
        file.write(b"half")
        raise error
    assert os.listdir(tmp_path) == (["a"] if known else [])
    assert not known or path.read_bytes() == b"old"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_interrupt_at_the_end_changes_nothing(tmp_path: Path, way: str, step: str, monkeypatch: Patch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(path)
    assert os.listdir(tmp_path) == ["a"] and path.read_bytes() == b"old"


def interrupt(*args: Any, **options: Any) -> None:
    raise KeyboardInterrupt


def test_the_bytes_reach_the_disk_before_the_name(tmp_path: Path, way: str, monkeypatch: Patch) -> None:
    calls: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)

        def spy(*args: Any, name: str = name, real: Any = real, **options: Any) -> Any:
            calls.append(name)
            return real(*args, **options)

        monkeypatch.setattr(os, name, spy)
    last = ["fsync"] if hasattr(os, "O_DIRECTORY") else []  # the directory
    for _ in range(2):
        calls.clear()
        write(tmp_path / "b")
        assert calls == ["fsync", "replace", *last]


@posix
def test_permissions_are_those_of_a_new_file_or_the_old_one(tmp_path: Path, way: str) -> None:
    path = tmp_path / "a"
    mask = os.umask(0o027)
    try:
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        os.chmod(path, 0o606)
        write(path, b"more")
        assert stat.S_IMODE(path.stat().st_mode) == 0o606 and path.read_bytes() == b"more"
    finally:
        os.umask(mask)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives away")
def test_the_owner_stays(tmp_path: Path, way: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.chown(path, 65533, 65532)
    write(path)
    assert path.read_bytes() == b"new" and (path.stat().st_uid, path.stat().st_gid) == (65533, 65532)


@posix
def test_what_may_not_be_written_is_not_replaced(folder: Path, way: str) -> None:
    path = folder / "a"
    path.write_bytes(b"old")
    os.chmod(path, 0o444)
    with no_privileges(), pytest.raises(PermissionError):
        write(path)
    assert path.read_bytes() == b"old" and os.listdir(folder) == ["a"]


def fixed(folder: Path, kind: str, monkeypatch: Patch) -> Path:
    """Return a file that can be written, but not replaced."""
    inner = folder / "inner"
    inner.mkdir()
    path = inner / "a"
    path.write_bytes(b"the old bytes")
    path.chmod(0o666)
    if kind == "the directory may not be written":
        inner.chmod(0o555)
    elif kind == "sticky":
        inner.chmod(0o1777)
    elif kind == "mounted":
        inner.chmod(0o777)

        def busy(*args: Any) -> None:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

        monkeypatch.setattr(os, "replace", busy)
    return path


KINDS = ["the directory may not be written", "sticky", "mounted"]


@posix
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", [b"short", b"longer than the old bytes"])
def test_what_cannot_be_replaced_is_overwritten(
    folder: Path, way: str, kind: str, content: bytes, monkeypatch: Patch
) -> None:
    path = fixed(folder, kind, monkeypatch)
    if kind == "sticky" and os.geteuid() != 0:
        pytest.skip("a file of another user is needed")
    number = path.stat().st_ino
    with no_privileges():
        write(path, content)
    assert path.read_bytes() == content and path.stat().st_ino == number
    assert os.listdir(path.parent) == ["a"]
    with no_privileges(), pytest.raises(KeyError), replacing(path) as file:
        file.write(b"half")
        raise KeyError
    assert path.read_bytes() == content and os.listdir(path.parent) == ["a"]


@posix
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_overwriting_that_fails_puts_the_old_bytes_back(
    folder: Path, kind: str, error: BaseException, monkeypatch: Patch
) -> None:
    path = fixed(folder, kind, monkeypatch)
    if kind == "sticky" and os.geteuid() != 0:
        pytest.skip("a file of another user is needed")
    real, calls = _atomic._copy, []

    def half(source: Any, file: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            file.write(b"only half of the new bytes")
            raise error
        real(source, file)

    monkeypatch.setattr(_atomic, "_copy", half)
    with no_privileges(), pytest.raises(type(error)):
        write(path, b"x" * 100)
    assert len(calls) == 2
    assert path.read_bytes() == b"the old bytes" and os.listdir(path.parent) == ["a"]


@posix
def test_a_new_file_where_none_may_be_made(folder: Path, way: str) -> None:
    inner = folder / "inner"
    inner.mkdir()
    inner.chmod(0o555)
    with no_privileges(), pytest.raises(PermissionError):
        write(inner / "a")
    assert os.listdir(inner) == []
    inner.chmod(0o333)  # it can neither be listed nor synced
    with no_privileges():
        write(inner / "a")
        write(inner / "a", b"newer")
    inner.chmod(0o755)
    assert os.listdir(inner) == ["a"] and (inner / "a").read_bytes() == b"newer"


@posix
@pytest.mark.parametrize("kind", ["replaced", *KINDS])
@pytest.mark.parametrize("old", [b"", b"short", b"o" * 50_000, b"o" * 200_000])
def test_a_full_disk(folder: Path, way: str, kind: str, old: bytes, monkeypatch: Patch) -> None:
    """A limit on the file size fails in the middle of a write, as a full disk does."""
    import resource

    if kind == "sticky" and os.geteuid() != 0:
        pytest.skip("a file of another user is needed")
    path = fixed(folder, kind, monkeypatch)
    path.write_bytes(old)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with no_privileges(), pytest.raises(OSError, match="File too large"):
            write(path, b"n" * 300_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == old and os.listdir(path.parent) == ["a"]


@posix
def test_links_stay_links(tmp_path: Path, way: str, monkeypatch: Patch) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "link").symlink_to("../a")
    (tmp_path / "to a link").symlink_to(tmp_path / "inner" / "link")
    for content in (b"dangling until now", b"replaced"):
        write(tmp_path / "to a link", content)
        assert (tmp_path / "a").read_bytes() == content and not (tmp_path / "a").is_symlink()
    assert (tmp_path / "to a link").is_symlink() and (tmp_path / "inner" / "link").is_symlink()
    monkeypatch.chdir(tmp_path / "inner")
    write("link", b"relative")
    assert (tmp_path / "a").read_bytes() == b"relative"
    assert sorted(os.listdir(tmp_path)) == ["a", "inner", "to a link"]
    (tmp_path / "nowhere").symlink_to("missing/a")
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "nowhere")
    (tmp_path / "round").symlink_to("round")
    with pytest.raises(OSError, match=r"[Tt]oo many levels"):
        write(tmp_path / "round")


@posix
def test_devices_and_pipes_are_written_to(tmp_path: Path) -> None:
    write(os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write(pipe, b"through a pipe")
    reader.join()
    assert got == [b"through a pipe"] and stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match="No space"):
            write("/dev/full")


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="there is no /dev/stdout")
def test_standard_output(tmp_path: Path) -> None:
    program = "from tinytorch._atomic import replacing\nwith replacing('/dev/stdout') as file: file.write(b'bytes')"
    assert run(program) == b"bytes"  # a pipe
    with open(tmp_path / "out", "wb") as out:
        run(program, stdout=out)
    assert (tmp_path / "out").read_bytes() == b"bytes" and os.listdir(tmp_path) == ["out"]
    with open(tmp_path / "out", "w+b") as out:
        os.unlink(tmp_path / "out")  # the file has no path any more
        run(program, stdout=out)
        assert out.read() == b"bytes" and os.listdir(tmp_path) == []


def test_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        write(tmp_path)
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "missing" / "a")


def run(program: str, *arguments: str, code: int = 0, **options: Any) -> bytes:
    options.setdefault("stdout", subprocess.PIPE)
    made = subprocess.run(
        [sys.executable, "-c", program, *arguments], stderr=subprocess.PIPE, timeout=100,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}, **options,
    )  # fmt: skip
    assert made.returncode == code, made.stderr.decode()
    return made.stdout or b""


#: Is killed in `_atomic.replacing(argv[1])`: in the block, or at its end.
DIES = """
import os, signal, sys
from tinytorch._atomic import replacing
def die(*args): os.kill(os.getpid(), signal.SIGKILL)
if "at the end" in sys.argv: os.replace = die
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    if "in the block" in sys.argv: die()
"""


@posix
@pytest.mark.parametrize("moment", ["in the block", "at the end"])
def test_what_a_killed_writer_leaves_the_next_removes(tmp_path: Path, moment: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    run(DIES, str(path), moment, code=-signal.SIGKILL)
    assert path.read_bytes() == b"old"
    left = [name for name in os.listdir(tmp_path) if name != "a"]
    assert len(left) == 1 and left[0].startswith(".tinytorch-")
    write(tmp_path / "another")
    assert sorted(os.listdir(tmp_path)) == ["a", "another"] and path.read_bytes() == b"old"


KILLS = """
import os, random, signal, sys, time
import tinytorch as torch
path, x = sys.argv[1], torch.zeros(500_000)
folder = os.path.dirname(path)
torch.save([0, x], path)
start = time.perf_counter()
torch.save([0, x], path)
span = time.perf_counter() - start
random.seed(3)
for n in range(1, 11):
    ours, its = os.pipe()
    process = os.fork()
    if not process:
        x.fill_(n)
        os.write(its, b".")
        torch.save([n, x], path)
        os._exit(0)
    os.read(ours, 1)
    time.sleep(span * random.random())
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    m, found = torch.load(path)
    assert m in (0, n) and (found == m).all(), "broken"
    torch.save([0, x.zero_()], path)
    assert os.listdir(folder) == ["a.pt"], "left over"
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_kills_at_random_moments_of_a_save(tmp_path: Path) -> None:
    run(KILLS, str(tmp_path / "a.pt"))


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(machine: str, age: float) -> Path:
        path = tmp_path / f".tinytorch-{machine}-0123.part"
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)
        return path

    return made


def test_only_what_is_left_over_is_removed(tmp_path: Path, make: Make, way: str, monkeypatch: Patch) -> None:
    """On a network file system, and without locks, a file that was written recently may be in use."""
    monkeypatch.setattr(platform, "node", lambda: "here.example")
    own, old = make("hereexample", 1), make("elsewhere", 7200)
    recent = make("elsewhere2", 60)
    others = [tmp_path / name for name in (".tinytorch-notes", "a.part", ".tinytorch")]
    for other in others:
        other.write_bytes(b"the user's")
    write(tmp_path / "a")
    assert own.exists() == (way == "without locks") and recent.exists() and not old.exists()
    assert all(other.exists() for other in others)


@pytest.mark.skipif(_atomic.fcntl is None, reason="there are no locks")
def test_what_is_locked_or_no_file_stays(tmp_path: Path, make: Make, monkeypatch: Patch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "here")
    locked, link, pipe = make("here", 7200), *(tmp_path / f".tinytorch-here-{name}.part" for name in ("link", "folder"))
    (tmp_path / "precious").write_bytes(b"")
    link.symlink_to("precious")
    pipe.mkdir()
    with open(locked, "r+b") as file:
        assert _atomic._lock(file)
        write(tmp_path / "a")
        assert locked.exists()
    write(tmp_path / "a")
    assert not locked.exists() and (tmp_path / "precious").exists()


@pytest.mark.skipif(_atomic.fcntl is None, reason="there are no locks")
def test_a_disk_without_locks(tmp_path: Path, make: Make, monkeypatch: Patch) -> None:
    def unknown(*args: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(_atomic.fcntl, "flock", unknown)
    left = make("elsewhere", 7200)
    write(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"new" and left.exists()


def test_a_file_that_was_taken_for_left_over_is_made_anew(tmp_path: Path, monkeypatch: Patch) -> None:
    """Another process may remove the file between its creation and its locking."""
    real, removed = _atomic._lock, []

    def late(file: Any, wait: bool = False) -> bool:
        if wait and len(removed) < 3:
            removed.append(file.name)
            os.unlink(file.name)
        return real(file, wait)

    if os.name != "nt":
        monkeypatch.setattr(_atomic, "_lock", late)
    write(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"new" and os.listdir(tmp_path) == ["a"]
    assert len(removed) == (3 if os.name != "nt" else 0)


def test_blocks_inside_each_other(tmp_path: Path, way: str) -> None:
    with replacing(tmp_path / "a") as one:
        one.write(b"one")
        with replacing(tmp_path / "a") as two, replacing(tmp_path / "b") as three:
            two.write(b"two")
            three.write(b"three")
        assert (tmp_path / "a").read_bytes() == b"two"
    assert (tmp_path / "a").read_bytes() == b"one" and (tmp_path / "b").read_bytes() == b"three"
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


#: Writes repeatedly: a thousand copies of a letter.
OFTEN = """
import os, sys
from tinytorch import _atomic
if "overwritten" in sys.argv:
    def refuse(*args, **options): raise PermissionError
    os.replace = refuse
for _ in range(40):
    with _atomic.replacing(sys.argv[1]) as file:
        for _ in range(10):
            file.write(sys.argv[2].encode() * 100)
            file.flush()
"""


@posix
@pytest.mark.parametrize("how", ["replaced", "overwritten"])
def test_two_processes_write_one_file(tmp_path: Path, how: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"o" * 1000)
    threads = [threading.Thread(target=run, args=(OFTEN, str(path), letter, how)) for letter in "xy"]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if how != "overwritten":  # overwriting is not atomic
            found = path.read_bytes()
            assert len(found) == 1000 and len(set(found)) == 1
    for thread in threads:
        thread.join()
    found = path.read_bytes()
    assert len(found) == 1000 and len(set(found)) == 1 and found[:1] in b"xyz"
    assert os.listdir(tmp_path) == ["a"]


def test_two_threads_write_one_file(tmp_path: Path, way: str) -> None:
    path, failed = tmp_path / "a", []

    def often(letter: bytes) -> None:
        try:
            for _ in range(30):
                write(path, letter * 1000)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=often, args=(letter,)) for letter in (b"x", b"y", b"z")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and os.listdir(tmp_path) == ["a"]
    assert len(path.read_bytes()) == 1000 and len(set(path.read_bytes())) == 1
