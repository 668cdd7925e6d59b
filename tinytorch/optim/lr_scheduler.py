"""Learning rate schedulers, which change an optimizer's `lr` from epoch to epoch.

A scheduler sets the rates when it is created, and at each `step()`, which is called after the
optimizer's. Most compute a rate from the previous one, so that several schedulers can act on one
optimizer; a method `_get_closed_form_lr` computes it from the epoch alone.

The arguments `optimizer` and `last_epoch` of all schedulers are those of `LRScheduler`.

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
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, SupportsFloat, TypeVar

from tinytorch.core.warning import warn
from tinytorch.optim._lr_base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    Rate,
    _check_optimizer,
    _per_group,
    _set_option,
)
from tinytorch.optim.optimizer import Optimizer

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip

_LRScheduler = LRScheduler
_Class = TypeVar("_Class", bound=type)


def _shown(arguments: str, *rates: float, optimizer: str = "lr=1.0") -> Callable[[_Class], _Class]:
    """Return a decorator that adds an example to a scheduler's docstring: the rates of the first epochs."""

    def decorate(cls: _Class) -> _Class:
        example = f"""Example:
        >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], {optimizer})
        >>> scheduler = torch.optim.lr_scheduler.{cls.__name__}(optimizer, {arguments})
        >>> for _ in range({len(rates)}):
        ...     print(scheduler.get_last_lr())
        ...     optimizer.step()
        ...     scheduler.step()
"""
        example += "".join([f"        [{rate}]\n" for rate in rates])
        text, source, reference = (cls.__doc__ or "").partition("Source:")
        cls.__doc__ = f"{text.rstrip()}\n\n    {example}" + (f"\n    {source}{reference}" if source else "    ")
        return cls

    return decorate


def _callable_state(function: Any) -> dict[str, Any] | None:
    """Return the attributes of a callable object for a state dict, or None for a function."""
    return None if isinstance(function, types.FunctionType) else function.__dict__.copy()


