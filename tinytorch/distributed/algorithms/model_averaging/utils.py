"""Means of parameters over processes, at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.distributed.collectives import all_reduce
from tinytorch.distributed.groups import ProcessGroup, _get_default_group, _rank_not_in_group
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.join import cat

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterable[Any], process_group: ProcessGroup | None) -> None:
    """Replace parameters by their means over a group's processes."""
    group = _get_default_group() if process_group is None else process_group
    some = list(params)
    if _rank_not_in_group(group) or not some:
        return
    with no_grad():
        flat = cat([each.detach().reshape(-1) for each in some])
        flat /= group.size()
        all_reduce(flat, group=group)
        for each, part in zip(some, flat.split([each.numel() for each in some]), strict=True):
            each.copy_(part.view_as(each))


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """Return, of a model's parameters or of an optimizer's groups, the parameters that have a gradient.

    Raises:
        NotImplementedError: there is something else among them.
    """
    found: list[Any] = []
    for each in params:
        if not isinstance(each, (Parameter, dict)):
            raise NotImplementedError(f"Parameter input of type {type(each)} is not supported")
        found += each["params"] if isinstance(each, dict) else [each]
    return [each for each in found if each.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: ProcessGroup | None) -> None:
    """Replace what `get_params_to_average` finds by its means over a group's processes."""
    average_parameters(get_params_to_average(params), process_group)
