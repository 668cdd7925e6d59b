"""From one process to another: `send`, `recv` and their kin; and `monitored_barrier`, which knows who is missing.

A message begins with what is in it, so that nothing is taken for numbers of another dtype.
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
_HEAD = 64  # bytes


def _head(array: Array, rank: int) -> bytes:
    return f"{rank}: {array.size} of {array.dtype.name}".encode().ljust(_HEAD)


def send_array(array: Array, group: ProcessGroup, to: int, tag: int, name: str) -> Work:
    """Begin to send an array to a member of a group."""
    message = np.concatenate([np.frombuffer(_head(array, group.rank()), np.uint8), octets(array)])
    work = Work(group, name, lambda: group.comm.Isend(message, to, tag))
    work.begin()
    return work


def receive_array(
    array: Array, group: ProcessGroup, source: int | None, tag: int, name: str, done: Callable[[], None]
) -> tuple[Work, Array]:
    """Begin to receive into a contiguous array; return the work, and an array that gets the sender's rank."""
    message = np.empty(_HEAD + array.nbytes, np.uint8)
    sender = np.full(1, -1)

    def finish() -> None:
        head = message[:_HEAD].tobytes()
        sender[0] = rank = int(head.partition(b":")[0])
        if head != _head(array, rank):
            found = head.partition(b":")[2].decode().strip()
            raise DistBackendError(
                f"[rank {group.global_rank}] {name}: rank {group.ranks[rank]} sends {found}, where this rank receives "
                f"{array.size} of {array.dtype.name}"
            )
        octets(array)[...] = message[_HEAD:]
        done()

    place = mpi().ANY_SOURCE if source is None else source
    work = Work(group, name, lambda: group.comm.Irecv(message, place, tag), finish)
    work.begin()
    return work, sender


def _peer(group: ProcessGroup, rank: int | None, group_rank: int | None, what: str) -> int:
    found = member_rank(group, rank, group_rank, what)
    if found == group.rank():
        raise ValueError(f"Invalid {what} rank: {what} rank should not be the same as the rank of the current process.")
    return found


def isend(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Begin to send a tensor to another process.

    Args:
        dst: the rank among all processes; or `group_dst`, that in the group.
        tag: the receiver asks for the same.

    Returns:
        The work; None if this process is no member of the group.

    Raises:
        ValueError: it is this process itself.
    """
    check_tensor(tensor, "tensor")
    if (group := member(group, "isend")) is None:
        return None
    to = _peer(group, dst, group_dst, "destination")
    return send_array(np.ascontiguousarray(tensor._array), group, to, tag, "send")


def _receive(
    tensor: Tensor, src: int | None, group: ProcessGroup, tag: int, group_src: int | None
) -> tuple[Work, Array]:
    anybody = src is None and group_src is None
    source = None if anybody else _peer(group, src, group_src, "source")
    if group.comm is None:
        raise ValueError("Invalid source rank: there is no other process")
    array, done = receiving(tensor)
    return receive_array(array, group, source, tag, "recv", done)


def irecv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Begin to receive into a tensor what another process sends.

    Args:
        tensor: of the size and dtype of what comes.
        src: the rank among all processes; or `group_src`, that in the group; any process if both are None.
        tag: that of the sender.

    Returns:
        The work; None if this process is no member of the group.
    """
    check_tensor(tensor, "tensor")
    if (group := member(group, "irecv")) is None:
        return None
    return _receive(tensor, src, group, tag, group_src)[0]


def send(
    tensor: Tensor, dst: int | None = None, group: Group = None, tag: int = 0, group_dst: int | None = None
) -> None:
    """Send a tensor to another process, and wait until it may be written again; see `isend`."""
    if (work := isend(tensor, dst, group, tag, group_dst)) is not None:
        work.wait()


def recv(
    tensor: Tensor, src: int | None = None, group: Group = None, tag: int = 0, group_src: int | None = None
) -> int:
    """Wait for what another process sends, and return the sender's rank among all; see `irecv`.

    Raises:
        RuntimeError: what comes has another size or dtype; nothing comes.
    """
    check_tensor(tensor, "tensor")
    if (group := member(group, "recv")) is None:
        return -1
    work, sender = _receive(tensor, src, group, tag, group_src)
    work.wait()
    return int(group.ranks[sender[0]])


class P2POp:
    """A message to send or receive, for `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: what to send, or to receive into.
        peer: the other's rank among all processes; or `group_peer`, that in the group.

    Raises:
        ValueError: `op` is something else.
    """

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
    """Begin several messages, and return their works.

    Raises:
        ValueError: there are none, or something else is among them.
    """
    if not p2p_op_list or not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    works = [each.op(each.tensor, each.peer, each.group, each.tag, each.group_peer) for each in p2p_op_list]
    return [each for each in works if each is not None]


_HERE, _GO = 1, 2  # tags of the two messages of `monitored_barrier`


def monitored_barrier(group: Group = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Wait until all processes have come to this point; rank 0 says who has not.

    Args:
        timeout: how long at most; the group's if None.
        wait_all_ranks: name all that are missing, and not the first only.

    Raises:
        RuntimeError: a rank did not come in time.
    """
    if (group := member(group, "monitored_barrier")) is None or group.comm is None:
        return
    seconds = timeout.total_seconds() if timeout else group.seconds
    note = np.zeros(1, np.uint8)
    if group.rank():
        group.checks.Isend(note, 0, _HERE)
        poll(
            group.checks.Irecv(note.copy(), 0, _GO).Test, seconds,
            lambda: f"Rank {group.global_rank} successfully reached monitoredBarrier, but received errors while "
            "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.",
        )  # fmt: skip
        return
    missing = {rank: group.checks.Irecv(note.copy(), rank, _HERE) for rank in range(1, group.size())}

    def all_here() -> bool:
        for rank in [rank for rank, request in missing.items() if request.Test()]:
            del missing[rank]
        return not missing

    def late() -> str:
        ranks = [str(group.ranks[rank]) for rank in missing][: None if wait_all_ranks else 1]
        which = f"Ranks {', '.join(ranks)}" if wait_all_ranks else f"Rank {ranks[0]}"
        return f"[Rank {group.global_rank}]: {which} failed to pass monitoredBarrier in {seconds * 1000:.0f} ms"

    begin = time.monotonic()
    poll(all_here, seconds, late)
    left = max(1.0, seconds - (time.monotonic() - begin))
    for rank in range(1, group.size()):
        poll(group.checks.Isend(note, rank, _GO).Test, left, late)
