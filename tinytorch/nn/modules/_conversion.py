"""What a conversion of a module does with its parameters: `torch.__future__`.

`Module.to` and its kin set the data of the parameters, which stay the same objects. A program may ask for new
parameters instead, or for PyTorch's third way, to swap the tensors' insides, where the objects stay the same too: here
that is what setting the data does.
"""

from __future__ import annotations

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_asked = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions of a module give it new parameters.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> weight = layer.weight
        >>> torch.__future__.set_overwrite_module_params_on_conversion(True)
        >>> layer.double().weight is weight, weight.dtype
        (False, torch.float32)
        >>> torch.__future__.set_overwrite_module_params_on_conversion(False)
    """
    _asked["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return what `set_overwrite_module_params_on_conversion` set.

    Example:
        >>> torch.__future__.get_overwrite_module_params_on_conversion()
        False
    """
    return _asked["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set whether conversions of a module keep the parameters, even if they shall be overwritten.

    Example:
        >>> torch.__future__.set_swap_module_params_on_conversion(True)
        >>> torch.__future__.get_swap_module_params_on_conversion()
        True
        >>> torch.__future__.set_swap_module_params_on_conversion(False)
    """
    _asked["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """Return what `set_swap_module_params_on_conversion` set.

    Example:
        >>> torch.__future__.get_swap_module_params_on_conversion()
        False
    """
    return _asked["swap"]
