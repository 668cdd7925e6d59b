"""`torch.cuda.amp.autocast_mode`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tinytorch import amp
from tinytorch.amp.older import deprecated, older_autocast
from tinytorch.kernels import dtypes

__all__ = ["autocast", "custom_bwd", "custom_fwd"]

autocast = older_autocast("cuda", dtypes.float16)


def custom_fwd(fwd: Any = None, *, cast_inputs: dtypes.dtype | None = None) -> Any:
    """`torch.amp.custom_fwd(…, device_type="cuda")`: deprecated, as in PyTorch."""
    deprecated("cuda.amp.custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return functools.partial(amp.custom_fwd, device_type="cuda")(fwd, cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """`torch.amp.custom_bwd(…, device_type="cuda")`: deprecated, as in PyTorch."""
    deprecated("cuda.amp.custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return amp.custom_bwd(bwd, device_type="cuda")
