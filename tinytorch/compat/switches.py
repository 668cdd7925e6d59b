"""Settings of the whole process: threads, determinism, precision, default device and dtype.

`set_num_threads` sets the number of threads of tinytorch's kernels and of the OpenBLAS library in NumPy, where it is
found. Results are always deterministic and of full precision, so the settings for these have no effect on them; they
are validated as in PyTorch, and can be read back.
"""

from __future__ import annotations

import os
from typing import Any

from tinytorch.core import deterministic, warning
from tinytorch.core.device import device, get_default, set_default
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
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


_interop_threads: int | None = None  # None: not set


def get_num_interop_threads() -> int:
    """Return the number of threads for running operations in parallel: by default the number of processors."""
    return _interop_threads or os.cpu_count() or 1


def set_num_interop_threads(num: int, /) -> None:
    """Set the number of threads for running operations in parallel, without effect: operations run in order.

    Raises:
        RuntimeError: `num` is not a positive int, or the number was set before.
    """
    positive("set_num_interop_threads", num)
    global _interop_threads
    if _interop_threads is not None:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or "
            "set_num_interop_threads called"
        )
    _interop_threads = num


# Determinism --------------------------------------------------------------------------------------

_MODES = ("default", "warn", "error")


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Require deterministic algorithms, as all of tinytorch's are; what `empty` returns is filled then.

    The flag `torch.utils.deterministic.fill_uninitialized_memory` says whether it is.
    """
    for name, value in (("'mode' (position 1)", mode), ("'warn_only'", warn_only)):
        if not isinstance(value, bool):
            kind = type(value).__name__
            raise TypeError(f"_set_deterministic_algorithms(): argument {name} must be bool, not {kind}")
    deterministic.mode[:] = [mode, warn_only]


def are_deterministic_algorithms_enabled() -> bool:
    """Return the mode of `use_deterministic_algorithms`."""
    return deterministic.mode[0]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return the `warn_only` setting of `use_deterministic_algorithms`."""
    return deterministic.mode[1]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set the mode of `use_deterministic_algorithms` by name or number: "default" 0, "warn" 1, "error" 2."""
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
    deterministic.mode[:] = [debug_mode > 0, debug_mode == 1]


def get_deterministic_debug_mode() -> int:
    """Return the mode of `set_deterministic_debug_mode`: 0, 1 or 2."""
    if not deterministic.mode[0]:
        return 0
    return 1 if deterministic.mode[1] else 2


# Precision ----------------------------------------------------------------------------------------

_precision = ["highest"]


def get_float32_matmul_precision() -> str:
    """Return the setting of `set_float32_matmul_precision`, "highest" by default."""
    return _precision[0]


def set_float32_matmul_precision(precision: str) -> None:
    """Set the precision of float32 matrix products, without effect: they always have the highest.

    Args:
        precision: "highest", "high" or "medium".
    """
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in ("highest", "high", "medium"):
        warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect."
        )
        return
    _precision[0] = precision
    # Other settings that programs read.
    mkldnn.matmul.fp32_precision = {"highest": "ieee", "high": "tf32", "medium": "bf16"}[precision]
    cuda.matmul.allow_tf32 = precision != "highest"
    cuda.matmul.fp32_precision = "tf32" if cuda.matmul.allow_tf32 else "ieee"


def set_flush_denormal(mode: bool, /) -> bool:
    """Return False: the processor's mode for denormal numbers cannot be set, as in PyTorch on some processors."""
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return False


# Warnings and defaults ----------------------------------------------------------------------------


def set_warn_always(b: bool, /) -> None:
    """Set whether warnings that come once in a process are repeated; then Python's filters decide."""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    warning.always[0] = b


def is_warn_always_enabled() -> bool:
    """Return the setting of `set_warn_always`, False by default."""
    return warning.always[0]


def set_default_device(device: Any) -> None:
    """Set the device of new tensors; None for the CPU.

    Raises:
        AssertionError, RuntimeError: the device is not available. (PyTorch raises when the first tensor is created.)
    """
    set_default(device)


def get_default_device() -> device:
    """Return the device of new tensors: the CPU."""
    return get_default()


def set_default_tensor_type(t: Any, /) -> None:
    """Set the default dtype by a tensor type ("torch.DoubleTensor", `torch.DoubleTensor`).

    Deprecated, as in PyTorch: use `set_default_dtype`.
    """
    warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        once=True,
    )
    if isinstance(t, str) and t.startswith("torch.cuda."):
        raise TypeError(f"type {t} not available. Torch not compiled with CUDA enabled.")
    try:
        dtype = dtypes.float32 if t is Tensor else named_type(t)
    except (ValueError, TypeError):
        dtype = None
    if dtype is None or isinstance(t, dtypes.dtype):
        raise TypeError("invalid type object: only floating-point types are supported as the default type")
    dtypes.set_default_dtype(dtype)


def compiled_with_cxx11_abi() -> bool:
    """Return True, as PyTorch does; tinytorch has no C++ code.

    Example:
        >>> torch.compiled_with_cxx11_abi()
        True
    """
    return True
