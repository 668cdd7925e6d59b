"""`torch.backends.cuda`: CUDA's settings, which have no effect without a GPU, as in PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace

from tinytorch.core.warning import warn

from ..absent import answering

__all__ = [
    "allow_fp16_bf16_reduction_math_sdp", "cudnn_sdp_enabled", "enable_cudnn_sdp", "enable_flash_sdp",
    "enable_math_sdp", "enable_mem_efficient_sdp", "flash_sdp_enabled", "fp16_bf16_reduction_math_sdp_allowed",
    "is_built", "is_flash_attention_available", "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled",
    "sdp_kernel",
]  # fmt: skip

matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
    fp32_precision="none",
)
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True, "reduced": False}

is_built = answering("is_built", lambda: False, "Return False.")
is_flash_attention_available = answering(
    "is_flash_attention_available", lambda: False, "Return False: flash attention is a kernel for GPUs."
)


def _setting(key: str, getter: str, setter: str, does: str) -> tuple[Callable[[], bool], Callable[[bool], None]]:
    """Return the getter and the setter of a setting, with their names."""

    def set_enabled(enabled: bool) -> None:
        _attention[key] = bool(enabled)

    set_enabled.__name__ = set_enabled.__qualname__ = setter
    set_enabled.__doc__ = f"Set whether {does}."
    return answering(getter, lambda: _attention[key], f"Return whether {does}."), set_enabled


_KERNEL = "this attention kernel may be used on a GPU"
flash_sdp_enabled, enable_flash_sdp = _setting("flash", "flash_sdp_enabled", "enable_flash_sdp", _KERNEL)
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _setting(
    "mem_efficient", "mem_efficient_sdp_enabled", "enable_mem_efficient_sdp", _KERNEL
)
math_sdp_enabled, enable_math_sdp = _setting("math", "math_sdp_enabled", "enable_math_sdp", _KERNEL)
cudnn_sdp_enabled, enable_cudnn_sdp = _setting("cudnn", "cudnn_sdp_enabled", "enable_cudnn_sdp", _KERNEL)
fp16_bf16_reduction_math_sdp_allowed, allow_fp16_bf16_reduction_math_sdp = _setting(
    "reduced", "fp16_bf16_reduction_math_sdp_allowed", "allow_fp16_bf16_reduction_math_sdp",
    "attention on a GPU may accumulate in 16 bits",
)  # fmt: skip


@contextlib.contextmanager
def _attention_flags(**flags: bool) -> Iterator[None]:
    before = dict(_attention)
    _attention.update(flags)
    try:
        yield
    finally:
        _attention.update(before)


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
    return _attention_flags(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn
    )
