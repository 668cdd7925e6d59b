"""Backward through the graph: `backward`, `grad` (floor 2). It knows no op, only nodes, edges and sums.

Nodes wait on a heap ordered by creation number, the latest first. Creation order is a topological order, so when a
node comes off the heap all gradients of its outputs have arrived: no recursion, no counting of dependencies. Leaves
come last, or when hooks look on, as soon as they are complete (`graph.Watch`).
"""

from __future__ import annotations

import functools
import math
import operator
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from tinytorch import dtypes
from tinytorch._tensor import Tensor, wrap
from tinytorch.autograd import graph
from tinytorch.autograd.graph import (
    Edge,
    GradientEdge,
    Node,
    Start,
    Watch,
    in_use,
    leaf_edge,
    running,
)
from tinytorch.autograd.mode import dispatch_step, local

__all__ = ["backward", "grad"]

Place = Tensor | GradientEdge  # what stands for an edge of the graph
Places = Place | Sequence[Place]


def backward(
    tensors: Places,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Places | dict[str, Tensor] | None = None,
) -> None:
    """Add the gradient of the sum of `tensors` to `.grad` of the leaves that they were computed from.

    Args:
        tensors: what to differentiate; tensors, or edges (`autograd.graph.GradientEdge`).
        grad_tensors: per tensor a vector of the same shape for the vector-Jacobian product; may be None for
            tensors of one element.
        retain_graph: keep what the graph saved, so that backward can run again; by default as `create_graph`.
        create_graph: record the computation of the gradients, for derivatives of higher order.
        grad_variables: the old name of `grad_tensors`.
        inputs: the tensors to accumulate into, instead of all leaves; also edges, or a dict of tensors.

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
    targets = None if inputs is None else _targets(inputs, "backward")
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to "
            "avoid this. If you have to use this function, make sure to reset the .grad fields of your parameters "
            "to None after use to break the cycle and avoid the leak.",
            UserWarning,
            stacklevel=2,
        )
    start = _start(tensors, grad_tensors)
    edges = None
    if targets is not None:
        for target in targets:
            if isinstance(target, Tensor):
                target.retain_grad()  # so a non-leaf gets its gradient, as in PyTorch
        edges = [_edge(target) for target in targets]
    retain = create_graph if retain_graph is None else retain_graph
    walk(start, retain, create_graph, edges)


def grad(
    outputs: Places,
    inputs: Places | dict[str, Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """Return the gradients of the sum of `outputs` with respect to `inputs`; no `.grad` is touched.

    Args:
        outputs: what to differentiate; tensors, or edges (`autograd.graph.GradientEdge`).
        inputs: with respect to what; leaves or not, also edges, or a dict of tensors.
        grad_outputs: per output a vector of the same shape for the vector-Jacobian product; may be None for
            outputs of one element.
        retain_graph: keep what the graph saved, so that it can be walked again; by default as `create_graph`.
        create_graph: record the computation of the gradients, for derivatives of higher order.
        only_inputs: only True is supported, as in PyTorch.
        allow_unused: return None for an input that the outputs do not depend on, instead of an error.
        is_grads_batched: the first dimension of each vector counts vectors; so does that of the gradients. (The graph
            is walked once for each.)
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
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    retain = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        several = _rows(outputs, grad_outputs)
        unused_too = allow_unused or materialize_grads
        rows = [
            grad(
                outputs,
                inputs,
                row,
                retain or row is not several[-1],
                create_graph,
                True,
                unused_too,
            )
            for row in several
        ]
        stacked = [_stacked(each) for each in zip(*rows, strict=True)]
        if materialize_grads:
            targets = _targets(inputs, "grad")
            stacked = [
                wrap(np.zeros_like(target._array)) if g is None else g  # type: ignore[union-attr]
                for g, target in zip(stacked, targets, strict=True)
            ]
        return tuple(stacked)
    targets = _targets(inputs, "grad")
    start = _start(outputs, grad_outputs)
    for target in targets:
        if isinstance(target, Tensor) and not target.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    edges = [_edge(target) for target in targets]
    captured = walk(start, retain, create_graph, edges, capture=True)
    results: list[Tensor | None] = []
    for k, (target, edge) in enumerate(zip(targets, edges, strict=True)):
        found = captured.get(edge)
        if found is None and materialize_grads:
            if not isinstance(target, Tensor):
                raise RuntimeError(
                    "materialize_grads cannot be used when the given input is a GradientEdge"
                )
            found = wrap(np.zeros_like(target._array))
            found._requires_grad = create_graph
        elif found is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {k} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
        results.append(found)
    return dict(zip(inputs, results, strict=True)) if type(inputs) is dict else tuple(results)


