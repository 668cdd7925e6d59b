"""`torch._inductor`: the settings of PyTorch's code generator; nothing is compiled."""

from .._inductor import config

__all__ = ["config"]
