"""Periodic averaging of parameters over processes: `torch.distributed.algorithms.model_averaging`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.warning import warn
from tinytorch.distributed.collectives import all_reduce
from tinytorch.distributed.groups import ProcessGroup, _get_default_group, _rank_not_in_group
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.join import cat


def average_parameters(params: Iterable[Any], process_group: ProcessGroup | None) -> None:
    """Replace parameters by their means over a group's processes."""
    group = _get_default_group() if process_group is None else process_group
    parameters = list(params)
    if _rank_not_in_group(group) or not parameters:
        return
    with no_grad():
        flat = cat([p.detach().reshape(-1) for p in parameters])
        flat /= group.size()
        all_reduce(flat, group=group)
        for p, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            p.copy_(part.view_as(p))


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """Return the parameters with a gradient among a model's parameters or an optimizer's groups."""
    parameters: list[Any] = []
    for entry in params:
        if not isinstance(entry, (Parameter, dict)):
            raise NotImplementedError(f"Parameter input of type {type(entry)} is not supported")
        parameters += entry["params"] if isinstance(entry, dict) else [entry]
    return [p for p in parameters if p.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: ProcessGroup | None) -> None:
    """Replace the parameters of `get_params_to_average` by their means over a group's processes."""
    average_parameters(get_params_to_average(params), process_group)


class ModelAverager(ABC):
    """The base class of averagers of parameters."""

    def __init__(self, process_group: ProcessGroup | None = None) -> None:
        self.process_group = _get_default_group() if process_group is None else process_group
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or those of an optimizer's groups, if the step is due."""


class PeriodicModelAverager(ModelAverager):
    """Averages parameters every `period` steps."""

    def __init__(self, period: int, warmup_steps: int = 0, process_group: ProcessGroup | None = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warn(
                "When period is 1, no need to use model averaging because the communication cost of all-reducing "
                "parameters will be no less than the cost of all-reducing gradients by DistributedDataParallel in the "
                "backward pass. Therefore, only DistributedDataParallel should be used for this case."
            )
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or those of an optimizer's groups, if the step is due; count the step."""
        steps = self.step - self.warmup_steps
        if steps >= 0 and steps % self.period == 0:
            average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
