"""`torch.cuda.nvtx`: annotations for NVIDIA's profiler, which needs a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..absent import refusing

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

mark = range_end = range_pop = range_push = range_start = refusing(
    RuntimeError, "NVTX functions not installed. Are you sure you have a CUDA build?"
)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Annotate the work inside a `with` block.

    Raises:
        RuntimeError: always, as in a PyTorch without CUDA.
    """
    range_push(msg.format(*args, **kwargs))
    yield
