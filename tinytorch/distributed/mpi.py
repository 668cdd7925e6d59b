"""MPI by mpi4py, an extra that is imported when processes first connect; and the `mpiexec` of its library."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_HINT = "pip install mpi4py mpich; on a cluster mpi4py alone, and load its MPI module"
# Prefixes of the environment variables by which a launcher tells a process its rank and its job.
_LAUNCHER = ("PMI_", "PMIX_", "HYDI_", "MPI_LOCAL", "OMPI_COMM_WORLD_")


@functools.cache
def mpi() -> Any:
    """Return mpi4py's module `MPI`. The import does not initialize MPI: `rendezvous.join` does."""
    try:
        import mpi4py

        # One thread at a time calls MPI. `rendezvous` decides when to call MPI_Finalize, which waits for all ranks.
        mpi4py.rc(initialize=False, finalize=False, thread_level="serialized")
        from mpi4py import MPI
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"torch.distributed with several processes needs mpi4py, which is not installed: {_HINT}", name="mpi4py"
        ) from None
    except (RuntimeError, ImportError) as error:
        raise ImportError(f"mpi4py finds no MPI library to load: {_HINT}", name="mpi4py") from error
    return MPI


def without_launcher(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without an MPI launcher's variables: a process with it belongs to no MPI job."""
    return {k: v for k, v in environment.items() if not k.startswith(_LAUNCHER) or "_MCA_" in k}


def vendor() -> str:
    """Return the name of the MPI library that mpi4py loads: "MPICH", "Open MPI", "Intel MPI" and so on."""
    return mpi().get_vendor()[0]


def find_mpiexec() -> str:
    """Return the path of the `mpiexec` of the library that mpi4py loads: in Python's folder, or on PATH."""
    library, others = vendor(), []
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    for folder in dict.fromkeys(path.split(os.pathsep)):
        program = shutil.which("mpiexec", path=folder)
        if program is not None:
            version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            kind = "Open MPI" if "Open MPI" in version else "Intel MPI" if "Intel" in version else "MPICH"
            if kind == library or "Open MPI" not in (kind, library):  # Intel's MPI is derived from MPICH
                return program
            others.append(f"{program} ({kind})")
    hint = f"; there is {', '.join(others)}" if others else ""
    raise RuntimeError(f"no mpiexec of {library}, whose library mpi4py loads, beside {sys.executable} or on PATH{hint}")
