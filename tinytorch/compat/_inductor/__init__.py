"""`torch._inductor`: the settings of PyTorch's code generator; nothing is compiled."""

from .._inductor import config
from ..named import names_of

__all__ = ["config"]

globals().update(names_of(__name__))
