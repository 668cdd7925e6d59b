"""How processes find each other."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any


def mpi() -> Any:
    """Return mpi4py's module."""
    from mpi4py import MPI

    return MPI


def has_mpi() -> bool:
    """Return whether mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def join(init_method: str | None, rank: int, world_size: int, timeout: float) -> tuple[Any, int, int]:
    """Return MPI's communicator of all processes (None for one), the rank of this one, and their number."""
    if world_size == 1 or os.environ.get("WORLD_SIZE") == "1":
        return None, 0, 1
    if not any(k in os.environ for k in ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")):
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable RANK expected, but "
            "not set"
        )
    comm = mpi().COMM_WORLD.Dup()
    if comm.size == 1:
        return None, 0, 1
    before = sys.excepthook

    def hook(*args: Any) -> None:
        before(*args)
        sys.stderr.flush()
        mpi().COMM_WORLD.Abort(1)

    sys.excepthook = hook
    return comm, comm.rank, comm.size


def leave() -> None:
    """End what `join` began."""
