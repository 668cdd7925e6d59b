"""Processes that exchange tensors: groups of them, and who this one is."""

from __future__ import annotations

import collections
import enum
import functools
import importlib.util
import itertools
import os
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, NoReturn

import numpy as np

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
    """What `all_reduce` and its kin make of the processes' tensors."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # PyTorch's members have a class of their own
reduce_op = ReduceOp


class Backend(str):
    """The name of what carries tensors from process to process, in small letters.

    Raises:
        ValueError: it is no text.

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
    """By device, the name of the backend: "gloo", or "cpu:gloo,cuda:nccl"."""

    def __init__(self, backend: str) -> None:
        self.device_backend_map: dict[str, Backend] = {}
        for entry in backend.split(","):
            device, colon, name = entry.rpartition(":")
            for each in [device] if colon else ["cpu", "cuda"]:
                self.device_backend_map[each] = Backend(name)

    def __repr__(self) -> str:
        return ",".join([f"{device}:{name}" for device, name in self.device_backend_map.items()])

    def get_device_backend_map(self) -> dict[str, Backend]:
        """Return the names by device."""
        return self.device_backend_map


# What there is ------------------------------------------------------------------------------------


def is_available() -> bool:
    """Return True: one process is a group, too; several need mpi4py.

    Example:
        >>> torch.distributed.is_available()
        True
    """
    return True


is_gloo_available = is_available  # the name that programs give; MPI carries its tensors


def is_mpi_available() -> bool:
    """Return whether mpi4py is installed, so that there can be several processes."""
    return importlib.util.find_spec("mpi4py") is not None


def _not_there() -> bool:
    """Return False: it is not."""
    return False


is_nccl_available = is_ucc_available = is_xccl_available = _not_there


def is_backend_available(backend: str) -> bool:
    """Return whether `init_process_group` takes a backend of this name.

    Example:
        >>> torch.distributed.is_backend_available("nccl")
        False
    """
    return backend.lower() in (Backend.GLOO, Backend.MPI)


def get_default_backend_for_device(device: Any) -> str:
    """Return the name of the backend of a device.

    Example:
        >>> torch.distributed.get_default_backend_for_device("cpu")
        'gloo'
    """
    return Backend.default_device_backend_map[str(device).partition(":")[0]]


def is_torchelastic_launched() -> bool:
    """Return whether `torch.distributed.run` started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the number of this process among those of its machine: LOCAL_RANK.

    Raises:
        RuntimeError: LOCAL_RANK is not set, and there is no `fallback_rank`.
    """
    rank = os.environ.get("LOCAL_RANK", fallback_rank)
    if rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to "
            "work, assuming you are not running in a multi-device context and want the code to run locally instead."
        )
    return int(rank)


# Groups -------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _signature(text: str) -> np.ndarray[Any, Any]:
    """Return two numbers of 32 bits, n and -n, that stand for a text: the largest of all ranks' are n and -n again."""
    n = zlib.crc32(text.encode()) >> 1
    return np.array([n, -n], np.int32)


class ProcessGroup:
    """Processes that exchange tensors.

    Before an exchange all ranks compare what they call (8 bytes, some 10 us): MPI itself would go on with wrong numbers
    where shapes or dtypes differ. What they compare has a communicator of its own, so that exchanges which nobody
    waits for (`async_op=True`) may be compared before others have ended; they begin in the order of the calls, which
    is the same on all ranks.

    Args:
        comm: MPI's communicator; None for a group of one process.
        ranks: the members' ranks among all processes, in the order of their ranks here.
        rank: this process's rank here.
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
        #: Further communicators of the same processes, one for each `DistributedDataParallel`, and which of these have
        #: no user any more.
        self.further: list[Any] = []
        self.unused: set[int] = set()

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
        """Set how long exchanges may take."""
        self.seconds = timeout.total_seconds()

    def advance(self) -> None:
        """Begin the exchanges whose turn it is, in all groups: other ranks may wait for them."""
        for each in (self, *_groups):
            while each._waiting and each._waiting[0].begin():
                each._waiting.popleft()

    def run(
        self,
        name: str,
        facts: object,
        start: Callable[[Any], Any],
        finish: Callable[[], None] | None = None,
        results: list[Any] | None = None,
        alone: Iterable[tuple[Any, Any]] = (),
    ) -> Work:
        """Have an exchange done by all ranks, and return the work, which may not have begun.

        Args:
            name: the function's, for errors.
            facts: what must be the same on all ranks (its text is compared); None to compare nothing.
            start: begins the exchange on MPI's communicator and returns MPI's request.
            finish: what to do when it has ended.
            results: the tensors that the work returns as its result.
            alone: for a group of one, arrays and what is to be put into them instead.
        """
        check = None
        if self.comm is None:
            start = functools.partial(_AtOnce, alone)
        elif facts is not None:
            text = f"{name}({facts})"
            mine = _signature(text)
            found = np.empty_like(mine)
            request = self.checks.Iallreduce(mine, found, mpi().MAX)
            check = request, lambda: None if found[0] == mine[0] == -found[1] else self._disagree(text)
        work = Work(self, name, lambda: start(self.comm), finish, results, check)
        self._waiting.append(work)
        self.advance()
        return work

    def _disagree(self, text: str) -> NoReturn:
        """Say which rank calls what: all ranks come here."""
        mine = np.frombuffer(text.encode()[:256].ljust(256), np.uint8)
        texts = np.empty((self.size(), 256), np.uint8)
        request = self.checks.Iallgather(mine, texts)
        poll(request.Test, 10, lambda: f"[rank {self.global_rank}] {text}: another rank calls something else")
        calls = [bytes(row).decode(errors="replace").rstrip() for row in texts]
        which = "; ".join([f"rank {rank} calls {call}" for rank, call in zip(self.ranks, calls, strict=True)])
        raise DistBackendError(f"[rank {self.global_rank}] the ranks of a group must call the same: {which}")

    def agree(self, name: str, facts: object) -> None:
        """Wait until all ranks have come here with the same facts."""
        self.run(name, facts, functools.partial(_AtOnce, ())).wait()


ProcessGroupGloo = ProcessGroup


class _AtOnce:
    """A request that is done: values are put into arrays."""

    def __init__(self, pairs: Iterable[tuple[Any, Any]], comm: Any = None) -> None:
        for array, value in pairs:
            array[...] = value

    def Test(self) -> bool:
        """Return True."""
        return True


class _Meta(type):
    """Has the group of all processes as an attribute."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return _groups[0] if _groups else None

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        _groups[:] = [] if value is None else [value, *[each for each in _groups[1:] if each is not value]]


