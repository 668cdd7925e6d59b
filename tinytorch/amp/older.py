"""The deprecated classes of `torch.cpu.amp` and `torch.cuda.amp`, which are `torch.amp`'s for one device."""

from __future__ import annotations

from typing import Any

from tinytorch.amp.autocast_mode import autocast
from tinytorch.amp.grad_scaler import GradScaler
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes

__all__ = ["deprecated", "older_autocast", "older_scaler"]


def deprecated(name: str, instead: str) -> None:
    """Issue PyTorch's deprecation warning for the code two levels up the stack."""
    warn(f"`torch.{name}(args...)` is deprecated. Please use `torch.amp.{instead}` instead.", FutureWarning)


def older_autocast(device: str, default: dtypes.dtype) -> Any:
    """Return the class `autocast` of a device, "cpu" or "cuda", with the default dtype `default`."""

    class Autocast(autocast):
        def __init__(self, enabled: bool = True, dtype: dtypes.dtype = default, cache_enabled: bool = True) -> None:
            deprecated(f"{device}.amp.autocast", f"autocast('{device}', args...)")
            super().__init__(device, dtype, enabled, cache_enabled)

    return _rename(Autocast, autocast, f"{device}.amp.autocast_mode")


def older_scaler(device: str) -> Any:
    """Return the class `GradScaler` of a device, "cpu" or "cuda"."""

    class Scaler(GradScaler):
        def __init__(
            self,
            init_scale: float = 65536.0,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ) -> None:
            deprecated(f"{device}.amp.GradScaler", f"GradScaler('{device}', args...)")
            factors = (init_scale, growth_factor, backoff_factor)
            super().__init__(device, *factors, growth_interval, enabled)

    return _rename(Scaler, GradScaler, f"{device}.amp.grad_scaler")


def _rename(cls: Any, base: Any, module: str) -> Any:
    cls.__name__ = cls.__qualname__ = base.__name__
    cls.__module__ = f"tinytorch.{module}"
    device = module.partition(".")[0]
    cls.__doc__ = f'`torch.amp.{base.__name__}("{device}", …)`: deprecated, as in PyTorch.'
    return cls
