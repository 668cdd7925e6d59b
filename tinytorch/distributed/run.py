"""`python -m tinytorch.distributed.run`, PyTorch's `torchrun`: start a program in several processes.

Node 0 starts `mpiexec` (not for a single process), which starts a `worker.py` for each rank. The worker runs the
program, and writes a report of its end to a folder; the final message and the exit code come from these reports.

For several machines, run the same command on each. The other nodes connect to node 0 at `--master-addr` and
`--master-port`, which sends them the commands to start: MPICH's `hydra_pmi_proxy`, for `mpiexec -launcher manual`. No
ssh is needed. The connections stay open, so that each node notices the end of the others.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tinytorch.distributed.errors import ChildFailedError, ProcessFailure
from tinytorch.distributed.mpi import find_mpiexec, vendor, without_launcher
from tinytorch.distributed.worker import KILL

__all__ = ["config_from_args", "get_args_parser", "main", "parse_args", "run"]

Report = dict[str, Any]

# Seconds between two heartbeats of a node, and the seconds without one after which a node counts as lost.
_HEARTBEAT, _SILENCE = 1.0, 15.0
# Seconds for mpiexec to end all ranks after one has failed.
_GRACE = 0.5


# The command line ---------------------------------------------------------------------------------

_NOT_HERE = "torchrun runs on Linux and macOS: use mpiexec -n 2 python script.py"


class _FromEnvironment(argparse.Action):
    """An option whose default an environment variable can set: PET_NNODES=2."""

    def __init__(self, dest: str, default: Any = None, nargs: Any = None, **kwargs: Any) -> None:
        value = os.environ.get(f"PET_{dest.upper()}")
        if nargs == 0:
            default = value not in (None, "", "0")
        super().__init__(dest=dest, default=default if value is None or nargs == 0 else value, nargs=nargs, **kwargs)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, True if self.nargs == 0 else values)


def get_args_parser() -> argparse.ArgumentParser:
    """Return the parser of torchrun's command line."""
    parser = argparse.ArgumentParser("torchrun", description="Start a program in several processes.")

    def add(name: str, default: Any = None, *short: str, **kwargs: Any) -> None:
        names = dict.fromkeys([*short, f"--{name}", f"--{name.replace('-', '_')}"])
        if default is False:
            kwargs["nargs"] = 0
        elif "choices" not in kwargs:
            kwargs["metavar"] = name.rpartition("-")[2].upper()
        parser.add_argument(*names, dest=name.replace("-", "_"), action=_FromEnvironment, default=default, **kwargs)

    add("nnodes", "1:1", help="number of machines, or MIN:MAX, of which MAX start")
    add("nproc-per-node", "1", help="processes on this machine: a number, auto or cpu")
    add("node-rank", 0, type=int, help="number of this machine, from 0")
    add("master-addr", "127.0.0.1", help="address of machine 0")
    add("master-port", None, type=int, help="port of machine 0 to which the others connect: 29500")
    add("rdzv-endpoint", "", help="HOST:PORT in place of --master-addr and --master-port")
    add("rdzv-backend", "static", help="static or c10d, which are the same")
    add("rdzv-id", "none", help="name of the job: TORCHELASTIC_RUN_ID")
    add("rdzv-conf", "", help="timeout=900,keep_alive=15: seconds to wait for machines, and for a silent one")
    add("standalone", False, help="one machine, a free port")
    add("max-restarts", 0, type=int, help="maximum number of restarts of all processes after a failure")
    add("monitor-interval", 0.1, type=float, help="no effect: the end of a process is noticed at once")
    add("start-method", "spawn", choices=["spawn", "fork", "forkserver"], help="no effect for programs")
    add("event-log-handler", "null", help="only null")
    add("role", "default", help="name of the processes in their logs")
    add("module", False, "-m", help="the program is a module, as in python -m")
    add("no-python", False, help="the program is not a Python program")
    add("run-path", False, help="the program's path is absolute")
    add("log-dir", None, help="directory of logs: DIR/ID_xxx/attempt_N/LOCAL_RANK/stdout.log")
    add("redirects", "0", "-r", help="streams that go to logs: 1 stdout, 2 stderr, 3 both, or by rank 0:1,1:3")
    add("tee", "0", "-t", help="streams that go to logs and to the console")
    add("local-ranks-filter", "", help="local ranks whose output is shown on the console: 0,1")
    add("duplicate-stdout-filters", "", help="not supported")
    add("duplicate-stderr-filters", "", help="not supported")
    add("local-addr", None, help="no effect")
    add("logs-specs", None, help="not supported")
    add("numa-binding", None, help="not supported: use mpiexec's options")
    add("signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", help="signals that are forwarded to the program")
    add("shutdown-timeout", None, type=int, help="seconds for the program to end after a signal: 30")
    add("virtual-local-rank", False, help="set LOCAL_RANK to 0 for all ranks")
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """Return the options of a command line."""
    return get_args_parser().parse_args(args)


