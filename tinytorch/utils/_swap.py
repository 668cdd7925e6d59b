"""`torch.utils.swap_tensors`: exchanges the contents of two tensors in place."""

from __future__ import annotations

import copyreg
import gc
import weakref
from typing import Any, NoReturn

from tinytorch.core.tensor import Tensor
from tinytorch.core.view import View

__all__ = ["swap_tensors"]

_SLOTS: tuple[str, ...] = vars(Tensor)["__slots__"]
# The slots that are exchanged. The `AccumulateGrad` nodes are dropped instead, and raise an error if they run.
_CONTENT = tuple([slot for slot in _SLOTS if slot not in ("__dict__", "__weakref__", "_accumulator")])


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange the class, the attributes and the contents of two tensors; each Python object keeps its identity.

    After the swap, every holder of `t1` sees what was `t2`, and vice versa: an optimizer, for example, keeps
    following a parameter whose dtype was changed by a swap.

    Raises:
        RuntimeError: one of the tensors has a weak reference or a view, or their classes have different slots. A
            later backward pass through a graph that was recorded before the swap raises it, too.

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
        if any(isinstance(holder, View) and holder.base is tensor for holder in gc.get_referrers(tensor)):
            raise RuntimeError(
                f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got more: make sure you "
                "are not holding references to the tensor in other places, such as views of it."
            )
    for tensor in (t1, t2):
        node = None if tensor._accumulator is None else tensor._accumulator()
        if node is not None:
            node.register_prehook(_refuse)
        tensor._accumulator = None
    # Nodes that saved either tensor must detect the change: the new version is higher than any earlier one of both.
    version = 1 + max(0 if tensor._cell is None else tensor._cell[0] for tensor in (t1, t2))
    for tensor in (t1, t2):
        if tensor._cell is not None:
            tensor._cell[0] = version
    classes = type(t1), type(t2)
    t1.__class__, t2.__class__ = classes[1], classes[0]
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for slot in (*_CONTENT, *slots[0]):
        values = [getattr(tensor, slot, _MISSING) for tensor in (t1, t2)]
        for tensor, value in zip((t2, t1), values, strict=True):
            if value is not _MISSING:
                setattr(tensor, slot, value)
            elif hasattr(tensor, slot):
                delattr(tensor, slot)


_MISSING: Any = object()


def _slots(cls: type) -> list[str]:
    """Return the slots that a subclass adds to those of Tensor."""
    names = copyreg._slotnames(cls)  # type: ignore[attr-defined]
    return [name for name in names if name not in _SLOTS]


def _refuse(grad_outputs: Any) -> NoReturn:
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors: the tensor was swapped between "
        "forward and backward. With `torch.__future__.set_swap_module_params_on_conversion(True)` change the dtype of "
        "a module before forward, or after backward."
    )
