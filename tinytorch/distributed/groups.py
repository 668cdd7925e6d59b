"""Process groups, and the rank of this process in each."""

from __future__ import annotations

import collections
import enum
import functools
import importlib.util
import itertools
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, NoReturn

import numpy as np

from tinytorch.core.mode import traced_as
from tinytorch.core.warning import warn
from tinytorch.distributed import rendezvous
from tinytorch.distributed.mpi import mpi
from tinytorch.distributed.work import DistBackendError, Work, poll

__all__ = [
    "Backend", "BackendConfig", "GroupMember", "ProcessGroup", "ProcessGroupGloo", "ReduceOp", "default_pg_timeout",
    "destroy_process_group", "get_backend", "get_backend_config", "get_default_backend_for_device", "get_global_rank",
    "get_group_rank", "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size",
    "group", "init_process_group", "is_available", "is_backend_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
    "new_group", "new_subgroups", "new_subgroups_by_enumeration", "reduce_op",
]  # fmt: skip

default_pg_timeout = timedelta(minutes=30)


class ReduceOp(enum.IntEnum):
    """The reductions of `all_reduce` and other collectives."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # in PyTorch the members have this class
reduce_op = ReduceOp


class Backend(str):
    """The name of a communication backend, in lower case.

    Example:
        >>> torch.distributed.Backend("GLOO") == torch.distributed.Backend.GLOO
        True
    """

    UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI = "undefined", "gloo", "nccl", "xccl", "ucc", "mpi"
    backend_list: ClassVar[list[str]] = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI]
    default_device_backend_map: ClassVar[dict[str, str]] = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}

    def __new__(cls, name: str) -> Backend:  # noqa: D102
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return str.__new__(cls, name.lower())


class BackendConfig:
    """The name of the backend for each device: "gloo", or "cpu:gloo,cuda:nccl"."""

    def __init__(self, backend: str) -> None:
        self.device_backend_map: dict[str, Backend] = {}
        for entry in backend.split(","):
            device, colon, name = entry.rpartition(":")
            for device_type in [device] if colon else ["cpu", "cuda"]:
                self.device_backend_map[device_type] = Backend(name)

    def __repr__(self) -> str:
        return ",".join([f"{device}:{name}" for device, name in self.device_backend_map.items()])

    def get_device_backend_map(self) -> dict[str, Backend]:
        """Return the name of the backend for each device."""
        return self.device_backend_map


# Availability -------------------------------------------------------------------------------------


@traced_as("pure")
def is_available() -> bool:
    """Return True: a group of one process is always possible; several processes need mpi4py.

    Example:
        >>> torch.distributed.is_available()
        True
    """
    return True


is_gloo_available = is_available  # programs ask for Gloo; tinytorch uses MPI in its place


def is_mpi_available() -> bool:
    """Return whether mpi4py is installed, which groups of several processes need."""
    return importlib.util.find_spec("mpi4py") is not None


def _not_available() -> bool:
    """Return False: the backend is not available."""
    return False


is_nccl_available = is_ucc_available = is_xccl_available = _not_available


def is_backend_available(backend: str) -> bool:
    """Return whether `init_process_group` accepts a backend.

    Example:
        >>> torch.distributed.is_backend_available("nccl")
        False
    """
    return backend.lower() in (Backend.GLOO, Backend.MPI)


def get_default_backend_for_device(device: Any) -> str:
    """Return the name of the default backend for a device.

    Example:
        >>> torch.distributed.get_default_backend_for_device("cpu")
        'gloo'
    """
    return Backend.default_device_backend_map[str(device).partition(":")[0]]


def is_torchelastic_launched() -> bool:
    """Return whether `torch.distributed.run` started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the rank of this process among those of its machine: LOCAL_RANK."""
    rank = os.environ.get("LOCAL_RANK", fallback_rank)
    if rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to "
            "work, assuming you are not running in a multi-device context and want the code to run locally instead."
        )
    return int(rank)


# Groups -------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _checksum(text: str) -> np.ndarray[Any, Any]:
    """Return n and -n for the checksum n of a text: the maxima over all ranks are n and -n if the texts are equal."""
    n = zlib.crc32(text.encode()) >> 1
    return np.array([n, -n], np.int32)


class ProcessGroup:
    """A group of processes that communicate.

    Before a collective all ranks compare the signatures of their calls (8 bytes, about 10 us): where shapes or dtypes
    differ, MPI itself would compute wrong numbers. The comparison has its own communicator, so that the signatures of
    asynchronous calls (`async_op=True`) are compared before earlier communications are complete. Communications start
    in the order of the calls, which is the same on all ranks.

    Args:
        comm: MPI's communicator; None for a group of one process.
        ranks: the members' global ranks, in the order of their ranks in the group.
        rank: this process's rank in the group.
    """

    NON_GROUP_MEMBER: ClassVar[int] = -100
    _numbers: ClassVar[Any] = itertools.count()

    def __init__(self, comm: Any, ranks: Sequence[int], rank: int, backend: str, timeout: timedelta, desc: str) -> None:
        self.comm, self.ranks, self._rank, self.backend = comm, list(ranks), rank, backend
        self.checks: Any = None if comm is None else comm.Dup()
        self.global_rank = self.ranks[rank]
        self.seconds = timeout.total_seconds()
        self.group_name, self.group_desc = str(next(self._numbers)), desc
        self._waiting: collections.deque[Work] = collections.deque()
        #: Copies of the communicator, one for each `DistributedDataParallel`, and the indices of those that are free.
        self.copies: list[Any] = []
        self.free_copies: set[int] = set()

    def rank(self) -> int:
        """Return the rank of this process."""
        return self._rank

    def size(self) -> int:
        """Return the number of processes."""
        return len(self.ranks)

    def name(self) -> str:
        """Return the backend's name."""
        return self.backend

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the timeout of communications."""
        self.seconds = timeout.total_seconds()

    def advance(self) -> None:
        """Start the communications whose turn it is, in all groups: other ranks may wait for them."""
        for group in (self, *_groups):
            while group._waiting and group._waiting[0].begin():
                group._waiting.popleft()

    def run(
        self,
        name: str,
        signature: object,
        start: Callable[[Any], Any],
        finish: Callable[[], None] | None = None,
        results: list[Any] | None = None,
        alone: Iterable[tuple[Any, Any]] = (),
    ) -> Work:
        """Queue a communication of all ranks, and return its work handle; it may not have started.

        Args:
            name: the function's name, for errors.
            signature: a value whose text has to be equal on all ranks; None for no comparison.
            start: starts the communication on MPI's communicator, and returns MPI's request.
            finish: is called when the communication is complete.
            results: the tensors that the work returns as its result.
            alone: for a group of one process: output arrays and the values to store in them.
        """
        check = None
        if self.comm is None:
            start = functools.partial(_CompletedRequest, alone)
        elif signature is not None:
            text = f"{name}({signature})"
            own = _checksum(text)
            largest = np.empty_like(own)
            request = self.checks.Iallreduce(own, largest, mpi().MAX)
            check = request, lambda: None if largest[0] == own[0] == -largest[1] else self._raise_mismatch(text)
        work = Work(self, name, lambda: start(self.comm), finish, results, check)
        self._waiting.append(work)
        self.advance()
        return work

    def _raise_mismatch(self, text: str) -> NoReturn:
        """Raise an error that lists the calls of all ranks; all ranks call it."""
        own = np.frombuffer(text.encode()[:256].ljust(256), np.uint8)
        texts = np.empty((self.size(), 256), np.uint8)
        request = self.checks.Iallgather(own, texts)
        poll(request.Test, 10, lambda: f"[rank {self.global_rank}] {text}: another rank calls something else")
        calls = [bytes(row).decode(errors="replace").rstrip() for row in texts]
        which = "; ".join([f"rank {rank} calls {call}" for rank, call in zip(self.ranks, calls, strict=True)])
        raise DistBackendError(f"[rank {self.global_rank}] the ranks of a group must call the same: {which}")

    def agree(self, name: str, signature: object) -> None:
        """Wait until all ranks have called this method with the same signature."""
        self.run(name, signature, functools.partial(_CompletedRequest, ())).wait()


ProcessGroupGloo = ProcessGroup


class _CompletedRequest:
    """A request that is complete: its constructor stores values in arrays."""

    def __init__(self, pairs: Iterable[tuple[Any, Any]], comm: Any = None) -> None:
        for array, value in pairs:
            array[...] = value

    def Test(self) -> bool:
        """Return True."""
        return True


class _Meta(type):
    """The metaclass whose attribute `WORLD` is the group of all processes."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _groups[0] if _groups else None

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        _groups[:] = [] if value is None else [value, *[group for group in _groups[1:] if group is not value]]


