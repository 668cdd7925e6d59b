"""Steps that all ranks execute, and that fail on all ranks if they fail on one; objects with a state."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

from tinytorch.core.warning import warn
from tinytorch.distributed.groups import get_global_rank, get_rank, get_world_size, is_initialized
from tinytorch.distributed.objects import broadcast_object_list, gather_object

WRAPPED_EXCEPTION = tuple[BaseException, traceback.StackSummary]


class CheckpointException(BaseException):
    """An error while a checkpoint was saved or loaded, raised on all ranks.

    As in PyTorch it is not an `Exception`: `except Exception` does not catch it.
    """

    def __init__(self, msg: str, failures: dict[int, WRAPPED_EXCEPTION]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, WRAPPED_EXCEPTION]:
        """Return for each rank that failed the error and its traceback."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, stack) in self._failures.items():
            lines = [*stack.format(), *traceback.format_exception_only(type(error), error)]
            text += f"Traceback (most recent call last): (RANK {rank})\n" + "".join(lines)
        return text


@runtime_checkable
class Stateful(Protocol):
    """The protocol of objects with `state_dict` and `load_state_dict`: `save` and `load` use their state.

    Example:
        >>> from tinytorch.distributed.checkpoint.stateful import Stateful
        >>> isinstance(torch.nn.Linear(2, 3), Stateful)
        True
    """

    def state_dict(self) -> dict[str, Any]:
        """Return the state; `load` calls it, too, and loads into the result."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)


class _Failure:
    """The error of a step, wrapped: a step may also return an exception as its result."""

    def __init__(self, error: BaseException) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        lines = [(frame.filename, frame.lineno or 0, frame.name, frame.line) for frame in frames]  # (can be pickled)
        self.wrapped: WRAPPED_EXCEPTION = error, traceback.StackSummary.from_list(lines)


def _outcome(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except BaseException as error:  # the other ranks wait for a result
        return _Failure(error)


class _DistWrapper:
    """The ranks of a group, or this process alone.

    Args:
        group: the process group; all processes if None.
        use_dist: False: this process alone.
        coordinator_rank: the rank in the group that combines the results.
    """

    def __init__(self, group: Any, use_dist: bool, coordinator_rank: int) -> None:
        self.group, self.use_dist = group, use_dist
        self.rank = get_rank(group) if use_dist else 0
        self.coordinator = coordinator_rank if use_dist else 0
        self.is_coordinator = self.rank == self.coordinator

    def run(self, step: str, local: Callable[[], Any], combine: Callable[[list[Any]], list[Any]]) -> Any:
        """Call `local` on all ranks, and `combine` with the list of results on the coordinator; it returns a list.

        Returns:
            The element for this rank of the list that `combine` returned.

        Raises:
            CheckpointException: on all ranks, if a function failed on one.
        """
        own = _outcome(local)
        size = get_world_size(self.group) if self.use_dist else 1
        outcomes = [own] * size
        if self.use_dist:
            root = self.coordinator if self.group is None else get_global_rank(self.group, self.coordinator)
            gather_object(own, outcomes if self.is_coordinator else None, root, self.group)
        combined: list[Any] = [None]
        if self.is_coordinator:
            failures = {rank: outcome.wrapped for rank, outcome in enumerate(outcomes) if isinstance(outcome, _Failure)}
            results = None if failures else _outcome(lambda: combine(outcomes))
            if isinstance(results, _Failure):
                failures = {self.rank: results.wrapped}
            combined = [CheckpointException(step, failures) if failures else results]
        if self.use_dist:
            broadcast_object_list(combined, root, self.group)
        if isinstance(combined[0], CheckpointException):
            raise combined[0]
        return combined[0][self.rank]


def _alone(no_dist: bool, doing: str) -> bool:
    """Return whether this process works alone; warn, as PyTorch does, if it does."""
    alone = no_dist or not is_initialized()
    if alone:
        warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is to "
            f"{doing} in a single process."
        )
    return alone
