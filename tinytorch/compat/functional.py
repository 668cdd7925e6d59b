"""`torch.functional`: the functions of `torch` that PyTorch defines in this module."""

import tinytorch
from tinytorch.ops.register import PYTHON

__all__ = sorted(PYTHON)

globals().update({name: getattr(tinytorch, name) for name in __all__})
