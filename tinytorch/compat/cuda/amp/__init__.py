"""`torch.cuda.amp`: the older names of `torch.amp`, for "cuda"."""

from tinytorch.amp.older import older_scaler

from ...cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from ...cuda.amp.common import amp_definitely_not_available as amp_definitely_not_available

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

GradScaler = older_scaler("cuda")
