"""Views: which memory a tensor shares, and how its edge is updated after writes to that memory.

A view refers to its base, the tensor that owns the memory. An in-place write increments the memory's version; a view
whose `seen` version is older gets a new edge when its edge is next read: to a strided view of the current base.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tinytorch.core.graph import Node, enter
from tinytorch.core.mode import Event, local, recording
from tinytorch.core.supplied import bits, memory
from tinytorch.kernels import places
from tinytorch.kernels.complex import reals

if TYPE_CHECKING:
    from tinytorch.core.mode import State
    from tinytorch.core.tensor import Tensor

# How a view was created. A recorded write into a view of any kind but USUAL is an error.
USUAL, SEVERAL, CUSTOM, WITHOUT_GRAD, INFERENCE = range(5)

# The locations of a view and of its base.
Places = tuple[places.Place, places.Place]


class View:
    """The base of a view, and the view's location in the memory of the base.

    Attributes:
        base: the tensor that owns the memory; never a view itself.
        array: the view's elements, in the base's memory.
        seen: the version of the memory that the view's edge describes.
        kind: how it was created (USUAL, SEVERAL, …).
        own: whether `requires_grad` was set on the view itself; else the base's applies, unless the view has an edge.
    """

    __slots__ = ("array", "base", "kind", "own", "seen")

    array: Any
    base: Tensor
    kind: int
    own: bool
    seen: int

    def places(self) -> Places:
        """Return the locations of the view and of its base, relative to the first element of the base.

        If only one of the two is complex, they are those of the real numbers.
        """
        part, whole = self.array, self.base._array
        if part.dtype != whole.dtype:
            part, whole = reals(part), reals(whole)
        return places.place(part, whole), places.place(whole, whole)

    def replay(self, base: Tensor, where: Places | None = None) -> Tensor:
        """Return the same view of another tensor, whose memory has the layout of the base.

        Args:
            base: the other tensor.
            where: what `places` returns.
        """
        part, whole = where or self.places()
        view: Tensor
        if self.array.dtype == self.base._array.dtype:
            view = memory.strided(base, part, whole)
        else:
            real = bits.as_kind(base, "f")
            view = real if part == whole else memory.strided(real, part, whole)
            view = bits.as_kind(view, self.array.dtype.kind)
        return view


_new: Any = object.__new__


def make_view(made: Tensor, source: Tensor, state: State, kind: int = USUAL) -> None:
    """Make `made`, the result of a view op on `source`, a view of source's base.

    Args:
        made, source: tensors on the same memory.
        state: the thread's state, which determines the kind of view inside `no_grad` and `inference_mode`.
        kind: SEVERAL for an op with several outputs.
    """
    cell = made._cell = source._cell
    if cell is None:  # an inference tensor: nothing is ever recorded
        return
    made._view = view = _new(View)
    view.array, view.seen, view.own = made._array, cell[0], False
    if not state.grad:
        kind = INFERENCE if state.inference else WITHOUT_GRAD
    parent = source._view
    if parent is None:
        view.base, view.kind = source, kind
    else:
        view.base = parent.base
        view.kind = parent.kind if kind == USUAL or parent.kind == INFERENCE else kind


def needs_grad(tensor: Tensor) -> bool:
    """Return whether a tensor requires grad, before writes into its memory are taken into account (as PyTorch does)."""
    view = tensor._view
    if view is None:
        return tensor._requires_grad
    return tensor._edge is not None or view.own or view.base._requires_grad


def refresh(tensor: Tensor) -> None:
    """Bring the edge of a view up to date with the writes into the memory that it shares."""
    view = tensor._view
    if view is None or (
        view.seen == tensor._cell[0]  # type: ignore[index]
        and tensor._requires_grad is view.base._requires_grad
    ):
        return
    base = view.base
    old = tensor._edge
    if old is None and not base._requires_grad:
        tensor._requires_grad = view.own
    elif view.seen == tensor._cell[0]:  # type: ignore[index]
        if old is None:
            tensor._requires_grad = True
            if not view.own:
                tensor._accumulator = functools.partial(Nowhere, view.array)
    elif view.kind != USUAL:
        raise RuntimeError(_not_writable(tensor, view, "its base or another view of its base has been"))
    else:
        follow(tensor, view)


def follow(tensor: Tensor, view: View, where: Places | None = None) -> None:
    """Give a view an edge to a strided view (a view by location) of the current base."""
    view.seen, old = tensor._cell[0], tensor._edge  # type: ignore[index]
    with recording(True):
        edge = view.replay(view.base, where)._edge
    tensor._edge = edge or (Nowhere(view.array, "AsStridedBackward0"), 0)
    tensor._requires_grad = True
    move_retained(tensor, old)


class Nowhere(Node):
    """The end of the gradient of a view that requires grad only because its base does: the gradient is dropped."""

    __slots__ = ("_name",)

    def __init__(self, array: Any, name: str = "Nowhere") -> None:
        enter(self, (), array.shape, array.dtype, end=True)
        self._name = name

    def name(self) -> str:
        """Return the name of PyTorch's node in this place."""
        return self._name

    def backward(self, g: Tensor, create_graph: bool, needed: set[Node] | None) -> tuple[()]:
        """Drop the gradient."""
        return ()