def walk(
    start: Start,
    retain_graph: bool,
    create_graph: bool,
    targets: Sequence[Edge] | None = None,
    capture: bool = False,
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
    modes = state.modes
    step: Any
    # Whether the gradients' own derivatives may be wanted: then nothing is taken from a cache, or added in place.
    differentiable = create_graph or (
        modes is not None and any(mode.differentiates for mode in modes)
    )
    try:
        while heap:
            order = heappop(heap)
            node, g, _ = waiting.pop(order)
            if wanted and node in wanted:
                at_end = node not in passed
                if (
                    at_end and node.hooks is not None
                ):  # (else it is captured without: so does PyTorch)
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
                    if order not in waiting:
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
                    entry[2] = not differentiable
            if watch is not None:
                watch.serve(node, waiting, heap)
        return captured
    finally:
        state.grad = recording
        if watch is not None:
            running.watch = watch_before


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
            want not in (1, have)
            for want, have in zip(reversed(shape), reversed(given), strict=False)
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
            found[k] = _fitted(node, grads, g, *_shape_and_kind(edge))
    return found


def _shape_and_kind(edge: Edge) -> tuple[Any, Any]:
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


# What the walk itself holds -------------------------------------------------------------------------


class _Count:
    """Stands for a number of references, and takes the first that it is compared with."""

    found = -1

    def __eq__(self, count: object) -> bool:
        if isinstance(count, int):
            self.found = count
        return True

    __hash__ = None  # type: ignore[assignment]


class _Shared(Start):
    """Gives a leaf a new gradient; `saved` is how often to keep that and its array, and a list to keep them in."""

    __slots__ = ()

    def without_gradient(self, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradient."""
        others, others_of_array, kept = self.saved
        g: Tensor = wrap(np.zeros(1))
        kept += [g] * others + [g._array] * others_of_array
        return (g,)


def count_own_references() -> tuple[int, int]:
    """Return how many references to a gradient and to its array there are while only the walk holds them.

    Variables and arguments have references of their own, or borrow them, as it pleases Python (3.14 borrows most). So
    they are counted in walks whose gradients are held a known number of times: all have to fit. It is (-1, -1) where
    they do not, or there are more than there are variables (a debugger may keep copies of those), or another thread
    may be changing a count while it is read.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return -1, -1
    before = graph.own_references, graph.own_references_of_array
    found = set()
    try:
        for others, others_of_array in ((0, 0), (1, 0), (0, 1), (2, 3)):
            graph.own_references, graph.own_references_of_array = count, count_of_array = (
                _Count(),
                _Count(),
            )
            leaf: Tensor = wrap(np.zeros(1))
            leaf._requires_grad = True
            walk(_Shared((leaf_edge(leaf),), (others, others_of_array, [])), False, False)
            found.add((count.found - others, count_of_array.found - others_of_array))
    finally:
        graph.own_references, graph.own_references_of_array = before
    own, own_of_array = found.pop()
    # At most: the walk's variable, the arguments of two calls and of the function that counts; the tensor's slot, one
    # variable and that argument.
    clear = not found and 1 <= own <= 4 and 1 <= own_of_array <= 3
    return (own, own_of_array) if clear else (-1, -1)


graph.own_references, graph.own_references_of_array = count_own_references()


# Arguments ------------------------------------------------------------------------------------------


def _edge(place: Place) -> Edge:
    """Return the edge of a tensor that requires grad, or of a `GradientEdge`."""
    if isinstance(place, Tensor):
        return place._edge or leaf_edge(place)
    return getattr(place.node, "_graph_node", place.node), place.output_nr


def _targets(inputs: Any, caller: str) -> tuple[Place, ...]:
    """Return the argument `inputs` as a tuple."""
    if isinstance(inputs, (Tensor, GradientEdge)):
        return (inputs,)
    if isinstance(inputs, Mapping):
        if type(inputs) is not dict:
            raise TypeError(
                f"`inputs` argument to `{caller}()` must be a dict, not {type(inputs).__name__}. Other Mapping types "
                "are not supported."
            )
        inputs = inputs.values()
    several = tuple(inputs)
    if not several:
        raise RuntimeError(f"`inputs` argument to `{caller}()` cannot be empty.")
    for each in several:
        if not isinstance(each, (Tensor, GradientEdge)):
            raise RuntimeError(
                f"all inputs have to be Tensors or GradientEdges, but got {type(each).__name__}"
            )
    return several


def _start(outputs: Any, gradients: Any) -> Start:
    """Return the node to start from: the edges of the roots, and a gradient for each, given or ones."""
    roots = (outputs,) if isinstance(outputs, (Tensor, GradientEdge)) else tuple(outputs)
    if gradients is None:
        given: tuple[Any, ...] = (None,) * len(roots)
    else:
        given = (gradients,) if isinstance(gradients, Tensor) else tuple(gradients)
        if len(given) < len(roots):
            raise RuntimeError(f"got {len(roots)} tensors and {len(given)} gradients")
    found = [_root_gradient(k, *each) for k, each in enumerate(zip(roots, given, strict=False))]
    for k, root in enumerate(roots):
        if isinstance(root, Tensor) and not root.requires_grad:
            raise RuntimeError(
                f"element {k} of tensors does not require grad and does not have a grad_fn: nothing that it was "
                "computed from has requires_grad=True, or no_grad or detach() cut the graph. Call requires_grad_() "
                "on a leaf before the computation."
            )
    return Start(tuple([_edge(root) for root in roots]), found)


def _root_gradient(k: int, root: Place, g: Any) -> Tensor | None:
    """Return the gradient of the `k`-th root: the one given, checked, or ones for a tensor of one element."""
    if isinstance(root, GradientEdge):
        shape, kind = _shape_and_kind(_edge(root))
    elif isinstance(root, Tensor):
        shape, kind = root._array.shape, root._array.dtype
    else:
        raise AssertionError("Expected output to be a torch.Tensor")
    if g is None:
        if isinstance(root, Tensor) and not root.requires_grad:
            return None
        if math.prod(shape) != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs: this one has shape {list(shape)}. Reduce it "
                "first, by sum() or mean(), or give its gradient."
            )
        ones: Tensor = wrap(np.ones(shape, kind))
        return ones
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if g._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{k}] has a shape of {g.shape} and output[{k}] has a shape of "
            f"torch.Size({list(shape)})."
        )
    converted: Tensor = g if g._array.dtype == kind else g.to(dtypes.from_numpy_dtype(kind))
    return converted


