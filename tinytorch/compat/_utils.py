"""`torch._utils`: the functions that programs use, most of them to join gradients into one flat tensor."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinytorch.core.device import device as _device_of
from tinytorch.core.tensor import Tensor
from tinytorch.func.pytree import tree_map_only
from tinytorch.ops.join import cat


def _get_available_device_type() -> None:
    """Return None: the only device is the CPU."""


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """Return a 1-d tensor of the elements of all tensors.

    Example:
        >>> torch._utils._flatten_dense_tensors([torch.ones(1), torch.zeros(1, 2)])
        tensor([1., 0., 0.])
    """
    return cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Return views of consecutive parts of `flat`, with the shapes of `tensors`."""
    parts, start = [], 0
    for tensor in tensors:
        parts.append(flat.narrow(0, start, tensor.numel()).view(tensor.shape))
        start += tensor.numel()
    return tuple(parts)


def _element_size(dtype: Any) -> int:
    """Return the size of an element in bytes."""
    return int(dtype.itemsize)


def _pin_memory(data: Any, device: Any = None) -> Any:
    """Return data with its tensors in memory that an accelerator reads: raises where there are any."""
    return tree_map_only(Tensor, lambda tensor: tensor.pin_memory(device), data)


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """Return the index of a GPU; -1 for the CPU if `allow_cpu`.

    Raises:
        ValueError: the device is the CPU, or has no index.
    """
    if isinstance(device, str):
        device = _device_of(device)
    if isinstance(device, int):
        return device
    if isinstance(device, _device_of):
        if device.type == "cpu":
            if allow_cpu:
                return -1
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        if device.index is not None:
            return device.index
    if optional:
        return None
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
