"""The flags of `torch.__future__` for the conversion of a module's parameters.

By default `Module.to` and the other conversions set `data` of the parameters, which stay the same objects. "overwrite"
replaces them by new parameters instead. "swap", under which PyTorch swaps the contents of the tensor objects, has the
effect of the default here.
"""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_flags = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions of a module replace its parameters by new ones.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> weight = layer.weight
        >>> torch.__future__.set_overwrite_module_params_on_conversion(True)
        >>> layer.double().weight is weight, weight.dtype
        (False, torch.float32)
        >>> torch.__future__.set_overwrite_module_params_on_conversion(False)
    """
    _flags["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return the value of `set_overwrite_module_params_on_conversion`."""
    return _flags["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions of a module keep the parameter objects; takes precedence over "overwrite".

    Example:
        >>> torch.__future__.set_swap_module_params_on_conversion(True)
        >>> torch.__future__.get_swap_module_params_on_conversion()
        True
        >>> torch.__future__.set_swap_module_params_on_conversion(False)
    """
    _flags["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """Return the value of `set_swap_module_params_on_conversion`."""
    return _flags["swap"]
