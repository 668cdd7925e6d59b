"""`torch.cuda.amp`: the older names of `torch.amp`, for "cuda"."""

from ...cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from ...cuda.amp.common import amp_definitely_not_available
from ...cuda.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