class _LambdaScheduler(LRScheduler):
    """Base class of schedulers by functions of the epoch: one for all groups, or a list with one per group."""

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
        """Return the attributes of the scheduler; of its functions only the attributes of callable objects."""
        state = super().state_dict()
        del state["lr_lambdas"]
        return {**state, "lr_lambdas": [_callable_state(function) for function in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state returned by `state_dict`; functions are kept."""
        state = dict(state_dict)
        for function, data in zip(self.lr_lambdas, state.pop("lr_lambdas"), strict=False):
            if data is not None:
                function.__dict__.update(data)
        super().load_state_dict(state)


@_shown("lambda epoch: 1 / (epoch + 1)", 1.0, 0.5)
class LambdaLR(_LambdaScheduler):
    """Set the rate to the initial rate times a function of the epoch.

    Args:
        lr_lambda: a function from epoch to factor, or a list with one per group.
    """

    def get_lr(self) -> list[Rate]:
        """Return the initial rates times the factors of the epoch."""
        self._warn_outside_step()
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]


@_shown("lambda epoch: 0.5", 1.0, 0.5, 0.25)
class MultiplicativeLR(_LambdaScheduler):
    """Multiply the rate by a function of the epoch, at each epoch; arguments as `LambdaLR`."""

    def _check_lambdas(self) -> None:
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")

    def get_lr(self) -> list[Rate]:
        """Return the current rates times the factors of the epoch."""
        self._warn_outside_step()
        if self._is_initial:
            return self._current_rates()
        pairs = zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)
        return [group["lr"] * function(self.last_epoch) for group, function in pairs]


@_shown("step_size=2, gamma=0.5", 1.0, 1.0, 0.5)
class StepLR(LRScheduler):
    """Multiply the rate by `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the current rates, times `gamma` at the end of a period."""
        self._warn_outside_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._current_rates()
        return self._scale_current(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return self._scale_base(self.gamma ** (self.last_epoch // self.step_size))


@_shown("milestones=[1, 2], gamma=0.5", 1.0, 0.5, 0.25)
class MultiStepLR(LRScheduler):
    """Multiply the rate by `gamma` at each milestone.

    Args:
        milestones: the epochs; one that is listed twice multiplies twice.
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the current rates, times `gamma` at a milestone."""
        self._warn_outside_step()
        if self.last_epoch not in self.milestones:
            return self._current_rates()
        return self._scale_current(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Rate]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return self._scale_base(self.gamma**passed)


@_shown("factor=0.5, total_iters=2", 0.5, 0.5, 1.0)
class ConstantLR(LRScheduler):
    """Multiply the rate by `factor` for the first `total_iters` epochs.

    Raises:
        ValueError: `factor` is not from 0 to 1.
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
        """Return the current rates, times the factor in the first epoch and divided by it at `total_iters`."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scale_current(self.factor)
        if self.last_epoch != self.total_iters:
            return self._current_rates()
        return self._scale_current(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Rate]:
        done = self.last_epoch >= self.total_iters
        return self._scale_base(self.factor + done * (1 - self.factor))


@_shown("start_factor=0.5, total_iters=2", 0.5, 0.75, 1.0)
class LinearLR(LRScheduler):
    """Multiply the rate by a factor that changes linearly for `total_iters` epochs, and is constant afterwards.

    It is `start_factor` in the first epoch, greater than 0 and at most 1, and `end_factor` from `total_iters` on, from
    0 to 1.
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
        """Return the current rates times the quotient of this epoch's factor and the previous one's."""
        self._warn_outside_step()
        if self.last_epoch == 0:
            return self._scale_current(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current_rates()
        rise = self.end_factor - self.start_factor
        last = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return self._scale_current(1.0 + rise / last)

    def _get_closed_form_lr(self) -> list[Rate]:
        rise, epoch = self.end_factor - self.start_factor, min(self.total_iters, self.last_epoch)
        return self._scale_base(self.start_factor + rise * epoch / self.total_iters)


@_shown("gamma=0.5", 1.0, 0.5, 0.25)
class ExponentialLR(LRScheduler):
    """Multiply the rate by `gamma` at every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the current rates times `gamma`."""
        self._warn_outside_step()
        return self._current_rates() if self._is_initial else self._scale_current(self.gamma)

    def _get_closed_form_lr(self) -> list[Rate]:
        return self._scale_base(self.gamma**self.last_epoch)


@_shown("total_iters=2, power=1.0", 1.0, 0.5, 0.0)
class PolynomialLR(LRScheduler):
    """Decrease the rate to 0 in `total_iters` epochs, as `(1 - epoch / total_iters)**power`."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the current rates times the quotient of this epoch's factor and the previous one's."""
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current_rates()
        left = 1.0 - self.last_epoch / self.total_iters
        left_before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scale_current((left / left_before) ** self.power)

    def _get_closed_form_lr(self) -> list[Rate]:
        # In PyTorch's order of operations, so that the last bit agrees.
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return self._scale_base(left**self.power)


@_shown("T_max=2", 1.0, 0.5, 0.0)
class CosineAnnealingLR(LRScheduler):
    """Decrease the rate along half a cosine from the initial rate to `eta_min`, and increase it again.

    `T_max` is the number of epochs of half a period.

    Source: Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2017.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        """Return the rates of this epoch, computed from those of the previous one."""
        self._warn_outside_step()
        epoch, period, least = self.last_epoch, self.T_max, self.eta_min
        groups = self.optimizer.param_groups
        if self._is_initial:
            return self._current_rates()
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - period) % (2 * period) == 0:  # the previous rate was `eta_min`, whatever the base rate
            factor = 1 - math.cos(math.pi / period)
            pairs = zip(self.base_lrs, groups, strict=True)
            return [group["lr"] + (base - least) * factor / 2 for base, group in pairs]
        now = 1 + math.cos(math.pi * epoch / period)
        before = 1 + math.cos(math.pi * (epoch - 1) / period)
        return [now / before * (group["lr"] - least) + least for group in groups]

    def _get_closed_form_lr(self) -> list[Rate]:
        factor, least = 1 + math.cos(math.pi * self.last_epoch / self.T_max), self.eta_min
        return [least + (base - least) * factor / 2 for base in self.base_lrs]


@_shown("T_0=2", 1.0, 0.5, 1.0)
class CosineAnnealingWarmRestarts(LRScheduler):
    """Decrease the rate along half a cosine from the initial rate to `eta_min`, then restart.

    `step` accepts an epoch, which may be fractional.

    `T_0` is the number of epochs until the first restart, `T_mult` the quotient of the lengths of successive periods.

    Source: Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, 2017.
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
        """Return the rates after `T_cur` epochs of the period, which has `T_i`."""
        self._warn_outside_step()
        factor, least = 1 + math.cos(math.pi * self.T_cur / self.T_i), self.eta_min
        return [least + (base - least) * factor / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance to the next epoch, or to `epoch`, which may be fractional.

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


# Combinations of schedulers -----------------------------------------------------------------------


def _check_members(self: Any, schedulers: Sequence[Any], optimizer: Any) -> None:
    """Raise PyTorch's errors for schedulers that cannot be combined."""
    name = type(self).__name__
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
            )
        if optimizer is not scheduler.optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )


class _CompositeScheduler(LRScheduler):
    """Base class of schedulers that combine others."""

    _schedulers: Sequence[Any]

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes of the scheduler, and the states of its members."""
        state = super().state_dict()
        del state["_schedulers"]
        return {**state, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state returned by `state_dict`."""
        state = dict(state_dict)
        for scheduler, part in zip(self._schedulers, state.pop("_schedulers"), strict=False):
            scheduler.load_state_dict(part)
        super().load_state_dict(state)


class SequentialLR(_CompositeScheduler):
    """Apply schedulers one after another.

    The `milestones` are the epochs at which the second scheduler starts, the third, and so on.

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
        # Every scheduler made its first step when it was created: undo these steps, and repeat that of the first one.
        for group in optimizer.param_groups:
            _set_option(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Decrement the epoch of all schedulers, also of nested ones."""
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for scheduler in sched._schedulers:
                self.recursive_undo(scheduler)
        elif hasattr(sched, "last_epoch"):
            sched.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Advance to the next epoch."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_CompositeScheduler):
    """Apply several schedulers at every epoch, each to the rates set by the previous one.

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
        self._last_lr = self._current_rates()

    def step(self) -> None:  # type: ignore[override]
        """Advance to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._current_rates()


class ReduceLROnPlateau(LRScheduler):
    """Multiply the rate by `factor`, which is less than 1, when a metric has stopped improving.

    The metric improves if it is smaller (mode "min") or larger ("max") than the best one, by `threshold`, relative to
    that ("rel") or absolute ("abs"); `patience` epochs without improvement are tolerated, and `cooldown` epochs after a
    reduction not counted. `min_lr` is the lower bound of the rate, or a list with one per group; changes smaller than
    `eps` are not made.

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
        self._last_lr = self._current_rates()
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Record an epoch's metric, a number or a one-element tensor; reduce the rates if it has stopped improving.

        The argument `epoch` is deprecated.
        """
        current = float(metrics)
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING, UserWarning)
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
        self._last_lr = self._current_rates()

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
                _set_option(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether the cooldown after a reduction is still running."""
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
        """Load a state returned by `state_dict`."""
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)


# Cycles of learning rate and momentum -------------------------------------------------------------


class _CyclicScheduler(LRScheduler):
    """Base class of schedulers that also change the momentum, or the first of the betas."""

    cycle_momentum: bool
    use_beta1: bool

    def _init_momentum(self, base: Any, greatest: Any, starts: bool) -> tuple[list[Any], list[Any]]:
        """Return the bounds of the momentum; if `starts`, set them in the groups."""
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        bases = _per_group("base_momentum", optimizer, base)
        tops = _per_group("max_momentum", optimizer, greatest)
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


@_shown("base_lr=0.5, max_lr=1.5, step_size_up=2", 0.5, 1.0, 1.5, optimizer="lr=1.0, momentum=0.9")
class CyclicLR(_CyclicScheduler):
    """Cycle the rate up and down between two bounds, and the momentum down and up.

    `step` is called after every batch.

    The bounds are numbers, or lists with one per group. In the mode "triangular" all cycles are the same, in
    "triangular2" each has half the amplitude of the one before, in "exp_range" the amplitude is scaled by
    `gamma**steps`; `scale_fn` returns its factor instead, given the number of the cycle or, with `scale_mode`
    "iterations", of the step.

    Source: Smith, Cyclical Learning Rates for Training Neural Networks, 2017.
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
        bases = _per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(bases, optimizer.param_groups, strict=True):
                _set_option(group, "lr", rate)
        self.max_lrs = _per_group("max_lr", optimizer, max_lr)
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
            self.base_momentums, self.max_momentums = self._init_momentum(base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = bases

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is None:
            self.scale_mode = "iterations" if self.mode == "exp_range" else "cycle"

    def scale_fn(self, x: float) -> float:
        """Return the factor of the amplitude in cycle, or at step, `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Rate]:
        """Return the rates of this step, and set the momentum."""
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
        """Return the attributes of the scheduler; of `scale_fn` only the attributes of a callable object."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        state["_scale_fn_custom"] = None if function is None else _callable_state(function)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state returned by `state_dict`; `scale_fn` is kept."""
        state = dict(state_dict)
        data = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if data is not None:
            self._scale_fn_custom.__dict__.update(data)
        self._init_scale_fn()


class OneCycleLR(_CyclicScheduler):
    """Increase the rate to its maximum, then decrease it far below its initial value; the momentum does the opposite.

    `step` is called after every batch, `total_steps` times.

    `total_steps` is by default `epochs * steps_per_epoch`; in the fraction `pct_start` of them the rate increases, from
    `max_lr / div_factor`. It ends at the initial rate divided by `final_div_factor`; with `three_phase` it first
    returns to the initial rate in as many steps as the increase took. Momenta as for `CyclicLR`.

    Example:
        >>> optimizer = torch.optim.Adam([torch.ones(1, requires_grad=True)])
        >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(
        ...     optimizer, max_lr=0.25, total_steps=4, pct_start=0.5, anneal_strategy="linear")
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr(), optimizer.param_groups[0]["betas"]
        ([0.25], (0.85, 0.999))

    Source: Smith and Topin, Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates, 2018.
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

        # Rates and momenta are referred to by their keys in the parameter groups.
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

        greatest = _per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for rate, group in zip(greatest, optimizer.param_groups, strict=True):
                group["initial_lr"] = rate / div_factor
                group["max_lr"] = rate
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._init_momentum(base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: Any, end: Any, part: float) -> Any:
        """Return the value between `start` and `end` at the fraction `part` of the phase."""
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[Rate]:
        """Return the rates of this step, and set the momentum.

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
