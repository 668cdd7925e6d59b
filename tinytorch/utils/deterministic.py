"""`torch.utils.deterministic`: what `torch.use_deterministic_algorithms` means for memory that nobody wrote."""

from __future__ import annotations

import sys
from types import ModuleType

from tinytorch.core import deterministic


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty`, `resize_` and others fill new memory with NaN, or with the greatest integer, in that mode.

        Example:
            >>> torch.use_deterministic_algorithms(True)
            >>> torch.empty(2)
            tensor([nan, nan])
            >>> torch.use_deterministic_algorithms(False)
        """
        return deterministic.fills[0]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        deterministic.fills[0] = mode


sys.modules[__name__].__class__ = _Deterministic
