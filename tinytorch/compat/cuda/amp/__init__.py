"""`torch.cuda.amp`: the older names of `torch.amp`, for "cuda"."""

from tinytorch.amp.older import older_scaler

from ...cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from ...named import names_of

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

GradScaler = older_scaler("cuda")

globals().update(names_of(__name__))
