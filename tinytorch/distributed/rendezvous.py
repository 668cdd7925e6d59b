"""The rank of a process, the connection of the processes, and the end of a job.

A launcher (`run.py`, `mpiexec` or `srun`) tells a process its rank. A process without a launcher (`mp.spawn`, plain
processes) states its rank itself; then rank 0 starts MPICH's `mpiexec` only for its PMI server, by which the MPI
libraries of the processes on one machine connect.

MPI_Finalize, and every collective, waits for all ranks. So a rank that fails has to end the job.
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

#: Seconds that a rank waits before it ends because another rank has ended, so that the other's error is seen first.
GRACE = 1.0

_launched: tuple[int, int] | None = None  # rank and world size, from the launcher or the arguments
_process = 0  # the process id of the rank: its forked children are not ranks
_communicator: Any = None  # the result of `join`, until `leave`
_final_comm: Any = None  # the communicator of the last barrier
_links: dict[int, socket.socket] = {}  # without a launcher: connections of rank 0 with each other rank
_server = -1  # the write end of a pipe: the PMI server ends when this process, which holds it, has ended
_ending = False
_exit_status: Any = None


# Rank and world size ------------------------------------------------------------------------------


def _from_launcher() -> tuple[int, int] | None:
    """Return the rank and the number of processes (0 if unknown) that an MPI launcher has set in the environment."""
    if multiprocessing.process.parent_process() is not None:
        return None  # the variables are those of the parent process
    slurm_size = "SLURM_STEP_NUM_TASKS"
    names = [("PMI_RANK", "PMI_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMIX_RANK", slurm_size)]
    if "RANK" not in os.environ:
        names.append(("SLURM_PROCID", slurm_size))
    for rank, size in names:
        if rank in os.environ and (rank != "SLURM_PROCID" or size in os.environ):
            return int(os.environ[rank]), int(os.environ.get(size, "0"))
    return None


def _from_arguments(init_method: str | None, rank: int, world_size: int) -> tuple[int, int, str]:
    """Return rank, world size and address ("host:port", or a path) of a process without a launcher."""
    url = urlsplit(init_method or "env://")
    if url.scheme not in ("env", "tcp", "file"):
        raise RuntimeError(f"No rendezvous handler for {url.scheme}://")

    def error(message: str) -> ValueError:
        return ValueError(f"Error initializing torch.distributed using {url.scheme}:// rendezvous: {message}")

    def variable(name: str) -> str:
        if not os.environ.get(name):
            raise error(f"environment variable {name} expected, but not set")
        return os.environ[name]

    known = {"rank": rank, "world_size": world_size}
    for name, text in parse_qsl(url.query):
        if name in known:
            if known[name] not in (-1, int(text)):
                raise error(f"{name} is {known[name]}, and {text} in {init_method}")
            known[name] = int(text)
    for name, value in known.items():
        if value < 0 and url.scheme != "env":
            raise error(f"{name.replace('_', ' ')} parameter missing")
        known[name] = value if value >= 0 else int(variable(name.upper()))
    if known["world_size"] == 1:
        address = ""  # a single process
    elif url.scheme == "env":
        address = f"{variable('MASTER_ADDR')}:{variable('MASTER_PORT')}"
    elif url.scheme == "tcp":
        if url.port is None:
            raise error("port number missing")
        address = f"{url.hostname}:{url.port}"
    else:
        address = url.netloc + url.path
        if not address:
            raise error("path missing")
    if not 0 <= known["rank"] < known["world_size"]:
        raise ValueError(f"rank {known['rank']} is not in a world of size {known['world_size']}")
    return known["rank"], known["world_size"], address


def join(init_method: str | None, rank: int, world_size: int, timeout: float) -> tuple[Any, int, int]:
    """Connect to the other processes; return MPI's communicator (None for one process), rank and world size.

    Args:
        init_method: "env://" (also for None), "tcp://host:port" or "file:///path"; ignored in processes that an MPI
            launcher or `run.py` started.
        rank, world_size: -1 where the launcher, the environment or `init_method` determines them.
        timeout: seconds to wait for the other processes.

    Raises:
        ValueError: the rank, the world size or the address is unknown, or differs from the launcher's.
        RuntimeError: not all processes connect in time, or MPI and the launcher differ in the number of processes.
        ImportError: there are several processes, but MPI is not installed.
    """
    global _launched, _communicator, _final_comm, _process
    address = ""
    if _process != os.getpid():
        _launched = _from_launcher()
        if _launched is None or _launched[1] == 1:
            alone = _launched is not None and rank < 0 and "RANK" not in os.environ
            arguments = (0, 1, "") if alone else _from_arguments(init_method, rank, world_size)
            if arguments[1] == 1:
                return None, 0, 1
            _launched, address = arguments[:2], arguments[2]
    assert _launched is not None
    for name, value, launched in (("rank", rank, _launched[0]), ("world_size", world_size, _launched[1])):
        if value not in (-1, launched) and launched > 0 - (name == "rank"):
            raise ValueError(f"{name} is {value}, but this process was started as {name} {launched}")

    MPI = mpi()
    if _process != os.getpid():
        if address and MPI.Is_initialized():
            raise RuntimeError(
                "MPI was initialized before init_process_group, by an import of mpi4py.MPI, and no launcher had told "
                "it of the other processes: start them by `python -m tinytorch.distributed.run` (torchrun)"
            )
        if address:
            _connect(address, *_launched, timeout)
        if not MPI.Is_initialized():
            MPI.Init_thread(MPI.THREAD_SERIALIZED)
        size = MPI.COMM_WORLD.size
        if _launched[1] not in (0, size):
            raise RuntimeError(
                f"{_launched[1]} processes were started, but {vendor()}, which mpi4py loads, knows of {size}: start "
                "them by its own mpiexec, by `python -m tinytorch.distributed.run`, or by srun --mpi=pmix (pmi2)"
            )
        _launched, _process = (MPI.COMM_WORLD.rank, size), os.getpid()
        _final_comm = MPI.COMM_WORLD.Dup()
        _set_up_rank()
    _communicator = MPI.COMM_WORLD.Dup()
    return _communicator, *_launched


def leave() -> None:
    """End the group of all processes: they can `join` again, and MPI stays initialized until they end."""
    global _communicator
    if _communicator:  # it has not been freed yet
        _communicator.Free()
    _communicator = None


def _set_up_rank() -> None:
    """After MPI's initialization: set environment variables, share the cores, and register the end of the process.

    The launcher's variables are removed, so that child processes do not take themselves for ranks.
    """
    assert _launched is not None
    for name in os.environ.keys() - without_launcher(os.environ).keys():
        del os.environ[name]
    for name, value in zip(("RANK", "WORLD_SIZE"), _launched, strict=True):
        os.environ.setdefault(name, str(value))
    # Some programs read these variables, which a bare mpiexec does not set.
    MPI = mpi()
    node = _final_comm.Split_type(MPI.COMM_TYPE_SHARED)
    local, count = node.rank, node.size
    node.Free()
    os.environ.setdefault("LOCAL_RANK", str(local))
    os.environ.setdefault("LOCAL_WORLD_SIZE", str(count))
    threads = max(1, (os.cpu_count() or 1) // count)
    if "OMP_NUM_THREADS" not in os.environ and parallel.get_threads() > threads:
        parallel.set_num_threads(threads)

    _report("joined")
    if multiprocessing.process.parent_process() is None:
        atexit.register(_end)
        if "TINYTORCH_REPORT" not in os.environ:  # else `worker.py` sees the exit code
            _record_exit_status()
    else:  # a child of `multiprocessing` ends by `os._exit` after its finalizers
        multiprocessing.util.Finalize(None, _end, exitpriority=10)


# How a job ends -----------------------------------------------------------------------------------


def _report(state: str) -> None:
    """Tell the launcher the state of this rank: one that ends between "joined" and "done" has ended too early."""
    if "TINYTORCH_REPORT" in os.environ:
        with suppress(OSError), open(os.path.join(os.environ["TINYTORCH_REPORT"], state), "w"):
            pass


def _record_exit_status() -> None:
    """Record the argument of `sys.exit`: functions registered with `atexit` cannot see it otherwise."""
    original = sys.exit

    def exit(status: Any = None) -> Any:
        global _exit_status
        _exit_status = status
        original(status)

    sys.exit = exit


def _failing() -> bool:
    """Return whether this process ends by an error, or with a status other than 0."""
    error = sys.exc_info()[1] or getattr(sys, "last_value", None)
    status = error.code if isinstance(error, SystemExit) else _exit_status if error is None else 1
    return status not in (None, 0)


def _end() -> None:
    """End together with the other ranks; if this rank fails, end the job instead."""
    global _ending
    MPI = mpi()
    if _process != os.getpid() or MPI.Is_finalized():
        return
    _ending = True
    if _failing():
        sys.stdout.flush()
        sys.stderr.flush()
        if not _links and ("TINYTORCH_REPORT" not in os.environ or mpi4py_finalizes()):
            time.sleep(0.2)  # mpiexec drops output that it has not forwarded yet
            MPI.COMM_WORLD.Abort(_exit_status if isinstance(_exit_status, int) else 1)
        return  # the other ranks, or the launcher, notice that this rank has ended without saying "bye"
    barrier = _final_comm.Ibarrier()
    while not barrier.Test():  # MPI_Finalize would wait, too, but by busy polling
        time.sleep(0.005)
    for link in _links.values():
        with suppress(OSError):
            link.sendall(b"bye\n")
    MPI.Finalize()
    _report("done")
    if _server >= 0:  # the PMI server has to outlive the MPI libraries of the other ranks
        for link in _links.values():
            with suppress(OSError):
                link.settimeout(10)
                while link.recv(64):
                    pass
    else:
        for link in _links.values():
            link.detach()  # closed when the process ends, after MPI's exit handlers, which need the PMI server


def mpi4py_finalizes() -> bool:
    """Return whether mpi4py finalizes MPI at exit, which it does if the program imported it first."""
    return sys.modules["mpi4py"].rc.finalize is not False


# Connection without a launcher --------------------------------------------------------------------

_STUB = "import os, time; print(os.environ['PMI_PORT'], flush=True); time.sleep(1e9)"
# Ends `mpiexec` when its standard input is closed: a pipe that rank 0 holds until it ends, in whatever way.
_KEEPER = """
import subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
sys.stdin.read()
process.terminate()
"""


def _line(link: socket.socket) -> str:
    """Return a line that the other end sends; "" if the connection is closed."""
    line = b""
    while not line.endswith(b"\n"):
        byte = link.recv(1)
        if not byte:
            return ""
        line += byte
    return line.decode().strip()


def _connect(address: str, rank: int, world_size: int, timeout: float) -> None:
    """Set MPI's variables for the PMI server, which rank 0 starts; the other ranks ask for it at an address."""
    if vendor() not in ("MPICH", "Intel MPI"):
        raise RuntimeError(
            f"processes that start each other, by mp.spawn for one, need MPICH, but mpi4py loads {vendor()}: "
            "start them by `python -m tinytorch.distributed.run` (torchrun), or by mpiexec"
        )
    for name in os.environ.keys() - without_launcher(os.environ).keys():
        del os.environ[name]
    end = time.monotonic() + timeout
    args = world_size, end, timeout
    server = _start_server(address, *args) if rank == 0 else _ask_for_server(address, rank, *args)
    os.environ.update(PMI_PORT=server, PMI_ID=str(rank))
    for other, link in _links.items():
        link.settimeout(None)
        threading.Thread(target=_watch, args=(link, other), daemon=True).start()
    if sys.platform != "win32":
        os.register_at_fork(after_in_child=_close_links)


