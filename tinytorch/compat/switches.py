"""Settings of the whole process, as programs make them before they start: threads, determinism, precision.

`set_num_threads` sets the threads of the OpenBLAS that NumPy brings along, where that can be found, and those that work
on large arrays. The other settings have no effect on the numbers, which are always deterministic and of full precision:
they are kept, so that they can be asked for, and are checked as PyTorch checks them.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

from tinytorch.core.device import device, get_default, set_default
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.kernels.parallel import get_num_threads, positive, set_num_threads
from tinytorch.ops.values import named_type

from .backends import cuda, mkldnn

__all__ = [
    "are_deterministic_algorithms_enabled", "compiled_with_cxx11_abi", "get_default_device",
    "get_deterministic_debug_mode", "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_default_device",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_num_interop_threads", "set_num_threads", "set_warn_always", "use_deterministic_algorithms",
]  # fmt: skip


# Threads ------------------------------------------------------------------------------------------


_between_operations: int | None = None  # threads, if they were set


def get_num_interop_threads() -> int:
    """Return how many threads run operations side by side: what was set, by default the number of processors.

    Example:
        >>> torch.get_num_interop_threads() > 0
        True
    """
    return _between_operations or os.cpu_count() or 1


def set_num_interop_threads(num: int, /) -> None:
    """Keep how many threads are to run operations side by side; operations run one after the other here.

    Raises:
        RuntimeError: `num` is no positive int, or the number was set before.
    """
    positive("set_num_interop_threads", num)
    global _between_operations
    if _between_operations is not None:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or "
            "set_num_interop_threads called"
        )
    _between_operations = num


# Determinism --------------------------------------------------------------------------------------

_deterministic = [False, False]  # the mode, and whether it only warns
_MODES = ("default", "warn", "error")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for algorithms that give the same numbers each time: all of this library's do, in either mode.

    Raises:
        TypeError: `mode` or `warn_only` is no bool.

    Example:
        >>> torch.use_deterministic_algorithms(True)
        >>> torch.are_deterministic_algorithms_enabled()
        True
        >>> torch.use_deterministic_algorithms(False)
    """
    for name, value in (("'mode' (position 1)", mode), ("'warn_only'", warn_only)):
        if not isinstance(value, bool):
            kind = type(value).__name__
            raise TypeError(f"_set_deterministic_algorithms(): argument {name} must be bool, not {kind}")
    _deterministic[:] = [mode, warn_only]


def are_deterministic_algorithms_enabled() -> bool:
    """Return whether `use_deterministic_algorithms` was switched on.

    Example:
        >>> torch.are_deterministic_algorithms_enabled()
        False
    """
    return _deterministic[0]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return whether `use_deterministic_algorithms` was told only to warn.

    Example:
        >>> torch.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return _deterministic[1]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set what `use_deterministic_algorithms` sets, by name or number: "default" 0, "warn" 1, "error" 2.

    Raises:
        TypeError: it is neither a text nor an int.
        RuntimeError: it names no mode.

    Example:
        >>> torch.set_deterministic_debug_mode("default")
        >>> torch.get_deterministic_debug_mode()
        0
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _MODES.index(debug_mode)
    if not 0 <= debug_mode <= 2:
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _deterministic[:] = [debug_mode > 0, debug_mode == 1]


def get_deterministic_debug_mode() -> int:
    """Return the mode that `set_deterministic_debug_mode` describes: 0, 1 or 2.

    Example:
        >>> torch.get_deterministic_debug_mode()
        0
    """
    if not _deterministic[0]:
        return 0
    return 1 if _deterministic[1] else 2


# Precision ----------------------------------------------------------------------------------------

_precision = ["highest"]


def get_float32_matmul_precision() -> str:
    """Return what `set_float32_matmul_precision` was told, "highest" by default.

    Example:
        >>> torch.get_float32_matmul_precision()
        'highest'
    """
    return _precision[0]


def set_float32_matmul_precision(precision: str) -> None:
    """Keep how precise float32 matrix products need be: "highest", "high" or "medium"; they are always "highest".

    Raises:
        RuntimeError: `precision` is no text.

    Example:
        >>> torch.set_float32_matmul_precision("high")
        >>> torch.get_float32_matmul_precision()
        'high'
        >>> torch.set_float32_matmul_precision("highest")
    """
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
            stacklevel=2,
        )
        return
    _precision[0] = precision
    # What programs see of it elsewhere.
    mkldnn.matmul.fp32_precision = {"highest": "ieee", "high": "tf32", "medium": "bf16"}[precision]
    cuda.matmul.allow_tf32 = precision != "highest"
    cuda.matmul.fp32_precision = "tf32" if cuda.matmul.allow_tf32 else "ieee"


def set_flush_denormal(mode: bool, /) -> bool:
    """Return False: the processor's switch for denormal numbers is out of NumPy's reach.

    PyTorch returns False, too, where it cannot set the switch.

    Raises:
        RuntimeError: `mode` is no bool.

    Example:
        >>> torch.set_flush_denormal(False)
        False
    """
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return False


# Warnings and defaults ----------------------------------------------------------------------------

_warn_always = [False]


def set_warn_always(b: bool, /) -> None:
    """Keep whether each warning is to be given every time; Python's filters decide that here.

    Raises:
        RuntimeError: `b` is no bool.

    Example:
        >>> torch.set_warn_always(False)
        >>> torch.is_warn_always_enabled()
        False
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _warn_always[0] = b


def is_warn_always_enabled() -> bool:
    """Return what `set_warn_always` was told, False by default.

    Example:
        >>> torch.is_warn_always_enabled()
        False
    """
    return _warn_always[0]


def set_default_device(device: Any) -> None:
    """Make `device` the one that new tensors are on; None for the CPU.

    Raises:
        AssertionError, RuntimeError: there is no such device here. (PyTorch says so when the first tensor is made.)

    Example:
        >>> torch.set_default_device("cpu")
        >>> torch.zeros(1).device
        device(type='cpu')
    """
    set_default(device)


def get_default_device() -> device:
    """Return the device that new tensors are on: the CPU.

    Example:
        >>> torch.get_default_device()
        device(type='cpu')
    """
    return get_default()


def set_default_tensor_type(t: Any, /) -> None:
    """Make the dtype of a tensor type ("torch.DoubleTensor", `torch.DoubleTensor`) the default one.

    Deprecated, as in PyTorch: `set_default_dtype` says it better.

    Raises:
        TypeError: it is no tensor type of floating point.
    """
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        stacklevel=2,
    )
    if isinstance(t, str) and t.startswith("torch.cuda."):
        raise TypeError(f"type {t} not available. Torch not compiled with CUDA enabled.")
    try:
        kind = dtypes.float32 if t is Tensor else named_type(t)
    except (ValueError, TypeError):
        kind = None
    if kind is None or isinstance(t, dtypes.dtype):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    dtypes.set_default_dtype(kind)


def compiled_with_cxx11_abi() -> bool:
    """Return True, as PyTorch: nothing here is compiled.

    Example:
        >>> torch.compiled_with_cxx11_abi()
        True
    """
    return True
