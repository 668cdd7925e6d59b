"""`torch.cpu.amp`: the older names of `torch.amp`, for "cpu".

Example:
    >>> import warnings, tinytorch as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     with torch.cpu.amp.autocast(dtype=torch.float16):
    ...         (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    torch.float16
"""

from ...cpu.amp.autocast_mode import autocast
from ...cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
