"""`python -m tinytorch.distributed.run`, PyTorch's `torchrun`: start a program in several processes.

On each node it starts `mpiexec` (for one process none is needed), and that starts a `worker.py` for each rank, which
runs the program and reports into a folder how it ended. What is shown, and the exit code, comes from these reports.

Several machines: the same command on each. Those other than node 0 connect to it at `--master-addr` and
`--master-port`, and are told what to start: MPICH's `hydra_pmi_proxy`, of `mpiexec -launcher manual`. No ssh is needed.
The connections stay, so that each node learns of the others' end.
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
from contextlib import suppress
from pathlib import Path
from typing import Any

from tinytorch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from tinytorch.distributed.mpi import find_mpiexec, vendor, without_launcher
from tinytorch.distributed.worker import KILL

__all__ = ["config_from_args", "get_args_parser", "main", "parse_args", "run"]

Report = dict[str, Any]

# What MPICH's mpiexec says at length of a rank that failed, and what may be the beginning of it: we say it in our way.
_BANNER = re.compile(
    rb"\n={83}\n=   BAD TERMINATION OF ONE(?:.*\n)+?={83}\n"
    rb"|.*HYD_pmcd_pmip_control_cmd_cb.*\n|.*HYDT_dmxu_poll_wait_for_event.*\n|.*demux engine error waiting for event\n"
    rb"|YOUR APPLICATION TERMINATED WITH THE EXIT STRING.*\n(?:This typ.*\n)?(?:Please see the FAQ.*\n)?"
)
_BEGUN = re.compile(rb"\n={1,83}\Z|\n={83}\n(?:=   .*|\Z)", re.DOTALL)
# Between nodes, in seconds: how often each says that it is there, and what silence means that it is not.
_BEAT, _SILENCE = 1.0, 15.0
# How long mpiexec has to end all ranks when one has failed.
_GRACE = 0.5


# What is asked for --------------------------------------------------------------------------------

_NOT_HERE = "torchrun runs on Linux and macOS: use mpiexec -n 2 python script.py"


class _FromEnvironment(argparse.Action):
    """An option whose default may be set in the environment: PET_NNODES=2."""

    def __init__(self, dest: str, default: Any = None, nargs: Any = None, **kwargs: Any) -> None:
        given = os.environ.get(f"PET_{dest.upper()}")
        if nargs == 0:
            default = given not in (None, "", "0")
        super().__init__(dest=dest, default=default if given is None or nargs == 0 else given, nargs=nargs, **kwargs)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, True if self.nargs == 0 else values)


def get_args_parser() -> argparse.ArgumentParser:
    """Return the parser of torchrun's command line."""
    parser = argparse.ArgumentParser("torchrun", description="Start a program in several processes.")

    def add(name: str, default: Any = None, *short: str, **kwargs: Any) -> None:
        names = dict.fromkeys([*short, f"--{name}", f"--{name.replace('-', '_')}"])
        if default is False:
            kwargs["nargs"] = 0
        parser.add_argument(*names, dest=name.replace("-", "_"), action=_FromEnvironment, default=default, **kwargs)

    add("nnodes", "1:1", help="number of machines, or MIN:MAX, of which MAX start")
    add("nproc-per-node", "1", help="processes on this machine: a number, auto or cpu")
    add("node-rank", 0, type=int, help="which machine this is")
    add("master-addr", "127.0.0.1", help="address of machine 0")
    add("master-port", None, type=int, help="port on machine 0 where the machines meet: 29500")
    add("rdzv-endpoint", "", help="HOST:PORT in place of --master-addr and --master-port")
    add("rdzv-backend", "static", help="static or c10d: here they are the same")
    add("rdzv-id", "none", help="name of the job: TORCHELASTIC_RUN_ID")
    add("rdzv-conf", "", help="timeout=900,keep_alive=15: seconds that machines wait for each other, and stay silent")
    add("standalone", False, help="one machine, a free port")
    add("max-restarts", 0, type=int, help="how often to start all processes again after a failure")
    add("monitor-interval", 0.1, type=float, help="of no effect: an end is noticed at once")
    add("start-method", "spawn", choices=["spawn", "fork", "forkserver"], help="of no effect for programs")
    add("event-log-handler", "null", help="null alone")
    add("role", "default", help="name of the processes in their logs")
    add("module", False, "-m", help="the program is a module, as in python -m")
    add("no-python", False, help="the program is no Python program")
    add("run-path", False, help="the program's path is absolute")
    add("log-dir", None, help="where logs are kept: DIR/ID_xxx/attempt_N/LOCAL_RANK/stdout.log")
    add("redirects", "0", "-r", help="streams that go to logs: 1 stdout, 2 stderr, 3 both, or by rank 0:1,1:3")
    add("tee", "0", "-t", help="streams that go to logs and to the console")
    add("local-ranks-filter", "", help="ranks of this machine that are shown on the console: 0,1")
    add("duplicate-stdout-filters", "", help="not supported")
    add("duplicate-stderr-filters", "", help="not supported")
    add("local-addr", None, help="of no effect")
    add("logs-specs", None, help="not supported")
    add("numa-binding", None, help="not supported: see mpiexec's own options")
    add("signals-to-handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT", help="signals that are passed on to the program")
    add("shutdown-timeout", None, type=int, help="seconds the program has to end after one: 30")
    add("virtual-local-rank", False, help="let LOCAL_RANK be 0 for all")
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: list[str] | None) -> argparse.Namespace:
    """Return the settings that a command line has."""
    return get_args_parser().parse_args(args)


