"""Where programs import `DataParallel` from (floor 4)."""

from tinytorch.nn.modules.parallel import DataParallel

__all__ = ["DataParallel"]
