"""`torch.cuda.amp`: the older names of `torch.amp`, for "cuda"."""

from ...cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from ...cuda.amp.grad_scaler import GradScaler
from ...named import names_of

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

globals().update(names_of(__name__))
