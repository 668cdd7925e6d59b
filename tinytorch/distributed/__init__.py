"""`torch.distributed`, as in a process that is no part of a group: programs ask whether it is."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = [
    "ProcessGroup", "ReduceOp", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce",
    "all_to_all", "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "destroy_process_group",
    "gather", "gather_object", "get_backend", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "init_process_group", "irecv", "is_available", "is_gloo_available", "is_initialized", "is_mpi_available",
    "is_nccl_available", "is_torchelastic_launched", "isend", "monitored_barrier", "new_group", "recv", "reduce",
    "reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
]  # fmt: skip


def is_available() -> bool:
    """Return False: there is one process.

    Example:
        >>> torch.distributed.is_available()
        False
    """
    return False


def _false(name: str) -> Callable[[], bool]:
    def answer() -> bool:
        """Return False."""
        return False

    answer.__name__ = answer.__qualname__ = name
    return answer


is_initialized = _false("is_initialized")
is_gloo_available = _false("is_gloo_available")
is_nccl_available = _false("is_nccl_available")
is_mpi_available = _false("is_mpi_available")
is_torchelastic_launched = _false("is_torchelastic_launched")


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: processes do not exchange tensors."""
    raise NotImplementedError(
        "torch.distributed is not available in tinytorch: ask torch.distributed.is_available() first"
    )


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


class ProcessGroup:
    """Processes that exchange tensors: there are no groups."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        init_process_group()


class group:
    """The group of all processes, `WORLD`: None, since there is none."""

    WORLD = None


def _without_group(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raise ValueError, as in PyTorch: this process is no part of a group."
    return refuse


all_gather = _without_group("all_gather")
all_gather_into_tensor = _without_group("all_gather_into_tensor")
all_gather_object = _without_group("all_gather_object")
all_reduce = _without_group("all_reduce")
all_to_all = _without_group("all_to_all")
all_to_all_single = _without_group("all_to_all_single")
barrier = _without_group("barrier")
broadcast = _without_group("broadcast")
broadcast_object_list = _without_group("broadcast_object_list")
destroy_process_group = _without_group("destroy_process_group")
gather = _without_group("gather")
gather_object = _without_group("gather_object")
get_backend = _without_group("get_backend")
get_process_group_ranks = _without_group("get_process_group_ranks")
get_rank = _without_group("get_rank")
get_world_size = _without_group("get_world_size")
irecv = _without_group("irecv")
isend = _without_group("isend")
monitored_barrier = _without_group("monitored_barrier")
new_group = _without_group("new_group")
recv = _without_group("recv")
reduce = _without_group("reduce")
reduce_scatter = _without_group("reduce_scatter")
reduce_scatter_tensor = _without_group("reduce_scatter_tensor")
scatter = _without_group("scatter")
scatter_object_list = _without_group("scatter_object_list")
send = _without_group("send")
