"""The walk backward through the graph. It knows no op, only nodes, edges and sums.

Nodes wait on a heap ordered by creation number, the latest first. Creation order is a topological order, so when a
node comes off the heap all gradients of its outputs have arrived: no recursion, no counting of dependencies. Leaves
come last, or when hooks look on, as soon as they are complete (`graph.Watch`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from tinytorch.core.graph import Edge, Node, Start, Watch, in_use, leaf_edge, running
from tinytorch.core.mode import dispatch_step, local
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes


def walk(
    start: Start, retain_graph: bool, create_graph: bool, targets: Sequence[Edge] | None = None, capture: bool = False
) -> dict[Edge, Tensor]:
    """Run the graph backward.

    Args:
        start: where from.
        retain_graph: keep what nodes saved.
        create_graph: record.
        targets: visit only what leads to these edges.
        capture: return the gradients at the targets, and accumulate into no leaf.

    Returns:
        The gradients that arrived at the targets, if `capture`.
    """
    needed: set[Node] | None = None
    passed: set[Node] = set()
    if targets is not None:
        needed, passed = _leading_to(start, {edge[0] for edge in targets})
    wanted: dict[Node, list[Edge]] = {}  # by node, what is to be captured
    for edge in targets or () if capture else ():
        wanted.setdefault(edge[0], []).append(edge)
    captured: dict[Edge, Tensor] = {}
    # What waits, by minus the creation number: [node, gradient, whether that is a sum made here]; and the order.
    # (Keyed by number, not by node: numbers spread evenly over the table, addresses at times do not.)
    waiting: dict[int, list[Any]] = {-start.number: [start, None, False]}
    heap = [-start.number]
    push: Callable[[list[int], int], None] = heappush
    watch = watch_before = None
    if in_use:
        watch_before = running.watch
        watch = running.watch = Watch(start, needed, not capture)
        push = watch.push
    state = local.state
    recording = state.grad
    state.grad = create_graph
    callbacks_before = state.callbacks
    callbacks = state.callbacks = []
    modes = state.modes
    step: Any
    # Whether the gradients' own derivatives may be wanted: then nothing is taken from a cache, or added in place.
    differentiable = create_graph or (modes is not None and any(mode.differentiates for mode in modes))
    try:
        while heap:
            order = heappop(heap)
            node, g, _ = waiting.pop(order)
            if wanted and node in wanted:
                at_end = node not in passed
                if at_end and node.hooks is not None:  # (else it is captured without: so does PyTorch)
                    g = node.run_tensor_hooks(g)
                for edge in wanted[node] if g is not None else ():
                    captured[edge] = g if node.outputs == 1 else g[edge[1]]
                if at_end:
                    continue
            if node.hooks is not None:
                g = node.run_hooks_before(g)
            # A leaf takes over a gradient that nobody else holds: let go of the last ones.
            grads = array = entry = None
            if g is None:
                grads = node.without_gradient(differentiable, needed)
            elif modes is None:
                grads = node.backward(g, create_graph, needed)
            else:
                step = functools.partial(node.backward, g, differentiable, needed)
                grads = dispatch_step(node, step)
                step = None  # it holds `g`
            if not retain_graph:
                node.release()
            if node.hooks is not None and node.hooks.post:
                grads = node.run_hooks_after(_all_fitted(node, grads), g)
            for edge, g in zip(node.edges, grads):  # noqa: B905  (a keyword costs time here)
                if edge is None:
                    continue
                target, number = edge
                if needed is not None and target not in needed:
                    if node is start and target.hooks is not None and len(node.edges) == 1:
                        target.run_tensor_hooks(g if target.outputs == 1 else _alone(edge, g))
                    continue
                order = -target.number
                if g is None:  # the node is visited all the same: hooks and a `Function` notice
                    if order not in waiting and edge not in node.unreached:
                        waiting[order] = [target, None, False]
                        push(heap, order)
                    continue
                array = g._array
                if array.dtype is not target.dtype or array.shape != target.shape:
                    if target.outputs == 1:
                        g = _fitted(node, grads, g, target.shape, target.dtype)
                    else:  # its dtype is a tuple, so that the test above sends it here
                        g = _fitted(node, grads, g, target.shape[number], target.dtype[number])
                        entry = waiting.get(order)
                        if entry is None:
                            entry = waiting[order] = [target, None, False]
                            push(heap, order)
                        if entry[1] is None:
                            entry[1] = [None] * target.outputs
                        slots = entry[1]
                        slots[number] = g if slots[number] is None else slots[number] + g
                        continue
                entry = waiting.get(order)
                if entry is None:
                    waiting[order] = [target, g, False]
                    push(heap, order)
                elif entry[2]:
                    entry[1]._array += g._array
                elif entry[1] is None:
                    entry[1] = g
                else:
                    entry[1] = entry[1] + g
                    entry[2] = not differentiable and modes is None  # (modes see ops alone)
            if watch is not None:
                watch.serve(node, waiting, heap)
        for callback in callbacks:  # (one may add another)
            callback()
        return captured
    finally:
        state.grad, state.callbacks = recording, callbacks_before
        if watch is not None:
            running.watch = watch_before


def gradients(
    outputs: Sequence[Tensor], vectors: Sequence[Tensor], inputs: Sequence[Tensor], create_graph: bool
) -> Any:
    """Return the gradients of `outputs`, each times its vector, with respect to `inputs`; None for one without any."""
    start = Start(tuple([x._edge or leaf_edge(x) for x in outputs]), list(vectors))
    edges = [x._edge or leaf_edge(x) for x in inputs]
    found = walk(start, create_graph, create_graph, edges, capture=True)
    return tuple([found.get(edge) for edge in edges])


def _alone(edge: Edge, g: Tensor | None) -> list[Tensor | None]:
    """Return the gradients of a node's outputs, of which one has some."""
    grads: list[Tensor | None] = [None] * edge[0].outputs
    grads[edge[1]] = g
    return grads