class group(metaclass=_Meta):
    """The group of all processes, `WORLD`: None before `init_process_group`."""


class GroupMember(metaclass=_Meta):
    """What a process is to a group: `WORLD` is all processes' group, `NON_GROUP_MEMBER` one that it is no part of."""

    NON_GROUP_MEMBER = ProcessGroup.NON_GROUP_MEMBER


#: The groups that this process is a member of; first the one of all processes.
_groups: list[ProcessGroup] = []


def _get_default_group() -> ProcessGroup:
    """Return the group of all processes.

    Raises:
        ValueError: there is none.
    """
    if not _groups:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _groups[0]


def member(group: Any, name: str) -> ProcessGroup | None:
    """Return the group that a function was given; None, after a warning, if this process is no member of it."""
    if group is None:
        return _get_default_group()
    if isinstance(group, ProcessGroup):
        return group
    world = _get_default_group()
    warnings.warn(
        f"Running {name} on global rank {world.rank()} which does not belong to the given group.", stacklevel=3
    )
    return None


def _rank_not_in_group(group: Any) -> bool:
    """Return whether this process is no member of a group."""
    return bool(group == GroupMember.NON_GROUP_MEMBER)


def _seconds(timeout: timedelta | None) -> timedelta:
    timeout = default_pg_timeout if timeout is None else timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def _backend(name: str | None) -> str:
    """Return the name of the backend that the CPU's tensors have.

    Raises:
        RuntimeError: the backend is for a device that is not there.
        AssertionError: there is no such backend.
    """
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
    """Make this process one of several that exchange tensors.

    Who it is, and how many there are, is known from what started it: `torch.distributed.run`, `mpiexec` or `srun`. A
    process of another kind, one of `torch.multiprocessing.spawn`, gives `rank` and `world_size`, or has RANK and
    WORLD_SIZE in its environment, and meets the others at MASTER_ADDR and MASTER_PORT. One process alone needs no MPI.

    Args:
        backend: "gloo" or "mpi": MPI, by mpi4py, carries the tensors either way.
        init_method: where processes meet that MPI did not start: "env://", "tcp://address:port".
        timeout: how long an exchange may take; 30 minutes if None.
        world_size, rank: how many processes, and which of them this is, from 0.
        store, group_name, pg_options, device_id: accepted; they have no meaning here.

    Raises:
        ValueError: it is done already; or nothing says which process this is.
        RuntimeError: the backend is for a device that is not there; mpi4py is missing; the others did not come.

    Example:
        >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
        >>> torch.distributed.get_world_size()
        1
        >>> torch.distributed.destroy_process_group()
    """
    if _groups:
        raise ValueError("trying to initialize the default process group twice!")
    timeout = _seconds(timeout)
    name = _backend(backend)
    assert store is None or init_method is None, "Cannot specify both init_method and store."
    comm, rank, world_size = rendezvous.join(init_method, rank, world_size, timeout.total_seconds())
    _groups.append(ProcessGroup(comm, range(world_size), rank, name, timeout, "default_pg"))


