"""A hook that does not communicate, to measure the cost of communication."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.distributed._reducer import GradBucket
from tinytorch.distributed.futures import Future

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: GradBucket) -> Future[Tensor]:
    """Return a future of the process's own gradients."""
    future: Future[Tensor] = Future()
    future.set_result(bucket.buffer())
    return future