def _close_links() -> None:
    """Close the connections in a forked process: they report the end of the rank, which the child may outlive."""
    if _process and _process != os.getpid():
        for link in _links.values():
            link.close()
        _links.clear()
        if _server >= 0:
            with suppress(OSError):
                os.close(_server)


def _listen(address: str) -> tuple[socket.socket, str]:
    """Return rank 0's listening socket, and the file with its address ("" without one)."""
    if address.startswith("/") or ":" not in address:
        listener = socket.create_server(("127.0.0.1", 0))
        with open(f"{address}.part", "w", encoding="utf-8") as file:
            file.write(f"127.0.0.1:{listener.getsockname()[1]}\n")
        os.replace(file.name, address)
        return listener, address
    host, _, port = address.rpartition(":")
    try:
        info = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        return socket.create_server(info[4][:2], family=info[0]), ""
    except OSError as error:
        raise DistNetworkError(
            f"The server socket of rank 0 has failed to listen on {address}: {error.strerror or error}. The address "
            "has to be one of this machine; for several machines use `python -m tinytorch.distributed.run` (torchrun)"
        ) from None


def _start_server(address: str, world_size: int, end: float, timeout: float) -> str:
    """On rank 0: start the PMI server, and send its address to all other ranks; return it."""
    global _server
    listener, file = _listen(address)
    with listener:
        mpiexec = find_mpiexec()
        keeper = [sys.executable, "-S", "-c", _KEEPER]
        options = ["-launcher", "fork", "-rmk", "user", "-pmi-port", "-n", str(world_size)]
        command = [*keeper, mpiexec, *options, sys.executable, "-S", "-c", _STUB]
        read_end, _server = os.pipe()  # a bare descriptor: closed at the process's end, after MPI's exit handlers
        process = subprocess.Popen(
            command, stdin=read_end, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            start_new_session=True,
        )  # fmt: skip
        os.close(read_end)
        assert process.stdout is not None
        server = process.stdout.readline().strip()
        threading.Thread(target=process.stdout.read, daemon=True).start()
        if not server:
            raise RuntimeError(f"{mpiexec} did not start")
        while len(_links) < world_size - 1:
            listener.settimeout(max(0.01, end - time.monotonic()))
            try:
                link, peer = listener.accept()
            except TimeoutError:
                raise _timeout_error(timeout, len(_links) + 1, world_size) from None
            refusal = ""
            with suppress(OSError, ValueError):
                link.settimeout(5)
                _, other, size = _line(link).split()
                if peer[0] != link.getsockname()[0]:
                    refusal = "it runs on another machine: use `python -m tinytorch.distributed.run` (torchrun) there"
                elif int(size) != world_size:
                    refusal = f"its world_size is {size}, rank 0's is {world_size}"
                elif int(other) in _links:
                    refusal = "another process has this rank"
                link.sendall(f"no {refusal}\n".encode() if refusal else b"yes\n")
                if refusal:
                    raise RuntimeError(f"rank {other} cannot join: {refusal}")
                _links[int(other)] = link
    for link in _links.values():
        link.sendall(f"{server}\n".encode())
    if file:
        with suppress(OSError):
            os.unlink(file)
    return server


