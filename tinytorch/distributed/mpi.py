"""MPI, by mpi4py: an extra, imported when processes first meet; and the `mpiexec` that belongs to it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["find_mpiexec", "mpi", "without_launcher"]

_HINT = "pip install mpi4py mpich; on a cluster mpi4py alone, and load its MPI module"
# How variables begin by which a launcher tells a process that it is one of its job.
_LAUNCHER = ("PMI_", "PMIX_", "HYDI_", "MPI_LOCAL", "OMPI_COMM_WORLD_")


@functools.cache
def mpi() -> Any:
    """Return mpi4py's module `MPI`; it is imported without initializing MPI, which `rendezvous.join` does.

    Raises:
        ImportError: mpi4py is not installed, or finds no MPI library.
    """
    try:
        import mpi4py

        # One thread at a time calls MPI. What happens at the end, `rendezvous` decides: MPI_Finalize waits for all.
        mpi4py.rc(initialize=False, finalize=False, thread_level="serialized")
        from mpi4py import MPI
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"torch.distributed with several processes needs mpi4py, which is not installed: {_HINT}", name="mpi4py"
        ) from error
    except (RuntimeError, ImportError) as error:
        raise ImportError(f"mpi4py finds no MPI library to load: {_HINT}", name="mpi4py") from error
    return MPI


def without_launcher(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what an MPI launcher said in it: a process that gets it is of no job."""
    return {k: v for k, v in environment.items() if not k.startswith(_LAUNCHER) or "_MCA_" in k}


def vendor() -> str:
    """Return whose library mpi4py loads: "MPICH", "Open MPI", "Intel MPI" and so on."""
    return mpi().get_vendor()[0]


def find_mpiexec() -> str:
    """Return the path of the `mpiexec` that belongs to the library which mpi4py loads: beside Python, or on PATH.

    Raises:
        RuntimeError: there is none.
    """
    ours, others = vendor(), []
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for folder in dict.fromkeys(path.split(os.pathsep)):
        found = shutil.which("mpiexec", path=folder)
        if found is not None:
            said = subprocess.run([found, "--version"], capture_output=True, text=True).stdout
            kind = "Open MPI" if "Open MPI" in said else "Intel MPI" if "Intel" in said else "MPICH"
            if kind == ours or "Open MPI" not in (kind, ours):  # Intel's and MPICH's are one family
                return found
            others.append(f"{found} ({kind})")
    there = f"; there is {', '.join(others)}" if others else ""
    raise RuntimeError(f"no mpiexec of {ours}, whose library mpi4py loads, beside {sys.executable} or on PATH{there}")
