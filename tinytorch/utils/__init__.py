"""`torch.utils`: the submodules in `__all__`; others, such as `benchmark`, need an import."""

from typing import Any

from tinytorch.func import pytree as _pytree  # noqa: F401
from tinytorch.utils import checkpoint, data, deterministic, dlpack, hooks
from tinytorch.utils._swap import swap_tensors

__all__ = ["checkpoint", "data", "deterministic", "dlpack", "hooks", "set_module", "swap_tensors"]


def set_module(obj: Any, mod: str) -> None:
    """Set the name of the module that an object says it is from.

    Example:
        >>> def function(): ...
        >>> torch.utils.set_module(function, "torch.nn")
        >>> function.__module__
        'torch.nn'
    """
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod
