"""Views: which memory a tensor shares, and how its place in the graph follows writes to it (floor 2).

A view op leaves a `View` on its result: the base, and the steps from there to here. A write in place counts the
memory's version up; a view whose `seen` version is older asks its base for its new edge by taking the steps again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinytorch.autograd.mode import enable_grad, local

if TYPE_CHECKING:
    from tinytorch._tensor import Tensor
    from tinytorch.autograd.mode import State
    from tinytorch.autograd.op import Op

# How a view was made. Views of the other kinds cannot be written to where that is to be recorded.
USUAL, SEVERAL, CUSTOM, WITHOUT_GRAD, INFERENCE = range(5)


Steps = tuple[tuple["Op", tuple[Any, ...], "int | None"], ...]


def region(array: Any, steps: Steps) -> Any:
    """Return the view of an array that `steps` lead to; it has a base's shape and order in memory."""
    for op, arguments, index in steps:
        array = op.compute([array, *arguments])
        if index is not None:
            array = array[index]
    return array


class View:
    """The way from a base tensor to a view of it.

    Attributes:
        base: the tensor that owns the memory; never a view itself.
        parent: the `View` of the tensor that the last step was taken from, None where that is the base.
        op, arguments: the last step; `index` says which of its outputs, None where it has one.
        seen: the version that the view's edge describes.
        kind: how it was made (USUAL, SEVERAL, …).
    """

    __slots__ = ("arguments", "base", "index", "kind", "op", "parent", "seen")

    base: Tensor
    parent: View | None
    op: Op
    arguments: tuple[Any, ...]
    index: int | None
    seen: int
    kind: int

    @staticmethod
    def attach(
        made: Tensor,
        source: Tensor,
        op: Op,
        values: tuple[Any, ...],
        state: State,
        index: int | None = None,
    ) -> None:
        """Make `made`, the result of the view op `op` on `source`, a view of source's base."""
        made._cell = source._cell
        if source._cell is None:  # an inference tensor: nothing is ever recorded
            return
        view = made._view = _new(View)
        parent = view.parent = source._view
        view.base = source if parent is None else parent.base
        view.op, view.arguments, view.index = op, values[1:], index
        view.seen = source._cell[0]
        if parent is not None and parent.kind != USUAL:
            view.kind = parent.kind
        elif state.grad:
            view.kind = USUAL if index is None else SEVERAL
        else:
            view.kind = INFERENCE if state.inference else WITHOUT_GRAD
        if not state.grad:
            made._requires_grad = (
                view.base._requires_grad
            )  # PyTorch's rule: a view requires grad as its base does

    def steps(self) -> Steps:
        """Return the steps from the base to here, without the base (so that a node can keep them)."""
        before = () if self.parent is None else self.parent.steps()
        return (*before, (self.op, self.arguments, self.index))

    def replay(self, base: Tensor) -> Tensor:
        """Return the same view of another tensor of the base's shape."""
        source = base if self.parent is None else self.parent.replay(base)
        result = self.op.caller(source, *self.arguments)
        return result if self.index is None else result[self.index]

    def refresh(self, tensor: Tensor) -> None:
        """Bring the edge of `tensor`, whose view this is, up to date."""
        refresh(tensor)


_new: Any = object.__new__


def refresh(tensor: Tensor) -> None:
    """Bring the edge of a view up to date with what was written to the memory that it shares."""
    view = tensor._view
    cell = tensor._cell
    if view is None or cell is None or view.seen == cell[0]:
        return
    base = view.base
    if not base._requires_grad or (
        view.kind >= WITHOUT_GRAD and not tensor._requires_grad and base._edge is None
    ):
        view.seen = cell[0]
        return
    if view.kind != USUAL:
        raise RuntimeError(
            _not_writable(tensor, view, "its base or another view of its base has been")
        )
    view.seen = cell[0]
    with enable_grad():
        again = view.replay(base)
    old = tensor._edge
    tensor._edge, tensor._requires_grad = again._edge, again._requires_grad
    move_retained(tensor, old)


def move_retained(tensor: Tensor, old: Any) -> None:
    """Let `retain_grad` follow a tensor whose edge was `old` to its new edge."""
    if old is None or old[0].hooks is None or tensor._edge is None:
        return
    reference = old[0].hooks.retain.get(old[1])
    if reference is not None and reference() is tensor:
        del old[0].hooks.retain[old[1]]
        node, number = tensor._edge
        node._own_hooks().retain[number] = reference


def check_write(tensor: Tensor, recorded: bool, overlap: bool = False) -> None:
    """Raise PyTorch's error if `tensor` must not be written to in place.

    Args:
        tensor: what is to be written to.
        recorded: the write enters the graph.
        overlap: elements may share a place in memory.
    """
    if recorded:
        view = tensor._view
        if view is not None:
            if view.kind != USUAL:
                raise RuntimeError(_not_writable(tensor, view, "is being"))
            if tensor.requires_grad and view.base._edge is None:
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an in-place operation. "
                    "Put the write inside torch.no_grad(), or write to a clone()."
                )
        if tensor._requires_grad and tensor._edge is None:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation. "
                "Put the write inside torch.no_grad(), or write to a clone()."
            )
    if tensor._cell is None and not local.state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a "
            "normal tensor before doing inplace update. See https://github.com/pytorch/rfcs/pull/17 for more details."
        )
    array = tensor._array
    if (
        not overlap
        and 0 in array.strides
        and array.size
        and any(
            stride == 0 and length > 1
            for stride, length in zip(array.strides, array.shape, strict=True)
        )
    ):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location. Please clone() the tensor before performing the operation."
        )


def _not_writable(tensor: Tensor, view: View, what: str) -> str:
    if view.kind == WITHOUT_GRAD:
        return (
            f"A view was created in no_grad mode and {what} modified inplace with grad mode enabled. Given that this "
            "use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the "
            "view and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) "
            "or both outside (if you want the inplace to be tracked)."
        )
    if view.kind == INFERENCE:
        return (
            f"A view was created in inference mode and {what} modified inplace in normal mode. Given that this use "
            "case is ambiguous and error-prone, it is forbidden. Make the view outside of inference mode."
        )
    if tensor._edge is None:
        maker, number = view.op.node_class.__name__, view.index
    else:
        maker, number = tensor._edge[0].name(), tensor._edge[1]
    if view.kind == CUSTOM:
        return (
            f"Output {number} of {maker} is a view and {what} modified inplace. This view was created inside a custom "
            "Function (or because an input was returned as-is) and the autograd logic to handle view+inplace would "
            "override the custom backward associated with the custom Function, leading to incorrect gradients. This "
            "behavior is forbidden. You can fix this by cloning the output of the custom Function."
        )
    return (
        f"Output {number} of {maker} is a view and {what} modified inplace. This view is the output of a "
        "function that returns multiple views. Such functions do not allow the output views to be modified inplace. "
        "You should replace the inplace operation by an out-of-place one."
    )