def _processes(given: str) -> int:
    """Return how many processes a machine gets."""
    if given in ("cpu", "auto"):
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if given in ("gpu", "xpu"):
        raise ValueError(f"{'Cuda' if given == 'gpu' else 'Xpu'} is not available.")
    try:
        number = int(given)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {given}") from None
    if number < 1:
        raise ValueError(f"nproc_per_node must be positive, got {given}")
    return number


def _streams(given: str, count: int) -> dict[str, int]:
    """Return by local rank which streams "3", or "0:1,1:3", names: the sum of 1 for stdout and 2 for stderr."""
    if re.fullmatch("[0-3]", given):
        return {str(rank): int(given) for rank in range(count)}
    if not re.fullmatch(r"(\d+:[0-3],)*\d+:[0-3],?", given):
        raise ValueError(f"{given} does not match: <0-3> for all ranks, or <local rank>:<0-3>,...")
    return {rank: int(which) for rank, which in (pair.split(":") for pair in given.rstrip(",").split(","))}


def config_from_args(args: argparse.Namespace) -> dict[str, Any]:
    """Return what is to be done: the job as its workers are told it, and what the launcher needs.

    Raises:
        ValueError: a value is none, or asks for what is not there.
    """
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
    count = _processes(args.nproc_per_node)
    shown = args.local_ranks_filter
    if shown and not re.fullmatch(r"\d+(,\d+)*", shown):
        raise ValueError(
            "--local_ranks_filter must be a comma-separated list of integers e.g. --local_ranks_filter=0,1,2"
        )

    addr, port = args.master_addr, args.master_port
    if args.standalone:
        nodes = 1
    elif args.rdzv_endpoint:
        addr, _, given = args.rdzv_endpoint.rpartition(":")
        if not addr:
            addr, given = given, ""
        if given and not given.isdecimal():
            raise ValueError(f"rdzv_endpoint {args.rdzv_endpoint!r} is not HOST:PORT")
        port = int(given) if given else None
    if nodes == 1 and not port:
        with socket.create_server(("", 0)) as free:
            port = free.getsockname()[1]
    if not 0 <= args.node_rank < nodes:
        raise ValueError(f"node_rank {args.node_rank} is not one of {nodes} nodes")
    after: Any = args.shutdown_timeout
    if after is None:
        after = os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30")
    conf: dict[str, Any] = dict(pair.split("=", 1) for pair in args.rdzv_conf.split(",") if "=" in pair)
    return {
        "count": count, "number_of_nodes": nodes, "node": args.node_rank, "addr": addr.strip("[]"),
        "port": port or 29500, "wait": float(conf.get("timeout", conf.get("join_timeout", 900))),
        "silence": float(conf.get("keep_alive", _SILENCE)), "id": args.rdzv_id, "restarts": args.max_restarts,
        "role": args.role, "redirects": _streams(args.redirects, count), "tee": _streams(args.tee, count),
        "shown": [int(each) for each in shown.split(",")] if shown else [],
        "virtual_local_rank": args.virtual_local_rank, "log_dir": args.log_dir,
        "signals": [getattr(signal, name.strip()) for name in args.signals_to_handle.split(",") if name.strip()],
        "shutdown": float(after),
        "kind": "command" if args.no_python and not args.run_path else "module" if args.module else "script",
        "program": [args.training_script, *args.training_script_args],
    }  # fmt: skip