def _process_count(text: str) -> int:
    """Return the number of processes on this machine."""
    if text in ("cpu", "auto"):
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if text in ("gpu", "xpu"):
        raise ValueError(f"{'Cuda' if text == 'gpu' else 'Xpu'} is not available.")
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {text}") from None
    if number < 1:
        raise ValueError(f"nproc_per_node must be positive, got {text}")
    return number


def _streams(text: str, count: int) -> dict[str, int]:
    """Return the streams for each local rank in "3" or "0:1,1:3": the sum of 1 for stdout and 2 for stderr."""
    if re.fullmatch("[0-3]", text):
        return {str(rank): int(text) for rank in range(count)}
    if not re.fullmatch(r"(\d+:[0-3],)*\d+:[0-3],?", text):
        raise ValueError(f"{text} does not match: <0-3> for all ranks, or <local rank>:<0-3>,...")
    return {rank: int(streams) for rank, streams in (pair.split(":") for pair in text.rstrip(",").split(","))}


def config_from_args(args: argparse.Namespace) -> dict[str, Any]:
    """Return the job: the settings for the workers, and those for the launcher."""
    low, _, high = args.nnodes.partition(":")
    if not (low.isdecimal() and (high or low).isdecimal()):
        raise RuntimeError(f'nnodes={args.nnodes} is not in "MIN:MAX" format')
    nodes = int(high or low)
    if not 0 < int(low) <= nodes:
        raise AssertionError(f"min_nodes must be > 0 and <= max_nodes, got min_nodes={low}, max_nodes={nodes}")
    if args.max_restarts < 0:
        raise AssertionError("max_restarts must be >= 0")
    if args.no_python and args.module:
        raise ValueError("Don't use both the '--no-python' flag and the '--module' flag at the same time.")
    if args.rdzv_backend not in ("static", "c10d"):
        raise ValueError(f"rdzv_backend {args.rdzv_backend!r}: there are static and c10d")
    for name in ("duplicate_stdout_filters", "duplicate_stderr_filters", "logs_specs", "numa_binding"):
        if getattr(args, name):
            raise ValueError(f"--{name.replace('_', '-')} is not supported")
    count = _process_count(args.nproc_per_node)
    shown = args.local_ranks_filter
    if shown and not re.fullmatch(r"\d+(,\d+)*", shown):
        raise ValueError(
            "--local_ranks_filter must be a comma-separated list of integers e.g. --local_ranks_filter=0,1,2"
        )

    addr, port = args.master_addr, args.master_port
    if args.standalone:
        nodes = 1
    elif args.rdzv_endpoint:
        addr, _, text = args.rdzv_endpoint.rpartition(":")
        if not addr:
            addr, text = text, ""
        if text and not text.isdecimal():
            raise ValueError(f"rdzv_endpoint {args.rdzv_endpoint!r} is not HOST:PORT")
        port = int(text) if text else None
    if nodes == 1 and not port:
        with socket.create_server(("", 0)) as server:  # on a free port
            port = server.getsockname()[1]
    if not 0 <= args.node_rank < nodes:
        raise ValueError(f"node_rank {args.node_rank} is not one of {nodes} nodes")
    shutdown: Any = args.shutdown_timeout
    if shutdown is None:
        shutdown = os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30")
    conf: dict[str, Any] = dict(pair.split("=", 1) for pair in args.rdzv_conf.split(",") if "=" in pair)
    return {
        "count": count, "number_of_nodes": nodes, "node": args.node_rank, "addr": addr.strip("[]"),
        "port": port or 29500, "wait": float(conf.get("timeout", conf.get("join_timeout", 900))),
        "silence": float(conf.get("keep_alive", _SILENCE)), "id": args.rdzv_id, "restarts": args.max_restarts,
        "role": args.role, "redirects": _streams(args.redirects, count), "tee": _streams(args.tee, count),
        "shown": [int(rank) for rank in shown.split(",")] if shown else [],
        "virtual_local_rank": args.virtual_local_rank, "log_dir": args.log_dir,
        "signals": [getattr(signal, name.strip()) for name in args.signals_to_handle.split(",") if name.strip()],
        "shutdown": float(shutdown),
        "kind": "command" if args.no_python and not args.run_path else "module" if args.module else "script",
        "program": [args.training_script, *args.training_script_args],
    }  # fmt: skip


