"""`torch._inductor`: the settings of PyTorch's code generator; nothing is compiled (floor 4)."""

from tinytorch._inductor import config

__all__ = ["config"]