class group(metaclass=_Meta):
    """The group of all processes, `WORLD`: None before `init_process_group`."""


class GroupMember(metaclass=_Meta):
    """`WORLD` is the group of all processes, `NON_GROUP_MEMBER` stands for a group without this process."""

    NON_GROUP_MEMBER = ProcessGroup.NON_GROUP_MEMBER


#: The groups that this process is a member of; the first is the group of all processes.
_groups: list[ProcessGroup] = []


def _get_default_group() -> ProcessGroup:
    """Return the group of all processes."""
    if not _groups:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _groups[0]


def member(group: Any, name: str) -> ProcessGroup | None:
    """Return the group of a call, all processes if None; warn and return None if this process is not a member."""
    if group is None:
        return _get_default_group()
    if isinstance(group, ProcessGroup):
        return group
    world = _get_default_group()
    warn(f"Running {name} on global rank {world.rank()} which does not belong to the given group.")
    return None


def _rank_not_in_group(group: Any) -> bool:
    """Return whether this process is not a member of a group."""
    return bool(group == GroupMember.NON_GROUP_MEMBER)


def _checked_timeout(timeout: timedelta | None) -> timedelta:
    timeout = default_pg_timeout if timeout is None else timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def _backend(name: str | None) -> str:
    """Return the name of the backend for tensors on the CPU."""
    config = BackendConfig(Backend(Backend.GLOO if name is None else name)).device_backend_map
    backend = config.get("cpu", next(iter(config.values())))
    if not is_backend_available(backend):
        if backend in Backend.backend_list:
            raise RuntimeError(
                f"Distributed package doesn't have {backend.upper()} built in: tinytorch's tensors are the CPU's, "
                'which "gloo" and "mpi" exchange'
            )
        raise AssertionError(f"Unknown backend type {backend}")
    return str(backend)


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Create the group of all processes, and connect to the others.

    The launcher (`torch.distributed.run`, `mpiexec` or `srun`) tells the process its rank and the number of processes.
    A process that was started in another way, such as by `torch.multiprocessing.spawn`, passes `rank` and `world_size`,
    or has RANK and WORLD_SIZE in its environment, and connects at MASTER_ADDR and MASTER_PORT. A single process needs
    no MPI.

    Args:
        backend: "gloo" or "mpi"; in both cases mpi4py transfers the tensors.
        init_method: the address for processes without a launcher: "env://" or "tcp://address:port".
        timeout: the timeout of communications; 30 minutes if None.
        world_size, rank: the number of processes, and the rank of this one, from 0.
        store, group_name, pg_options, device_id: accepted, without effect.

    Raises:
        ValueError: the function has been called before, or the rank is unknown.
        RuntimeError: the backend is for another device, mpi4py is missing, or other processes did not connect.

    Example:
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> torch.distributed.get_world_size()
        1
        >>> torch.distributed.destroy_process_group()
    """
    if _groups:
        raise ValueError("trying to initialize the default process group twice!")
    timeout = _checked_timeout(timeout)
    name = _backend(backend)
    assert store is None or init_method is None, "Cannot specify both init_method and store."
    comm, rank, world_size = rendezvous.join(init_method, rank, world_size, timeout.total_seconds())
    _groups.append(ProcessGroup(comm, range(world_size), rank, name, timeout, "default_pg"))


def destroy_process_group(group: Any = None) -> None:
    """End a group, or all groups, when all its processes have called this function."""
    if _rank_not_in_group(group):
        return
    group = _get_default_group() if group is None else group
    if group not in _groups:
        raise ValueError("Invalid process group specified")
    ending = _groups[:] if group is _groups[0] else [group]
    if group.comm is not None:
        group.agree("destroy_process_group", "")
    for member_group in reversed(ending):
        _groups.remove(member_group)
        if member_group.comm is not None:
            for comm in (*member_group.copies, member_group.checks, member_group.comm):
                comm.Free()
    if not _groups:
        rendezvous.leave()


def is_initialized() -> bool:
    """Return whether `init_process_group` has been called.

    Example:
        >>> torch.distributed.is_initialized()
        False
    """
    return bool(_groups)


def _member_or_none(group: Any, name: str) -> ProcessGroup | None:
    """Return the group of a call; None if this process is not a member of it."""
    _get_default_group()
    return None if _rank_not_in_group(group) else member(group, name)


def get_rank(group: Any = None) -> int:
    """Return the rank of this process in a group, from 0; -1 if it is not a member."""
    process_group = _member_or_none(group, "get_rank")
    return process_group.rank() if process_group else -1


def get_world_size(group: Any = None) -> int:
    """Return the number of processes of a group; -1 if this process is not a member."""
    process_group = _member_or_none(group, "get_world_size")
    return process_group.size() if process_group else -1


def _of_member(group: Any) -> ProcessGroup:
    if group is not None and not isinstance(group, ProcessGroup):
        raise ValueError("Invalid process group specified")
    return _get_default_group() if group is None else group


def get_backend(group: Any = None) -> str:
    """Return the name of a group's backend."""
    return _of_member(group).backend


