"""CUDA's switches: programs may set them; without a GPU they have no effect, as in PyTorch."""

from __future__ import annotations

from types import SimpleNamespace

__all__ = ["is_built", "matmul"]

matmul = SimpleNamespace(allow_tf32=False, allow_fp16_reduced_precision_reduction=True)


def is_built() -> bool:
    """Return False."""
    return False
