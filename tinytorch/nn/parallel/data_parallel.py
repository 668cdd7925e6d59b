"""Where programs import `DataParallel` from."""

from tinytorch.nn.modules.parallel import DataParallel

__all__ = ["DataParallel"]
