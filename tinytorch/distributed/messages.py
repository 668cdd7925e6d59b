"""Point-to-point messages: `send`, `recv` and so on; and `monitored_barrier`, which reports the missing ranks.

A message starts with a header that describes its content, so that the receiver can check dtype and size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.distributed.collectives import check_tensor, member_rank, octets, receiving
from tinytorch.distributed.groups import ProcessGroup, member
from tinytorch.distributed.mpi import mpi
from tinytorch.distributed.work import DistBackendError, Work, poll

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "monitored_barrier", "recv", "send"]

Array = np.ndarray[Any, Any]
Group = Any
_HEADER = 64  # bytes


def _header(array: Array, rank: int) -> bytes:
    return f"{rank}: {array.size} of {array.dtype.name}".encode().ljust(_HEADER)


def send_array(array: Array, group: ProcessGroup, to: int, tag: int, name: str) -> Work:
    """Start to send an array to a rank of a group."""
    message = np.concatenate([np.frombuffer(_header(array, group.rank()), np.uint8), octets(array)])
    work = Work(group, name, lambda: group.comm.Isend(message, to, tag))
    work.begin()
    return work


def receive_array(
    array: Array, group: ProcessGroup, source: int | None, tag: int, name: str, store: Callable[[], None]
) -> tuple[Work, Array]:
    """Start to receive into a contiguous array; return the work, and an array that gets the sender's rank."""
    message = np.empty(_HEADER + array.nbytes, np.uint8)
    sender = np.full(1, -1)

    def finish() -> None:
        header = message[:_HEADER].tobytes()
        sender[0] = rank = int(header.partition(b":")[0])
        if header != _header(array, rank):
            content = header.partition(b":")[2].decode().strip()
            raise DistBackendError(
                f"[rank {group.global_rank}] {name}: rank {group.ranks[rank]} sends {content}, where this rank "
                f"receives {array.size} of {array.dtype.name}"
            )
        octets(array)[...] = message[_HEADER:]
        store()

    mpi_source = mpi().ANY_SOURCE if source is None else source
    work = Work(group, name, lambda: group.comm.Irecv(message, mpi_source, tag), finish)
    work.begin()
    return work, sender


def _peer(group: ProcessGroup, rank: int | None, group_rank: int | None, what: str) -> int:
    peer = member_rank(group, rank, group_rank, what)
    if peer == group.rank():
        raise ValueError(f"Invalid {what} rank: {what} rank should not be the same as the rank of the current process.")
    return peer


def isend(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Start to send a tensor to another rank."""
    check_tensor(tensor, "tensor")
    if (group := member(group, "isend")) is None:
        return None
    to = _peer(group, dst, group_dst, "destination")
    return send_array(np.ascontiguousarray(tensor._array), group, to, tag, "send")


def _receive(
    tensor: Tensor, src: int | None, group: ProcessGroup, tag: int, group_src: int | None
) -> tuple[Work, Array]:
    any_source = src is None and group_src is None
    source = None if any_source else _peer(group, src, group_src, "source")
    if group.comm is None:
        raise ValueError("Invalid source rank: there is no other process")
    array, store = receiving(tensor)
    return receive_array(array, group, source, tag, "recv", store)


def irecv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Start to receive a tensor from another rank.

    Args:
        tensor: the output, of the size and dtype of the sender's tensor.
        src: the source's global rank; or `group_src`, its rank in the group; any rank if both are None.
        tag: the sender's `tag`.
    """
    check_tensor(tensor, "tensor")
    if (group := member(group, "irecv")) is None:
        return None
    return _receive(tensor, src, group, tag, group_src)[0]


def send(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Send a tensor to another rank, and wait until it may be changed again; see `isend`."""
    if (work := isend(tensor, dst, group, tag, group_dst)) is not None:
        work.wait()


def recv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Receive a tensor from another rank, and return the sender's global rank; see `irecv`."""
    check_tensor(tensor, "tensor")
    if (group := member(group, "recv")) is None:
        return -1
    work, sender = _receive(tensor, src, group, tag, group_src)
    work.wait()
    return int(group.ranks[sender[0]])


class P2POp:
    """A message to send or receive, for `batch_isend_irecv`."""

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: Group = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.group, self.tag = op, tensor, group, tag
        self.peer, self.group_peer = peer, group_peer

    def __repr__(self) -> str:
        peer = f"peer={self.peer}" if self.group_peer is None else f"group_peer={self.group_peer}"
        return f"P2POp({self.op.__name__} {peer}, {self.tensor.shape}, {self.tensor.dtype})"


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start several messages, and return their work handles."""
    if not p2p_op_list or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    works = [op.op(op.tensor, op.peer, op.group, op.tag, op.group_peer) for op in p2p_op_list]
    return [work for work in works if work is not None]


_ARRIVED, _GO = 1, 2  # tags of the two messages of `monitored_barrier`


def monitored_barrier(group: Group = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Wait until all ranks have called this function; rank 0 reports the missing ones."""
    if (group := member(group, "monitored_barrier")) is None or group.comm is None:
        return
    seconds = timeout.total_seconds() if timeout else group.seconds
    note = np.zeros(1, np.uint8)
    if group.rank():
        group.checks.Isend(note, 0, _ARRIVED)
        poll(
            group.checks.Irecv(note.copy(), 0, _GO).Test, seconds,
            lambda: f"Rank {group.global_rank} successfully reached monitoredBarrier, but received errors while "
            "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.",
        )  # fmt: skip
        return
    missing = {rank: group.checks.Irecv(note.copy(), rank, _ARRIVED) for rank in range(1, group.size())}

    def all_arrived() -> bool:
        for rank in [rank for rank, request in missing.items() if request.Test()]:
            del missing[rank]
        return not missing

    def late() -> str:
        ranks = [str(group.ranks[rank]) for rank in missing][: None if wait_all_ranks else 1]
        which = f"Ranks {', '.join(ranks)}" if wait_all_ranks else f"Rank {ranks[0]}"
        return f"[Rank {group.global_rank}]: {which} failed to pass monitoredBarrier in {seconds * 1000:.0f} ms"

    begin = time.monotonic()
    poll(all_arrived, seconds, late)
    remaining = max(1.0, seconds - (time.monotonic() - begin))
    for rank in range(1, group.size()):
        poll(group.checks.Isend(note, rank, _GO).Test, remaining, late)