def _fitted(node: Node, grads: Sequence[Any], g: Tensor, shape: Any, kind: Any) -> Tensor:
    """Return `g`, one of `grads`, summed to its input's shape where broadcasting made it larger, in the input's dtype.

    Raises:
        RuntimeError: it can not be the gradient of an input of that shape.
    """
    given = g._array.shape
    if given != shape:
        if len(shape) > len(given) or any(
            want not in (1, have) for want, have in zip(reversed(shape), reversed(given), strict=False)
        ):
            index = next(k for k, i in enumerate(node._inputs()) if grads[i] is g)
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {index} - got {list(given)} but "
                f"expected shape compatible with {list(shape)}"
            )
        g = g.sum_to_size(shape)
    if g._array.dtype != kind:
        g = g.to(dtypes.from_numpy_dtype(kind))
    return g


def _all_fitted(node: Node, grads: Sequence[Any]) -> list[Any]:
    """Return the gradients of a node's inputs as hooks see them."""
    found = list(grads)
    for k, (edge, g) in enumerate(zip(node.edges, grads, strict=True)):
        if edge is not None and g is not None:
            found[k] = _fitted(node, grads, g, *shape_and_kind(edge))
    return found


def shape_and_kind(edge: Edge) -> tuple[Any, Any]:
    """Return the shape and dtype (NumPy's terms) of the gradients that travel along an edge."""
    node, number = edge
    if node.outputs == 1:
        return node.shape, node.dtype
    return node.shape[number], node.dtype[number]


def _leading_to(start: Node, ends: set[Node]) -> tuple[set[Node], set[Node]]:
    """Return the nodes on the way to `ends`: all, and those that are passed, so not where a way ends."""
    found = {start}
    stack: list[Node] = [start]
    while stack:
        for edge in stack.pop().edges:
            if edge is not None and edge[0] not in found:
                found.add(edge[0])
                stack.append(edge[0])
    leading = ends & found
    passed = {start}
    for node in sorted(found, key=_number):  # what a node was made from comes before it
        for edge in node.edges:
            if edge is not None and edge[0] in leading:
                leading.add(node)
                passed.add(node)
                break
    leading.add(start)
    return leading, passed


_number = operator.attrgetter("number")
