"""`torch.nn.parallel.distributed`: `DistributedDataParallel`, for which processes would have to talk."""

from __future__ import annotations

from typing import Any

from tinytorch.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over processes. There is `torch.distributed` for one only: it raises.

    Raises:
        ValueError: always, as in PyTorch before `init_process_group`.
    """

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
