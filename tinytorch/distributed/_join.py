"""Training with uneven inputs: what a process does that has none left while others go on."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

from tinytorch.distributed.collectives import all_reduce
from tinytorch.distributed.groups import get_rank
from tinytorch.distributed.work import Work
from tinytorch.ops.create import ones, zeros

__all__ = ["Join", "JoinHook", "Joinable"]

_MANY = 1000  # steps that a process has fewer than others, from which on there is a warning


class JoinHook:
    """What a process that has joined, one without inputs left, does so that the others' exchanges find it.

    Example:
        >>> from tinytorch.distributed.algorithms.join import JoinHook
        >>> class Counts(JoinHook):
        ...     steps = 0
        ...     def main_hook(self):
        ...         self.steps += 1
    """

    def main_hook(self) -> None:
        """Do what a step of the others needs; called once for each of their steps."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Do what is to be done when all have joined; `is_last_joiner`: whether this process was one of the last."""


class _JoinConfig(NamedTuple):
    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class Joinable(ABC):
    """What can train with uneven inputs: it calls `Join.notify_join_context` before the exchanges of a step."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook that answers for this object, given the keywords that `Join` got."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of what is exchanged."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes."""


class Join:
    """A context manager around a training loop that processes leave after different numbers of steps.

    Who has left goes on to answer the others' exchanges, by the hooks of the objects that take part, until all have.

    Args:
        joinables: the objects, `DistributedDataParallel` among them.
        enable: False makes the context do nothing.
        throw_on_early_termination: raise an error on all processes when the first has no inputs left.
        kwargs: what the objects' `join_hook` gets.

    Raises:
        ValueError: there are no objects, or they are of several groups.
        RuntimeError: a process has no inputs left, and `throw_on_early_termination`.

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
        self._join_hooks = [each.join_hook(**kwargs) for each in joinables]
        for k, each in enumerate(joinables):
            each._join_config = _JoinConfig(enable, throw_on_early_termination, k == 0)
        self._process_group = joinables[0].join_process_group
        if any(each.join_process_group is not self._process_group for each in joinables):
            raise ValueError("Using join context manager with multiple process groups")
        self._rank = get_rank(self._process_group)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if not self._enable or kind:
            return
        steps = 0
        while self._answer(zeros(1)):  # the others' ones: how many have not joined
            if self._throws:
                self._answer(ones(1))
                raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")
            for hook in self._join_hooks:
                hook.main_hook()
            steps += 1
            if steps == _MANY:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank {self._rank} has at "
                    f"least {_MANY} fewer inputs than other currently-active ranks. This level of skew could lead to "
                    "performance degradation during training.",
                    stacklevel=2,
                )
        for hook in self._join_hooks:
            hook.post_hook(not steps)

    def _answer(self, number: Any) -> float:
        all_reduce(number, group=self._process_group)
        return float(number)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tell the processes that have joined that this one begins a step.

        Returns:
            The work of summing ones over those that have not, for the first of the objects of an enabled `Join`;
            else None.

        Raises:
            RuntimeError: another process has joined, and `throw_on_early_termination`.
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
