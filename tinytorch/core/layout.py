"""PyTorch's names for how tensors lie in memory, and the error for a tensor without an array."""

from __future__ import annotations

__all__ = [
    "channels_last", "channels_last_3d", "contiguous_format", "jagged", "layout", "legacy_contiguous_format",
    "memory_format", "preserve_format", "sparse_bsc", "sparse_bsr", "sparse_coo", "sparse_csc", "sparse_csr", "strided",
]  # fmt: skip


class NoArray(NotImplementedError, TypeError):
    """Raised where a function reads the array of a tensor that has none: a sparse one (see `sparse/rules.py`).

    It is a TypeError so that an operator leaves the call to the other operand.
    """

    __module__ = "tinytorch"


class layout:
    """A memory layout: tensors are `strided`, or one of the sparse layouts (`torch.sparse`).

    Example:
        >>> torch.strided
        torch.strided
    """

    __slots__ = ("name",)
    __module__ = "tinytorch"

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format(layout):
    """An order of dimensions in memory.

    Example:
        >>> torch.ones(1, 2, 3, 3).to(memory_format=torch.contiguous_format).is_contiguous()
        True
    """

    __slots__ = ()
    __module__ = "tinytorch"


strided = layout("strided")
jagged = layout("jagged")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
contiguous_format = legacy_contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
