"""Exchange of pickled Python objects: use it only between processes that trust each other."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.distributed.collectives import member_rank
from tinytorch.distributed.groups import ProcessGroup, member
from tinytorch.distributed.messages import receive_array, send_array

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list",
    "send_object_list",
]  # fmt: skip

Array = np.ndarray[Any, Any]
Group = Any


def _packed(value: Any) -> Array:
    return np.frombuffer(bytearray(pickle.dumps(value)), np.uint8)  # (MPI takes memory that can be written)


def _gathered(data: Array, group: ProcessGroup, name: str) -> list[Any]:
    """Return the objects of all ranks."""
    size = np.array([data.size])
    sizes = np.empty(group.size(), np.int64)
    group.run(name, "", lambda comm: comm.Iallgather(size, sizes), alone=[(sizes, size)]).wait()
    ends = np.cumsum(sizes)
    all_data = np.empty(int(ends[-1]), np.uint8)
    receive = [all_data, (sizes, ends - sizes)]  # (the buffer, and the counts and offsets of its parts)
    group.run(name, None, lambda comm: comm.Iallgatherv(data, receive), alone=[(all_data, data)]).wait()
    return [pickle.loads(part.data) for part in np.split(all_data, ends[:-1])]


def all_gather_object(object_list: list[Any], obj: Any, group: Group = None) -> None:
    """Store the objects of all ranks in a list, in the order of the ranks."""
    if (group := member(group, "all_gather_object")) is not None:
        for i, value in enumerate(_gathered(_packed(obj), group, "all_gather_object")):
            object_list[i] = value


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Group = None,
    group_dst: int | None = None,
) -> None:
    """Store the objects of all ranks in a list on rank `dst` (0 if None)."""
    if (group := member(group, "gather_object")) is None:
        return
    here = group.rank() == member_rank(group, dst, group_dst, "gather_object", default=0)
    if here and object_gather_list is None:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    if not here and object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must NOT be specified on non-destination ranks.")
    for i, value in enumerate(_gathered(_packed(obj), group, "gather_object")):
        if here and object_gather_list is not None:
            object_gather_list[i] = value


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Group = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Copy the objects in a list on rank `src` (0 if None) into the lists of all ranks."""
    if (group := member(group, "broadcast_object_list")) is None:
        return
    root = member_rank(group, src, group_src, "broadcast_object_list", default=0)
    data = _packed(list(object_list)) if group.rank() == root else np.empty(0, np.uint8)
    size = np.array([data.size])
    signature = f"{len(object_list)} objects from {root}"
    group.run("broadcast_object_list", signature, lambda comm: comm.Ibcast(size, root)).wait()
    if group.rank() != root:
        data = np.empty(int(size[0]), np.uint8)
    group.run("broadcast_object_list", None, lambda comm: comm.Ibcast(data, root)).wait()
    if group.rank() != root:
        object_list[:] = pickle.loads(data.data)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: Group = None,
    group_src: int | None = None,
) -> None:
    """Send the objects of a list on rank `src` (0 if None) to the ranks, each of which stores its own as the first."""
    if (group := member(group, "scatter_object_list")) is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    root = member_rank(group, src, group_src, "scatter_object_list", default=0)
    objects: list[Any] = []
    if group.rank() == root:
        if scatter_object_input_list is None or len(scatter_object_input_list) != group.size():
            size = "no" if scatter_object_input_list is None else len(scatter_object_input_list)
            raise RuntimeError(
                f"scatter_object_list: Incorrect input list size {size}. Input list size should be {group.size()}, "
                "same as size of the process group."
            )
        objects = list(scatter_object_input_list)
    received = [objects]
    broadcast_object_list(received, group=group, group_src=root)
    scatter_object_output_list[0] = received[0][group.rank()]


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Group = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send the objects in a list to another rank."""
    if (group := member(group, "send_object_list")) is None:
        return
    to = member_rank(group, dst, group_dst, "send_object_list")
    data = _packed(list(object_list))
    for array in (np.array([data.size]), data):
        send_array(array, group, to, 0, "send_object_list").wait()


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Group = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive a list of objects from another rank, and return the sender's global rank."""
    if (group := member(group, "recv_object_list")) is None:
        return -1
    source = None if src is None and group_src is None else member_rank(group, src, group_src, "recv_object_list")
    size = np.zeros(1, np.int64)
    work, sender = receive_array(size, group, source, 0, "recv_object_list", lambda: None)
    work.wait()
    data = np.empty(int(size[0]), np.uint8)
    receive_array(data, group, int(sender[0]), 0, "recv_object_list", lambda: None)[0].wait()
    object_list[:] = pickle.loads(data.data)
    return int(group.ranks[sender[0]])
