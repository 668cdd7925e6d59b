"""Averages of a model's weights: stochastic weight averaging, and exponential moving averages.

Example:
    >>> from tinytorch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
    >>> model = torch.nn.Linear(2, 1, bias=False)
    >>> average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.5))
    >>> for value in (1.0, 2.0, 4.0):
    ...     _ = torch.nn.init.constant_(model.weight, value)
    ...     average.update_parameters(model)
    >>> average.module.weight
    Parameter containing:
    tensor([[2.7500, 2.7500]], requires_grad=True)

Source:
    Izmailov et al., Averaging Weights Leads to Wider Optima and Better Generalization, 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, Literal

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.nn.modules.module import Module
from tinytorch.optim._lr_base import LRScheduler, Rate, _per_group
from tinytorch.optim.optimizer import Optimizer

__all__ = [
    "AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn",
    "update_bn",
]  # fmt: skip

#: A function from the average, the current parameter, and the number of averaged values to the new average.
Average = Callable[[Tensor, Tensor, Any], Tensor]
#: The same for lists of tensors; it changes the averages in place.
Averages = Callable[[list[Tensor], list[Tensor], Any], None]


def _in_place(weight_of: Callable[[Any], float], average_fn: Average) -> Averages:
    """Return `average_fn` for lists; floating-point tensors are interpolated by `weight_of(number)` instead."""

    @no_grad()
    def update(averages: list[Tensor], current: list[Tensor], number: Any) -> None:
        weight = weight_of(number)
        for average, value in zip(averages, current, strict=True):
            if average.is_floating_point():
                average.lerp_(value, weight)
            else:
                average.copy_(average_fn(average, value, number))  # truncated to an integer

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """Return a function that sets averages to `decay * average + (1 - decay) * current`, in place.

    Example:
        >>> averaged = [torch.zeros(2)]
        >>> torch.optim.swa_utils.get_ema_multi_avg_fn(decay=0.75)(averaged, [torch.full((2,), 4.0)], 1)
        >>> averaged
        [tensor([1., 1.])]
    """
    return _in_place(lambda number: 1 - decay, get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Averages:
    """Return a function that adds values to averages of `number` values, in place.

    Example:
        >>> averaged = [torch.zeros(2)]
        >>> torch.optim.swa_utils.get_swa_multi_avg_fn()(averaged, [torch.full((2,), 4.0)], torch.tensor(3))
        >>> averaged
        [tensor([1., 1.])]
    """
    return _in_place(lambda number: float(1 / (number + 1)), get_swa_avg_fn())


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return a function that returns `decay * average + (1 - decay) * current`.

    Example:
        >>> average = torch.optim.swa_utils.get_ema_avg_fn(decay=0.75)
        >>> average(torch.tensor(0.0), torch.tensor(4.0), 1)
        tensor(1.)
    """
    if decay < 0 or decay > 1:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")

    @no_grad()
    def ema_update(average: Tensor, current: Tensor, number: Any) -> Any:
        return decay * average + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> Average:
    """Return a function that adds a value to the average of `number` values.

    Example:
        >>> average = torch.optim.swa_utils.get_swa_avg_fn()
        >>> average(torch.tensor(0.0), torch.tensor(4.0), torch.tensor(3))
        tensor(1.)
    """

    @no_grad()
    def swa_update(average: Tensor, current: Tensor, number: Any) -> Any:
        return average + (current - average) / (number + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's over training.

    `avg_fn` is a function from the average, the current parameter and the number of averaged values to the new average,
    `multi_avg_fn` one that updates lists of averages in place; by default the mean is computed. Buffers are copied, or
    with `use_buffers` averaged, too. `module` is the copy, `n_averaged` the number of updates.

    Example:
        >>> model = torch.nn.Linear(1, 1, bias=False)
        >>> average = torch.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 2.0, 6.0):
        ...     _ = torch.nn.init.constant_(model.weight, value)
        ...     average.update_parameters(model)
        >>> average(torch.ones(1, 1))
        tensor([[3.]], grad_fn=<MmBackward0>)
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", wrap(np.array(0, np.int64)))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Add the model's parameters to the averages.

        Example:
            >>> model = torch.nn.Linear(1, 1, bias=False)
            >>> averaged = torch.optim.swa_utils.AveragedModel(model)
            >>> for value in (1.0, 3.0):
            ...     _ = torch.nn.init.constant_(model.weight, value)
            ...     averaged.update_parameters(model)
            >>> averaged.module.weight.data
            tensor([[2.]])
        """

        def values(module: Module) -> list[Tensor]:
            buffers = module.buffers() if self.use_buffers else ()
            return [value.detach() for value in chain(module.parameters(), buffers)]

        averages, current = values(self.module), values(model)
        pairs = list(zip(averages, current, strict=False))
        if self.n_averaged == 0:
            for average, value in pairs:
                average.copy_(value)
        elif self.avg_fn is not None:
            for average, value in pairs:
                average.copy_(self.avg_fn(average, value, self.n_averaged))
        else:
            update = self.multi_avg_fn or get_swa_multi_avg_fn()
            by_dtype: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
            for average, value in pairs:  # `update` gets tensors of one dtype
                lists = by_dtype.setdefault(average.dtype, ([], []))
                lists[0].append(average)
                lists[1].append(value)
            for lists in by_dtype.values():
                update(*lists, self.n_averaged)
        if not self.use_buffers:
            for buffer, value in zip(self.module.buffers(), model.buffers(), strict=True):
                buffer.detach().copy_(value.detach())
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running means and variances of batch normalisation layers over a data set.

    An averaged model needs this, since its running statistics do not belong to its averaged parameters.

    If a batch is a list or tuple, its first element is the input.

    Example:
        >>> model = torch.nn.BatchNorm1d(1)
        >>> torch.optim.swa_utils.update_bn([torch.tensor([[1.0], [3.0]])], model)
        >>> model.running_mean
        tensor([2.])
    """
    momenta: dict[Any, Any] = {}
    for module in model.modules():
        if any(kind.__name__ == "_BatchNorm" for kind in type(module).__mro__):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # the mean of all batches
    for batch in loader:
        inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(inputs if device is None else inputs.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneal the rate to a constant, at which weights are averaged.

    `swa_lr` is reached in `anneal_epochs` epochs, by the strategy "cos" or "linear"; it is the rate, or a list with one
    per group.

    Example:
        >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
        >>> scheduler = torch.optim.swa_utils.SWALR(optimizer, 0.5, 2, anneal_strategy="linear")
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     scheduler.step()
        ...     print(scheduler.get_last_lr())
        [0.75]
        [0.5]
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = _per_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def anneal_func(self, part: float) -> float:
        """Return the fraction of the annealing that is done after the fraction `part` of the epochs."""
        return part if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * part)) / 2

    def get_lr(self) -> list[Rate]:
        """Return the rates of this epoch, computed from those of the previous one."""
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = (self.anneal_func(max(0, min(1, k / max(1, self.anneal_epochs)))) for k in (step - 1, step))
        rates: list[Rate] = []
        for group in self.optimizer.param_groups:
            rate, end = group["lr"], group["swa_lr"]
            start = end if before == 1 else (rate - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
