"""Who am I, how processes find each other, how a job ends.

A process is told its rank by what started it: `run.py`, a bare `mpiexec`, `srun`. Where nothing did (`mp.spawn`, plain
processes), it says its rank itself, and rank 0 starts MPICH's `mpiexec` for nothing but its server, by which the
processes' MPI libraries find each other; that is for one machine.

MPI_Finalize, and every operation of a group, waits for all ranks. So a rank that fails has to end the job.
"""

from __future__ import annotations

import atexit
import multiprocessing.process
import multiprocessing.util
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tinytorch.distributed.mpi import find_mpiexec, mpi, vendor, without_launcher
from tinytorch.distributed.work import DistNetworkError, DistStoreError
from tinytorch.kernels import parallel

__all__ = ["join", "leave"]

#: What a rank waits before it ends because another one has: who waits for both is to see the other one's error first.
GRACE = 1.0

_launched: tuple[int, int] | None = None  # rank and world size, as whoever started this process said
_process = 0  # the one that is a rank: what it forks is none
_communicator: Any = None  # of `join`, until `leave`
_own: Any = None  # for the end
_links: dict[int, socket.socket] = {}  # without a launcher: rank 0 and each other rank hear of each other's end
_server = -1  # a pipe: the server ends when this process, which holds it, has ended
_ending = False
_exit_status: Any = None


# Who am I -----------------------------------------------------------------------------------------


def _said_by_launcher() -> tuple[int, int] | None:
    """Return the rank and the number of processes (0 if that is not known) that an MPI launcher told this process."""
    if multiprocessing.process.parent_process() is not None:
        return None  # it told our parent
    of_slurm = "SLURM_STEP_NUM_TASKS"
    names = [("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMIX_RANK", of_slurm)]
    if "RANK" not in os.environ:
        names.append(("SLURM_PROCID", of_slurm))
    for rank, size in names:
        if rank in os.environ and (rank != "SLURM_PROCID" or size in os.environ):
            return int(os.environ[rank]), int(os.environ.get(size, "0"))
    return None


def _asked(init_method: str | None, rank: int, world_size: int) -> tuple[int, int, str]:
    """Return rank, world size and address ("host:port", or a path) of a process that says itself who it is."""
    url = urlsplit(init_method or "env://")
    if url.scheme not in ("env", "tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {url.scheme}://")

    def error(words: str) -> ValueError:
        return ValueError(f"Error initializing torch.distributed using {url.scheme}:// rendezvous: {words}")

    def variable(name: str) -> str:
        if not os.environ.get(name):
            raise error(f"environment variable {name} expected, but not set")
        return os.environ[name]

    known = {"rank": rank, "world_size": world_size}
    for name, words in parse_qsl(url.query):
        if name in known:
            if known[name] not in (-1, int(words)):
                raise error(f"{name} is {known[name]}, and {words} in {init_method}")
            known[name] = int(words)
    for name, value in known.items():
        if value < 0 and url.scheme != "env":
            raise error(f"{name.replace('_', ' ')} parameter missing")
        known[name] = value if value >= 0 else int(variable(name.upper()))
    if known["world_size"] == 1:
        where = ""  # there is nobody to meet
    elif url.scheme == "env":
        where = f"{variable('MASTER_ADDR')}:{variable('MASTER_PORT')}"
    elif url.scheme == "tcp":
        if url.port is None:
            raise error("port number missing")
        where = f"{url.hostname}:{url.port}"
    else:
        where = url.netloc + url.path
        if not where:
            raise error("path missing")
    if not 0 <= known["rank"] < known["world_size"]:
        raise ValueError(f"rank {known['rank']} is not in a world of size {known['world_size']}")
    return known["rank"], known["world_size"], where


