"""Schedules of learning rates: what changes an optimizer's `lr` from epoch to epoch.

A scheduler sets the rates when it is made, and anew at each `step()`, which comes after the
optimizer's. Most compute a rate from the one before, so that several schedulers can act on one
optimizer; `_get_closed_form_lr`, where there is one, computes it from the epoch.

In all of them `optimizer` is the one whose rates are set, and `last_epoch` that of `LRScheduler`.

Example:
    >>> w = torch.ones(1, requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for epoch in range(4):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step()
    ...     scheduler.step()
    [1.0]
    [1.0]
    [0.5]
    [0.5]
"""

from __future__ import annotations

import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsFloat

from tinytorch.optim._lr_base import EPOCH_DEPRECATION_WARNING, LRScheduler, Rate, _check_optimizer, _for_groups, _set
from tinytorch.optim.optimizer import Optimizer

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip

_LRScheduler = LRScheduler


def _data_of(function: Any) -> dict[str, Any] | None:
    """Return what a state holds of a callable: the data of an object, nothing of a function."""
    return None if isinstance(function, types.FunctionType) else function.__dict__.copy()


class _OfLambdas(LRScheduler):
    """A scheduler by functions of the epoch: one for all groups, or a list with one for each."""

    lr_lambdas: list[Callable[[int], float]]

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = optimizer
        number = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            self.lr_lambdas = [lr_lambda] * number
        elif len(lr_lambda) != number:
            raise ValueError(f"Expected {number} lr_lambdas, but got {len(lr_lambda)}")
        else:
            self.lr_lambdas = list(lr_lambda)
        self._check_lambdas()
        super().__init__(optimizer, last_epoch)

    def _check_lambdas(self) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        """Return what the scheduler knows; of the functions only the data of callable objects."""
        state = super().state_dict()
        del state["lr_lambdas"]
        return {**state, "lr_lambdas": [_data_of(function) for function in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; functions stay what they are."""
        state = dict(state_dict)
        for function, data in zip(self.lr_lambdas, state.pop("lr_lambdas"), strict=False):
            if data is not None:
                function.__dict__.update(data)
        super().load_state_dict(state)


class LambdaLR(_OfLambdas):
    """The initial rate times a function of the epoch.

    Args:
        lr_lambda: a function from epoch to factor, or a list with one for each group.

    Example:
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 / (epoch + 1))
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def get_lr(self) -> list[Rate]:
        """Return the initial rates times what the functions say."""
        self._warn_outside_step()
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]


