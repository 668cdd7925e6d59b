"""CUDA's switches: programs may set them; without a GPU they have no effect, as in PyTorch."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from types import SimpleNamespace

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


def is_built() -> bool:
    """Return False.

    Example:
        >>> torch.backends.cuda.is_built()
        False
    """
    return False


def flash_sdp_enabled() -> bool:
    """Return whether this kernel of attention may be used on a GPU.

    Example:
        >>> torch.backends.cuda.flash_sdp_enabled()
        True
    """
    return _attention["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Set whether this kernel of attention may be used on a GPU."""
    _attention["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Return whether this kernel of attention may be used on a GPU.

    Example:
        >>> torch.backends.cuda.mem_efficient_sdp_enabled()
        True
    """
    return _attention["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Set whether this kernel of attention may be used on a GPU."""
    _attention["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """Return whether this kernel of attention may be used on a GPU.

    Example:
        >>> torch.backends.cuda.math_sdp_enabled()
        True
    """
    return _attention["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Set whether this kernel of attention may be used on a GPU."""
    _attention["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """Return whether this kernel of attention may be used on a GPU.

    Example:
        >>> torch.backends.cuda.cudnn_sdp_enabled()
        True
    """
    return _attention["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Set whether this kernel of attention may be used on a GPU."""
    _attention["cudnn"] = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Return whether attention on a GPU may sum in 16 bits."""
    return _attention["reduced"]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Set whether attention on a GPU may sum in 16 bits."""
    _attention["reduced"] = bool(enabled)


def is_flash_attention_available() -> bool:
    """Return False: it is a kernel of GPUs."""
    return False


@contextlib.contextmanager
def _chosen(**flags: bool) -> Iterator[None]:
    before = dict(_attention)
    _attention.update(flags)
    try:
        yield
    finally:
        _attention.update(before)


def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
) -> contextlib.AbstractContextManager[None]:
    """Set which kernels of attention may be used in a `with` block: deprecated, as in PyTorch.

    Example:
        >>> import warnings, tinytorch as torch
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     with torch.backends.cuda.sdp_kernel(enable_flash=False):
        ...         torch.backends.cuda.flash_sdp_enabled()
        False
    """
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed. Please "
        "see `torch.nn.attention.sdpa_kernel()` for the new context manager, with updated signature.",
        FutureWarning,
        stacklevel=2,
    )
    return _chosen(flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient, cudnn=enable_cudnn)
