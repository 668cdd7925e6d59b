"""Backward through the graph: `backward`, `grad` (floor 2). It knows no op, only nodes, edges and sums.

Nodes wait on a heap ordered by creation number, the latest first. Creation order is a topological order, so when a
node comes off the heap all gradients of its outputs have arrived: no recursion, no counting of dependencies.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from tinytorch import dtypes
from tinytorch._tensor import Tensor, wrap
from tinytorch.autograd.graph import Edge, Node, Start, keep, leaf_edge
from tinytorch.autograd.mode import local

__all__ = ["backward", "grad"]

Tensors = Tensor | Sequence[Tensor]


def backward(
    tensors: Tensors,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradient of the sum of `tensors` to `.grad` of the leaves that they were computed from.

    Args:
        tensors: what to differentiate.
        grad_tensors: per tensor a vector of the same shape for the vector-Jacobian product; may be None for
            tensors of one element.
        retain_graph: keep what the graph saved, so that backward can run again; by default as `create_graph`.
        create_graph: record the computation of the gradients, for derivatives of higher order.
        grad_variables: the old name of `grad_tensors`.
        inputs: the tensors to accumulate into, instead of all leaves.

    Raises:
        RuntimeError: a tensor does not require grad; a gradient is missing or of the wrong shape; the graph was
            freed by an earlier backward; a saved tensor was written to since.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> torch.autograd.backward([x * 2, x * 3], [torch.ones(2), torch.ones(2)])
        >>> x.grad
        tensor([5., 5.])
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    targets = None if inputs is None else _as_tuple(inputs, "inputs")
    if targets is not None and not targets:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to "
            "avoid this. If you have to use this function, make sure to reset the .grad fields of your parameters "
            "to None after use to break the cycle and avoid the leak.",
            UserWarning,
            stacklevel=2,
        )
    roots = _as_tuple(tensors, "tensors")
    gradients = _root_gradients(roots, _as_gradients(grad_tensors, len(roots)), create_graph)
    retain = create_graph if retain_graph is None else retain_graph
    if targets is None:
        walk(roots, gradients, retain, create_graph)
        return
    for k, target in enumerate(targets):
        if not target.requires_grad:
            raise RuntimeError(
                f"One of the differentiated Tensors does not require grad (input {k} of backward)"
            )
    edges = [target._edge or leaf_edge(target) for target in targets]
    captured = walk(roots, gradients, retain, create_graph, edges, into_leaves=True)
    for target, edge in zip(targets, edges, strict=True):
        if target._edge is not None and edge in captured:
            keep(target, captured[edge])


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the sum of `outputs` with respect to `inputs`; no `.grad` is touched.

    Args:
        outputs: what to differentiate.
        inputs: with respect to what; leaves or not.
        grad_outputs: per output a vector of the same shape for the vector-Jacobian product; may be None for
            outputs of one element.
        retain_graph: keep what the graph saved, so that it can be walked again; by default as `create_graph`.
        create_graph: record the computation of the gradients, for derivatives of higher order.
        only_inputs: only True is supported, as in PyTorch.
        allow_unused: return None for an input that the outputs do not depend on, instead of an error.
        is_grads_batched: left out (NotImplementedError).
        materialize_grads: return zeros rather than None for such inputs.

    Raises:
        RuntimeError: as `backward`, and when an input does not require grad or is not part of the graph.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> (dy,) = torch.autograd.grad(x ** 3, x, create_graph=True)
        >>> (d2y,) = torch.autograd.grad(dy, x)
        >>> dy.item(), d2y.item()
        (27.0, 18.0)
    """
    if is_grads_batched:
        raise NotImplementedError(
            "autograd.grad(is_grads_batched=True) needs vmap, which tinytorch does not have: call grad once for "
            "each row of grad_outputs with retain_graph=True, and stack the results."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: False."
        )
    roots = _as_tuple(outputs, "outputs")
    targets = _as_tuple(inputs, "inputs")
    gradients = _root_gradients(roots, _as_gradients(grad_outputs, len(roots)), create_graph)
    retain = create_graph if retain_graph is None else retain_graph
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    for target in targets:
        if not target.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    edges = [target._edge or leaf_edge(target) for target in targets]
    captured = walk(roots, gradients, retain, create_graph, edges)
    results: list[Tensor | None] = []
    for target, edge in zip(targets, edges, strict=True):
        found = captured.get(edge)
        if found is None:
            if materialize_grads:
                found = wrap(np.zeros_like(target._array))
            elif not allow_unused:
                raise RuntimeError(
                    "One of the differentiated Tensors appears to not have been used in the graph. Set "
                    "allow_unused=True if this is the desired behavior."
                )
        results.append(found)
    return tuple(results)


