"""`torch.distributed.optim`: programs ask whether an optimizer shares its state among processes."""

from __future__ import annotations

from typing import Any

from tinytorch.optim.optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer whose state is spread over processes: cannot be made, since there is one process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("tinytorch has no processes among which to spread an optimizer's state")
