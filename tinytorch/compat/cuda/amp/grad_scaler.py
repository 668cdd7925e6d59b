"""`torch.cuda.amp.grad_scaler`."""

from tinytorch.amp.older import older_scaler

__all__ = ["GradScaler"]

GradScaler = older_scaler("cuda")
