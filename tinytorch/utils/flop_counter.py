"""`torch.utils.flop_counter`: counting of floating-point operations, which is not done here."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["FlopCounterMode"]


class FlopCounterMode:
    """A context manager that would count floating-point operations: it can be made, as programs do, but not entered.

    Args:
        mods, depth, display, custom_mapping: as in PyTorch; have no effect.

    Raises:
        NotImplementedError: on entering.
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
