"""TensorBoard's writer is not part of tinytorch; this module says so to programs that import it (floor 5)."""

from __future__ import annotations

from typing import NoReturn

__all__: list[str] = []


def __getattr__(name: str) -> NoReturn:
    """Raise: for PyTorch's classes an ImportError, as where TensorBoard is not installed, that says what to do."""
    if name not in ("FileWriter", "RecordWriter", "SummaryWriter"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise ImportError(
        f"tinytorch.utils.tensorboard has no {name}: tinytorch writes no files for TensorBoard. "
        "Print the numbers, or install tensorboardX, whose SummaryWriter takes NumPy arrays."
    )