def join(init_method: str | None, rank: int, world_size: int, timeout: float) -> tuple[Any, int, int]:
    """Meet the other processes; return MPI's communicator of all (None if there is one process), rank and world size.

    Args:
        init_method: "env://" (None means it), "tcp://host:port" or "file:///path": of no account for processes that an
            MPI launcher or `run.py` started.
        rank, world_size: -1 where the launcher, the environment or `init_method` says it.
        timeout: how many seconds to wait for the others.

    Raises:
        ValueError: nothing says the rank, the world size or where to meet; or they are not the launcher's.
        RuntimeError: not all processes come in time, or not all see the same launcher.
        ImportError: there is more than one process, and no MPI.
    """
    global _launched, _communicator, _own, _process
    meet = ""
    if _process != os.getpid():
        _launched = _said_by_launcher()
        if _launched is None or _launched[1] == 1:
            alone = _launched is not None and rank < 0 and "RANK" not in os.environ
            asked = (0, 1, "") if alone else _asked(init_method, rank, world_size)
            if asked[1] == 1:
                return None, 0, 1
            _launched, meet = asked[:2], asked[2]
    assert _launched is not None
    for name, given, is_ in (("rank", rank, _launched[0]), ("world_size", world_size, _launched[1])):
        if given not in (-1, is_) and is_ > 0 - (name == "rank"):
            raise ValueError(f"{name} is {given}, but this process was started as {name} {is_}")

    MPI = mpi()
    if _process != os.getpid():
        if meet and MPI.Is_initialized():
            raise RuntimeError(
                "MPI was initialized before init_process_group, by an import of mpi4py.MPI, and no launcher had told "
                "it of the other processes: start them by `python -m tinytorch.distributed.run` (torchrun)"
            )
        if meet:
            _meet(meet, *_launched, timeout)
        if not MPI.Is_initialized():
            MPI.Init_thread(MPI.THREAD_SERIALIZED)
        size = MPI.COMM_WORLD.size
        if _launched[1] not in (0, size):
            raise RuntimeError(
                f"{_launched[1]} processes were started, but {vendor()}, which mpi4py loads, knows of {size}: start "
                "them by its own mpiexec, by `python -m tinytorch.distributed.run`, or by srun --mpi=pmix (pmi2)"
            )
        _launched, _process = (MPI.COMM_WORLD.rank, size), os.getpid()
        _own = MPI.COMM_WORLD.Dup()
        _belong()
    _communicator = MPI.COMM_WORLD.Dup()
    return _communicator, *_launched


def leave() -> None:
    """Be in no group: the processes can `join` again, and MPI stays up until they end."""
    global _communicator
    if _communicator:  # not freed yet
        _communicator.Free()
    _communicator = None


