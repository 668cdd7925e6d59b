"""Programs of several processes: they need mpi4py and an MPI, the extra `distributed`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PROGRAMS = Path(__file__).parent / "programs"

has_mpi = importlib.util.find_spec("mpi4py") is not None or os.environ.get("TINYTORCH_REQUIRE_MPI") == "1"
needs_mpi = pytest.mark.skipif(not has_mpi, reason="mpi4py is not installed: pip install mpi4py mpich")


def run(program: str, processes: int, *args: object, timeout: float = 100) -> subprocess.CompletedProcess[str]:
    """Run a program of the folder `programs` in several processes."""
    command = [sys.executable, "-m", "tinytorch.distributed.run", "--nproc_per_node", str(processes)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*command, str(PROGRAMS / program), *map(str, args)], env=environment, capture_output=True, text=True,
        timeout=timeout,
    )  # fmt: skip
