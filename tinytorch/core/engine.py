"""The walk backward through the graph. It knows of nodes, edges and sums of gradients, but of no op.

Nodes wait on a heap ordered by creation number, the latest first. Creation order is a topological order, so when a
node is popped from the heap all gradients of its outputs have arrived: no recursion, no counting of dependencies.
Leaves come as soon as their gradients are complete, as in PyTorch (`graph.Watch`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from tinytorch.core.graph import DEEPEST, Edge, Node, Start, Watch, leaf_edge
from tinytorch.core.layout import strided
from tinytorch.core.mode import ForwardLevel, dispatch_step, local, on_another_stack
from tinytorch.core.native import library
from tinytorch.core.notes import leave
from tinytorch.core.supplied import bits, sparse
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.kernels.silence import add_into


def walk(
    start: Start, retain_graph: bool, create_graph: bool, targets: Sequence[Edge] | None = None, capture: bool = False
) -> dict[Edge, Tensor]:
    """Run the graph backward.

    Args:
        start: the node to start from.
        retain_graph: do not free the values that nodes have saved.
        create_graph: record the computation of the gradients.
        targets: visit only the nodes that lead to these edges.
        capture: return the gradients at the targets, and accumulate into no leaf.

    Returns:
        The gradients that arrived at the targets, if `capture`.
    """
    state = local.state
    if state.depth >= DEEPEST:
        return on_another_stack(functools.partial(walk, start, retain_graph, create_graph, targets, capture))
    needed: set[Node] | None = None
    passed: set[Node] = set()
    if targets is not None:
        needed, passed = _nodes_leading_to(start, {edge[0] for edge in targets})
    wanted: dict[Node, list[Edge]] = {}  # by node, the edges whose gradients are captured
    for edge in targets or () if capture else ():
        wanted.setdefault(edge[0], []).append(edge)
    captured: dict[Edge, Tensor] = {}
    before = state.grad, state.callbacks, state.watch
    callbacks: list[Callable[[], Any]] = []
    state.grad, state.callbacks, state.watch = create_graph, callbacks, None
    modes = state.modes
    # Whether the gradients may be differentiated: then formulas use no cached residuals, and sums are not in place.
    differentiable = create_graph or (modes is not None and any(isinstance(mode, ForwardLevel) for mode in modes))
    # Whether no mode sees the accumulation into leaves, which can then take a gradient over rather than copy it.
    leaves_apart = modes is not None and not any(mode.sees_leaves for mode in modes)
    state.depth += 1
    try:
        # By minus the creation number: [node, its gradient (a list of those of several outputs), which of them are sums
        # that this walk has computed, as bits]. (Numbers hash evenly, addresses at times do not.)
        waiting: dict[int, list[Any]] = {}
        heap: list[int] = []
        simple = not create_graph and modes is None and targets is None
        if library is None or not simple or not library.run_walk(start, retain_graph, HELPERS):
            watch = state.watch = Watch(start, needed, not capture)
            waiting[-start.number] = [start, None, 0]
            heap.append(-start.number)
        while heap:
            node, g, _ = waiting.pop(heappop(heap))
            if wanted and node in wanted:
                at_end = node not in passed
                if at_end and node.hooks is not None:  # (else PyTorch, too, captures it before the hooks)
                    g = node.run_tensor_hooks(g)
                for edge in wanted[node] if g is not None else ():
                    captured[edge] = g if node.outputs == 1 else g[edge[1]]
                if at_end:
                    continue
            if node.hooks is not None:
                g = node.run_hooks_before(g)
            if g is None:
                grads = node.without_gradient(differentiable, needed)
            elif modes is None or (leaves_apart and node.number < 0):
                grads = node.backward(g, create_graph, needed)
            else:
                grads = dispatch_step(node, functools.partial(node.backward, g, differentiable, needed))
            if not retain_graph:
                node.release()
            if node.hooks is not None and node.hooks.post:
                grads = node.run_hooks_after(_as_gradients_of_inputs(node, grads), g)
            for edge, g in zip(node.edges, grads):  # noqa: B905  (a keyword costs time here)
                if edge is None:
                    continue
                target, number = edge
                if needed is not None and target not in needed:
                    if node is start and target.hooks is not None and len(node.edges) == 1:
                        gs = [g if k == number else None for k in range(target.outputs)]
                        target.run_tensor_hooks(target._from_list(gs))
                    continue
                order = -target.number
                entry = waiting.get(order)
                if entry is None:
                    if g is None and edge in node.unreached:
                        continue
                    entry = waiting[order] = [target, None, 0]
                    if order < 0:
                        heappush(heap, order)
                if g is None:  # the node is visited all the same: hooks and a `Function` run
                    continue
                if type(g) is not Tensor or g._array.dtype is not target.dtype or g._array.shape != target.shape:
                    g = _fitted(node, g, edge, grads)
                if target.outputs != 1:
                    gs = entry[1] = entry[1] or [None] * target.outputs
                    gs[number] = (
                        g if gs[number] is None else _total(entry, number, gs[number], g, modes, differentiable)
                    )
                else:
                    entry[1] = g if entry[1] is None else _total(entry, 0, entry[1], g, modes, differentiable)
            if node.number in watch.completing:
                watch.serve(node, waiting, heap)
            if not heap:  # leaves may wait for nodes which the walk did not visit after all (`Node.unreached`)
                heap += sorted(waiting)
        for callback in callbacks:  # (one may add another)
            callback()
        return captured
    finally:
        state.depth -= 1
        state.grad, state.callbacks, state.watch = before


# What the twin of the loop (kernels/native/walk.c) leaves to Python.


def gradients_of(node: Node, g: Any) -> Any:
    """Return the gradients of a node's inputs from the gradient of its output, or from None."""
    return node.without_gradient(False, None) if g is None else node.backward(g, False, None)


