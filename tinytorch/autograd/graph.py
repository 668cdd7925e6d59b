"""`torch.autograd.graph`: edges, hooks on several tensors, and hooks on saved tensors."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tinytorch.autograd.hooks import RemovableHandle
from tinytorch.autograd.saved import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from tinytorch.core.graph import Hook, Node, Watch, leaf_edge
from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
    "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


class GradientEdge(NamedTuple):
    """An edge of the graph: where a tensor's gradient is computed. `autograd.grad` takes it in place of the tensor.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = x * 3
        >>> edge = torch.autograd.graph.get_gradient_edge(y)
        >>> edge.node.name(), edge.output_nr
        ('MulBackward0', 0)
    """

    node: Node
    output_nr: int
    ownership_token: Node | None = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the edge of the graph where the gradient of `tensor` is computed.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = x * 3
        >>> torch.autograd.grad(y.sum(), torch.autograd.graph.get_gradient_edge(x))
        (tensor([3., 3.]),)
    """
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node, number = tensor._current()._edge or leaf_edge(tensor)
    return GradientEdge(node.shown(), number)


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write to the memory of tensors that was not an op, so that backward detects it.

    Example:
        >>> x = torch.zeros(2)
        >>> x.numpy()[0] = 1.0
        >>> torch.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    tensors: Any = (tensor,) if hasattr(tensor, "_array") else tensor
    for x in tensors:
        x._bump()


class _MultiHandle(RemovableHandle):
    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Hook, *, mode: str = "all") -> RemovableHandle:
    """Run `fn` once per backward, when the gradients of several tensors have been computed.

    Args:
        tensors: the tensors; those that a backward does not reach are not waited for.
        fn: in mode "all" takes a list of the gradients, None for those not computed; in mode "any" the first gradient.
        mode: "all": after the last of the gradients; "any": after the first.

    Example:
        >>> a = torch.ones(2, requires_grad=True)
        >>> b, c = a * 2, a * 3
        >>> def show(grads):
        ...     print([g is not None for g in grads])
        >>> handle = torch.autograd.graph.register_multi_grad_hook((a, b, c), show)
        >>> b.sum().backward()
        [True, True, False]
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        return _MultiHandle(_hooks_of_any(tensors, fn))
    nodes = []
    for tensor in tensors:
        if not tensor.requires_grad:
            raise AssertionError("Expected gradient function to be set")
        nodes.append((tensor._edge or leaf_edge(tensor))[0])
    arrived: dict[int, list[Any]] = {}  # by walk: how many gradients are missing, and the gradients so far
    lock = threading.Lock()

    def arrive(index: int, g: Any) -> None:
        watch = _current_watch()
        with lock:
            if watch.number not in arrived:
                arrived[watch.number] = [_count_visited(watch, nodes), [None] * len(nodes)]
            state = arrived[watch.number]
            state[0] -= 1
            state[1][index] = g
            complete = state[0] == 0
        if complete:
            fn(arrived.pop(watch.number)[1])

    return _MultiHandle(
        tuple([tensor.register_hook(functools.partial(arrive, index)) for index, tensor in enumerate(tensors)])
    )


def _hooks_of_any(tensors: Sequence[Tensor], fn: Hook) -> tuple[RemovableHandle, ...]:
    ran: set[int] = set()
    lock = threading.Lock()

    @functools.wraps(fn)
    def arrive(g: Any) -> None:
        number = _current_watch().number
        with lock:
            first = number not in ran
            ran.add(number)
        if first:
            fn(g)

    return tuple([tensor.register_hook(arrive) for tensor in tensors if tensor.requires_grad])


def _current_watch() -> Watch:
    watch: Watch | None = local.state.watch
    if watch is None:
        raise AssertionError("expected this hook to be called inside a backward call")
    return watch


def _count_visited(watch: Watch, nodes: Sequence[Node]) -> int:
    """Return how many of `nodes` the walk will visit."""
    count = 0
    for node in nodes:
        if node in watch.nodes:
            if node.number < 0 and not watch.into_leaves:
                raise RuntimeError(
                    "A leaf node was passed to _will_engine_execute_node but we are currently running "
                    "autograd.grad(). This is currently not supported."
                )
            count += 1
    return count
