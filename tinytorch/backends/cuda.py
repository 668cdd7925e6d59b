"""CUDA's switches: programs may set them; without a GPU they have no effect, as in PyTorch."""

from __future__ import annotations

from types import SimpleNamespace

__all__ = [
    "cudnn_sdp_enabled", "enable_cudnn_sdp", "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp",
    "flash_sdp_enabled", "is_built", "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled",
]  # fmt: skip

matmul = SimpleNamespace(
    allow_tf32=False,
    allow_fp16_reduced_precision_reduction=True,
    allow_bf16_reduced_precision_reduction=True,
    allow_fp16_accumulation=False,
    fp32_precision="none",
)
_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def is_built() -> bool:
    """Return False."""
    return False


def flash_sdp_enabled() -> bool:
    """Return whether this kernel of attention may be used on a GPU."""
    return _attention["flash"]


def enable_flash_sdp(enabled: bool) -> None:
    """Set whether this kernel of attention may be used on a GPU."""
    _attention["flash"] = bool(enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Return whether this kernel of attention may be used on a GPU."""
    return _attention["mem_efficient"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Set whether this kernel of attention may be used on a GPU."""
    _attention["mem_efficient"] = bool(enabled)


def math_sdp_enabled() -> bool:
    """Return whether this kernel of attention may be used on a GPU."""
    return _attention["math"]


def enable_math_sdp(enabled: bool) -> None:
    """Set whether this kernel of attention may be used on a GPU."""
    _attention["math"] = bool(enabled)


def cudnn_sdp_enabled() -> bool:
    """Return whether this kernel of attention may be used on a GPU."""
    return _attention["cudnn"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Set whether this kernel of attention may be used on a GPU."""
    _attention["cudnn"] = bool(enabled)