def hooked_before(node: Node, g: Any) -> Any:
    """Return the gradient of a node's output after the hooks that run before the node."""
    return node.run_hooks_before(g)


def hooked_after(node: Node, grads: list[Any], g: Any) -> Any:
    """Return the gradients of a node's inputs after the hooks that run after the node."""
    assert node.hooks is not None
    return node.run_hooks_after(_as_gradients_of_inputs(node, grads), g) if node.hooks.post else grads


def _fitted(node: Node, g: Tensor, edge: Edge, grads: Sequence[Any] = ()) -> Tensor:
    """Return a gradient, one of `grads`, as the node at an edge takes it."""
    shape, kind = shape_and_kind(edge)
    plain = g
    if type(g) is not Tensor and g._receives is not None:
        if g.layout is not strided:
            return sparse.fitted_gradient(g, shape, kind)
        plain = bits.resolved(g)
    if plain._array.dtype is kind and plain._array.shape == shape:
        return plain
    return _as_gradient_of_input(node, [plain if each is g else each for each in grads or (g,)], plain, shape, kind)


def _sum(x: Tensor, g: Tensor) -> Tensor:
    """Return the sum of two gradients, which may be sparse."""
    return x + g if x.layout is strided else g + x


def raising(error: Exception) -> Callable[[Tensor], None]:
    """Return what raises the error of `backward`, of a tensor, with its notes."""

    def backward(input: Tensor) -> None:
        try:
            raise error
        except Exception:
            leave()
            raise

    return backward


HELPERS = (gradients_of, hooked_before, hooked_after, _fitted, _sum, raising)


def _total(entry: list[Any], k: int, x: Tensor, g: Tensor, modes: Any, differentiable: bool) -> Tensor:
    """Return the sum of gradients of output `k` of the node of an entry, in place if this walk has computed `x`."""
    if type(g) is not Tensor and g._receives is not None:
        entry[2] &= ~(1 << k)  # (what is added next may be dense)
        return _sum(x, g)
    if not entry[2] >> k & 1:
        entry[2] |= (not differentiable) << k
        return _sum(x, g)
    if modes is not None:
        return _added(x, g)
    x._array = add_into(x._array, g._array)
    return x


def _added(x: Tensor, g: Tensor) -> Tensor:
    """Add a gradient to a sum that the walk has computed, by operations that modes see; the sum keeps its layout."""
    total: Tensor = x + g
    if total._array.strides != x._array.strides and type(total) is type(x):
        x += g
        return x
    return total


def gradients(
    outputs: Sequence[Tensor], vectors: Sequence[Tensor], inputs: Sequence[Tensor], create_graph: bool
) -> Any:
    """Return the vector-Jacobian products of `outputs` and `vectors`: per input its gradient, or None."""
    start = Start(tuple([x._edge or leaf_edge(x) for x in outputs]), list(vectors))
    edges = [x._edge or leaf_edge(x) for x in inputs]
    captured = walk(start, create_graph, create_graph, edges, capture=True)
    return tuple([captured.get(edge) for edge in edges])


def _as_gradient_of_input(node: Node, grads: Sequence[Any], g: Tensor, shape: Any, dtype: Any) -> Tensor:
    """Return `g`, one of `grads`, summed over broadcast dimensions to the shape of its input, in the input's dtype.

    Raises:
        RuntimeError: its shape does not broadcast from that of the input.
    """
    if type(g) is not Tensor and g._receives is not None and g.layout is not strided:
        return sparse.fitted_gradient(g, shape, dtype)
    shape_of_g = g._array.shape
    if shape_of_g != shape:
        if len(shape) > len(shape_of_g) or any(
            want not in (1, have) for want, have in zip(reversed(shape), reversed(shape_of_g), strict=False)
        ):
            index = next(k for k, i in enumerate(node._inputs()) if grads[i] is g)
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {index} - got {list(shape_of_g)} but "
                f"expected shape compatible with {list(shape)}"
            )
        g = g.sum_to_size(shape)
    if g._array.dtype != dtype:
        if g._array.dtype.kind == "c" and dtype.kind != "c":  # the gradient of a real input is real
            g = bits.real_part(g)
        g = g.to(dtypes.from_numpy_dtype(dtype))
    return g


def _as_gradients_of_inputs(node: Node, grads: Sequence[Any]) -> list[Any]:
    """Return the gradients of a node's inputs in their shapes and dtypes, for hooks."""
    fitted = list(grads)
    for k, (edge, g) in enumerate(zip(node.edges, grads, strict=True)):
        if edge is not None and g is not None:
            fitted[k] = _as_gradient_of_input(node, grads, g, *shape_and_kind(edge))
    return fitted


def shape_and_kind(edge: Edge) -> tuple[Any, Any]:
    """Return the shape and dtype (NumPy's) of the gradients along an edge."""
    node, number = edge
    if node.outputs == 1:
        return node.shape, node.dtype
    return node.shape[number], node.dtype[number]


def _nodes_leading_to(start: Node, ends: set[Node]) -> tuple[set[Node], set[Node]]:
    """Return the nodes on paths from `start` to `ends`: all of them, and those that are not only the end of a path."""
    reached = {start}
    stack: list[Node] = [start]
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge[0] not in reached:
                reached.add(edge[0])
                stack.append(edge[0])
    leading = ends & reached
    passed = {start}
    for node in sorted(reached, key=_number):  # the inputs of a node come before it
        for edge in node.edges:
            if edge is not None and edge[0] in leading:
                leading.add(node)
                passed.add(node)
                break
    leading.add(start)
    return leading, passed


_number = operator.attrgetter("number")
