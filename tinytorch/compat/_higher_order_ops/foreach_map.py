"""`foreach_map`: an operator for each tensor of lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["foreach_map"]


def foreach_map(op: Callable[..., Any], *operands: Any, **kwargs: Any) -> list[Any]:
    """Return what `op` gives for the first elements of the operands that are lists, for the second ones, and so on.

    Operands that are no lists are the same in each call.

    Raises:
        ValueError: the lists are of different lengths.

    Example:
        >>> torch._higher_order_ops.foreach_map(torch.add, [torch.ones(1), torch.zeros(2)], 2)
        [tensor([3.]), tensor([2., 2.])]
    """
    lists = [each for each in operands if isinstance(each, (list, tuple))]
    count = len(lists[0]) if lists else 0
    if any(len(each) != count for each in lists):
        raise ValueError("foreach_map: the lists must be of one length")
    return [op(*[x[i] if isinstance(x, (list, tuple)) else x for x in operands], **kwargs) for i in range(count)]
