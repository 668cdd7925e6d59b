"""PyTorch's names for how tensors lie in memory: accepted, since NumPy's strides say it all (floor 0)."""

from __future__ import annotations

__all__ = [
    "channels_last", "channels_last_3d", "contiguous_format", "layout", "memory_format", "preserve_format", "strided",
]  # fmt: skip


class layout:
    """A layout: `strided` is the only one.

    Example:
        >>> import tinytorch as torch
        >>> torch.strided
        torch.strided
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format(layout):
    """An order of dimensions in memory.

    Example:
        >>> import tinytorch as torch
        >>> torch.ones(1, 2, 3, 3).to(memory_format=torch.contiguous_format).is_contiguous()
        True
    """

    __slots__ = ()


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
