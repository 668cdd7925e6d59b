"""`LRScheduler`, the base class of schedulers, which `tinytorch.optim.lr_scheduler` exports."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.optim.optimizer import Optimizer

#: A learning rate. A tensor is changed in place, so that all its holders see the new rate.
Rate = float | Tensor

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_HOW_TO = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def _copied(value: Any) -> Any:
    """Return a snapshot of an option: tensors, which may change in place, are cloned."""
    return value.clone() if isinstance(value, Tensor) else value


def _group_options(optimizer: Optimizer, option: str) -> list[Any]:
    """Return snapshots of one option, one for each parameter group."""
    return [_copied(group[option]) for group in optimizer.param_groups]


def _per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return one value for each parameter group, from a single value or a list."""
    number = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * number
    elif len(value) != number:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {number}."
        )
    return [_copied(element) for element in value]


def _set_option(group: dict[str, Any], option: str, value: Any) -> None:
    """Set an option of a parameter group; if it is a tensor, fill that tensor."""
    if isinstance(group[option], Tensor):
        group[option].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[option] = value


def _check_optimizer(optimizer: Any) -> None:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _track_steps(optimizer: Any) -> None:
    """Wrap an optimizer's `step` to set `_opt_called`; the wrapper holds the optimizer by a weak reference."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    reference, plain = weakref.ref(optimizer), optimizer.step.__func__

    @functools.wraps(plain)
    def step(*args: Any, **kwargs: Any) -> Any:
        owner = reference()
        owner._opt_called = True  # type: ignore[union-attr]
        return plain.__get__(owner, type(owner))(*args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step


class LRScheduler:
    """Base class of schedulers, which set the `lr` of every parameter group of an optimizer.

    A subclass overrides `get_lr`, which returns the new rate of each group, usually computed from `group["lr"]`.

    `last_epoch` is the last completed epoch when training is resumed, which requires "initial_lr" in every group, as in
    a loaded optimizer; -1 starts a schedule from the current rates. The attribute `base_lrs` has the initial rates.

    Example:
        >>> class Halves(torch.optim.lr_scheduler.LRScheduler):
        ...     def get_lr(self):
        ...         return [lr / 2**self.last_epoch for lr in self.base_lrs]
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = Halves(optimizer)
        >>> optimizer.step()
        >>> scheduler.step()
        >>> scheduler.get_last_lr()
        [0.5]
    """

    __module__ = "tinytorch.optim.lr_scheduler"  # where users import it, and what pickles name

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    base_lrs: list[Rate]
    _last_lr: list[Rate]
    _step_count: int

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch "
                    ">= 0: load the optimizer's state first, or start with last_epoch=-1"
                )
        self.base_lrs = _group_options(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _track_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return the attributes of the scheduler, without the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state returned by `state_dict`. The optimizer's rates are part of the optimizer's state.

        Example:
            >>> optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
            >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
            >>> scheduler.load_state_dict({"gamma": 0.25})
            >>> scheduler.gamma
            0.25
        """
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """Return the rates set last, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """Return the rates of the epoch `last_epoch`. Called by `step`; users call `get_last_lr`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch, or (deprecated) to the epoch `epoch`, and set its rates."""
        if self._step_count == 1:
            self._check_order()
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING, UserWarning)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        """Warn if the scheduler steps before the optimizer has stepped."""
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                "initialization. Please, make sure to call `optimizer.step()` before "
                f"`lr_scheduler.step()`. See more details at {_HOW_TO}",
                UserWarning,
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch "
                "1.1.0 and later, you should call them in the opposite order: `optimizer.step()` "
                "before `lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping "
                f"the first value of the learning rate schedule. See more details at {_HOW_TO}",
                UserWarning,
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed_form = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
        with self._computing():
            rates = self.get_lr() if closed_form is None else closed_form()
        self._set_rates(rates)

    def _set_rates(self, rates: list[Rate]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            _set_option(group, "lr", rate)
        self._last_lr = _group_options(self.optimizer, "lr")

    @contextmanager
    def _computing(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning)

    # Building blocks of `get_lr` and `_get_closed_form_lr`.

    def _current_rates(self) -> list[Rate]:
        return _group_options(self.optimizer, "lr")

    def _scale_current(self, factor: float) -> list[Rate]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def _scale_base(self, factor: float) -> list[Rate]:
        return [base * factor for base in self.base_lrs]


__test__ = {"LRScheduler": LRScheduler}  # doctest skips a class whose `__module__` differs
