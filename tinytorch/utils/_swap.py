"""Two tensors exchange what they are: `torch.utils.swap_tensors`."""

from __future__ import annotations

import copyreg
import gc
import weakref
from typing import Any, NoReturn

from tinytorch.core.tensor import Tensor
from tinytorch.core.view import View

__all__ = ["swap_tensors"]

_SLOTS: tuple[str, ...] = vars(Tensor)["__slots__"]
# What a tensor is made of; its accumulator stays behind, and may not run any more.
_CONTENT = tuple([slot for slot in _SLOTS if slot not in ("__dict__", "__weakref__", "_accumulator")])


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Let two tensors exchange class, attributes and contents, so that whoever holds one sees the other from then on.

    An optimizer, for one, follows a parameter that is exchanged for one of another dtype.

    Raises:
        RuntimeError: there is a weak reference to one of them, or a view of one; or their classes have different
            slots. Also a backward pass raises it that leads through what was recorded before.

    Example:
        >>> a, b = torch.arange(2), torch.ones(3)
        >>> torch.utils.swap_tensors(a, b)
        >>> a, b
        (tensor([1., 1., 1.]), tensor([0, 1]))
    """
    if t1 is t2:
        return
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = [set(_slots(type(tensor))) for tensor in (t1, t2)]
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for name, tensor in (("t1", t1), ("t2", t2)):
        if any(isinstance(each, View) and each.base is tensor for each in gc.get_referrers(tensor)):
            raise RuntimeError(
                f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got more: make sure you "
                "are not holding references to the tensor in other places, such as views of it."
            )
    for tensor in (t1, t2):
        node = None if tensor._accumulator is None else tensor._accumulator()
        if node is not None:
            node.register_prehook(_refuse)
        tensor._accumulator = None
    # What was saved of either notices: its version is that of no earlier time of both.
    version = 1 + max(0 if each._cell is None else each._cell[0] for each in (t1, t2))
    for each in (t1, t2):
        if each._cell is not None:
            each._cell[0] = version
    kinds = type(t1), type(t2)
    t1.__class__, t2.__class__ = kinds[1], kinds[0]
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for slot in (*_CONTENT, *slots[0]):
        found = [getattr(tensor, slot, _nothing) for tensor in (t1, t2)]
        for tensor, value in zip((t2, t1), found, strict=True):
            if value is not _nothing:
                setattr(tensor, slot, value)
            elif hasattr(tensor, slot):
                delattr(tensor, slot)


_nothing: Any = object()


def _slots(kind: type) -> list[str]:
    """Return the slots that classes of users add to Tensor's."""
    own = copyreg._slotnames(kind)  # type: ignore[attr-defined]
    return [slot for slot in own if slot not in _SLOTS]


def _refuse(grad_outputs: Any) -> NoReturn:
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors: the tensor was swapped between "
        "forward and backward. With `torch.__future__.set_swap_module_params_on_conversion(True)` change the dtype of "
        "a module before forward, or after backward."
    )
