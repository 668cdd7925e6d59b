"""Memory formats of the weights of convolutions."""

from __future__ import annotations

from typing import Any, TypeVar

from tinytorch.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from tinytorch.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

AnyModule = TypeVar("AnyModule", bound=Module)


def _convert(root: AnyModule, classes: tuple[type[Module], ...], memory_format: Any) -> AnyModule:
    for module in root.modules():
        if isinstance(module, classes):
            weight: Any = module.weight
            weight.data = weight.detach().clone(memory_format=memory_format)
    return root


def convert_conv2d_weight_memory_format(module: AnyModule, memory_format: Any) -> AnyModule:
    """Convert the weights of all `Conv2d` and `ConvTranspose2d` of a module to a memory format; return the module.

    Example:
        >>> layer = torch.nn.Conv2d(2, 1, 3)
        >>> _ = torch.nn.utils.convert_conv2d_weight_memory_format(layer, torch.channels_last)
        >>> layer.weight.stride()
        (18, 1, 6, 2)
    """
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: AnyModule, memory_format: Any) -> AnyModule:
    """Convert the weights of all `Conv3d` and `ConvTranspose3d` of a module to a memory format; return the module.

    Example:
        >>> layer = torch.nn.Conv3d(2, 1, 1)
        >>> _ = torch.nn.utils.convert_conv3d_weight_memory_format(layer, torch.channels_last_3d)
        >>> layer.weight.is_contiguous(memory_format=torch.channels_last_3d)
        True
    """
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
