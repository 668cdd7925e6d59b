"""Communication hooks of `DistributedDataParallel`, by name."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from tinytorch.distributed.algorithms.ddp_comm_hooks import debugging_hooks as debugging
from tinytorch.distributed.algorithms.ddp_comm_hooks import default_hooks as default
from tinytorch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


class _Registers:
    """Registers a hook with a model; a PowerSGD hook with the state for an approximation of the given rank."""

    def __init__(self, hook: Callable[..., Any], rank: int | None = None) -> None:
        self._hook, self._rank = hook, rank

    def __call__(self, model: Any, state: Any = None, **settings: Any) -> None:
        if self._rank is not None:
            state = powerSGD.PowerSGDState(state, **{"matrix_approximation_rank": self._rank, **settings})
        model.register_comm_hook(state, self._hook)


class DDPCommHookType(enum.Enum):
    """The hooks; the value of each is a function `(model, state)` that registers it.

    Example:
        >>> from tinytorch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType
        >>> [hook.name for hook in DDPCommHookType][:2]
        ['ALLREDUCE', 'FP16_COMPRESS']
    """

    ALLREDUCE = _Registers(default.allreduce_hook)
    FP16_COMPRESS = _Registers(default.fp16_compress_hook)
    BF16_COMPRESS = _Registers(default.bf16_compress_hook)
    POWER_SGD = _Registers(powerSGD.powerSGD_hook, 1)
    POWER_SGD_RANK2 = _Registers(powerSGD.powerSGD_hook, 2)
    BATCHED_POWER_SGD = _Registers(powerSGD.batched_powerSGD_hook, 1)
    BATCHED_POWER_SGD_RANK2 = _Registers(powerSGD.batched_powerSGD_hook, 2)
    NOOP = _Registers(debugging.noop_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Register one of the hooks with a `DistributedDataParallel` model; `state` is the process group."""
    comm_hook_type.value(model=model, state=state)
