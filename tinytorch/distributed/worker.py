"""The process that `mpiexec` starts for each rank (see `run.py`): it runs the program in a child, and reports its end.

It runs as a file, so that neither tinytorch nor NumPy is imported before the program. The program runs as by
`python script.py`, with the same `__main__`, `sys.argv`, `sys.path` and tracebacks.
"""

from __future__ import annotations

import builtins
import json
import os
import runpy
import signal
import sys
import threading
import time
import traceback
import types
import zipfile
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from typing import Any, NoReturn

STDOUT, STDERR = 1, 2
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # (Windows has none, and no torchrun)


def environment(job: dict[str, Any], rank: int) -> tuple[dict[str, str], str]:
    """Return the environment variables of a rank, and the folder of its report."""
    counts = [count for count, _ in job["nodes"]]
    node = next(k for k in range(len(counts)) if rank < sum(counts[: k + 1]))
    local, count = rank - sum(counts[:node]), counts[node]
    folder = os.path.join(job["nodes"][node][1], f"attempt_{job['restart']}", str(local))
    variables: dict[str, Any] = {
        "RANK": rank, "WORLD_SIZE": sum(counts), "LOCAL_RANK": 0 if job["virtual_local_rank"] else local,
        "LOCAL_WORLD_SIZE": count, "GROUP_RANK": node, "GROUP_WORLD_SIZE": len(counts), "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": sum(counts), "ROLE_NAME": job["role"], "MASTER_ADDR": job["addr"],
        "MASTER_PORT": job["port"], "TORCHELASTIC_RUN_ID": job["id"],
        "TORCHELASTIC_RESTART_COUNT": job["restart"], "TORCHELASTIC_MAX_RESTARTS": job["restarts"],
        "TORCHELASTIC_USE_AGENT_STORE": False, "TORCHELASTIC_ERROR_FILE": os.path.join(folder, "error.json"),
        "TINYTORCH_REPORT": folder,
    }  # fmt: skip
    if count > 1 and "OMP_NUM_THREADS" not in os.environ:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        variables["OMP_NUM_THREADS"] = max(1, cores // count)
    return {name: str(value) for name, value in variables.items()}, folder


# The program --------------------------------------------------------------------------------------


def run(kind: str, arguments: list[str]) -> None:
    """Run a program in this process; `kind` is "script", "module", or "command" for one that is not in Python."""
    program = arguments[0]
    if kind == "command":
        try:
            os.execvp(program, arguments)
        except OSError as error:
            sys.exit(f"{program}: {error.strerror}")
    sys.argv = arguments
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=False)  # type: ignore[union-attr]  # lines are not split
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    folder = kind != "module" and (os.path.isdir(program) or zipfile.is_zipfile(program))
    if not sys.flags.safe_path:
        own = os.getcwd() if kind == "module" else program if folder else os.path.dirname(os.path.realpath(program))
        sys.path[0] = own
    if kind == "module" or folder:
        as_main: Any = runpy._run_module_as_main  # type: ignore[attr-defined]
        as_main("__main__" if folder else program, kind == "module")
        return
    try:
        with open(program, "rb") as file:
            text = file.read()
    except OSError as error:
        print(f"{sys.executable}: can't open file {program!r}: {error}", file=sys.stderr)
        sys.exit(2)
    main.__dict__.update(__file__=program, __cached__=None, __loader__=SourceFileLoader("__main__", program))
    exec(compile(text, program, "exec"), main.__dict__)


