"""`torch.cpu.amp`: the older names of `torch.amp`, for "cpu" (floor 4)."""

from __future__ import annotations

import warnings

from tinytorch import amp, dtypes

__all__ = ["GradScaler", "autocast"]


def _deprecated(name: str) -> None:
    warnings.warn(
        f"`torch.cpu.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cpu', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )


class autocast(amp.autocast):
    """`torch.amp.autocast("cpu", …)`: deprecated, as in PyTorch.

    Example:
        >>> import warnings, tinytorch as torch
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     with torch.cpu.amp.autocast(dtype=torch.float16):
        ...         (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
        torch.float16
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: dtypes.dtype = dtypes.bfloat16,
        cache_enabled: bool = True,
    ) -> None:
        _deprecated("autocast")
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cpu", …)`: deprecated, as in PyTorch.

    Example:
        >>> import warnings, tinytorch as torch
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     torch.cpu.amp.GradScaler(init_scale=8.0).get_scale()
        8.0
    """

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _deprecated("GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