def _ask_for_server(address: str, rank: int, world_size: int, end: float, timeout: float) -> str:
    """On any other rank: connect to rank 0, and return the address of the PMI server."""
    answer = ""
    while not answer:
        try:
            endpoint = address
            if address.startswith("/") or ":" not in address:
                with open(address, encoding="utf-8") as file:
                    endpoint = file.readline().strip()
            host, _, port = endpoint.rpartition(":")
            link = socket.create_connection((host.strip("[]"), int(port)), max(0.01, end - time.monotonic()))
            link.sendall(f"rank {rank} {world_size}\n".encode())
            answer = _line(link)
        except (OSError, ValueError):
            answer = ""
        if not answer:
            if time.monotonic() > end:
                raise _timeout_error(timeout, 1, world_size, f": rank 0 is not at {address}")
            time.sleep(0.02)
    if answer != "yes":
        raise RuntimeError(f"rank {rank} cannot join: {answer[3:]}")
    try:
        server = _line(link)
    except OSError:
        server = ""
    if not server:
        raise _timeout_error(timeout, 2, world_size)
    _links[0] = link
    return server


def _timeout_error(timeout: float, joined: int, world_size: int, reason: str = "") -> DistStoreError:
    clients = f"{joined}/{world_size} clients joined"
    return DistStoreError(f"Timed out after {timeout:g} seconds waiting for clients. {clients}{reason}.")


def _watch(link: socket.socket, other: int) -> None:
    """End this process when another rank ends without saying "bye": its messages would never arrive."""
    try:
        message = _line(link)
    except OSError:
        message = ""
    if message == "bye" or _ending or _process not in (0, os.getpid()):
        return
    lost = message or str(other)
    for connection in _links.values():
        with suppress(OSError):
            connection.sendall(f"{lost}\n".encode())
    time.sleep(GRACE)
    print(f"torch.distributed: rank {lost} has ended, and so does this rank, {_launched[0]}", file=sys.stderr)  # type: ignore[index]
    sys.stderr.flush()
    os._exit(1)