def run_program(kind: str, arguments: list[str], error_file: str) -> NoReturn:
    """Run the program, and end with its exit code; write its exception to the error file, and for `rendezvous`."""
    try:
        run(kind, arguments)
    except SystemExit as error:
        if error.code not in (None, 0):
            sys.last_value = error
        raise
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, runpy.__file__, "<frozen runpy>"):
            trace = trace.tb_next
        error.__traceback__ = trace
        if not os.path.exists(error_file):
            extra = {"py_callstack": "".join(traceback.format_exception(error)), "timestamp": str(int(time.time()))}
            with suppress(OSError), open(error_file, "w", encoding="utf-8") as file:
                json.dump({"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}}, file)
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
        sys.excepthook(type(error), error, trace)
        raise SystemExit(130 if isinstance(error, KeyboardInterrupt) else 1) from None
    sys.exit(0)


# The parent process -------------------------------------------------------------------------------


def copy(source: int, file: str, console: int | None, prefix: bytes) -> None:
    """Copy lines to a file and, with a prefix, to the console."""
    with open(source, "rb") as lines, open(file, "ab", 0) as log:
        for line in lines:
            log.write(line)
            if console is not None:
                os.write(console, prefix + line)


def outputs(job: dict[str, Any], local: int, folder: str) -> tuple[dict[int, int], list[threading.Thread]]:
    """Return the file descriptors that replace the program's two streams, and the threads that copy from them."""
    replacements, threads = {}, []
    shown = not job["shown"] or local in job["shown"]
    for stream, name in ((STDOUT, "stdout.log"), (STDERR, "stderr.log")):
        file = os.path.join(folder, name)
        if job["tee"].get(str(local), 0) & stream:
            source, replacements[stream] = os.pipe()
            prefix = f"[{job['role']}{local}]:".encode()
            threads.append(threading.Thread(target=copy, args=(source, file, stream if shown else None, prefix)))
        elif job["redirects"].get(str(local), 0) & stream:
            replacements[stream] = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        elif not shown:
            replacements[stream] = os.open(os.devnull, os.O_WRONLY)
    return replacements, threads


def end_with_launcher(fifo: str, child: int) -> None:
    """Wait until the launcher, which holds the other end of the pipe, has ended in any way; then end the program."""
    with suppress(OSError), open(fifo, "rb") as alive:
        alive.read()
    with suppress(OSError):
        os.kill(child, KILL)
    os._exit(1)


def write(folder: str, name: str, text: str) -> None:
    """Write a file atomically."""
    path = os.path.join(folder, name)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".part", path)


def main() -> NoReturn:
    """Fork: run the program in the child, and report its end from the parent."""
    if sys.platform == "win32":
        raise RuntimeError("torchrun runs on Linux and macOS")
    job, kind, arguments = json.loads(os.environ.pop("TINYTORCH_JOB")), sys.argv[1], sys.argv[2:]
    names = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
    rank = int(next((os.environ[name] for name in names if name in os.environ), "0"))
    variables, folder = environment(job, rank)
    os.environ.update(variables)
    os.makedirs(folder, exist_ok=True)
    attempt = os.path.dirname(folder)
    replacements, threads = outputs(job, int(os.path.basename(folder)), folder)

    child = os.fork()
    if not child:
        for stream, replacement in replacements.items():
            os.dup2(replacement, stream)
        run_program(kind, arguments, variables["TORCHELASTIC_ERROR_FILE"])
    write(folder, "pid", str(child))
    signal.signal(signal.SIGTERM, lambda number, _: os.kill(child, number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for replacement in replacements.values():
        os.close(replacement)
    watch = threading.Thread(target=end_with_launcher, args=(os.path.join(attempt, "alive"), child), daemon=True)
    for thread in (watch, *threads):
        thread.start()

    _, status = os.waitpid(child, 0)
    code, moment = os.waitstatus_to_exitcode(status), time.time()
    for thread in threads:
        thread.join(1)  # with a timeout: the program's children may hold its streams open
    # A rank that ends early with status 0 (os._exit) has failed.
    early = code == 0 and os.path.exists(os.path.join(folder, "joined")) != os.path.exists(os.path.join(folder, "done"))
    report = {"rank": rank, "local_rank": int(os.path.basename(folder)), "pid": child, "code": code, "early": early}
    write(folder, "ended", json.dumps({**report, "time": moment}))
    while os.path.exists(os.path.join(attempt, "stopping")) and not all(
        os.path.exists(os.path.join(attempt, str(k), "ended")) for k in range(int(variables["LOCAL_WORLD_SIZE"]))
    ):
        time.sleep(0.02)  # the first rank to end makes mpiexec end the others, which may still write a checkpoint
    os._exit(1 if early else code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
