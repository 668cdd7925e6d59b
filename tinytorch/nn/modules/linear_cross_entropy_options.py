"""The options of `nn.functional.linear_cross_entropy`."""

from __future__ import annotations

import dataclasses
from typing import Any

from tinytorch.kernels import dtypes
from tinytorch.kernels.dtypes import dtype as Dtype

__all__ = ["LinearCrossEntropyOptions"]

_POLICIES = ("auto", "accurate", "balanced", "compact")


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` divides the samples into chunks, so that the scores of all never exist at once.

    `chunking_method` "aspect_ratio" makes the scores of a chunk about as large as the input, "aspect_ratio:2" half as
    large, and so on; "auto" chooses one of these, and None chunks of `batch_chunk_size` samples, or a single one.
    `acc_dtype` is the dtype to compute with, by default float32 for inputs of 16 bits, otherwise the input's.
    `allow_retain_graph` and `acc_policy` are accepted for PyTorch's sake.

    Example:
        >>> torch.nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
        64
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Dtype | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto") and self._divisor(self.chunking_method) < 1:
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in (None, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64):
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, got "
                f"{self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically."
            )

    @staticmethod
    def _divisor(method: Any) -> int:
        """Return the number in "aspect_ratio:number", 1 if there is none; 0 for another text."""
        name, colon, number = method.partition(":")
        number = number if colon else "1"
        return int(number) if name == "aspect_ratio" and number.isdigit() else 0

    def _rows(self, samples: int, features: int, classes: int, kind: Dtype) -> int:
        method, size = self.chunking_method, self.batch_chunk_size
        if method == "auto":
            method = None if size else "aspect_ratio" if kind.itemsize == 2 else "aspect_ratio:2"
        if method is None:
            return max(1, min(size or samples, samples))
        target = -(-samples // -(-classes // features))
        rows = min((1 << (target - 1).bit_length()) // self._divisor(method), samples)
        if size is not None and size != rows:
            raise ValueError(
                f"batch_chunk_size (={size}) and chunking_method ('{method}') give different chunk sizes ({size} vs "
                f"{rows}); pass only one."
            )
        return max(1, rows)

    def _kind(self, kind: Dtype) -> Dtype:
        """Return the dtype to compute with, for inputs of dtype `kind`."""
        wide = self.acc_dtype or (dtypes.float32 if kind.itemsize == 2 else kind)
        if wide is not kind and not (kind.itemsize == 2 and wide is dtypes.float32):
            raise RuntimeError(
                "linear_cross_entropy supports float32 acc_dtype with float16/bfloat16 inputs, but got "
                f"{wide} acc_dtype and {kind} inputs."
            )
        return dtypes.float32 if wide.itemsize == 2 else wide