# A node -------------------------------------------------------------------------------------------


class _Node:
    """What the launcher of one machine has in hand: the process that it started, and the folder of reports."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job, self.count = job, job["count"]
        if job["log_dir"]:
            Path(job["log_dir"]).mkdir(parents=True, exist_ok=True)
        self._temporary = None if job["log_dir"] else tempfile.TemporaryDirectory(prefix="torchelastic_")
        above = job["log_dir"] or self._temporary.name  # type: ignore[union-attr]
        self.folder = Path(tempfile.mkdtemp(prefix=f"{job['id']}_".replace(os.sep, "_"), dir=above)).absolute()
        self.process: subprocess.Popen[bytes] | None = None
        self.proxy: subprocess.Popen[bytes] | None = None
        self.failing = threading.Event()  # on another node
        self.stopped: int | None = None  # the signal that ended the job
        self._first, self._fifo = 0, -1

    def prepare(self, restart: int, first: int) -> None:
        """Make the folder of an attempt; `first` is the rank of this node's first process."""
        if sys.platform == "win32":
            raise RuntimeError(_NOT_HERE)
        self.failing.clear()
        self._attempt, self._first = self.folder / f"attempt_{restart}", first
        for local in range(self.count):
            (self._attempt / str(local)).mkdir(parents=True)
        os.mkfifo(self._attempt / "alive")
        if self._fifo >= 0:
            os.close(self._fifo)
        self._fifo = os.open(self._attempt / "alive", os.O_RDWR)  # as long as we are there, so is who reads it

    def start(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start what starts the workers."""
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
            start_new_session=True,  # Ctrl-C is for us to pass on
        )  # fmt: skip
        return self.process

    def stop(self, number: int) -> None:
        """Pass a signal on to the program, which has a while to end."""
        first, self.stopped = self.stopped is None, number
        with suppress(OSError):
            (self._attempt / "stopping").touch()
        self._signal(number if first else KILL)
        later = threading.Timer(self.job["shutdown"], self.kill)
        later.daemon = True
        later.start()

    def _signal(self, number: int) -> None:
        for each in self._attempt.glob("*/pid"):
            if not (each.parent / "ended").exists():
                with suppress(OSError, ValueError):
                    os.kill(int(each.read_text()), number)

    def kill(self) -> None:
        """End everything at once."""
        self._signal(KILL)
        for each in (self.process, self.proxy):
            if each is not None:
                each.kill()

    def wait(self) -> int:
        """Show what is written until the workers have ended; return the exit code of what started them.

        It ends them when one of them fails, but does not always manage to, where there are several nodes.
        """
        process, since = self.process, None
        assert process is not None
        threads = [_pump(process.stdout, sys.stdout), _pump(process.stderr, sys.stderr)]
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
            if since is None and (self.failing.is_set() or self._has_failed()):
                since = time.monotonic()
            if since is not None and self.stopped is None and time.monotonic() > since + _GRACE:
                self.kill()
        for thread in threads:
            thread.join(1)
        if self.proxy is not None:
            self.proxy.kill()
            self.proxy.wait()
        return process.returncode

    def _has_failed(self) -> bool:
        ended = [json.loads(each.read_text("utf-8")) for each in self._attempt.glob("*/ended")]
        return any(each["code"] or each["early"] for each in ended)

    def reports(self) -> list[Report]:
        """Return the reports of ranks that failed, and the ranks that came to no end of their own."""
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


def _pump(source: Any, target: Any) -> threading.Thread:
    """Copy what is read to a stream of ours, in a thread, but for what mpiexec says of failures."""

    def copy() -> None:
        held = b""
        while chunk := source.read1(1 << 16):
            said = _BANNER.sub(b"", held + chunk)
            begun = _BEGUN.search(said)
            held = said[begun.start() :] if begun else b""
            show(said[: len(said) - len(held)])
        show(held)

    def show(said: bytes) -> None:
        with suppress(OSError, ValueError):
            target.buffer.write(said)
            target.flush()

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread


# Nodes that know of each other --------------------------------------------------------------------


class _Link:
    """A connection of two nodes: lines of JSON, and a sign of life every now and then."""

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
        """Send signs of life, and listen, from here on."""
        for work in (self._beat, self._listen):
            threading.Thread(target=work, daemon=True).start()

    def _beat(self) -> None:
        while self.send(None):
            time.sleep(_BEAT)

    def _listen(self) -> None:
        while True:
            said = self.receive()
            if said is None:
                self._inbox.put(None)
                self.on_loss()
                return
            if "stop" in said:
                self.on_stop(said["stop"])
            elif "fail" in said:
                self.on_failure()
            else:
                if said.get("failed"):
                    self.on_failure()
                self._inbox.put(said)

    def send(self, said: Any) -> bool:
        """Send a message; return whether the other node is there."""
        with self._lock, suppress(OSError):
            self._connection.sendall(json.dumps(said).encode() + b"\n")
            return True
        return False

    def receive(self) -> Any:
        """Return the next message, None if the other node is lost."""
        with suppress(OSError, ValueError):
            while line := self._file.readline():
                self._connection.settimeout(self._silence)  # at first it may have been longer
                if (said := json.loads(line)) is not None:
                    return said
        return None

    def next(self, timeout: float | None = None) -> Any:
        """Return the next message that the thread has received, None if there is none in time."""
        try:
            return self._inbox.get(timeout=timeout)
        except queue.Empty:
            return None


def _gather(job: dict[str, Any], node: _Node) -> dict[int, tuple[_Link, Any]]:
    """Be node 0: return for each of the others its connection, and what it says of itself."""
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    came: dict[int, tuple[_Link, Any]] = {}
    end = time.monotonic() + job["wait"]
    with socket.create_server(("", job["port"]), family=family, dualstack_ipv6=dual) as listener:
        while len(came) < job["number_of_nodes"] - 1:
            listener.settimeout(max(0.01, end - time.monotonic()))
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                missing = [str(k) for k in range(1, job["number_of_nodes"]) if k not in came]
                raise RuntimeError(
                    f"node {', '.join(missing)} of {job['number_of_nodes']} did not come to "
                    f"{job['addr']}:{job['port']} within {job['wait']:g} s"
                ) from None
            link = _Link(connection, job["silence"])
            said = link.receive()
            if not isinstance(said, dict) or "node" not in said:
                connection.close()
                continue
            wrong = ""
            if said["id"] != job["id"] or said["nodes"] != job["number_of_nodes"]:
                wrong = f"it is of job {said['id']!r} of {said['nodes']} nodes, which node 0 is not"
            elif said["node"] in came or not said["node"]:
                wrong = "another one has this rank"
            if wrong:
                link.send({"end": f"node {said['node']} cannot join: {wrong}", "code": 1})
                raise RuntimeError(f"node {said['node']} cannot join: {wrong}")
            came[said["node"]] = link, said
    return came


def _be_node_0(job: dict[str, Any], node: _Node) -> int:
    """Start the job, again where that is asked for; return the exit code."""
    several = job["number_of_nodes"] > 1
    others = _gather(job, node) if several else {}
    lost: list[int] = []

    def lose(rank: int) -> None:
        lost.append(rank)
        node.kill()

    for k, (link, _) in others.items():
        link.on_stop, link.on_failure, link.on_loss = node.stop, node.failing.set, lambda k=k: lose(k)
        link.begin()
    nodes = [
        [job["count"], str(node.folder)],
        *([said["count"], said["folder"]] for _, (_, said) in sorted(others.items())),
    ]
    firsts = [sum(count for count, _ in nodes[:k]) for k in range(len(nodes))]

    def stop(number: int, _: Any = None) -> None:
        node.stop(number)
        for link, _ in others.values():
            link.send({"stop": number})

    keys = ("role", "redirects", "tee", "shown", "virtual_local_rank", "addr", "port", "id", "restarts")
    for restart in range(job["restarts"] + 1):
        node.prepare(restart, 0)
        said = {key: job[key] for key in keys} | {"nodes": nodes, "restart": restart}
        environment = {**without_launcher(os.environ), "TINYTORCH_JOB": json.dumps(said)}
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command = [sys.executable, str(Path(__file__).with_name("worker.py")), job["kind"], *job["program"]]
        process = node.start([*_mpiexec(nodes), *command], environment)
        for number in job["signals"]:
            signal.signal(number, stop)
        if several:
            node.proxy = _start_proxies(process, others, restart, firsts)
        code = node.wait()
        failed = node.reports()
        for link, _ in others.values():
            link.send({"fail": bool(failed)})  # it ends there by now, or never
        for k, (link, _) in others.items():
            heard = None if k in lost else link.next(job["shutdown"] if node.stopped else 5)
            failed += heard["failed"] if heard else [
                {"rank": firsts[k] + local, "local_rank": local, "pid": 0, "code": None, "early": False,
                 "time": float("inf"), "error_file": "", "data": None, "lost": k}
                for local in range(nodes[k][0])
            ]  # fmt: skip
        if not failed or node.stopped or lost:
            break
        if restart < job["restarts"]:
            print(f"torchrun: {_root(failed)}; attempt {restart + 2} of {job['restarts'] + 1}", file=sys.stderr)
    message = ""
    if node.stopped:
        message = f"torchrun: ended by {signal.Signals(node.stopped).name}"
    elif failed:
        message = _told(job, failed, code)
    code = 128 + node.stopped if node.stopped else 1 if failed else 0
    for link, _ in others.values():
        link.send({"end": message, "code": code})
    if message:
        print(message, file=sys.stderr)
    return code


def _mpiexec(nodes: list[list[Any]]) -> list[str]:
    """Return how the workers of some nodes, given by their number of processes, are started."""
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
        return [mpiexec, "-launcher", "fork", "-rmk", "user", "-n", str(counts[0])]
    hosts = ",".join(f"node{k}:{count}" for k, count in enumerate(counts))  # names that only tell them apart
    return [mpiexec, "-launcher", "manual", "-rmk", "user", "-hosts", hosts, "-n", str(sum(counts))]


def _set_host(command: list[str], host: str) -> None:
    """Let a proxy find mpiexec, whose port its command names, at an address."""
    at = command.index("--control-port") + 1
    command[at] = f"{host}:{command[at].rpartition(':')[2]}"


def _start_proxies(process: Any, others: dict[int, tuple[_Link, Any]], restart: int, firsts: list[int]) -> Any:
    """Start, here and on the other nodes, what mpiexec says it wants to have started; return the process here."""
    proxy = None
    for line in process.stdout:
        words = shlex.split(line.decode())
        if words[0] != "HYDRA_LAUNCH:":
            break  # HYDRA_LAUNCH_END
        k = int(words[words.index("--proxy-id") + 1])
        if k == 0:
            _set_host(words, "127.0.0.1")
            proxy = subprocess.Popen(
                words[1:], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
            )
            _pump(proxy.stderr, sys.stderr)
        else:
            others[k][0].send({"proxy": words[2:], "restart": restart, "first": firsts[k]})
    return proxy


def _be_another_node(job: dict[str, Any], node: _Node) -> int:
    """Do what node 0 says; return its exit code."""
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
    connection.settimeout(job["wait"] + 5)  # until all nodes have come, and node 0 begins to give signs of life
    link.begin()
    proxy = str(Path(find_mpiexec()).with_name("hydra_pmi_proxy"))
    for number in job["signals"]:
        signal.signal(number, lambda number, _: node.stop(number) if node.process else os._exit(128 + number))
    while (said := link.next()) is not None:
        if "end" in said:
            if said["end"]:
                print(said["end"], file=sys.stderr)
            return said["code"]
        node.prepare(said["restart"], said["first"])
        words = said["proxy"]
        _set_host(words, job["addr"])
        node.start([proxy, *words], without_launcher(os.environ))
        node.wait()
        link.send({"failed": node.reports()})
    ranks = f"{node._first}-{node._first + node.count - 1}"
    print(f"torchrun: node 0 (rank 0) is lost; node {job['node']} (ranks {ranks}) ends too", file=sys.stderr)
    return 1


# What went wrong ----------------------------------------------------------------------------------


def _root(failed: list[Report]) -> str:
    """Return in a few words which rank failed first, and how."""
    first = min(failed, key=lambda each: each["time"])
    if first["code"] is None:
        how = "was lost with its node" if "lost" in first else "was ended" if first["started"] else "never started"
    elif first["early"]:
        how = "ended with status 0 in the middle of the job (os._exit?)"
    elif first["code"] < 0:
        how = f"was ended by signal {-first['code']}"
    else:
        how = f"failed with exit code {first['code']}"
    return f"rank {first['rank']} {how}"


def _told(job: dict[str, Any], failed: list[Report], code: int) -> str:
    """Return what is said of a failure: PyTorch's summary, with the ranks that failed of themselves."""
    if all(each["code"] is None and not each.get("started") and "lost" not in each for each in failed):
        return f"torchrun: mpiexec ended with exit code {code} before any rank started"
    own = [each for each in failed if each["code"] is not None]
    lost = sorted({each["lost"] for each in failed if "lost" in each})
    if lost and not any(each["data"] or each["code"] > 0 for each in own):  # ours were ended with it
        ranks = ", ".join(str(each["rank"]) for each in failed if "lost" in each)
        return (
            f"torchrun: node {', '.join(map(str, lost))} (rank {ranks}) is lost: its launcher ended, or the network did"
        )
    own, failures = sorted(own or failed, key=lambda each: each["time"]), {}
    for each in [own[0], *(each for each in own[1:] if each["data"] or (each["code"] or 0) > 0)]:  # others were ended
        failure = ProcessFailure(each["local_rank"], each["pid"], each["code"] or 0, each["error_file"])
        if each["data"]:
            failure.error_file_data = each["data"]
            failure.message = each["data"]["message"]
        elif each["code"] is None or each["early"]:
            failure.message = _root([each])
        if each["time"] != float("inf"):
            failure.timestamp = int(each["time"])
        failures[each["rank"]] = failure
    return f"{ChildFailedError(job['program'][0], failures)}\ntorchrun: {_root(own)}"


def run(args: argparse.Namespace) -> int:
    """Start what a command line asks for, and wait for its end; return the exit code."""
    if sys.platform == "win32":
        raise RuntimeError(_NOT_HERE)
    job = config_from_args(args)
    _mpiexec([[job["count"], ""]] * job["number_of_nodes"])  # raises before others are waited for
    node = _Node(job)
    return _be_another_node(job, node) if job["node"] else _be_node_0(job, node)


def main(args: list[str] | None = None) -> None:
    """Be the command `torchrun`."""
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
