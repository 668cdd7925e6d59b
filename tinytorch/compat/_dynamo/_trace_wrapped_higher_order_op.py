"""`torch._dynamo._trace_wrapped_higher_order_op`: indices by tensors inside `vmap`."""

from ..absent import Idle

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(Idle):
    """Do what is inside a `with` block: `vmap` takes tensors for indices here as it is."""
