"""`torch.signal`: its only submodule is `windows`."""

from tinytorch.signal import windows

__all__ = ["windows"]
