"""`torch._C`: the names of PyTorch's compiled module that packages use when they are imported."""

from __future__ import annotations

import enum
import weakref
from importlib import import_module
from typing import Any

from tinytorch.autograd import saved as _saved
from tinytorch.autograd.function import _Undefined
from tinytorch.autograd.node import SavedTensor
from tinytorch.core import tensor as _tensor
from tinytorch.core.device import device
from tinytorch.core.graph import AccumulateGrad
from tinytorch.nn import functional as _functional
from tinytorch.nn.modules.module import _parse_to as _parsed
from tinytorch.ops import overrides as _overrides
from tinytorch.ops.overrides import _TorchFunctionState

from .names import Idle

_TensorMeta = type(_tensor.Tensor)


#: The keys by which PyTorch chooses the kernel of an operator; here they have no effect.
DispatchKey = enum.Enum(
    "DispatchKey",
    "CPU CUDA XPU Meta Autograd AutogradCPU AutogradCUDA AutocastCPU AutocastCUDA AutocastXPU "
    "CompositeImplicitAutograd CompositeExplicitAutograd",
    module=__name__,
)


class DispatchKeySet:
    """A set of dispatch keys.

    Example:
        >>> from tinytorch._C import DispatchKey, DispatchKeySet
        >>> keys = DispatchKeySet(DispatchKey.CPU) | DispatchKeySet(DispatchKey.CUDA)
        >>> keys.has(DispatchKey.CUDA), keys.has(DispatchKey.Meta)
        (True, False)
    """

    def __init__(self, *keys: Any) -> None:
        self._keys = frozenset(keys)

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys | other._keys)

    def has(self, key: Any) -> bool:
        """Return whether `key` is in the set."""
        return key in self._keys


class _ExcludeDispatchKeyGuard(Idle):
    """Excludes dispatch keys inside a `with` block, as kernels for autocasting do; here without effect."""

    def __init__(self, keys: DispatchKeySet) -> None:
        pass


# Whether this thread's calls go to `__torch_function__`, and the modes that are active.


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


def _get_accelerator() -> device:
    """Return the CPU, the only device."""
    return device("cpu")


class _UndefinedGrad(_Undefined):
    """Returns its input; its backward gives an undefined gradient."""


class _functions:
    """`torch._C._functions`: classes of graph nodes for `isinstance`, and a node for tests of `Function`s."""

    AccumulateGrad = AccumulateGrad

    class UndefinedGrad:
        """A node whose input gets an undefined gradient.

        Example:
            >>> x = torch.ones(1, requires_grad=True)
            >>> torch._C._functions.UndefinedGrad()(x * 2).backward()
            >>> print(x.grad)
            None
        """

        def __call__(self, x: Any) -> Any:
            return _UndefinedGrad.apply(x)


class _autograd:
    """`torch._C._autograd`: saved tensors, and whether hooks on them are allowed."""

    SavedTensor = SavedTensor

    @staticmethod
    def _saved_tensors_hooks_is_enabled() -> bool:
        """Return False inside `disable_saved_tensors_hooks`."""
        return _saved._disabled.message is None


class _Functions:
    """A namespace of compiled functions, such as `torch._C._linalg`: code that `torch.fx` generates has their names.

    Args:
        home: the public namespace, whose name begins the names of the functions.
    """

    def __init__(self, home: str) -> None:
        self._home = home

    def __getattr__(self, name: str) -> Any:
        own = name.removeprefix(f"{self._home}_")
        try:
            return getattr(import_module(f"tinytorch.{self._home}"), own)
        except AttributeError:
            raise AttributeError(f"module 'torch._C._{self._home}' has no attribute '{name}'") from None


_fft, _linalg, _special = _Functions("fft"), _Functions("linalg"), _Functions("special")


class _WeakTensorRef:
    """A weak reference to a tensor.

    Example:
        >>> x = torch.ones(1)
        >>> reference = torch._C._WeakTensorRef(x)
        >>> del x
        >>> reference.expired()
        True
    """

    def __init__(self, tensor: Any) -> None:
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Return whether the tensor has been freed."""
        return self._reference() is None


_VariableFunctionsClass = _VariableFunctions = import_module("tinytorch")  # (pickles name its functions so)
has_lapack = True  # NumPy has the functions of LAPACK


# `torch._C._nn` ------------------------------------------------------------------------------------


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """Return the device, the dtype, `non_blocking` and the memory format among the arguments of `to`.

    Example:
        >>> torch._C._nn._parse_to("cpu", torch.float64)
        (device(type='cpu'), torch.float64, False, None)
    """
    memory_format = kwargs.pop("memory_format", None)
    place, dtype, non_blocking = _parsed(*args, **kwargs) if args or kwargs else (None, None, False)
    return place if place is None else device(place), dtype, non_blocking, memory_format


def _function_of_nn(name: str) -> Any:
    found = getattr(_functional, "logsigmoid" if name == "log_sigmoid" else name, None)
    if found is None or getattr(found, "binds", True):  # (PyTorch defines it in Python)
        raise AttributeError(f"module 'torch._C._nn' has no attribute {name!r}")
    return found
