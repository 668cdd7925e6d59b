"""Training with uneven inputs: a process without inputs answers the collectives of the others until all have none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from tinytorch.core.warning import warn
from tinytorch.distributed.collectives import all_reduce
from tinytorch.distributed.groups import get_rank
from tinytorch.distributed.work import Work
from tinytorch.ops.create import ones, zeros

__all__ = ["Join", "JoinHook", "Joinable"]

_SKEW_WARNING = 1000  # warn when a process has so many steps less than others


class JoinHook:
    """The collectives by which a process that has joined (it has no inputs left) answers those of the others.

    Example:
        >>> from tinytorch.distributed.algorithms.join import JoinHook
        >>> class Counts(JoinHook):
        ...     steps = 0
        ...     def main_hook(self):
        ...         self.steps += 1
    """

    def main_hook(self) -> None:
        """Answer one step of the others; called once for each of their steps."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Finish when all have joined; `is_last_joiner`: this process was one of the last to join."""


class _JoinConfig(NamedTuple):
    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class Joinable(ABC):
    """An object for training with uneven inputs: it calls `Join.notify_join_context` before a step's collectives."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook for this object, given the keyword arguments of `Join`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of the communicated tensors."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The process group."""


class Join:
    """A context manager for a training loop that has a different number of steps on each process.

    A process that has left the loop answers the others' collectives by the hooks of the objects, until all have left.

    Args:
        joinables: the objects, such as `DistributedDataParallel`.
        enable: False turns the context manager off.
        throw_on_early_termination: raise an error on all processes when the first has no inputs left.
        kwargs: arguments for the objects' `join_hook`.

    Example:
        >>> import tinytorch.distributed as dist
        >>> from tinytorch.distributed.algorithms.join import Join
        >>> dist.init_process_group("gloo", rank=0, world_size=1)
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
        >>> with Join([model]):
        ...     for x in torch.ones(3, 1):
        ...         model(x).sum().backward()
        >>> dist.destroy_process_group()
    """

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable, self._throws = joinables, enable, throw_on_early_termination
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        for k, joinable in enumerate(joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, k == 0)
        self._process_group = joinables[0].join_process_group
        if any(joinable.join_process_group is not self._process_group for joinable in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._rank = get_rank(self._process_group)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if not self._enable or kind:
            return
        steps = 0
        while self._sum(zeros(1)):  # the number of processes that have not joined: each of them contributes 1
            if self._throws:
                self._sum(ones(1))
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            for hook in self._join_hooks:
                hook.main_hook()
            steps += 1
            if steps == _SKEW_WARNING:
                warn(
                    f"Detected uneven input skew of greater than {steps}. This means that rank {self._rank} has at "
                    f"least {steps} fewer inputs than other currently-active ranks. This level of skew could lead to "
                    "performance degradation during training."
                )
        for hook in self._join_hooks:
            hook.post_hook(not steps)

    def _sum(self, number: Any) -> float:
        all_reduce(number, group=self._process_group)
        return float(number)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tell the processes that have joined that this one starts a step.

        Returns:
            For the first object of an enabled `Join`, the work handle of the sum that counts the processes that have
            not joined; else None.
        """
        assert hasattr(joinable, "_join_config"), (
            f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor"
        )
        config = joinable._join_config
        if not (config.enable and config.is_first_joinable):
            return None
        group = joinable.join_process_group
        work = all_reduce(ones(1), group=group, async_op=True)
        if config.throw_on_early_termination:
            joined = zeros(1)
            all_reduce(joined, group=group)
            if float(joined):
                raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work
