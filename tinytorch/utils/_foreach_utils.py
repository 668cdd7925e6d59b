"""`torch.utils._foreach_utils`: tensors in groups of one dtype, for optimizers with a `foreach` form.

Private in PyTorch too, but packages of optimizers use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinytorch.core.device import device as _device
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes

Groups = dict[tuple[_device, dtypes.dtype], tuple[list[list[Tensor | None]], list[int]]]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the kinds of device, beside the CPU, whose optimizers choose `foreach` by themselves: PyTorch's list."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the kinds of device for which optimizers take `fused=True`: PyTorch's list."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> Groups:
    """Return lists of tensors, split by the device and dtype of the first list's.

    Args:
        tensorlistlist: lists of one length, or empty: what belongs to the first list's tensors, or None.
        with_indices: also give the positions.

    Raises:
        RuntimeError: there are no tensors, the lists have different lengths, or the first holds None.

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
    if any(len(each) not in (0, len(first)) for each in tensorlistlist):
        raise RuntimeError("Expected all of the lists of tensors to have the length of the first one, or to be empty.")
    groups: Groups = {}
    for i, tensor in enumerate(first):
        if tensor is None:
            raise RuntimeError(
                "Tensors of the first list of nested Tensor lists are supposed to be defined but "
                f"the {i}-th Tensor is not."
            )
        lists, positions = groups.setdefault((tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], []))
        for each, kept in zip(tensorlistlist, lists, strict=True):
            if each:
                kept.append(each[i])
        if with_indices:
            positions.append(i)
    return groups


def _device_has_foreach_support(device: Any) -> bool:
    """Return whether the functions `torch._foreach_…` work on tensors of a device."""
    return str(_device(device).type) in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: Sequence[Any], device: Any) -> bool:
    """Return whether the functions `torch._foreach_…` work on these tensors (or None) of a device."""
    return _device_has_foreach_support(device) and all(
        isinstance(tensor, Tensor) for tensor in tensors if tensor is not None
    )
