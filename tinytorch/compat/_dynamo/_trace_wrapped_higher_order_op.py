"""`torch._dynamo._trace_wrapped_higher_order_op`: indices by tensors inside `vmap`."""

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """Do what is inside a `with` block: `vmap` takes tensors for indices here as it is."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None