# A node -------------------------------------------------------------------------------------------


class _Node:
    """The state of the launcher on one machine: the process that it started, and the folder of reports."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job, self.count = job, job["count"]
        if job["log_dir"]:
            Path(job["log_dir"]).mkdir(parents=True, exist_ok=True)
        self._temporary = None if job["log_dir"] else tempfile.TemporaryDirectory(prefix="torchelastic_")
        parent = job["log_dir"] or self._temporary.name  # type: ignore[union-attr]
        self.folder = Path(tempfile.mkdtemp(prefix=f"{job['id']}_".replace(os.sep, "_"), dir=parent)).absolute()
        self.process: subprocess.Popen[bytes] | None = None
        self.proxy: subprocess.Popen[bytes] | None = None
        self.failing = threading.Event()  # a rank has failed on another node
        self.stopped: int | None = None  # the signal that ends the job
        self._first, self._fifo = 0, -1
        self._pipes: list[tuple[Any, int]] = []  # of the ranks' two streams: the end to read, and the one to write
        self.messages: list[bytes] = []  # of mpiexec, or of its proxy

    def prepare(self, restart: int, first: int) -> None:
        """Create the folder of an attempt; `first` is the rank of this node's first process."""
        if sys.platform == "win32":
            raise RuntimeError(_NOT_HERE)
        self.failing.clear()
        self._attempt, self._first = self.folder / f"attempt_{restart}", first
        for local in range(self.count):
            (self._attempt / str(local)).mkdir(parents=True)
        os.mkfifo(self._attempt / "alive")
        if self._fifo >= 0:
            os.close(self._fifo)
        self._fifo = os.open(self._attempt / "alive", os.O_RDWR)  # workers see its end when the launcher ends

    def separate(self) -> list[str]:
        """Return options by which MPICH's mpiexec writes the ranks' streams to pipes, apart from its own messages."""
        if sys.platform == "win32":
            raise RuntimeError(_NOT_HERE)
        options = []
        for name in ("out", "err"):
            os.mkfifo(path := self._attempt / name)
            end = os.open(path, os.O_RDWR)  # (opening an end alone waits for the other one)
            self._pipes.append((os.fdopen(os.open(path, os.O_RDONLY), "rb"), end))
            options += [f"-{name}file-pattern", str(path)]
        return options

    def start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start the process that starts the workers."""
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
            start_new_session=True,  # the launcher forwards Ctrl-C
        )  # fmt: skip
        return self.process

    def stop(self, number: int) -> None:
        """Forward a signal to the program; kill it if it has not ended within the shutdown timeout."""
        first, self.stopped = self.stopped is None, number
        with suppress(OSError):
            (self._attempt / "stopping").touch()
        self._signal(number if first else KILL)
        timer = threading.Timer(self.job["shutdown"], self.kill)
        timer.daemon = True
        timer.start()

    def _signal(self, number: int) -> None:
        for file in self._attempt.glob("*/pid"):
            if not (file.parent / "ended").exists():
                with suppress(OSError, ValueError):
                    os.kill(int(file.read_text()), number)

    def kill(self) -> None:
        """Kill all processes of this node."""
        self._signal(KILL)
        for process in (self.process, self.proxy):
            if process is not None:
                process.kill()

    def wait(self) -> int:
        """Copy the output until the workers have ended; return the exit code of the process that started them.

        mpiexec ends all ranks when one of them fails; on several nodes it sometimes does not, so they are killed.
        """
        process, since = self.process, None
        assert process is not None
        pipes, streams = [process.stdout, process.stderr], (_writer(sys.stdout), _writer(sys.stderr))
        threads = []
        if self._pipes or self.job["node"]:  # (a proxy on another node sends the ranks' output to mpiexec)
            threads = [_pump(pipe, self.messages.append) for pipe in pipes]
            pipes = [pipe for pipe, _ in self._pipes]
        threads += [_pump(pipe, write) for pipe, write in zip(pipes, streams, strict=False)]
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
            if since is None and (self.failing.is_set() or self._has_failed()):
                since = time.monotonic()
            if since is not None and self.stopped is None and time.monotonic() > since + _GRACE:
                self.kill()
        while self._pipes:
            os.close(self._pipes.pop()[1])
        for thread in threads:
            thread.join(1)
        if self.proxy is not None:
            self.proxy.kill()
            self.proxy.wait()
        return process.returncode

    def _has_failed(self) -> bool:
        reports = [json.loads(file.read_text("utf-8")) for file in self._attempt.glob("*/ended")]
        return any(report["code"] or report["early"] for report in reports)

    def reports(self) -> list[Report]:
        """Return the reports of the ranks that failed; ranks without a report were killed or never started."""
        failed = []
        for local in range(self.count):
            folder = self._attempt / str(local)
            try:
                report = json.loads((folder / "ended").read_text("utf-8"))
            except OSError:
                started = (folder / "pid").exists()
                report = {"rank": self._first + local, "local_rank": local, "pid": 0, "code": None, "early": False}
                report |= {"time": float("inf"), "started": started}
            if report["code"] == 0 and not report["early"]:
                continue
            file, report["data"] = folder / "error.json", None
            with suppress(OSError, ValueError):
                report["data"] = json.loads(file.read_text("utf-8"))
            failed.append({**report, "error_file": str(file)})
        return failed


def _pump(source: Any, write: Callable[[bytes], Any]) -> threading.Thread:
    """Copy a pipe in a thread."""

    def copy() -> None:
        while chunk := source.read1(1 << 16):
            write(chunk)

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread


def _writer(target: Any) -> Callable[[bytes], None]:
    """Return a function that writes to one of our streams."""

    def write(text: bytes) -> None:
        with suppress(OSError, ValueError):
            target.buffer.write(text)
            target.flush()

    return write


# Connections between nodes ------------------------------------------------------------------------


class _Link:
    """A connection of two nodes, with messages as lines of JSON; null is a heartbeat."""

    def __init__(self, connection: socket.socket, silence: float) -> None:
        connection.settimeout(silence)
        self._silence = silence
        self._connection, self._lock = connection, threading.Lock()
        self._file = connection.makefile("rb")
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.on_stop: Any = None
        self.on_loss: Any = None
        self.on_failure: Any = None

    def begin(self) -> None:
        """Start the threads that send heartbeats and receive messages."""
        for function in (self._send_heartbeats, self._listen):
            threading.Thread(target=function, daemon=True).start()

    def _send_heartbeats(self) -> None:
        while self.send(None):
            time.sleep(_HEARTBEAT)

    def _listen(self) -> None:
        while True:
            message = self.receive()
            if message is None:
                self._inbox.put(None)
                self.on_loss()
                return
            if "stop" in message:
                self.on_stop(message["stop"])
            elif "fail" in message:
                self.on_failure()
            else:
                if message.get("failed"):
                    self.on_failure()
                self._inbox.put(message)

    def send(self, message: Any) -> bool:
        """Send a message; return whether the connection is open."""
        with self._lock, suppress(OSError):
            self._connection.sendall(json.dumps(message).encode() + b"\n")
            return True
        return False

    def receive(self) -> Any:
        """Return the next message, None if the other node is lost."""
        with suppress(OSError, ValueError):
            while line := self._file.readline():
                self._connection.settimeout(self._silence)  # (longer for the first message)
                if (message := json.loads(line)) is not None:
                    return message
        return None

    def next(self, timeout: float | None = None) -> Any:
        """Return the next message that the thread has received; None after the timeout."""
        try:
            return self._inbox.get(timeout=timeout)
        except queue.Empty:
            return None


def _accept_nodes(job: dict[str, Any]) -> dict[int, tuple[_Link, Any]]:
    """On node 0: return for each other node its connection, and its first message."""
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    nodes: dict[int, tuple[_Link, Any]] = {}
    end = time.monotonic() + job["wait"]
    with socket.create_server(("", job["port"]), family=family, dualstack_ipv6=dual) as listener:
        while len(nodes) < job["number_of_nodes"] - 1:
            listener.settimeout(max(0.01, end - time.monotonic()))
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                missing = [str(k) for k in range(1, job["number_of_nodes"]) if k not in nodes]
                raise RuntimeError(
                    f"node {', '.join(missing)} of {job['number_of_nodes']} did not come to "
                    f"{job['addr']}:{job['port']} within {job['wait']:g} s"
                ) from None
            link = _Link(connection, job["silence"])
            hello = link.receive()
            if not isinstance(hello, dict) or "node" not in hello:
                connection.close()
                continue
            refusal = ""
            if hello["id"] != job["id"] or hello["nodes"] != job["number_of_nodes"]:
                refusal = f"it is of job {hello['id']!r} of {hello['nodes']} nodes, which node 0 is not"
            elif hello["node"] in nodes or not hello["node"]:
                refusal = "another one has this rank"
            if refusal:
                link.send({"end": f"node {hello['node']} cannot join: {refusal}", "code": 1})
                raise RuntimeError(f"node {hello['node']} cannot join: {refusal}")
            nodes[hello["node"]] = link, hello
    return nodes


def _run_node_0(job: dict[str, Any], node: _Node) -> int:
    """Run the job, with its restarts; return the exit code."""
    several = job["number_of_nodes"] > 1
    others = _accept_nodes(job) if several else {}
    lost: list[int] = []

    def lose(rank: int) -> None:
        lost.append(rank)
        node.kill()

    for k, (link, _) in others.items():
        link.on_stop, link.on_failure, link.on_loss = node.stop, node.failing.set, lambda k=k: lose(k)
        link.begin()
    nodes = [
        [job["count"], str(node.folder)],
        *([hello["count"], hello["folder"]] for _, (_, hello) in sorted(others.items())),
    ]
    firsts = [sum(count for count, _ in nodes[:k]) for k in range(len(nodes))]

    def stop(number: int, _: Any = None) -> None:
        node.stop(number)
        for link, _ in others.values():
            link.send({"stop": number})

    keys = ("role", "redirects", "tee", "shown", "virtual_local_rank", "addr", "port", "id", "restarts")
    for restart in range(job["restarts"] + 1):
        node.prepare(restart, 0)
        worker_job = {key: job[key] for key in keys} | {"nodes": nodes, "restart": restart}
        environment = {**without_launcher(os.environ), "TINYTORCH_JOB": json.dumps(worker_job)}
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command = [sys.executable, str(Path(__file__).with_name("worker.py")), job["kind"], *job["program"]]
        separate = node.separate() if (several or job["count"] > 1) and vendor() == "MPICH" else []
        process = node.start([*_mpiexec(nodes, separate), *command], environment)
        for number in job["signals"]:
            signal.signal(number, stop)
        if several:
            node.proxy = _start_proxies(node, process, others, restart, firsts)
        code = node.wait()
        failed = node.reports()
        for link, _ in others.values():
            link.send({"fail": bool(failed)})  # (the ranks there have ended by now, or are killed)
        for k, (link, _) in others.items():
            message = None if k in lost else link.next(job["shutdown"] if node.stopped else 5)
            failed += message["failed"] if message else [
                {"rank": firsts[k] + local, "local_rank": local, "pid": 0, "code": None, "early": False,
                 "time": float("inf"), "error_file": "", "data": None, "lost": k}
                for local in range(nodes[k][0])
            ]  # fmt: skip
        if not failed or node.stopped or lost:
            break
        if restart < job["restarts"]:
            print(f"torchrun: {_root_cause(failed)}; attempt {restart + 2} of {job['restarts'] + 1}", file=sys.stderr)
    summary = ""
    if node.stopped:
        summary = f"torchrun: ended by {signal.Signals(node.stopped).name}"
    elif failed:
        summary = _summary(job, failed, code, node.messages)
    code = 128 + node.stopped if node.stopped else 1 if failed else 0
    for link, _ in others.values():
        link.send({"end": summary, "code": code})
    if summary:
        print(summary, file=sys.stderr)
    return code


def _mpiexec(nodes: list[list[Any]], options: Sequence[str] = ()) -> list[str]:
    """Return the command that starts the workers of nodes, given by their numbers of processes; [] for one process."""
    counts = [count for count, _ in nodes]
    if counts == [1]:
        return []
    mpiexec = find_mpiexec()
    if vendor() == "Open MPI":
        if len(counts) > 1:
            raise RuntimeError(
                "several machines without ssh need MPICH, but mpi4py loads Open MPI: pip install mpich, or use its own "
                "mpiexec --hostfile, or srun"
            )
        return [mpiexec, "--oversubscribe", "--bind-to", "none", "-n", str(counts[0])]
    if len(counts) == 1:
        return [mpiexec, *options, "-launcher", "fork", "-rmk", "user", "-n", str(counts[0])]
    hosts = ",".join(f"node{k}:{count}" for k, count in enumerate(counts))  # (the names need not exist)
    return [mpiexec, *options, "-launcher", "manual", "-rmk", "user", "-hosts", hosts, "-n", str(sum(counts))]


def _set_host(command: list[str], host: str) -> None:
    """Set the host of mpiexec in the command of a proxy, which names its port."""
    place = command.index("--control-port") + 1
    command[place] = f"{host}:{command[place].rpartition(':')[2]}"


def _start_proxies(
    node: _Node, process: Any, others: dict[int, tuple[_Link, Any]], restart: int, firsts: list[int]
) -> Any:
    """Start the proxies that mpiexec prints the commands of, here and on the other nodes; return the process here."""
    proxy = None
    for line in process.stdout:
        command = shlex.split(line.decode())
        if command[0] != "HYDRA_LAUNCH:":
            break  # HYDRA_LAUNCH_END
        k = int(command[command.index("--proxy-id") + 1])
        if k == 0:
            _set_host(command, "127.0.0.1")
            proxy = subprocess.Popen(
                command[1:], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
            )
            _pump(proxy.stderr, node.messages.append)
        else:
            others[k][0].send({"proxy": command[2:], "restart": restart, "first": firsts[k]})
    return proxy


def _run_other_node(job: dict[str, Any], node: _Node) -> int:
    """Execute the messages of node 0; return its exit code."""
    address, end = (job["addr"], job["port"]), time.monotonic() + job["wait"]
    while True:
        try:
            connection = socket.create_connection(address, 5)
            break
        except OSError as error:
            if time.monotonic() > end:
                raise RuntimeError(f"node 0 is not at {job['addr']}:{job['port']}: {error}") from None
            time.sleep(0.1)
    link = _Link(connection, job["silence"])
    link.on_stop, link.on_failure, link.on_loss = node.stop, node.failing.set, node.kill
    link.send({"node": job["node"], "nodes": job["number_of_nodes"], "id": job["id"], "count": job["count"],
               "folder": str(node.folder)})  # fmt: skip
    connection.settimeout(job["wait"] + 5)  # until all nodes are connected, and node 0 starts its heartbeats
    link.begin()
    proxy = str(Path(find_mpiexec()).with_name("hydra_pmi_proxy"))
    for number in job["signals"]:
        signal.signal(number, lambda number, _: node.stop(number) if node.process else os._exit(128 + number))
    while (message := link.next()) is not None:
        if "end" in message:
            if message["end"]:
                print(message["end"], file=sys.stderr)
            return message["code"]
        node.prepare(message["restart"], message["first"])
        arguments = message["proxy"]
        _set_host(arguments, job["addr"])
        node.start([proxy, *arguments], without_launcher(os.environ))
        node.wait()
        link.send({"failed": node.reports()})
    ranks = f"{node._first}-{node._first + node.count - 1}"
    print(f"torchrun: node 0 (rank 0) is lost; node {job['node']} (ranks {ranks}) ends too", file=sys.stderr)
    return 1


# Failures -----------------------------------------------------------------------------------------


def _root_cause(failed: list[Report]) -> str:
    """Return a short description of the first failure."""
    first = min(failed, key=lambda report: report["time"])
    if first["code"] is None:
        how = "was lost with its node" if "lost" in first else "was ended" if first["started"] else "never started"
    elif first["early"]:
        how = "ended with status 0 in the middle of the job (os._exit?)"
    elif first["code"] < 0:
        how = f"was ended by signal {-first['code']}"
    else:
        how = f"failed with exit code {first['code']}"
    return f"rank {first['rank']} {how}"


def _summary(job: dict[str, Any], failed: list[Report], code: int, messages: list[bytes]) -> str:
    """Return the final message: PyTorch's summary of the ranks that failed, without those that were killed then."""
    if all(report["code"] is None and not report.get("started") and "lost" not in report for report in failed):
        said = b"".join(messages).decode(errors="replace")
        return f"{said}torchrun: mpiexec ended with exit code {code} before any rank started"
    own = [report for report in failed if report["code"] is not None]
    lost = sorted({report["lost"] for report in failed if "lost" in report})
    if lost and not any(report["data"] or report["code"] > 0 for report in own):  # ours were killed with the node
        ranks = ", ".join(str(report["rank"]) for report in failed if "lost" in report)
        return (
            f"torchrun: node {', '.join(map(str, lost))} (rank {ranks}) is lost: its launcher ended, or the network did"
        )
    own, failures = sorted(own or failed, key=lambda report: report["time"]), {}
    independent = [report for report in own[1:] if report["data"] or (report["code"] or 0) > 0]  # others were killed
    for report in [own[0], *independent]:
        failure = ProcessFailure(report["local_rank"], report["pid"], report["code"] or 0, report["error_file"])
        if report["data"]:
            failure.error_file_data = report["data"]
            failure.message = report["data"]["message"]
        elif report["code"] is None or report["early"]:
            failure.message = _root_cause([report])
        if report["time"] != float("inf"):
            failure.timestamp = int(report["time"])
        failures[report["rank"]] = failure
    return f"{ChildFailedError(job['program'][0], failures)}\ntorchrun: {_root_cause(own)}"


def run(args: argparse.Namespace) -> int:
    """Run the job of a command line; return the exit code."""
    if sys.platform == "win32":
        raise RuntimeError(_NOT_HERE)
    job = config_from_args(args)
    _mpiexec([[job["count"], ""]] * job["number_of_nodes"])  # raises its errors before the nodes connect
    node = _Node(job)
    return _run_other_node(job, node) if job["node"] else _run_node_0(job, node)


def main(args: list[str] | None = None) -> None:
    """Run the command `torchrun`."""
    try:
        code = run(parse_args(args))
    except (ValueError, RuntimeError, AssertionError, ImportError, OSError) as error:
        code = 1
        print(f"torchrun: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
