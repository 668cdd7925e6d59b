"""`torch.jit.annotations`: types for annotations that TorchScript's compiler reads."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 (modules import these here)

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List", "Optional", "Tuple", "Union"]


class _BroadcastingList:
    """`BroadcastingList2[int]`: an int, or a list of two."""

    def __getitem__(self, kind: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()