def get_backend_config(group: Any = None) -> str:
    """Return the names of a group's backends for each device."""
    return str(BackendConfig(_of_member(group).backend))


def get_process_group_ranks(group: Any) -> list[int]:
    """Return the global ranks of a group's members."""
    return list(_of_member(group).ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """Return the global rank of a group's member."""
    if group is GroupMember.WORLD:
        return group_rank
    ranks = _of_member(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """Return the rank in a group of a process, given its global rank."""
    if group is GroupMember.WORLD:
        return global_rank
    group = _of_member(group)
    if global_rank not in group.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return int(group.ranks.index(global_rank))


def get_pg_count() -> int:
    """Return the number of groups that this process is a member of."""
    return len(_groups)


def new_group(
    ranks: Iterable[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Create a group of some of the processes; all processes have to call this function, also non-members.

    `pg_options` and `device_id` have no effect.

    Returns:
        The group, or `GroupMember.NON_GROUP_MEMBER` where this process is not a member.
    """
    world = _get_default_group()
    members = list(world.ranks if ranks is None else ranks)
    if len(set(members)) < len(members):
        raise ValueError(f"ranks list must not contain duplicate entries: {members}")
    if len(members) > world.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for rank in members:
        if not 0 <= rank < world.size():
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {world.size() - 1} (world_size={world.size()})"
            )
    if sort_ranks:
        members.sort()
    timeout, name = _checked_timeout(timeout), world.backend if backend is None else _backend(backend)
    is_member = world.rank() in members
    if use_local_synchronization and not is_member:
        return GroupMember.NON_GROUP_MEMBER
    comm = None
    if world.comm is not None:
        mpi_group = world.comm.Get_group().Incl(members)
        if use_local_synchronization:
            comm = world.comm.Create_group(mpi_group)
        else:
            world.agree("new_group", members)  # MPI's function has no timeout
            comm = world.comm.Create(mpi_group)
    if not is_member:
        return GroupMember.NON_GROUP_MEMBER
    group = ProcessGroup(comm, members, members.index(world.rank()), name, timeout, group_desc or "undefined")
    _groups.append(group)
    return group


def _new_process_group_helper(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: in PyTorch it creates groups of registered backends."""
    raise NotImplementedError("torch.distributed._new_process_group_helper: make groups by torch.distributed.new_group")


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divide a group into groups of `group_size` consecutive ranks; return this process's group, and all of them."""
    ranks = get_process_group_ranks(group)
    size = int(os.environ.get("LOCAL_WORLD_SIZE", len(ranks))) if group_size is None else group_size
    if size <= 0 or size > len(ranks):
        raise ValueError(f"The arg 'group_size' ({size}) must be between 1 and the world size ({len(ranks)})")
    if len(ranks) % size:
        raise ValueError("The world size must be divisible by 'group_size'")
    parts = [ranks[i : i + size] for i in range(0, len(ranks), size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Create groups with the given ranks; return this process's group (None if it is in none), and all of them."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    counts = collections.Counter(itertools.chain.from_iterable(ranks_per_subgroup_list))
    for rank, count in counts.items():
        if count > 1:
            raise ValueError(f"Rank {rank} has appeared in both subgroups")
    options = timeout, backend, pg_options, False, group_desc
    groups = [new_group(ranks, *options) for ranks in ranks_per_subgroup_list]
    return next((group for group in groups if isinstance(group, ProcessGroup)), None), groups