def walk(
    roots: Sequence[Tensor],
    gradients: Sequence[Tensor],
    retain_graph: bool,
    create_graph: bool,
    targets: Sequence[Edge] | None = None,
    into_leaves: bool = False,
) -> dict[Edge, Tensor]:
    """Run the graph backward from `roots`.

    Args:
        roots, gradients: the tensors to start from, and their gradients.
        retain_graph: keep what nodes saved.
        create_graph: record.
        targets: visit only what leads to these edges, and return their gradients.
        into_leaves: accumulate into leaves among the targets too, as without targets.

    Returns:
        The gradients that arrived at the targets.
    """
    start = Start(tuple([root._edge or leaf_edge(root) for root in roots]), gradients)
    wanted: dict[Node, list[Edge]] = {}
    needed: set[Node] | None = None
    if targets is not None:
        for edge in targets:
            wanted.setdefault(edge[0], []).append(edge)
        needed = _leading_to(start, wanted)
    captured: dict[Edge, Tensor] = {}
    # What waits, by minus the creation number: [node, gradient, whether that is a sum made here]; and the order.
    # (Keyed by number, not by node: numbers spread evenly over the table, addresses at times do not.)
    waiting: dict[int, list[Any]] = {-start.number: [start, None, False]}
    heap = [-start.number]
    state = local.state
    recording = state.grad
    state.grad = create_graph
    try:
        while heap:
            order = heappop(heap)
            node, g, _ = waiting.pop(order)
            is_end = order > 0  # an AccumulateGrad
            if is_end or node.hooks is not None:
                g = node.run_hooks_before(g)
            if needed is not None and node in wanted:
                for edge in wanted[node]:
                    value = g if node.outputs == 1 else g[edge[1]]
                    if value is not None:
                        captured[edge] = value
                if is_end and not into_leaves:
                    continue
                if not is_end and not any(
                    edge is not None and edge[0] in needed for edge in node.edges
                ):
                    continue
            grads = array = entry = (
                None  # a leaf takes over a gradient that nobody else holds: let go of the last ones
            )
            grads = node.backward(g, create_graph, needed)
            if not retain_graph:
                node.release()
            if node.hooks is not None and node.hooks.post:
                grads = node.run_hooks_after(grads, g)
            for edge, g in zip(node.edges, grads):  # noqa: B905  (a keyword costs time here)
                if g is None or edge is None:
                    continue
                target, number = edge
                if needed is not None and target not in needed:
                    continue
                array = g._array
                if array.dtype is not target.dtype or array.shape != target.shape:
                    if target.outputs == 1:
                        g = _fitted(node, g, target.shape, target.dtype)
                    else:  # its dtype is a tuple, so that the test above sends it here
                        g = _fitted(node, g, target.shape[number], target.dtype[number])
                        entry = waiting.get(-target.number)
                        if entry is None:
                            entry = waiting[-target.number] = [
                                target,
                                [None] * target.outputs,
                                False,
                            ]
                            heappush(heap, -target.number)
                        slots = entry[1]
                        slots[number] = g if slots[number] is None else slots[number] + g
                        continue
                order = -target.number
                entry = waiting.get(order)
                if entry is None:
                    waiting[order] = [target, g, False]
                    heappush(heap, order)
                elif entry[2]:
                    entry[1]._array += g._array
                else:
                    entry[1] = entry[1] + g
                    entry[2] = not create_graph
        return captured
    finally:
        state.grad = recording


def _fitted(node: Node, g: Tensor, shape: tuple[int, ...], kind: Any) -> Tensor:
    """Return `g` summed to the input's shape, where broadcasting made it larger, and in the input's dtype."""
    if g._array.shape != shape:
        if not node.accepts(g._array.shape, shape):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient - got {list(g._array.shape)} but expected "
                f"shape compatible with {list(shape)}"
            )
        g = g.sum_to_size(shape)
    if g._array.dtype != kind:
        g = g.to(dtypes.from_numpy_dtype(kind))
    return g


def _leading_to(start: Node, wanted: dict[Node, list[Edge]]) -> set[Node]:
    """Return the nodes below `start` from which one of `wanted` can be reached, these included."""
    reach: dict[Node, bool] = {}  # (a stack, no recursion: graphs are deep)
    stack = [start]
    while stack:
        node = stack[-1]
        if node in reach:
            stack.pop()
            continue
        children = [edge[0] for edge in node.edges if edge is not None]
        waiting = [child for child in children if child not in reach]
        if waiting:
            stack.extend(waiting)
        else:
            reach[node] = node in wanted or any(reach[child] for child in children)
            stack.pop()
    reach[start] = True
    return {node for node, reached in reach.items() if reached}


def _as_tuple(value: Any, name: str) -> tuple[Tensor, ...]:
    several = (value,) if isinstance(value, Tensor) else tuple(value)
    for each in several:
        if not isinstance(each, Tensor):
            raise TypeError(f"expected Tensor, got {type(each).__name__} in {name}")
    return several


def _as_gradients(value: Any, count: int) -> tuple[Tensor | None, ...]:
    if value is None:
        return (None,) * count
    several = (value,) if isinstance(value, Tensor) else tuple(value)
    if len(several) != count:
        raise RuntimeError(f"got {count} tensors and {len(several)} gradients")
    return several


def _root_gradients(
    roots: Sequence[Tensor], given: Sequence[Any], create_graph: bool
) -> list[Tensor]:
    """Return a gradient for each root: the one given, checked, or ones for a tensor of one element."""
    gradients = []
    for k, (root, g) in enumerate(zip(roots, given, strict=True)):
        if not root.requires_grad:
            raise RuntimeError(
                f"element {k} of tensors does not require grad and does not have a grad_fn: nothing that it was "
                "computed from has requires_grad=True, or no_grad or detach() cut the graph. Call requires_grad_() "
                "on a leaf before the computation."
            )
        if g is None:
            if root._array.size != 1:
                raise RuntimeError(
                    "grad can be implicitly created only for scalar outputs: this one has shape "
                    f"{list(root._array.shape)}. Reduce it first, by sum() or mean(), or give its gradient."
                )
            g = wrap(np.ones_like(root._array))
        elif not isinstance(g, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
        elif g._array.shape != root._array.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{k}] has a shape of {g.shape} and output[{k}] has a shape of "
                f"{root.shape}."
            )
        if g._array.dtype != root._array.dtype:
            g = g.to(root.dtype)
        gradients.append(g)
    return gradients
