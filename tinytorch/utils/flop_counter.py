"""`torch.utils.flop_counter`: the interface alone; tinytorch does not count floating-point operations."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["FlopCounterMode"]


class FlopCounterMode:
    """PyTorch's counter of floating-point operations: it can be constructed, but entering it raises an error.

    Args:
        mods, depth, display, custom_mapping: as in PyTorch; they have no effect.

    Raises:
        NotImplementedError: the context is entered.
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        self.depth = depth
        self.display = display

    def __enter__(self) -> NoReturn:
        raise NotImplementedError("tinytorch does not count floating-point operations")

    def __exit__(self, *args: Any) -> None:
        """Do nothing."""

    def get_total_flops(self) -> int:
        """Return 0: nothing was counted."""
        return 0

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return an empty dictionary: nothing was counted."""
        return {}
