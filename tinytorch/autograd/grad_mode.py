"""PyTorch's name for the modes of recording (floor 4)."""

from tinytorch.core.mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

__all__ = [
    "enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled",
]  # fmt: skip
