"""`torch._inductor`: the settings of PyTorch's code generator; nothing is compiled (floor 4)."""

from .._inductor import config

__all__ = ["config"]