class MultiplicativeLR(_OfLambdas):
    """The rate times a function of the epoch, at each epoch.

    Args:
        lr_lambda: a function from epoch to factor, or a list with one for each group.

    Example:
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    def _check_lambdas(self) -> None:
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")

    def get_lr(self) -> list[Rate]:
        """Return the rates times what the functions say."""
        self._warn_outside_step()
        if self._is_initial:
            return self._unchanged()
        pairs = zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        return [group["lr"] * function(self.last_epoch) for group, function in pairs]


class StepLR(LRScheduler):
    """The rate times `gamma` every `step_size` epochs.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> for _ in range(3):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [1.0]
        [1.0]
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the rates, times `gamma` at the end of a period."""
        self._warn_outside_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._unchanged()
        return self._times(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return self._base_times(self.gamma ** (self.last_epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """The rate times `gamma` at each of the given epochs.

    Args:
        milestones: the epochs; one that comes twice counts twice.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 2], gamma=0.5)
        >>> for _ in range(3):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [1.0]
        [0.5]
        [0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the rates, times `gamma` at a milestone."""
        self._warn_outside_step()
        if self.last_epoch not in self.milestones:
            return self._unchanged()
        return self._times(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Rate]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return self._base_times(self.gamma**passed)


class ConstantLR(LRScheduler):
    """A part of the rate, `factor`, for the first `total_iters` epochs, then all of it.

    Raises:
        ValueError: `factor` is not from 0 to 1.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> for _ in range(3):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [0.5]
        [0.5]
        [1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the rates; the factor comes at the first epoch and goes at `total_iters`."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._times(self.factor)
        if self.last_epoch != self.total_iters:
            return self._unchanged()
        return self._times(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Rate]:
        done = self.last_epoch >= self.total_iters
        return self._base_times(self.factor + done * (1 - self.factor))


class LinearLR(LRScheduler):
    """A factor that goes along a line from one value to another, and stays there.

    Args:
        start_factor: the factor of the first epoch, greater than 0 and at most 1.
        end_factor: the factor from `total_iters` on, from 0 to 1.
        total_iters: epochs from one to the other.

    Raises:
        ValueError: a factor is out of its range.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> for _ in range(3):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [0.5]
        [0.75]
        [1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the rates times the quotient of this epoch's factor and the last one's."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        rise = self.end_factor - self.start_factor
        last = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._times(1.0 + rise / last)

    def _get_closed_form_lr(self) -> list[Rate]:
        rise, epoch = self.end_factor - self.start_factor, min(self.total_iters, self.last_epoch)
        return self._base_times(self.start_factor + rise * epoch / self.total_iters)


class ExponentialLR(LRScheduler):
    """The rate times `gamma` at every epoch.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> for _ in range(3):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [1.0]
        [0.5]
        [0.25]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the rates times `gamma`."""
        self._warn_outside_step()
        return self._unchanged() if self._is_initial else self._times(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return self._base_times(self.gamma**self.last_epoch)


class PolynomialLR(LRScheduler):
    """The rate falls to 0, in `total_iters` epochs, as `(1 - epoch / total_iters)**power`.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=2, power=1.0)
        >>> for _ in range(3):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [1.0]
        [0.5]
        [0.0]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the rates times the quotient of this epoch's factor and the last one's."""
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._unchanged()
        left = 1.0 - self.last_epoch / self.total_iters
        left_before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._times((left / left_before) ** self.power)

    def _get_closed_form_lr(self) -> list[Rate]:
        # In this order, so that the last bit is PyTorch's.
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return self._base_times(left**self.power)


class CosineAnnealingLR(LRScheduler):
    """The rate falls along half a cosine from the initial one to `eta_min`, and rises again.

    Args:
        T_max: epochs of half a period.

    Example:
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> for _ in range(2):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(scheduler.get_last_lr())
        [0.5]
        [0.0]

    Source:
        Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2017.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the rates, moved from the last epoch's place on the cosine to this one's."""
        self._warn_outside_step()
        epoch, period, least = self.last_epoch, self.T_max, self.eta_min
        groups = self.optimizer.param_groups
        if self._is_initial:
            return self._unchanged()
        if self._step_count == 1 and epoch > 0:
            factor = 1 + math.cos(epoch * math.pi / period)
            return [least + (base - least) * factor / 2 for base in self.base_lrs]
        if (epoch - 1 - period) % (2 * period) == 0:  # after the least rate, which says nothing
            factor = 1 - math.cos(math.pi / period)
            pairs = zip(self.base_lrs, groups, strict=True)
            return [group["lr"] + (base - least) * factor / 2 for base, group in pairs]
        now = 1 + math.cos(math.pi * epoch / period)
        before = 1 + math.cos(math.pi * (epoch - 1) / period)
        return [now / before * (group["lr"] - least) + least for group in groups]

    def _get_closed_form_lr(self) -> list[Rate]:
        factor, least = 1 + math.cos(math.pi * self.last_epoch / self.T_max), self.eta_min
        return [least + (base - least) * factor / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """The rate falls along half a cosine from the initial one to `eta_min`, and starts again.

    `step` takes an epoch, also a fraction of one.

    Args:
        T_0: epochs until the first restart.
        T_mult: how many times longer each period is than the one before.

    Raises:
        ValueError: an argument is of another type, or out of its range.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
        >>> for _ in range(3):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [1.0]
        [0.5]
        [1.0]

    Source:
        Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2017.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the rates at `T_cur` of the period `T_i`."""
        self._warn_outside_step()
        factor, least = 1 + math.cos(math.pi * self.T_cur / self.T_i), self.eta_min
        return [least + (base - least) * factor / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go on to the next epoch, or to `epoch`, which may be a fraction.

        Raises:
            ValueError: `epoch` is negative.

        Example:
            >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
            >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
            >>> scheduler.step(0.5)
            >>> [round(lr, 4) for lr in scheduler.get_last_lr()]
            [0.8536]
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            growth = self.T_mult
            restarts = int(math.log(epoch / self.T_0 * (growth - 1) + 1, growth))
            self.T_cur = epoch - self.T_0 * (growth**restarts - 1) / (growth - 1)
            self.T_i = self.T_0 * growth**restarts
        self.last_epoch = math.floor(epoch)
        with self._computing():
            rates = self.get_lr()
        self._set_rates(rates)


# Schedulers of schedulers -------------------------------------------------------------------------


def _check_members(self: Any, schedulers: Sequence[Any], optimizer: Any) -> None:
    """Raise PyTorch's errors for schedulers that cannot act together."""
    name = type(self).__name__
    for i, each in enumerate(schedulers):
        if not hasattr(each, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(each, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
            )
        if optimizer is not each.optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(each).__name__} at index {i} has {each.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )


class _OfSchedulers(LRScheduler):
    """A scheduler that holds others."""

    _schedulers: Sequence[Any]

    def state_dict(self) -> dict[str, Any]:
        """Return what the scheduler knows, and the states of those that it holds."""
        state = super().state_dict()
        del state["_schedulers"]
        return {**state, "_schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        state = dict(state_dict)
        for each, part in zip(self._schedulers, state.pop("_schedulers"), strict=False):
            each.load_state_dict(part)
        super().load_state_dict(state)


class SequentialLR(_OfSchedulers):
    """Schedulers one after another.

    Args:
        schedulers: the schedulers, of the same optimizer.
        milestones: the epochs at which the second one starts, the third, and so on.

    Raises:
        ValueError: the numbers do not fit, or a scheduler has another optimizer or needs a metric.
        TypeError: something is no scheduler.

    Example:
        >>> from tinytorch.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> first = ConstantLR(optimizer, factor=0.1, total_iters=2)
        >>> scheduler = SequentialLR(optimizer, [first, ExponentialLR(optimizer, 0.5)], [2])
        >>> for _ in range(4):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [0.1]
        [0.1]
        [1.0]
        [0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        _check_members(self, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each scheduler made its first step when it was made: take these back, and let the first one make it again.
        for group in optimizer.param_groups:
            _set(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Take one epoch back from all schedulers, also from those that these hold."""
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for each in sched._schedulers:
                self.recursive_undo(each)
        elif hasattr(sched, "last_epoch"):
            sched.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Go on to the next epoch."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_OfSchedulers):
    """Schedulers that all act at every epoch, one on the rate of the other.

    Args:
        schedulers: the schedulers, of the same optimizer.
        optimizer: whose rates are set; that of the schedulers if not given.

    Raises:
        ValueError: there is none, or one has another optimizer or needs a metric.
        TypeError: something is no scheduler.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
        >>> schedulers = torch.optim.lr_scheduler
        >>> warm_up = schedulers.ConstantLR(optimizer, factor=0.5, total_iters=1)
        >>> decay = schedulers.ExponentialLR(optimizer, gamma=0.5)
        >>> scheduler = schedulers.ChainedScheduler([warm_up, decay])
        >>> for _ in range(3):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [0.5]
        [0.5]
        [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        _check_members(self, schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = self._unchanged()

    def step(self) -> None:  # type: ignore[override]
        """Go on to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._unchanged()


class ReduceLROnPlateau(LRScheduler):
    """The rate times `factor`, which is less than 1, when a metric has not become better for a while.

    Args:
        mode: "min" if less is better, or "max".
        patience: how many epochs may bring nothing better.
        threshold: what a better metric has to differ by from the best.
        threshold_mode: "rel": as a part of the best; "abs": as a number.
        cooldown: epochs after a reduction in which nothing is counted.
        min_lr: the least rate, or a list with one for each group.
        eps: a smaller change of a rate is none.

    Raises:
        ValueError: an argument is out of its range.
        TypeError: `optimizer` is no Optimizer.

    Example:
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in (3.0, 2.0, 2.0, 2.0):
        ...     scheduler.step(loss)
        >>> scheduler.get_last_lr()
        [0.1]
    """

    best: float

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        number = len(optimizer.param_groups)
        self.default_min_lr: float | None = None
        if not isinstance(min_lr, (list, tuple)):
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * number
        elif len(min_lr) != number:
            raise ValueError(f"expected {number} min_lrs, got {len(min_lr)}")
        else:
            self.min_lrs = list(min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._unchanged()
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _reset(self) -> None:
        """Forget the metrics."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take an epoch's metric, a number or a tensor of one, and reduce the rates if it is time to.

        To name the epoch is deprecated.

        Example:
            >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
            >>> scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
            >>> for loss in (3.0, 2.0, 2.0):
            ...     scheduler.step(loss)
            >>> scheduler.get_last_lr()
            [0.5]
        """
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._unchanged()

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from "
                    f"when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due "
                    "to a new param group being added to the optimizer. Please modify the "
                    "`min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _set(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether nothing is counted yet after a reduction."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        relative, threshold = self.threshold_mode == "rel", self.threshold
        if self.mode == "min":
            return a < (best * (1.0 - threshold) if relative else best - threshold)
        return a > (best * (threshold + 1.0) if relative else best + threshold)

    def _init_is_better(self, mode: Any, threshold: float, threshold_mode: Any) -> None:
        if mode not in {"min", "max"}:
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in {"rel", "abs"}:
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)


# Cycles, of learning rate and momentum ------------------------------------------------------------


class _Cycling(LRScheduler):
    """A scheduler that also moves the momentum, or the first of the betas."""

    cycle_momentum: bool
    use_beta1: bool

    def _start_momentum(self, base: Any, greatest: Any, starts: bool) -> tuple[list[Any], list[Any]]:
        """Enter the bounds of the momentum in the groups; return them."""
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        bases = _for_groups("base_momentum", optimizer, base)
        tops = _for_groups("max_momentum", optimizer, greatest)
        if starts:
            for top, least, group in zip(tops, bases, optimizer.param_groups, strict=True):
                self._set_momentum(group, top)
                group["max_momentum"] = top
                group["base_momentum"] = least
        return bases, tops

    def _set_momentum(self, group: dict[str, Any], momentum: Any) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_Cycling):
    """The rate goes up and down between two bounds, and the momentum down and up.

    `step` is called after every batch.

    Args:
        base_lr, max_lr: the bounds, each a number or a list with one for each group.
        step_size_up: steps from the lower to the upper.
        step_size_down: steps back; None: as many.
        mode: "triangular": all cycles are the same; "triangular2": each rises half as high as the one
            before; "exp_range": the rise is scaled by `gamma**steps`.
        gamma: see `mode`.
        scale_fn: instead of a mode, a function that the rise is scaled by.
        scale_mode: what `scale_fn` gets: "cycle", the number of the cycle, or "iterations".
        cycle_momentum: whether to move the momentum (the first of `betas`), too.
        base_momentum, max_momentum: its bounds, in the same way.

    Raises:
        ValueError: an argument is out of its range, or the optimizer has no momentum.
        TypeError: `optimizer` is no Optimizer.

    Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0, momentum=0.9)
        >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.5, max_lr=1.5, step_size_up=2)
        >>> for _ in range(3):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
        [0.5]
        [1.0]
        [1.5]

    Source:
        Smith, Cyclical Learning Rates for Training Neural Networks, 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        bases = _for_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(bases, optimizer.param_groups, strict=True):
                _set(group, "lr", rate)
        self.max_lrs = _for_groups("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._start_momentum(
                base_momentum, max_momentum, last_epoch == -1
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = bases

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is None:
            self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"

    def scale_fn(self, x: float) -> float:
        """Return the factor of the rise in cycle, or at step, `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Rate]:
        """Return the rates of this step, and set its momentum."""
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        peak = self.step_ratio
        height = x / peak if x <= peak else (x - 1) / (peak - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        rates = [base + (top - base) * height * scale for base, top in zip(self.base_lrs, self.max_lrs, strict=True)]
        if self.cycle_momentum:
            for base, top, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            ):
                self._set_momentum(group, top - (top - base) * height * scale)
        return rates

    def state_dict(self) -> dict[str, Any]:
        """Return what the scheduler knows; of `scale_fn` only the data of a callable object."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if function is None else _data_of(function)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; `scale_fn` stays what it is."""
        state = dict(state_dict)
        data = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if data is not None:
            self._scale_fn_custom.__dict__.update(data)
        self._init_scale_fn()


class OneCycleLR(_Cycling):
    """The rate rises to its greatest value, and falls far below its first; the momentum goes against it.

    `step` is called after every batch, `total_steps` times.

    Args:
        max_lr: the greatest rate, or a list with one for each group.
        total_steps: steps of the cycle; or
        epochs, steps_per_epoch: whose product they are.
        pct_start: the part of the steps in which the rate rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum, base_momentum, max_momentum: as for `CyclicLR`.
        div_factor: the greatest rate over the first.
        final_div_factor: the first rate over the last.
        three_phase: fall to the first rate as long as the rise took, and then to the last.

    Raises:
        ValueError: an argument is out of its range, the optimizer has no momentum, or, by `step`, the cycle is over.
        TypeError: `optimizer` is no Optimizer.

    Example:
        >>> optimizer = torch.optim.Adam([torch.ones(1, requires_grad=True)])
        >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(
        ...     optimizer, max_lr=0.25, total_steps=4, pct_start=0.5, anneal_strategy="linear")
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr(), optimizer.param_groups[0]["betas"]
        ([0.25], (0.85, 0.999))

    Source:
        Smith and Topin, Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates, 2018.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer

        def positive(name: str, value: Any) -> int:
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"Expected positive integer {name}, but got {value}")
            return value

        if total_steps is not None:
            self.total_steps = positive("total_steps", total_steps)
        elif epochs is not None and steps_per_epoch is not None:
            self.total_steps = positive("epochs", epochs)
            self.total_steps *= positive("steps_per_epoch", steps_per_epoch)
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")

        # Rates and momenta by their names in the groups.
        first, top, last = "initial_lr", "max_lr", "min_lr"
        least, most = "base_momentum", "max_momentum"
        rise = float(pct_start * self.total_steps) - 1
        if three_phase:
            back = float(2 * pct_start * self.total_steps) - 2
            phases = [
                (rise, first, top, most, least),
                (back, top, first, least, most),
                (self.total_steps - 1, first, last, most, most),
            ]
        else:
            phases = [(rise, first, top, most, least), (self.total_steps - 1, top, last, least, most)]
        names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
        self._schedule_phases: list[dict[str, Any]] = [dict(zip(names, phase, strict=True)) for phase in phases]
        if not isinstance(pct_start, float) or pct_start < 0 or pct_start > 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy

        greatest = _for_groups("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(greatest, optimizer.param_groups, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: Any, end: Any, part: float) -> Any:
        """Return the value at a part of the way from one to another."""
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[Rate]:
        """Return the rates of this step, and set its momentum.

        Raises:
            ValueError: the cycle is over.
        """
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if step <= end or phase is self._schedule_phases[-1]:
                break
            begin = end
        part = (step - begin) / (end - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                start, stop = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal(start, stop, part))
        return rates
