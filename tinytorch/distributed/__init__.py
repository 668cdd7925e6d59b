"""`torch.distributed`, as in a process that is no part of a group: programs ask whether it is."""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar, NoReturn

#: Functions of a group, by PyTorch's names: they raise, as in PyTorch.
_OF_GROUPS = """
    all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier
    batch_isend_irecv broadcast broadcast_object_list destroy_process_group gather gather_object get_backend
    get_backend_config
    get_process_group_ranks get_rank get_world_size irecv isend monitored_barrier new_group new_subgroups
    new_subgroups_by_enumeration recv recv_object_list reduce reduce_scatter reduce_scatter_tensor scatter
    scatter_object_list send send_object_list _broadcast_coalesced _get_default_group _new_process_group_helper
""".split()
#: What asks whether something is there, or this process a part of it: it is not.
_ASKING = """
    is_available is_gloo_available is_initialized is_mpi_available is_nccl_available is_torchelastic_launched
    is_ucc_available is_xccl_available _rank_not_in_group
""".split()

__all__ = [
    "Backend", "GroupMember", "P2POp", "ProcessGroup", "ReduceOp", "Store", "Work", "default_pg_timeout",
    "get_global_rank", "get_group_rank", "group", "init_process_group",
]  # fmt: skip
__all__ += [each for each in (*_OF_GROUPS, *_ASKING) if not each.startswith("_")]

default_pg_timeout = timedelta(minutes=30)


def _answering(name: str) -> Callable[..., Any]:
    def answer(*args: Any, **kwargs: Any) -> Any:
        if name in _ASKING:
            return False
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = "Return False." if name in _ASKING else "Raise ValueError, as in PyTorch: there is no group."
    return answer


def __getattr__(name: str) -> Any:
    if name in _OF_GROUPS or name in _ASKING:
        found = globals()[name] = _answering(name)
        return found
    if not name.startswith("_"):
        try:
            if name in ("DeviceMesh", "init_device_mesh"):
                return getattr(importlib.import_module("tinytorch.distributed.device_mesh"), name)
            return importlib.import_module(f"tinytorch.distributed.{name}")
        except ModuleNotFoundError:
            pass
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: processes do not exchange tensors."""
    raise NotImplementedError(
        "torch.distributed is not available in tinytorch: ask torch.distributed.is_available() first"
    )


rendezvous = init_process_group


def get_global_rank(group: Any, group_rank: int) -> int:
    """Return the rank among all processes of one with a rank in a group: the same, in the only group there may be."""
    return group_rank


get_group_rank = get_global_rank


class ReduceOp(enum.Enum):
    """What `all_reduce` and `reduce` make of the processes' tensors."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


class Backend(str):
    """The name of what carries tensors from process to process, in small letters.

    Raises:
        ValueError: it is no text.

    Example:
        >>> torch.distributed.Backend("GLOO") == torch.distributed.Backend.GLOO
        True
    """

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI = "undefined", "gloo", "nccl", "xccl", "ucc", "mpi"
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}

    def __new__(cls, name: str) -> Backend:  # noqa: D102
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())


class ProcessGroup:
    """Processes that exchange tensors: there are no groups."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        init_process_group()


class Store(ProcessGroup):
    """What processes find each other by: there is one process."""


class Work(ProcessGroup):
    """An exchange that is under way: there are none."""


class P2POp(ProcessGroup):
    """An exchange of two processes, to come: there is one process."""


FileStore = PrefixStore = TCPStore = Store
ProcessGroupGloo = GradBucket = ProcessGroup


class group:
    """The group of all processes, `WORLD`: None, since there is none."""

    WORLD = None


class GroupMember(group):
    """What a process is to a group: no part of any."""

    NON_GROUP_MEMBER = -100