def _rows(outputs: Any, gradients: Any) -> list[tuple[Tensor, ...]]:
    """Return the vectors of a batch, one for each output, row by row."""
    roots = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    batch = (gradients,) if gradients is None or isinstance(gradients, Tensor) else tuple(gradients)
    for k, (root, vectors) in enumerate(zip(roots, batch, strict=False)):
        if vectors is None or not vectors.ndim:
            raise ValueError(
                "is_grads_batched=True: expected each of grad_outputs to have a first dimension, which counts vectors, "
                f"but grad_output[{k}] is {'None' if vectors is None else 'a Tensor of dimensionality 0'}"
            )
        if vectors.shape[1:] != root.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{k}] has a shape of {vectors.shape} and output[{k}] "
                f"has a shape of {root.shape}."
            )
    sizes = [len(vectors) for vectors in batch]
    if len(set(sizes)) > 1:
        raise ValueError(
            "is_grads_batched=True: expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return list(zip(*[vectors.unbind(0) for vectors in batch], strict=True))


def _stacked(rows: Sequence[Tensor | None]) -> Tensor | None:
    """Return gradients as the rows of one tensor; None for those of an input that was not used."""
    first = rows[0]
    if first is None:
        return None
    whole: Tensor = wrap(np.empty_like(first._array, shape=(len(rows), *first.shape)))
    for k, row in enumerate(rows):
        whole[k] = row
    return whole
