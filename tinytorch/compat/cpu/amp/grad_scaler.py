"""`torch.cpu.amp.grad_scaler`."""

from __future__ import annotations

from tinytorch.amp.older import older_scaler

__all__ = ["GradScaler"]

GradScaler = older_scaler("cpu")
