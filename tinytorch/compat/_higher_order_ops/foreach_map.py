"""`foreach_map`: a function applied to the tensors of lists, one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["foreach_map"]


def foreach_map(op: Callable[..., Any], *operands: Any, **kwargs: Any) -> list[Any]:
    """Return the results of `op` for the first elements of all operands that are lists, the second ones, and so on.

    An operand that is not a list is passed unchanged to each call.

    Raises:
        ValueError: the lists differ in length.

    Example:
        >>> torch._higher_order_ops.foreach_map(torch.add, [torch.ones(1), torch.zeros(2)], 2)
        [tensor([3.]), tensor([2., 2.])]
    """
    lists = [operand for operand in operands if isinstance(operand, (list, tuple))]
    count = len(lists[0]) if lists else 0
    if any(len(tensors) != count for tensors in lists):
        raise ValueError("foreach_map: the lists must be of one length")
    return [op(*[x[i] if isinstance(x, (list, tuple)) else x for x in operands], **kwargs) for i in range(count)]
