"""`_DistWrapper`: steps that all ranks do, and that fail on all of them if they fail on one."""

from __future__ import annotations

import pickle
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from tinytorch.distributed.checkpoint.api import WRAPPED_EXCEPTION, CheckpointException
from tinytorch.distributed.groups import get_global_rank, get_rank, get_world_size, is_initialized
from tinytorch.distributed.objects import broadcast_object_list, gather_object


class _Failure:
    """What came of a step that failed: it may be a result, too, that a state is an error."""

    def __init__(self, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        places = [(each.filename, each.lineno or 0, each.name, each.line) for each in frames]  # (frames may not pickle)
        self.wrapped: WRAPPED_EXCEPTION = error, traceback.StackSummary.from_list(places)


def _outcome(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except BaseException as error:  # the others wait for an answer
        return _Failure(error)


class _DistWrapper:
    """The ranks of a group, or this process alone.

    Args:
        group: the group; that of all processes if None.
        use_dist: False for this process alone.
        coordinator_rank: the rank in the group that has the last word.
    """

    def __init__(self, group: Any, use_dist: bool, coordinator_rank: int) -> None:
        self.group, self.use_dist = group, use_dist
        self.rank = get_rank(group) if use_dist else 0
        self.coordinator = coordinator_rank if use_dist else 0
        self.is_coordinator = self.rank == self.coordinator

    def run(self, step: str, local: Callable[[], Any], combine: Callable[[list[Any]], list[Any]]) -> Any:
        """Return what `combine`, on the coordinator, makes of what `local` returns on all ranks: by rank, this one's.

        Raises:
            CheckpointException: on all ranks, if anything failed on one.
        """
        mine = _outcome(local)
        size = get_world_size(self.group) if self.use_dist else 1
        all_of_them = [mine] * size
        place = {} if not self.use_dist else {"group": self.group}
        if self.use_dist:
            root = self.coordinator if self.group is None else get_global_rank(self.group, self.coordinator)
            gather_object(mine, all_of_them if self.is_coordinator else None, root, **place)
        answer: list[Any] = [None]
        if self.is_coordinator:
            failures = {i: each.wrapped for i, each in enumerate(all_of_them) if isinstance(each, _Failure)}
            combined = None if failures else _outcome(lambda: combine(all_of_them))
            if isinstance(combined, _Failure):
                failures = {self.rank: combined.wrapped}
            answer = [CheckpointException(step, failures) if failures else combined]
        if self.use_dist:
            broadcast_object_list(answer, root, **place)
        if isinstance(answer[0], CheckpointException):
            raise answer[0]
        return answer[0][self.rank]


def _alone(no_dist: bool, doing: str) -> bool:
    """Return whether a process is by itself, after PyTorch's warning if it is."""
    alone = no_dist or not is_initialized()
    if alone:
        warnings.warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to "
            f"{doing} in a single process.",
            stacklevel=3,
        )
    return alone
