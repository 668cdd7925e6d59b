"""`torch.utils._foreach_utils`: groups tensors by device and dtype, for optimizers with a `foreach` implementation.

The module is private in PyTorch too, but third-party optimizer packages use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinytorch.core.device import device as _device
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes

Groups = dict[tuple[_device, dtypes.dtype], tuple[list[list[Tensor | None]], list[int]]]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the device types other than the CPU for which optimizers default to `foreach=True`: PyTorch's list."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the device types for which optimizers accept `fused=True`: PyTorch's list."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> Groups:
    """Split parallel lists of tensors into groups, by the device and dtype of the tensors in the first list.

    Args:
        tensorlistlist: lists of equal length, or empty lists. Entry `i` of the other lists (a tensor or None) goes
            into the group of entry `i` of the first list.
        with_indices: also return the indices of the tensors in the first list.

    Example:
        >>> from tinytorch.utils._foreach_utils import _group_tensors_by_device_and_dtype
        >>> x, y = torch.zeros(1), torch.ones(1, dtype=torch.float64)
        >>> groups = _group_tensors_by_device_and_dtype([[x, y], [None, None]], with_indices=True)
        >>> groups[x.device, torch.float64]
        ([[tensor([1.], dtype=torch.float64)], [None]], [1])
    """
    if not tensorlistlist:
        raise RuntimeError("Expected !nested_tensorlist.empty() to be true, but got false.")
    first = tensorlistlist[0]
    if not first:
        raise RuntimeError("Expected !nested_tensorlist[0].empty() to be true, but got false.")
    if any(len(tensors) not in (0, len(first)) for tensors in tensorlistlist):
        raise RuntimeError("Expected all of the lists of tensors to have the length of the first one, or to be empty.")
    groups: Groups = {}
    for i, tensor in enumerate(first):
        if tensor is None:
            raise RuntimeError(
                "Tensors of the first list of nested Tensor lists are supposed to be defined but "
                f"the {i}-th Tensor is not."
            )
        lists, indices = groups.setdefault((tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], []))
        for tensors, group in zip(tensorlistlist, lists, strict=True):
            if tensors:
                group.append(tensors[i])
        if with_indices:
            indices.append(i)
    return groups


def _device_has_foreach_support(device: Any) -> bool:
    """Return whether the `torch._foreach_…` functions support tensors on a device."""
    return str(_device(device).type) in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: Sequence[Any], device: Any) -> bool:
    """Return whether the `torch._foreach_…` functions support these tensors (None is skipped) on a device."""
    return _device_has_foreach_support(device) and all(
        isinstance(tensor, Tensor) for tensor in tensors if tensor is not None
    )