def move_retained(tensor: Tensor, old: Any) -> None:
    """Move the `retain_grad` entry of a tensor from its old edge to its new edge."""
    if old is None or old[0].hooks is None or tensor._edge is None:
        return
    reference = old[0].hooks.retain.get(old[1])
    if reference is not None and reference() is tensor:
        del old[0].hooks.retain[old[1]]
        node, number = tensor._edge
        node._own_hooks().retain[number] = reference


def check_recorded(tensor: Tensor) -> None:
    """Raise PyTorch's error if a recorded write to `tensor` is not allowed."""
    view, requires_grad = tensor._view, needs_grad(tensor)
    if view is not None:
        if view.kind != USUAL:
            raise RuntimeError(_not_writable(tensor, view, "is being"))
        if requires_grad and view.base._edge is None:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation. "
                "Put the write inside torch.no_grad(), or write to a clone()."
            )
    if requires_grad and tensor._edge is None:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation. "
            "Put the write inside torch.no_grad(), or write to a clone()."
        )


def check_write(tensor: Tensor, recorded: bool, overlap: bool = False, captured: bool = False) -> None:
    """Raise PyTorch's error if `tensor` must not be written to in place.

    Args:
        tensor: the tensor to write to.
        recorded: whether the write is recorded in the graph.
        overlap: whether elements may share a location in memory.
        captured: whether a function that a transform differentiates may have captured the tensor.
    """
    if not captured and local.state.run is not None:
        local.state.run.check(tensor)
    if recorded:
        check_recorded(tensor)
    if tensor._cell is None:
        check_inference()
    if not overlap and expanded(tensor._array):
        raise shared_places()
    announce(tensor)


def announce(tensor: Tensor) -> None:
    """Notify the modes of a write that is not an op."""
    for mode in local.state.modes or ():
        mode.event(Event.WRITES, x=tensor)


def count_write(tensor: Tensor) -> None:
    """Count an in-place write. An inference tensor raises its error only after it was written to, as in PyTorch."""
    if tensor._cell is None:
        check_inference()
    else:
        tensor._cell[0] += 1


def check_inference() -> None:
    """Raise PyTorch's error for a write to an inference tensor outside of `inference_mode`."""
    if not local.state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            "normal tensor before doing inplace update. See https://github.com/pytorch/rfcs/pull/17 for more details."
        )


def expanded(array: Any) -> bool:
    """Return whether several elements share one memory location through a stride of 0."""
    return (
        0 in array.strides
        and array.size > 0
        and any(stride == 0 and length > 1 for stride, length in zip(array.strides, array.shape, strict=True))
    )


def shared_places() -> RuntimeError:
    """Return PyTorch's error for a write to expanded memory."""
    return RuntimeError(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory "
        "location. Please clone() the tensor before performing the operation."
    )


def _not_writable(tensor: Tensor, view: View, what: str) -> str:
    edge, inference = tensor._edge, view.kind == INFERENCE
    maker = edge and f"O{edge[0].output(edge[1])[1:]} is a view"
    if maker and view.kind in (SEVERAL, CUSTOM):
        text = f"{maker} and {what} modified inplace."
    else:
        made = f"{maker} of a view which was" if maker else "A view was"
        block = "inference" if inference else "no_grad"
        mode = "in normal mode" if inference else "with grad mode enabled"
        text = f"{made} created in {block} mode and {what} modified inplace {mode}."
    if view.kind == SEVERAL:
        return (
            f"{text} This view is the output of a function that returns multiple views. Such functions do not allow "
            "the output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
        )
    if view.kind == CUSTOM:
        return (
            f"{text} This view was created inside a custom Function (or because an input was returned as-is) and the "
            "autograd logic to handle view+inplace would override the custom backward associated with the custom "
            "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the "
            "output of the custom Function."
        )
    return (
        f"{text} Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
        f"moving both the view and the inplace either both inside the {'inference_mode' if inference else 'no_grad'} "
        "block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
    )
