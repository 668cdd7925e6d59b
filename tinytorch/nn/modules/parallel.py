"""`DataParallel` on a single device."""

from __future__ import annotations

from typing import Any

from tinytorch.nn.modules.module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """Calls a module, as PyTorch does without GPUs; with several, it divides the batch among them.

    The module's keys in `state_dict` have the prefix "module."; the other arguments have no effect.

    Example:
        >>> list(torch.nn.DataParallel(torch.nn.Linear(2, 3)).state_dict())
        ['module.weight', 'module.bias']
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