def _belong() -> None:
    """Be one of the ranks, now that MPI is there: prepare the end, let child processes be none, share the cores."""
    assert _launched is not None
    for name in os.environ.keys() - without_launcher(os.environ).keys():
        del os.environ[name]
    for name, value in zip(("RANK", "WORLD_SIZE"), _launched, strict=True):
        os.environ.setdefault(name, str(value))
    # For programs that read them, where a bare mpiexec started them.
    MPI = mpi()
    node = _own.Split_type(MPI.COMM_TYPE_SHARED)
    local, count = node.rank, node.size
    node.Free()
    os.environ.setdefault("LOCAL_RANK", str(local))
    os.environ.setdefault("LOCAL_WORLD_SIZE", str(count))
    threads = max(1, (os.cpu_count() or 1) // count)
    if "OMP_NUM_THREADS" not in os.environ and parallel.get_threads() > threads:
        parallel.set_num_threads(threads)

    _note("joined")
    if multiprocessing.process.parent_process() is None:
        atexit.register(_end)
        if "TINYTORCH_REPORT" not in os.environ:  # else the program's parent knows
            _notice_exit()
    else:  # which ends by `os._exit` after its finalizers
        multiprocessing.util.Finalize(None, _end, exitpriority=10)


# How a job ends -----------------------------------------------------------------------------------


def _note(word: str) -> None:
    """Tell the launcher how far this rank is: one that ended between "joined" and "done" ended too early."""
    if "TINYTORCH_REPORT" in os.environ:
        with suppress(OSError), open(os.path.join(os.environ["TINYTORCH_REPORT"], word), "w"):
            pass


def _notice_exit() -> None:
    """Notice `sys.exit(1)`: of a program that ends by it, and not by an error, nothing else is left to see."""
    plain = sys.exit

    def exit(status: Any = None) -> Any:
        global _exit_status
        _exit_status = status
        plain(status)

    sys.exit = exit


def _failing() -> bool:
    """Return whether this process is ending by an error, or with a status other than 0."""
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    status = error.code if isinstance(error, SystemExit) else _exit_status if error is None else 1
    return status not in (None, 0)


def _end() -> None:
    """End with the others, or, if this rank fails, without them: then the job ends."""
    global _ending
    MPI = mpi()
    if _process != os.getpid() or MPI.Is_finalized():
        return
    _ending = True
    if _failing():
        sys.stdout.flush()
        sys.stderr.flush()
        if not _links and ("TINYTORCH_REPORT" not in os.environ or mpi4py_finalizes()):
            time.sleep(0.2)  # mpiexec drops what it has not passed on yet
            MPI.COMM_WORLD.Abort(_exit_status if isinstance(_exit_status, int) else 1)
        return  # that we ended without a goodbye is what the others, or the launcher, notice
    others = _own.Ibarrier()
    while not others.Test():  # MPI_Finalize would wait as well, but at full speed
        time.sleep(0.005)
    for link in _links.values():
        with suppress(OSError):
            link.sendall(b"bye\n")
    MPI.Finalize()
    _note("done")
    if _server >= 0:  # the server has to outlive the others' libraries
        for link in _links.values():
            with suppress(OSError):
                link.settimeout(10)
                while link.recv(64):
                    pass
    else:
        for link in _links.values():
            link.detach()  # which the process's end closes, after MPI's own handlers of exits: they need the server


def mpi4py_finalizes() -> bool:
    """Return whether mpi4py finalizes MPI at the end, because the program imported it first."""
    return sys.modules["mpi4py"].rc.finalize is not False


# How processes meet that no launcher started ------------------------------------------------------

_STUB = "import os, time; print(os.environ['PMI_PORT'], flush=True); time.sleep(1e9)"
# Ends `mpiexec` when its input, a pipe that rank 0 holds, is closed: when rank 0 has ended, however it did.
_KEEPER = """
import subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
sys.stdin.read()
process.terminate()
"""


def _line(link: socket.socket) -> str:
    """Return a line that the other end sends, "" at the end."""
    said = b""
    while not said.endswith(b"\n"):
        byte = link.recv(1)
        if not byte:
            return ""
        said += byte
    return said.decode().strip()


def _meet(where: str, rank: int, world_size: int, timeout: float) -> None:
    """Let MPI find its server, which rank 0 starts, and tells the others of at an address."""
    if vendor() not in ("MPICH", "Intel MPI"):
        raise RuntimeError(
            f"processes that start each other, by mp.spawn for one, need MPICH, but mpi4py loads {vendor()}: "
            "start them by `python -m tinytorch.distributed.run` (torchrun), or by mpiexec"
        )
    os.environ.update(without_launcher(os.environ))
    for name in os.environ.keys() - without_launcher(os.environ).keys():
        del os.environ[name]
    end = time.monotonic() + timeout
    server = _lead(where, world_size, end, timeout) if rank == 0 else _follow(where, rank, world_size, end, timeout)
    os.environ.update(PMI_PORT=server, PMI_ID=str(rank))
    for other, link in _links.items():
        link.settimeout(None)
        threading.Thread(target=_watch, args=(link, other), daemon=True).start()
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=_let_go)


def _let_go() -> None:
    """Close in a forked process what tells others of this one's end: it may live on."""
    if _process and _process != os.getpid():
        for link in _links.values():
            link.close()
        _links.clear()
        if _server >= 0:
            with suppress(OSError):
                os.close(_server)


def _listen(where: str) -> tuple[socket.socket, str]:
    """Return rank 0's socket, and the file that says where it is, if there is one."""
    if where.startswith("/") or ":" not in where:
        listener = socket.create_server(("127.0.0.1", 0))
        with open(f"{where}.part", "w", encoding="utf-8") as file:
            file.write(f"127.0.0.1:{listener.getsockname()[1]}\n")
        os.replace(file.name, where)
        return listener, where
    host, _, port = where.rpartition(":")
    try:
        address = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[4][:2], family=address[0]), ""
    except OSError as error:
        raise DistNetworkError(
            f"The server socket of rank 0 has failed to listen on {where}: {error.strerror or error}. The address has "
            "to be one of this machine; for several machines use `python -m tinytorch.distributed.run` (torchrun)"
        ) from None


