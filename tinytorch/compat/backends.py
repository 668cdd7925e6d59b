"""`torch.backends`: which libraries are available, and their settings, which have no effect here.

The modules below it, such as `torch.backends.cudnn`, are rows of the table in `names.txt`; what they do is here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from tinytorch.core.warning import warn

from .names import Idle

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]

cpu: Any
cuda: Any
cudnn: Any
mha: Any
mkl: Any
mkldnn: Any
mps: Any
openmp: Any
opt_einsum: Any

fp32_precision = "none"
_may_change = [True]


def disable_global_flags() -> None:
    """Let `flags_frozen` return True outside `__allow_nonbracketed_mutation`; settings can still be changed.

    Example:
        >>> torch.backends.disable_global_flags()
        >>> with torch.backends.__allow_nonbracketed_mutation():
        ...     torch.backends.flags_frozen()
        False
    """
    _may_change[0] = False


def flags_frozen() -> bool:
    """Return whether `disable_global_flags` is in effect here."""
    return not _may_change[0]


@contextlib.contextmanager
def __allow_nonbracketed_mutation() -> Iterator[None]:
    """Return a context in which `flags_frozen` returns False."""
    before, _may_change[0] = _may_change[0], True
    try:
        yield
    finally:
        _may_change[0] = before


def get_cpu_capability() -> str:
    """Return the vector instruction set that the processor supports: "AVX512", "AVX2" or "DEFAULT".

    NumPy's kernels select theirs at run time; torchvision chooses its resizing of uint8 images by this value.
    """
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    features = _multiarray_umath.__cpu_features__
    if features.get("AVX512_SKX"):
        return "AVX512"
    return "AVX2" if features.get("AVX2") and features.get("FMA3") else "DEFAULT"


# cuDNN and oneDNN: settings are names of their modules ---------------------------------------------


def _settings(backend: str) -> dict[str, Any]:
    return vars(import_module(f"tinytorch.backends.{backend}"))


def _change(backend: str, **new: Any) -> tuple[Any, ...]:
    """Change those settings of a backend that are not None; return the previous values of all these settings."""
    settings = _settings(backend)
    before = tuple(settings[name] for name in new)
    settings.update({name: value for name, value in new.items() if value is not None})
    return before


@contextlib.contextmanager
def _updated(settings: dict[str, Any], **new: Any) -> Iterator[None]:
    before = {name: settings[name] for name in new}
    settings.update({name: value for name, value in new.items() if value is not None})
    try:
        yield
    finally:
        settings.update(before)


def _set_cudnn_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:
    """Change the settings that are not None, and return all previous values.

    The limit stays: it is a setting of cuDNN itself, which is not available.

    Example:
        >>> before = torch.backends.cudnn.set_flags(_benchmark=True)
        >>> torch.backends.cudnn.benchmark
        True
        >>> _ = torch.backends.cudnn.set_flags(*before)
    """
    return _change(
        "cudnn", enabled=_enabled, benchmark=_benchmark, benchmark_limit=None, deterministic=_deterministic,
        allow_tf32=_allow_tf32, fp32_precision=_fp32_precision,
    )  # fmt: skip


def _cudnn_flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> contextlib.AbstractContextManager[None]:
    """Change the settings inside a `with` block.

    Example:
        >>> before = torch.backends.cudnn.deterministic
        >>> with torch.backends.cudnn.flags(deterministic=True):
        ...     print(torch.backends.cudnn.deterministic)
        True
        >>> torch.backends.cudnn.deterministic == before
        True
    """
    return _updated(
        _settings("cudnn"), enabled=enabled, benchmark=benchmark, deterministic=deterministic, allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )  # fmt: skip


def _set_mkldnn_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:
    """Change the settings that are not None, and return all previous values."""
    return _change(
        "mkldnn", enabled=_enabled, deterministic=_deterministic, allow_tf32=_allow_tf32, fp32_precision=_fp32_precision
    )


def _mkldnn_flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> contextlib.AbstractContextManager[None]:
    """Change the settings inside a `with` block.

    Example:
        >>> with torch.backends.mkldnn.flags(deterministic=True):
        ...     print(torch.backends.mkldnn.deterministic)
        True
        >>> torch.backends.mkldnn.deterministic
        False
    """
    return _updated(
        _settings("mkldnn"), enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
    )  # fmt: skip


class _mkl_verbose(Idle):
    """A context manager without effect: MKL, which would log its calls, is not used."""

    def __init__(self, enable: int) -> None:
        self.enable = enable


class _mkldnn_verbose(Idle):
    """A context manager without effect: oneDNN, which would log its calls, is not used.

    Example:
        >>> with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
        ...     y = torch.ones(2) * 2
    """

    def __init__(self, level: int) -> None:
        self.level = level


# Attention on a GPU --------------------------------------------------------------------------------

_matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
    fp32_precision="none",
)
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "reduced": False}


def _setting(key: str, getter: str, setter: str, does: str) -> dict[str, Callable[..., Any]]:
    """Return the getter and the setter of a setting, by their names."""

    def is_enabled() -> bool:
        return _attention[key]

    def set_enabled(enabled: bool) -> None:
        _attention[key] = bool(enabled)

    is_enabled.__doc__, set_enabled.__doc__ = f"Return whether {does}.", f"Set whether {does}."
    made: dict[str, Callable[..., Any]] = {getter: is_enabled, setter: set_enabled}
    for name, function in made.items():
        function.__name__ = function.__qualname__ = name
    return made


for _kernel in ("flash", "mem_efficient", "math", "cudnn"):
    globals().update(
        _setting(_kernel, f"{_kernel}_sdp_enabled", f"enable_{_kernel}_sdp", "this attention kernel may run on a GPU")
    )
globals().update(
    _setting(
        "reduced", "fp16_bf16_reduction_math_sdp_allowed", "allow_fp16_bf16_reduction_math_sdp",
        "attention on a GPU may accumulate in 16 bits",
    )
)  # fmt: skip


def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> contextlib.AbstractContextManager[None]:
    """Set which attention kernels may be used in a `with` block: deprecated, as in PyTorch.

    Example:
        >>> import warnings, tinytorch as torch
        >>> with warnings.catch_warnings(action="ignore"):
        ...     with torch.backends.cuda.sdp_kernel(enable_flash=False):
        ...         torch.backends.cuda.flash_sdp_enabled()
        False
    """
    warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please "
        "see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
    )
    return _updated(
        _attention, flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
