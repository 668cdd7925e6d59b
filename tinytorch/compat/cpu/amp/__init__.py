"""`torch.cpu.amp`: the older names of `torch.amp`, for "cpu".

Example:
    >>> import warnings, tinytorch as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     with torch.cpu.amp.autocast(dtype=torch.float16):
    ...         (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    torch.float16
"""

from tinytorch.amp.older import older_autocast, older_scaler
from tinytorch.kernels import dtypes

__all__ = ["GradScaler", "autocast"]

autocast = older_autocast("cpu", dtypes.bfloat16)
GradScaler = older_scaler("cpu")
