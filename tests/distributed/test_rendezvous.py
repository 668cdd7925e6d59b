"""Who a process is, how processes meet that no launcher started, and how they end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tinytorch.distributed.elastic.multiprocessing import errors

from tests.distributed import PROGRAMS, needs_mpi
from tests.distributed.test_run import ENDING, KNOWN, _is_mpich, _port, left
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch
from tinytorch.distributed import rendezvous
from tinytorch.distributed.mpi import find_mpiexec, without_launcher


def ran(*command: object, environment: Any = KNOWN) -> tuple[int, str, str]:
    done = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


ASKED = {
    "nothing": ({}, (None, -1, -1)), "rank alone": ({"RANK": "0"}, (None, -1, -1)), "no address": ({}, (None, 0, 2)),
    "no port": ({"MASTER_ADDR": "localhost"}, (None, 0, 2)), "tcp without rank": ({}, ("tcp://localhost:1", -1, 2)),
    "tcp without world size": ({}, ("tcp://localhost:1", 1, -1)), "tcp without port": ({}, ("tcp://localhost", 1, 2)),
    "file without path": ({}, ("file://", 1, 2)), "unknown": ({}, ("what://x", 0, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_what_is_missing_is_named_as_in_pytorch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    environment, (method, rank, world_size) = ASKED[name]
    for each in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(each, raising=False)
    for each, value in environment.items():
        monkeypatch.setenv(each, value)

    def message(torch: Any) -> Any:
        try:
            torch.distributed.init_process_group("gloo", method, rank=rank, world_size=world_size)
        except (ValueError, RuntimeError) as error:
            return type(error).__name__, str(error)

    same_as_pytorch(message)


def test_a_process_of_its_own_is_told_nothing() -> None:
    known = {"PMI_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_MCA_btl": "tcp", "PMIX_MCA_gds": "hash", "HOME": "/"}
    assert without_launcher(known).keys() == {"OMPI_MCA_btl", "PMIX_MCA_gds", "HOME"}
    assert rendezvous.join(None, 0, 1, 1.0) == (None, 0, 1)


def test_without_mpi_it_is_said_what_to_install() -> None:
    code = "import sys; sys.modules['mpi4py'] = None; from tinytorch.distributed.mpi import mpi; mpi()"
    assert "pip install mpi4py mpich" in ran(sys.executable, "-c", code)[2]


@needs_mpi
@pytest.mark.parametrize("how", ["fine", "raise", "kill", "silent"])
def test_spawned_processes_meet_and_end(how: str, tmp_path: Path) -> None:
    program = tmp_path / "spawning.py"
    program.write_text((PROGRAMS / "spawning.py").read_text())
    code, out, said = ran(sys.executable, program, how, "fork" if how == "silent" else "spawn", f"127.0.0.1:{_port()}")
    if not _is_mpich():
        assert code == 1 and "tinytorch.distributed.run" in said
        return
    assert sorted(out.splitlines()) == [f"rank {rank}: 3 ''" for rank in range(3)]
    assert (code, "ValueError: a word to be seen" in said) == (int(how != "fine"), how == "raise"), said
    assert ("SIGKILL" in said) == (how == "kill") and not left(str(program))


@needs_mpi
@pytest.mark.parametrize("kind", ["tcp", "file"])
def test_addresses(kind: str, tmp_path: Path) -> None:
    if not _is_mpich():
        pytest.skip("processes that start each other need MPICH")
    where = f"tcp://127.0.0.1:{_port()}" if kind == "tcp" else f"file://{tmp_path}/meet"
    code, out, said = ran(sys.executable, PROGRAMS / "spawning.py", "fine", "fork", where)
    assert (code, len(out.splitlines())) == (0, 3), said
    assert not list(tmp_path.iterdir())


@needs_mpi
def test_processes_that_do_not_come() -> None:
    if not _is_mpich():
        pytest.skip("processes that start each other need MPICH")
    code = (
        "import datetime, sys, tinytorch.distributed as dist\n"
        "dist.init_process_group('gloo', sys.argv[2], datetime.timedelta(seconds=0.3), 2, int(sys.argv[1]))"
    )
    for rank in (0, 1):
        status, _, said = ran(sys.executable, "-c", code, rank, f"tcp://127.0.0.1:{_port()}")
        assert status == 1 and "DistStoreError: Timed out after 0.3 seconds waiting for clients. 1/2" in said
    said = ran(sys.executable, "-c", code, 0, f"tcp://192.0.2.1:{_port()}")[2]
    assert "DistNetworkError: The server socket of rank 0 has failed to listen" in said and "torchrun" in said


@needs_mpi
@pytest.mark.parametrize(("how", "status"), [("fine", 0), ("again", 0), ("raise", 1), ("exit", 3)])
def test_a_bare_mpiexec(how: str, status: int) -> None:
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    more = [] if _is_mpich() else ["--oversubscribe"]
    code, _, said = ran(find_mpiexec(), *more, "-n", 3, sys.executable, ENDING, how, environment=KNOWN | root)
    assert code == status and ("ValueError: a word to be seen" in said) == (how == "raise"), said


@needs_oracle
def test_record_writes_what_pytorch_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ValueError("no data")

    def written(torch: Any, file: Path) -> Any:
        package = __import__(f"{torch.__name__}.distributed.elastic.multiprocessing.errors")
        monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(file))
        found = package.distributed.elastic.multiprocessing.errors
        with pytest.raises(ValueError, match="no data"):
            found.record(fail)()
        assert found.record(lambda x: x)(3) == 3
        failure = found.ProcessFailure(1, 77, 1, str(file))
        told = str(found.ChildFailedError("train.py", {3: failure, 1: found.ProcessFailure(0, 5, -9, "")}))
        data = json.loads(file.read_text())
        return data["message"]["message"], sorted(data["message"]["extraInfo"]), told.count("\n"), failure.signal_name()

    import torch

    import tinytorch

    ours, theirs = written(tinytorch, tmp_path / "a"), written(torch, tmp_path / "b")
    assert ours == theirs and ours[0] == "ValueError: no data" and errors.get_error_handler()
