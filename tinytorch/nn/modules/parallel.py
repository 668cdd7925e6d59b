"""`DataParallel`, which has one device here."""

from __future__ import annotations

from typing import Any

from tinytorch.nn.modules.module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """Calls a module; in PyTorch, on parts of the batch on several GPUs. Without any it does just this there, too.

    Args:
        module: what to call; its state is below "module." in `state_dict`.
        device_ids, output_device, dim: have no effect.

    Example:
        >>> list(torch.nn.DataParallel(torch.nn.Linear(2, 3)).state_dict())
        ['module.weight', 'module.bias']
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return what the module does."""
        return self.module(*inputs, **kwargs)
