"""torchrun: what it is asked for, the programs that it runs, and how they end, on one machine and on two."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.distributed import PROGRAMS, ROOT, needs_mpi
from tests.oracle import needs_oracle, torch
from tinytorch.distributed import run

TORCHRUN = [sys.executable, "-m", "tinytorch.distributed.run"]
ENDING = str(PROGRAMS / "ending.py")
KNOWN = {**os.environ, "PYTHONPATH": str(ROOT)}


def start(*words: object) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([*TORCHRUN, *map(str, words)], env=KNOWN, stdout=pipe, stderr=pipe, text=True)


def ran(*words: object, environment: Any = KNOWN) -> tuple[int, str, str]:
    command = [*TORCHRUN, *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def lines(text: str) -> list[str]:
    return sorted(text.split("\n")[:-1])


def left(program: str) -> list[str]:
    """Return the processes that have a word in their command line, once those that end have ended."""
    end, found = time.monotonic() + 2, [""]
    while found and time.monotonic() < end:
        time.sleep(0.05)
        said = subprocess.run(["ps", "-eo", "stat,args"], capture_output=True, text=True).stdout
        found = [line for line in said.splitlines() if program in line and line[0] != "Z"]
    return found


@needs_oracle
def test_options_are_pytorchs() -> None:
    theirs = __import__("torch.distributed.run").distributed.run.get_args_parser()
    ours = run.get_args_parser()
    assert set(theirs._option_string_actions) == set(ours._option_string_actions)
    words = ["--nnodes=2", "--node_rank", "1", "-m", "--nproc-per-node", "3", "pack.mod", "--nnodes", "7"]
    theirs, ours = vars(theirs.parse_args(words)), vars(ours.parse_args(words))
    assert {k: v or "" for k, v in theirs.items()} == {k: ours[k] or "" for k in theirs} | {
        name: "" for name in theirs if name.startswith("duplicate")
    }


WRONG = {
    "--nproc-per-node x": (ValueError, "Unsupported nproc_per_node value: x"),
    "--nproc-per-node gpu": (ValueError, "Cuda is not available."),
    "--nnodes 1:2:3": (RuntimeError, 'nnodes=1:2:3 is not in "MIN:MAX" format'),
    "--nnodes 3:2": (AssertionError, "min_nodes must be > 0 and <= max_nodes, got min_nodes=3, max_nodes=2"),
    "--max-restarts -1": (AssertionError, "max_restarts must be >= 0"),
    "--no-python -m": (ValueError, "Don't use both the '--no-python' flag"),
    "--local-ranks-filter 0,a": (ValueError, "--local_ranks_filter must be a comma-separated list of integers"),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_values_raise(words: str) -> None:
    kind, message = WRONG[words]
    with pytest.raises(kind) as caught:
        run.config_from_args(run.parse_args([*words.split(), "program.py"]))
    assert message in str(caught.value)
    if torch is not None and not words.startswith("--nproc-per-node gpu"):
        theirs = __import__("torch.distributed.run").distributed.run
        with pytest.raises(kind) as caught:
            theirs.config_from_args(theirs.parse_args([*words.split(), "program.py"]))
        assert message in str(caught.value)


@pytest.mark.parametrize("words", ["--rdzv-backend etcd", "--numa-binding node", "--nnodes 2 --node-rank 2", "-t 0:7"])
def test_what_is_not_there_raises(words: str) -> None:
    with pytest.raises(ValueError):
        run.config_from_args(run.parse_args([*words.split(), "program.py"]))


PLAIN = {
    "arguments": "import sys; print(__name__, __file__, sys.argv, sys.path[0], __spec__)",
    "exit code": "import sys; sys.exit('said')", "traceback": "def f():\n    1 / 0\nf()", "wrong syntax": "x = = 1",
    "at exit": "import atexit, threading as t\natexit.register(print, 'bye')\nt.Timer(0.05, print, ['late']).start()",
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN)
def test_one_process_needs_no_mpi_and_runs_as_with_python(name: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PLAIN[name])
    plain = subprocess.run([sys.executable, program, "-a", "b"], capture_output=True, text=True)
    code, out, errors = ran(program, "-a", "b", environment={**KNOWN, "MPI4PY_LIBMPI": "/nothing"})
    assert (code != 0, out) == (plain.returncode != 0, plain.stdout)
    assert errors.startswith(plain.stderr) and (code == 0) == (errors == "")


def test_modules_folders_and_commands(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__main__.py").write_text("import sys; print(__name__, __package__, sys.argv[1:])")
    known = {**KNOWN, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    assert ran("-m", "pack", "x", environment=known)[:2] == (0, "__main__ pack ['x']\n")
    assert ran(tmp_path / "pack", "x")[:2] == (0, "__main__  ['x']\n")
    assert ran("--no-python", "echo", "x")[:2] == (0, "x\n")
    assert ran("--no-python", "no such command")[0] == 1
    assert "can't open file" in ran(tmp_path / "nothing.py")[2]


@needs_mpi
def test_each_process_is_told_who_it_is(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    names = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK ROLE_NAME TORCHELASTIC_RUN_ID OMP_NUM_THREADS"
    program.write_text(f"import os; print(*[os.environ[name] for name in '{names}'.split()])")
    known = {**KNOWN}
    known.pop("OMP_NUM_THREADS", None)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    code, out, _ = ran("--nproc-per-node", 2, "--rdzv-id", "job", "--role", "r", program, environment=known)
    assert (code, lines(out)) == (0, [f"{rank} 2 {rank} 2 0 r job {max(1, cores // 2)}" for rank in range(2)])


@needs_mpi
def test_logs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os, sys; print('out', os.environ['RANK']); print('err', file=sys.stderr)")
    where = tmp_path / "logs"
    code, out, errors = ran("--nproc_per_node", 2, "--log_dir", where, "-r", "0:1", "-t", "1:3", program)
    assert (code, lines(out), lines(errors)) == (0, ["[default1]:out 1"], ["[default1]:err", "err"])
    found = {str(each.relative_to(where)).partition("/")[2]: each.read_text() for each in where.rglob("*.log")}
    assert {k: v for k, v in found.items() if v} == {
        "attempt_0/0/stdout.log": "out 0\n", "attempt_0/1/stdout.log": "out 1\n", "attempt_0/1/stderr.log": "err\n"
    }  # fmt: skip
    assert ran("--nproc_per_node", 2, "--local_ranks_filter", 1, program)[:2] == (0, "out 1\n")


ENDS = {
    "raise": ("rank 1 failed with exit code 1", "ValueError: a word to be seen"),
    "exit": ("rank 1 failed with exit code 3", "exitcode  : 3 "),
    "kill": ("rank 1 was ended by signal 9", "(SIGKILL)"),
    "silent": ("rank 1 ended with status 0 in the middle of the job", "os._exit"),
}


@needs_mpi
@pytest.mark.parametrize("how", ENDS)
def test_a_rank_that_fails_ends_the_job_and_is_named(how: str) -> None:
    code, out, errors = ran("--nproc_per_node", 3, ENDING, how)
    assert code == 1 and lines(out) == [f"rank {rank} of 3: 3" for rank in range(3)]
    assert all(words in errors for words in ENDS[how]) and errors.count("Root Cause") == 1
    assert "BAD TERMINATION" not in out + errors


@needs_mpi
def test_groups_come_again_and_jobs_too() -> None:
    assert ran("--nproc_per_node", 2, ENDING, "again")[::2] == (0, "")
    code, out, errors = ran("--nproc_per_node", 2, "--max-restarts", 1, ENDING, "once")
    assert code == 0 and len(lines(out)) == 4 and "attempt 2 of 2" in errors
    assert ran("--nproc_per_node", 2, ENDING, "once")[0] == 1


@needs_mpi
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_launcher_that_ends_leaves_nothing(number: int, tmp_path: Path) -> None:
    program = tmp_path / "sleeping.py"
    program.write_text(Path(ENDING).read_text())
    with start("--nproc_per_node", 2, program, "sleep") as process:
        assert process.stdout is not None
        assert {process.stdout.readline() for _ in range(2)} == {"rank 0 of 2: 1\n", "rank 1 of 2: 1\n"}
        process.send_signal(number)
        process.wait(5)
        assert process.returncode == (-number if number == signal.SIGKILL else 128 + number)
        assert not left(str(program))


@needs_mpi
def test_a_signal_leaves_time_for_a_checkpoint(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, signal, sys, time\n"
        "def save(*_):\n    time.sleep(0.3 * int(os.environ['RANK'])); print('saved'); sys.exit(1)\n"
        "signal.signal(signal.SIGTERM, save); print('ready'); time.sleep(60)"
    )
    with start("--nproc_per_node", 2, program) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
        process.terminate()
        out, _ = process.communicate(timeout=10)
    assert out == "saved\n" * 2 and process.returncode == 143


def _port() -> int:
    with socket.create_server(("", 0)) as free:
        return free.getsockname()[1]


def _two(*words: object, counts: tuple[int, int] = (2, 1)) -> list[subprocess.Popen[str]]:
    where = ["--nnodes", 2, "--master_addr", "127.0.0.1", "--master_port", _port()]
    return [start(*where, "--node_rank", k, "--nproc_per_node", counts[k], *words) for k in range(2)]


def _is_mpich() -> bool:
    from tinytorch.distributed.mpi import vendor

    return vendor() == "MPICH"


@needs_mpi
@pytest.mark.parametrize("how", ["fine", "once", "kill"])
def test_two_nodes(how: str) -> None:
    if not _is_mpich():
        assert "need MPICH" in ran("--nnodes", 2, "--rdzv-conf", "timeout=0", ENDING, how)[2]
        return
    first, second = _two("--max-restarts", int(how == "once"), ENDING, how)
    (out, errors), (_, others) = first.communicate(timeout=30), second.communicate(timeout=30)
    assert (first.returncode, second.returncode) == (int(how == "kill"),) * 2
    assert set(lines(out)) == {f"rank {rank} of 3: 3" for rank in range(3)}
    if how == "kill":
        assert "rank 1 was ended by signal 9" in errors and "rank 1 was ended by signal 9" in others


@needs_mpi
@pytest.mark.parametrize("lost", [0, 1])
def test_a_node_that_is_lost_ends_the_job(lost: int) -> None:
    if not _is_mpich():
        pytest.skip("several machines without ssh need MPICH")
    nodes = _two(ENDING, "sleep")
    assert nodes[0].stdout is not None
    for _ in range(3):
        nodes[0].stdout.readline()
    nodes[lost].kill()
    _, errors = nodes[1 - lost].communicate(timeout=5)
    assert nodes[1 - lost].returncode == 1
    nodes[lost].communicate(timeout=5)
    assert (f"node {lost} (rank {2 * lost}) is lost") in errors


@needs_mpi
def test_a_node_that_does_not_come_is_named() -> None:
    where = ["--nnodes", 2, "--master_port", _port(), "--rdzv-conf", "timeout=0.2"]
    if _is_mpich():
        assert "node 1 of 2 did not come to 127.0.0.1" in ran(*where, ENDING, "fine")[2]
    assert "node 0 is not at 127.0.0.1" in ran(*where, "--node_rank", 1, ENDING, "fine")[2]
