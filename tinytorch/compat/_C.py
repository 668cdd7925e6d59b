"""`torch._C`: of PyTorch's compiled module, what packages name when they are imported."""

from __future__ import annotations

import enum
import weakref
from typing import Any

from tinytorch.autograd import saved as _saved
from tinytorch.autograd.function import _Undefined
from tinytorch.autograd.grad_mode import is_grad_enabled as is_grad_enabled
from tinytorch.autograd.node import SavedTensor
from tinytorch.core import tensor as _tensor
from tinytorch.core.device import device
from tinytorch.core.graph import AccumulateGrad
from tinytorch.core.layout import layout, memory_format
from tinytorch.kernels.dtypes import dtype
from tinytorch.nn.modules.module import _parse_to
from tinytorch.ops import overrides as _overrides
from tinytorch.ops.overrides import DisableTorchFunction, DisableTorchFunctionSubclass, _TorchFunctionState
from tinytorch.ops.overrides import disabled as _disabled_torch_function_impl  # noqa: F401
from tinytorch.ops.random import Generator

from .absent import Idle
from .named import names_of

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "Generator", "Node",
    "Value", "device", "dtype", "layout", "memory_format",
]  # fmt: skip
__path__: list[str] = []  # what lies below it is in the table of `named`


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


class _ExcludeDispatchKeyGuard(Idle):
    """Calls an operator without what it has registered for some keys: a kernel for autocasting is called so."""

    def __init__(self, keys: DispatchKeySet) -> None:
        pass


def _log_api_usage_once(event: str) -> None:
    """Do nothing: nobody counts who uses what."""


# Who is asked in this thread (`__torch_function__`), and the modes that are on.


def _get_torch_function_state() -> _TorchFunctionState:
    return _overrides.state.asks


def _set_torch_function_state(state: _TorchFunctionState) -> None:
    _overrides.state.asks = state


def _is_torch_function_enabled() -> bool:
    return _overrides.state.asks is _overrides.ENABLED


def _is_torch_function_all_disabled() -> bool:
    return _overrides.state.asks is _overrides.ALL_DISABLED


def _len_torch_function_stack() -> int:
    return len(_overrides.state.modes)


def _get_function_stack_at(k: int) -> Any:
    return _overrides.state.modes[k]


def _are_functorch_transforms_active() -> bool:
    """Return False: `torch.func` needs no other tensors than the usual ones."""
    return False


def _get_accelerator() -> device:
    """Return the CPU: there is no other device."""
    return device("cpu")


def _get_tracing_state() -> None:
    """Return None: nothing is traced."""


class _Named:
    """A class of TorchScript's compiler, for annotations; there are no objects of it."""

    def __init__(self) -> None:
        raise TypeError(f"torch._C.{type(self).__name__}: No constructor defined!")


class Node(_Named):
    """A step of a TorchScript graph: only the name."""


class Value(_Named):
    """A value in a TorchScript graph: only the name."""


class _nn:
    """`torch._C._nn`: of the functions of modules, the one that reads the arguments of `to`."""

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
        """Return the device, the dtype, whether not to wait, and the layout in memory that `to` is told.

        Example:
            >>> torch._C._nn._parse_to("cpu", torch.float64)
            (device(type='cpu'), torch.float64, False, None)
        """
        form = kwargs.pop("memory_format", None)
        where, kind, non_blocking = _parse_to(*args, **kwargs) if args or kwargs else (None, None, False)
        return where if where is None else device(where), kind, non_blocking, form


class _UndefinedGrad(_Undefined):
    """Passes its input on; what comes before it gets no gradient at all."""


class _functions:
    """`torch._C._functions`: nodes of graphs, for `isinstance`, and a step for tests of `Function`s."""

    AccumulateGrad = AccumulateGrad

    class UndefinedGrad:
        """A step before which gradients are undefined.

        Example:
            >>> x = torch.ones(1, requires_grad=True)
            >>> torch._C._functions.UndefinedGrad()(x * 2).backward()
            >>> print(x.grad)
            None
        """

        def __call__(self, x: Any) -> Any:
            return _UndefinedGrad.apply(x)


class _autograd:
    """`torch._C._autograd`: what nodes keep, and whether hooks for that may be set."""

    SavedTensor = SavedTensor

    @staticmethod
    def _saved_tensors_hooks_is_enabled() -> bool:
        """Return whether this is outside of `disable_saved_tensors_hooks`."""
        return _saved._disabled.message is None


class _WeakTensorRef:
    """A reference that does not keep a tensor alive.

    Example:
        >>> x = torch.ones(1)
        >>> there = torch._C._WeakTensorRef(x)
        >>> del x
        >>> there.expired()
        True
    """

    def __init__(self, tensor: Any) -> None:
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Return whether the tensor is gone."""
        return self._reference() is None


globals().update(names_of(__name__))
