"""`torch.jit.annotations`: types of arguments, which TorchScript's compiler reads."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035 (modules import these here)

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List", "Optional", "Tuple", "Union"]


class _BroadcastingList:
    """`BroadcastingList2[int]` says: an int or a list of two."""

    def __getitem__(self, kind: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()