def _lead(where: str, world_size: int, end: float, timeout: float) -> str:
    """Be rank 0: start the server, tell all others its address, which is returned."""
    global _server
    listener, file = _listen(where)
    with listener:
        command = [
            sys.executable,
            "-S",
            "-c",
            _KEEPER,
            find_mpiexec(),
            "-launcher",
            "fork",
            "-rmk",
            "user",
            "-pmi-port",
        ]
        command += ["-n", str(world_size), sys.executable, "-S", "-c", _STUB]
        there, _server = os.pipe()  # a bare descriptor: the process's end closes it, after MPI's own handlers of exits
        started = subprocess.Popen(
            command, stdin=there, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        os.close(there)
        assert started.stdout is not None
        server = started.stdout.readline().strip()
        threading.Thread(target=started.stdout.read, daemon=True).start()
        if not server:
            raise RuntimeError(f"{command[4]} did not start")
        while len(_links) < world_size - 1:
            listener.settimeout(max(0.01, end - time.monotonic()))
            try:
                link, peer = listener.accept()
            except TimeoutError:
                raise _late(timeout, len(_links) + 1, world_size) from None
            wrong = ""
            with suppress(OSError, ValueError):
                link.settimeout(5)
                _, other, size = _line(link).split()
                if peer[0] != link.getsockname()[0]:
                    wrong = "it runs on another machine: use `python -m tinytorch.distributed.run` (torchrun) there"
                elif int(size) != world_size:
                    wrong = f"its world_size is {size}, rank 0's is {world_size}"
                elif int(other) in _links:
                    wrong = "another process has this rank"
                link.sendall(f"no {wrong}\n".encode() if wrong else b"yes\n")
                if wrong:
                    raise RuntimeError(f"rank {other} cannot join: {wrong}")
                _links[int(other)] = link
    for link in _links.values():
        link.sendall(f"{server}\n".encode())
    if file:
        with suppress(OSError):
            os.unlink(file)
    return server


def _follow(where: str, rank: int, world_size: int, end: float, timeout: float) -> str:
    """Be another rank: ask rank 0 for the address of the server."""
    said = ""
    while not said:
        try:
            place = where
            if where.startswith("/") or ":" not in where:
                with open(where, encoding="utf-8") as file:
                    place = file.readline().strip()
            host, _, port = place.rpartition(":")
            link = socket.create_connection((host.strip("[]"), int(port)), max(0.01, end - time.monotonic()))
            link.sendall(f"rank {rank} {world_size}\n".encode())
            said = _line(link)
        except (OSError, ValueError):
            said = ""
        if not said:
            if time.monotonic() > end:
                raise _late(timeout, 1, world_size, f": rank 0 is not at {where}")
            time.sleep(0.02)
    if said != "yes":
        raise RuntimeError(f"rank {rank} cannot join: {said[3:]}")
    try:
        server = _line(link)
    except OSError:
        server = ""
    if not server:
        raise _late(timeout, 2, world_size)
    _links[0] = link
    return server


def _late(timeout: float, came: int, world_size: int, words: str = "") -> DistStoreError:
    there = f"{came}/{world_size} clients joined"
    return DistStoreError(f"Timed out after {timeout:g} seconds waiting for clients. {there}{words}.")


def _watch(link: socket.socket, other: int) -> None:
    """End this process when another one ends without a goodbye: what it waits for would never come."""
    try:
        said = _line(link)
    except OSError:
        said = ""
    if said == "bye" or _ending or _process not in (0, os.getpid()):
        return
    lost = said or str(other)
    for each in _links.values():
        with suppress(OSError):
            each.sendall(f"{lost}\n".encode())
    time.sleep(GRACE)
    print(f"torch.distributed: rank {lost} has ended, and so does this rank, {_launched[0]}", file=sys.stderr)  # type: ignore[index]
    sys.stderr.flush()
    os._exit(1)