def destroy_process_group(group: Any = None) -> None:
    """End a group, or all of them, once all its processes have come to this point.

    Args:
        group: the group; all of them if None.

    Raises:
        ValueError: there is none.
    """
    if _rank_not_in_group(group):
        return
    group = _get_default_group() if group is None else group
    if group not in _groups:
        raise ValueError("Invalid process group specified")
    ending = _groups[:] if group is _groups[0] else [group]
    if group.comm is not None:
        group.agree("destroy_process_group", "")
    for each in reversed(ending):
        _groups.remove(each)
        if each.comm is not None:
            for comm in (*each.further, each.checks, each.comm):
                comm.Free()
    if not _groups:
        rendezvous.leave()


def is_initialized() -> bool:
    """Return whether `init_process_group` has made this process one of a group.

    Example:
        >>> torch.distributed.is_initialized()
        False
    """
    return bool(_groups)


def _mine(group: Any, name: str) -> ProcessGroup | None:
    """Return the group that a function was given; None if this process is no member of it."""
    _get_default_group()
    return None if _rank_not_in_group(group) else member(group, name)


def get_rank(group: Any = None) -> int:
    """Return the rank of this process in a group, from 0; -1 if it is no member.

    Raises:
        ValueError: there is no group.
    """
    found = _mine(group, "get_rank")
    return found.rank() if found else -1


def get_world_size(group: Any = None) -> int:
    """Return the number of processes of a group; -1 if this process is no member.

    Raises:
        ValueError: there is no group.
    """
    found = _mine(group, "get_world_size")
    return found.size() if found else -1


def _of_member(group: Any) -> ProcessGroup:
    if group is not None and not isinstance(group, ProcessGroup):
        raise ValueError("Invalid process group specified")
    return _get_default_group() if group is None else group


def get_backend(group: Any = None) -> str:
    """Return the name of a group's backend, as it was given."""
    return _of_member(group).backend


def get_backend_config(group: Any = None) -> str:
    """Return the names of a group's backends by device."""
    return str(BackendConfig(_of_member(group).backend))


def get_process_group_ranks(group: Any) -> list[int]:
    """Return the ranks of a group's members among all processes."""
    return list(_of_member(group).ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """Return the rank among all processes of a member of a group.

    Raises:
        ValueError: the group has no member of this rank.
    """
    if group is GroupMember.WORLD:
        return group_rank
    ranks = _of_member(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """Return the rank in a group of one of all processes.

    Raises:
        ValueError: it is no member.
    """
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
    """Return a group of some of the processes; all processes have to call it, also those that are no members.

    Args:
        ranks: the members; all if None.
        timeout: how long the group's exchanges may take; 30 minutes if None.
        backend: that of all processes if None.
        use_local_synchronization: only the members call it.
        group_desc: what it is for.
        sort_ranks: number the members in the order of their ranks among all, not in that of `ranks`.
        pg_options, device_id: accepted; they have no meaning here.

    Returns:
        The group, or `GroupMember.NON_GROUP_MEMBER` where this process is no member.

    Raises:
        ValueError: a rank does not exist, or comes twice.
    """
    world = _get_default_group()
    chosen = list(world.ranks if ranks is None else ranks)
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"ranks list must not contain duplicate entries: {chosen}")
    if len(chosen) > world.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for rank in chosen:
        if not 0 <= rank < world.size():
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {world.size() - 1} (world_size={world.size()})"
            )
    if sort_ranks:
        chosen.sort()
    timeout, name = _seconds(timeout), world.backend if backend is None else _backend(backend)
    inside = world.rank() in chosen
    if use_local_synchronization and not inside:
        return GroupMember.NON_GROUP_MEMBER
    comm = None
    if world.comm is not None:
        members = world.comm.Get_group().Incl(chosen)
        if use_local_synchronization:
            comm = world.comm.Create_group(members)
        else:
            world.agree("new_group", chosen)  # MPI itself would wait for ever
            comm = world.comm.Create(members)
    if not inside:
        return GroupMember.NON_GROUP_MEMBER
    made = ProcessGroup(comm, chosen, chosen.index(world.rank()), name, timeout, group_desc or "undefined")
    _groups.append(made)
    return made


def _new_process_group_helper(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise NotImplementedError: it makes groups of PyTorch's own kinds."""
    raise NotImplementedError("torch.distributed._new_process_group_helper: make groups by torch.distributed.new_group")


def new_subgroups(
    group_size: int | None = None,
    group: Any = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Return the group that this process is in, and all of them: neighbours by rank, `group_size` each.

    Raises:
        ValueError: the number of processes is no multiple of the size.
    """
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
    """Return the group that this process is in (None if in none), and all of them, given the ranks of each.

    Raises:
        ValueError: there are no groups, or one process is in two.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen = collections.Counter(itertools.chain.from_iterable(ranks_per_subgroup_list))
    for rank, times in seen.items():
        if times > 1:
            raise ValueError(f"Rank {rank} has appeared in both subgroups")
    options = timeout, backend, pg_options, False, group_desc
    groups = [new_group(ranks, *options) for ranks in ranks_per_subgroup_list]
    return next((each for each in groups if isinstance(each, ProcessGroup)), None), groups
