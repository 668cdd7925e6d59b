"""`torch.backends`: which libraries are there, and the switches that programs set for them (floor 4)."""

from tinytorch.backends import cuda, cudnn, mps

__all__ = ["cuda", "cudnn", "mps"]
