"""`torch._C`: of PyTorch's compiled module, what packages name when they are imported (floor 4)."""

from __future__ import annotations

import enum
from typing import Any

from tinytorch import _tensor
from tinytorch._overrides import DisableTorchFunction, DisableTorchFunctionSubclass
from tinytorch._overrides import disabled as _disabled_torch_function_impl  # noqa: F401
from tinytorch.device import device
from tinytorch.dtypes import dtype
from tinytorch.layout import layout, memory_format
from tinytorch.nn.modules.module import _parse_to
from tinytorch.ops.random import Generator

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "Generator", "device",
    "dtype", "layout", "memory_format",
]  # fmt: skip


_TensorMeta = type(_tensor.Tensor)


class DispatchKey(enum.IntFlag):
    """What chooses PyTorch's kernel of an operator; names only."""

    CPU = enum.auto()
    CUDA = enum.auto()
    XPU = enum.auto()
    Meta = enum.auto()
    Autograd = enum.auto()
    AutogradCPU = enum.auto()
    AutogradCUDA = enum.auto()
    AutocastCPU = enum.auto()
    AutocastCUDA = enum.auto()
    AutocastXPU = enum.auto()
    CompositeImplicitAutograd = enum.auto()
    CompositeExplicitAutograd = enum.auto()


class DispatchKeySet:
    """A set of dispatch keys.

    Example:
        >>> from tinytorch._C import DispatchKey, DispatchKeySet
        >>> keys = DispatchKeySet(DispatchKey.CPU) | DispatchKeySet(DispatchKey.CUDA)
        >>> keys.has(DispatchKey.CUDA), keys.has(DispatchKey.Meta)
        (True, False)
    """

    def __init__(self, keys: DispatchKey) -> None:
        self._keys = keys

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(self._keys | other._keys)

    def has(self, key: DispatchKey) -> bool:
        """Return whether `key` is in the set."""
        return key in self._keys


def _log_api_usage_once(event: str) -> None:
    """Do nothing: nobody counts who uses what."""


def _are_functorch_transforms_active() -> bool:
    """Return False: `torch.func` needs no other tensors than the usual ones."""
    return False


def _get_tracing_state() -> None:
    """Return None: nothing is traced."""


class _nn:
    """`torch._C._nn`: of the functions of modules, the one that reads the arguments of `to`."""

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
        """Return the device, the dtype, whether not to wait, and the layout in memory that `to` is told.

        Example:
            >>> import tinytorch as torch
            >>> torch._C._nn._parse_to("cpu", torch.float64)
            (device(type='cpu'), torch.float64, False, None)
        """
        form = kwargs.pop("memory_format", None)
        where, kind, non_blocking = (
            _parse_to(*args, **kwargs) if args or kwargs else (None, None, False)
        )
        return where if where is None else device(where), kind, non_blocking, form
