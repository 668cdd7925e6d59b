"""`backward`, `grad`, and the members of Tensor that concern the graph."""

from __future__ import annotations

import math
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tinytorch.autograd.graph import GradientEdge
from tinytorch.autograd.hooks import RemovableHandle, add_hook, keep_tensor_hooks
from tinytorch.core import engine, graph
from tinytorch.core.engine import shape_and_kind, walk
from tinytorch.core.graph import Edge, Start, leaf_edge
from tinytorch.core.layout import strided
from tinytorch.core.mode import BatchLevel, Event, in_vmap, innermost, local, short, traced_as
from tinytorch.core.supplied import batches, batching, declare_members, sparse
from tinytorch.core.tensor import Tensor, constant, wrap
from tinytorch.core.view import USUAL, Nowhere, needs_grad, refresh
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, places
from tinytorch.kernels.dtypes import DIFFERENTIABLE
from tinytorch.kernels.meta import is_meta
from tinytorch.ops.arguments import check_tensor
from tinytorch.ops.overrides import ALL_DISABLED, quiet
from tinytorch.ops.overrides import state as overriding
from tinytorch.ops.register import public

__all__ = ["backward", "grad"]

Place = Tensor | GradientEdge  # either designates an edge of the graph
Places = Place | Sequence[Place]

#: Is called with the tensors of each `backward` (see `tinytorch.compiler.sweep`).
observer: Callable[[Any], None] | None = None


@traced_as("op")
def backward(
    tensors: Places,
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Places | dict[str, Tensor] | None = None,
) -> None:
    """Accumulate the gradient of the sum of `tensors` into `.grad` of the leaves that they were computed from.

    Args:
        tensors: the tensors to differentiate, or edges (`autograd.graph.GradientEdge`).
        grad_tensors: per tensor a vector of its shape for the vector-Jacobian product; None if it has one element.
        inputs: the tensors to accumulate into, instead of all leaves; also edges, or a dict of tensors.

    Raises:
        RuntimeError: a tensor does not require grad; a gradient is missing or of the wrong shape; the graph was
            freed by an earlier backward; a saved tensor was written to since.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> torch.autograd.backward([x * 2, x * 3], [torch.ones(2), torch.ones(2)])
        >>> x.grad
        tensor([5., 5.])
    """
    if grad_variables is not None:
        warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    targets = None if inputs is None else _targets(inputs, "backward")
    if create_graph:
        warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to "
            "avoid this. If you have to use this function, make sure to reset the .grad fields of your parameters "
            "to None after use to break the cycle and avoid the leak.",
            once=True,
        )
    start = _start(tensors, grad_tensors)
    if observer is not None:
        observer(tensors)
    edges = None
    if targets is not None:
        for target in targets:
            if isinstance(target, Tensor):
                target.retain_grad()  # so a non-leaf gets its gradient, as in PyTorch
        edges = [_edge(target) for target in targets]
    retain = create_graph if retain_graph is None else retain_graph
    walk(start, retain, create_graph, edges)


@traced_as("op")
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
    """Return the gradients of the sum of `outputs` with respect to `inputs`; no `.grad` is changed.

    Args:
        outputs: the tensors to differentiate, or edges (`autograd.graph.GradientEdge`).
        inputs: the tensors to differentiate by, leaves or not; also edges, or a dict of tensors.
        grad_outputs: per output a vector of its shape for the vector-Jacobian product; None for an output of one
            element.
        allow_unused: return None for an input that the outputs do not depend on, instead of an error.
        is_grads_batched: the first dimension of the vectors, and of the gradients, is a batch; one backward pass
            computes all of it.
        materialize_grads: return zeros rather than None for such inputs.

    Raises:
        RuntimeError: as `backward`, and when an input does not require grad or is not part of the graph.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> (dy,) = torch.autograd.grad(x ** 3, x, create_graph=True)
        >>> (d2y,) = torch.autograd.grad(dy, x)
        >>> dy.item(), d2y.item()
        (27.0, 18.0)
    """
    if not only_inputs:
        warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    retain = create_graph if retain_graph is None else retain_graph
    unused = allow_unused or materialize_grads
    rest = {"retain_graph": retain, "create_graph": create_graph, "allow_unused": unused}
    if is_grads_batched:
        size = _check_batch(outputs, grad_outputs)
        found = batches.gradients_of_batch(grad, size, outputs, inputs, grad_outputs, rest)
        if materialize_grads:
            targets = _targets(inputs, "grad")
            found = [
                constant(np.zeros_like(target._array)) if g is None else g  # type: ignore[union-attr]
                for g, target in zip(found, targets, strict=True)
            ]
        return tuple(found)
    if in_vmap():
        found = batching.batched_grad(grad, outputs, inputs, grad_outputs, materialize_grads, rest)
        if found is not NotImplemented:
            return found
    targets = _targets(inputs, "grad")
    start = _start(outputs, grad_outputs)
    for target in targets:
        if isinstance(target, Tensor) and not target.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    edges = [_edge(target) for target in targets]
    captured = walk(start, retain, create_graph, edges, capture=True)
    results: list[Tensor | None] = []
    for k, (target, edge) in enumerate(zip(targets, edges, strict=True)):
        g = captured.get(edge)
        if g is None and materialize_grads:
            if not isinstance(target, Tensor):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            g = constant(np.zeros_like(target._array))
            g._requires_grad = create_graph
        elif g is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {k} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
        as_gradient = None if g is None or type(target) is Tensor else getattr(target, "_as_gradient", None)
        if as_gradient is not None:
            g = as_gradient(g)  # (the engine sees the values of a sparse tensor)
        results.append(g)
    return dict(zip(inputs, results, strict=True)) if type(inputs) is dict else tuple(results)


# Arguments ------------------------------------------------------------------------------------------


def _edge(place: Place) -> Edge:
    """Return the edge of a tensor that requires grad, or of a `GradientEdge`."""
    if isinstance(place, Tensor):
        refresh(place)
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
    targets = tuple(inputs)
    if not targets:
        raise RuntimeError(f"`inputs` argument to `{caller}()` cannot be empty.")
    for place in targets:
        if not isinstance(place, (Tensor, GradientEdge)):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(place).__name__}")
    return targets


def _start(outputs: Any, gradients: Any) -> Start:
    """Return the node from which a walk starts: the edges of the roots, and their gradients (by default ones)."""
    roots = (outputs,) if isinstance(outputs, (Tensor, GradientEdge)) else tuple(outputs)
    if gradients is None:
        vectors: tuple[Any, ...] = (None,) * len(roots)
    else:
        vectors = (gradients,) if isinstance(gradients, Tensor) else tuple(gradients)
        if len(vectors) < len(roots):
            raise RuntimeError(f"got {len(roots)} tensors and {len(vectors)} gradients")
    root_gradients = [_root_gradient(k, *pair) for k, pair in enumerate(zip(roots, vectors, strict=False))]
    edges = []
    for k, root in enumerate(roots):
        edge = _edge(root) if isinstance(root, GradientEdge) or _is_recorded(root) else None
        if edge is None or (isinstance(edge[0], Nowhere) and edge[0].name() == "Nowhere"):
            raise RuntimeError(
                f"element {k} of tensors does not require grad and does not have a grad_fn: nothing that it was "
                "computed from has requires_grad=True, or no_grad or detach() cut the graph. Call requires_grad_() "
                "on a leaf before the computation."
            )
        edges.append(edge)
    return Start(tuple(edges), root_gradients)


def _is_recorded(x: Tensor) -> bool:
    """Return `x.requires_grad`, of which other classes have their own."""
    return _requires_grad(x) if type(x) is Tensor else x.requires_grad


def _root_gradient(k: int, root: Place, g: Any) -> Tensor | None:
    """Return the gradient of the `k`-th root: the argument `g`, checked; if None, ones for a tensor of one element."""
    if isinstance(root, GradientEdge):
        shape, kind = shape_and_kind(_edge(root))
    elif isinstance(root, Tensor):
        if root._receives is not None and root.layout is not strided:
            return sparse.sparse_root_gradient(root, g)
        shape, kind = root._array.shape, root._array.dtype
    else:
        raise AssertionError("Expected output to be a torch.Tensor")
    if g is None:
        if isinstance(root, Tensor) and not _is_recorded(root):
            return None
        if math.prod(shape) != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs: this one has shape {list(shape)}. Reduce it "
                "first, by sum() or mean(), or give its gradient."
            )
        if kind.kind == "c":
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {dtypes.from_numpy_dtype(kind)}"
            )
        return constant(np.ones_like(root._array) if isinstance(root, Tensor) else np.ones(shape, kind))
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if isinstance(root, Tensor) and g.is_meta is not root.is_meta:
        raise RuntimeError(f"invalid gradient at index {k} - expected device {root.device} but got {g.device}")
    if g._array.shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{k}] has a shape of {g.shape} and output[{k}] has a shape of "
            f"torch.Size({list(shape)})."
        )
    if g._array.dtype == kind:
        return g
    if "c" in (g._array.dtype.kind, kind.kind):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{k}] has a dtype of {g.dtype} and output[{k}] has a dtype of "
            f"{dtypes.from_numpy_dtype(kind)}."
        )
    return g.to(dtypes.from_numpy_dtype(kind))


def _check_batch(outputs: Any, gradients: Any) -> int:
    """Return the size of a batch of vectors, of which there is a tensor for each output."""
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
    return sizes[0]


# Members of Tensor ---------------------------------------------------------------------------------


def _current(self: Tensor) -> Tensor:
    """Return self with `_edge` up to date: a view gets a new edge if its memory was written to."""
    if self._view is not None:
        refresh(self)
    return self


@short("requires_grad")
def _requires_grad(self: Tensor) -> bool:
    """Whether operations on this tensor are recorded; can be set on leaves of floating point."""
    view = self._view
    if view is None:
        return self._requires_grad
    if view.kind == USUAL:  # (other views cannot follow a write; where their edge is needed they raise an error)
        refresh(self)
    return needs_grad(self)


def _set_requires_grad(self: Tensor, value: bool) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise RuntimeError("requires_grad must be a bool")
    if self._edge is not None:
        hint = (
            " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
            "var_no_grad = var.detach()."
        )
        raise RuntimeError(f"you can only change requires_grad flags of leaf variables.{'' if value else hint}")
    if value and self._array.dtype.kind not in DIFFERENTIABLE:
        raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
    if value and self._cell is None and not local.state.inference:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    self._requires_grad = bool(value)
    view = self._view
    if view is not None:
        if value and not view.own:
            self._accumulator = None  # from now on its gradient is accumulated
        view.own = bool(value)


@traced_as("refused")
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set `requires_grad` in place and return the tensor.

    Example:
        >>> torch.zeros(2).requires_grad_()
        tensor([0., 0.], requires_grad=True)
    """
    _check_outside_of_transforms("requires_grad_() (or perhaps using torch.autograd.functional.* APIs)")
    if requires_grad and self._array.dtype.kind not in DIFFERENTIABLE:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    if self._edge is None or not requires_grad:
        self.requires_grad = requires_grad
    return self


def _check_outside_of_transforms(name: str) -> None:
    """Raise PyTorch's error if a transform of `torch.func` runs."""
    state = local.state
    if state.run is not None or any([isinstance(each, BatchLevel) and each.transforms for each in state.modes or ()]):
        raise RuntimeError(
            f"You are attempting to call Tensor.{name} inside of a function being transformed by a functorch "
            "transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, "
            f"jacfwd, hessian) or call {name.split(' ')[0]} outside of a function being transformed instead."
        )


def _is_leaf(self: Tensor) -> bool:
    """Whether this tensor is not the result of a recorded operation (a tensor that does not require grad is a leaf)."""
    return self._current()._edge is None


def _grad_fn(self: Tensor) -> graph.Node | None:
    """The node of the operation that computed this tensor, or None for a leaf."""
    edge = self._current()._edge
    return None if edge is None else edge[0].shown()


def _output_nr(self: Tensor) -> int:
    """Which output of `grad_fn` this is."""
    return 0 if self._edge is None else self._edge[1]


@short("grad")
def _grad(self: Tensor) -> Tensor | None:
    """The gradient that `backward` has accumulated, of the same shape; None before the first backward."""
    g = self._grad
    if g is None and self._edge is not None and not self.retains_grad:
        warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
            "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
            "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make "
            "sure you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more informations."
        )
    return g


@short("set_grad")
def _set_grad(self: Tensor, g: Tensor | None) -> None:
    if g is not None:
        if not isinstance(g, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(g).__name__}")
        if g is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if g.dtype is not self.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{g.dtype}' to a tensor with dtype '{self.dtype}'. "
                "Please ensure that the gradient and the tensor have the same dtype"
            )
        if g.is_meta is not self.is_meta:
            raise RuntimeError(
                f"attempting to assign a gradient with device type '{g.device}' to a tensor with device type "
                f"'{self.device}'. Please ensure that the gradient and the tensor are on the same device"
            )
        if g.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(g.shape)}' to a tensor of size "
                f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size"
            )
    self._grad = g


def _delete_grad(self: Tensor) -> None:
    self._grad = None


def _retains_grad(self: Tensor) -> bool:
    """Whether this non-leaf keeps its `.grad` (`retain_grad` was called)."""
    if self._edge is None:
        return False
    node, number = self._edge
    return node.hooks is not None and number in node.hooks.retain


@traced_as("refused")
def retain_grad(self: Tensor) -> None:
    """Let `backward` keep the `.grad` of this non-leaf; leaves keep theirs anyway.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = x * 3
        >>> y.retain_grad()
        >>> y.sum().backward()
        >>> y.grad
        tensor([1., 1.])
    """
    if not needs_grad(self):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    _check_outside_of_transforms("retain_grad()")
    if self._edge is not None:
        node, number = self._current()._edge  # type: ignore[misc]
        node._own_hooks().retain[number] = weakref.ref(self)


@traced_as("refused")
def register_hook(self: Tensor, hook: Any) -> RemovableHandle:
    """Run `hook(grad)` whenever this tensor's gradient is computed; its result, unless None, replaces the gradient.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda g: g * 2)
        >>> x.sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    hooks, number = self._place_of_hooks()
    return add_hook(hooks.tensor.setdefault(number, OrderedDict()), hook)


@traced_as("refused")
def register_post_accumulate_grad_hook(self: Tensor, hook: Any) -> RemovableHandle:
    """Run `hook(tensor)` after `backward` has brought `.grad` of this leaf up to date.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda p: print("grad of", p.shape))
        >>> x.sum().backward()
        grad of torch.Size([2])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if not self.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return add_hook(self._place_of_hooks()[0].accumulated, hook)


def _place_of_hooks(self: Tensor) -> tuple[graph.Hooks, int]:
    edge = self._current()._edge
    if edge is not None:
        return edge[0]._own_hooks(), edge[1]
    return graph.hooks_of_leaf(self), 0


def _version(self: Tensor) -> int:
    """How many times the tensor's memory was written to in place."""
    if self._cell is None:
        raise RuntimeError("Inference tensors do not track version counter.")
    return self._cell[0]


def _base(self: Tensor) -> Tensor | None:
    return None if self._view is None else self._view.base


def _is_view(self: Tensor) -> bool:
    return self._view is not None


def _view_func(
    self: Tensor, new_base: Tensor, symint_visitor_fn: Any = None, tensor_visitor_fn: Any = None
) -> Tensor | None:
    """Return the same view of another tensor; None if this is no view, or the tensor does not lie as its base does."""
    check_tensor(new_base, "_view_func", "new_base")
    view = self._view
    if view is None or new_base.is_conj() or new_base.is_neg() or _lying(new_base) != _lying(view.base):
        return None
    kind, given = view.base._array.dtype, new_base._array.dtype
    if view.array.dtype != kind and (kind.kind == "c") is not (given.kind == "c"):
        needed = "view_as_complex is only supported for half, float and double"
        raise RuntimeError(f"{'view_as_real is only supported for complex' if kind.kind == 'c' else needed} tensors")
    return view.replay(new_base)


def _lying(x: Tensor) -> Any:
    """Return all about where a tensor's elements lie in its storage, and how many elements that has."""
    return x.shape, x.stride(), x.storage_offset(), places.storage(x._array).nbytes // x.element_size()


@public(method=True)
def is_inference(input: Tensor) -> bool:
    """Return whether this tensor was created in `inference_mode` (and so can never be part of a graph)."""
    return input._cell is None


@short("detach")
def detach(self: Tensor) -> Tensor:
    """Return a tensor that shares this one's memory and does not require grad.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> x.detach()
        tensor([1., 1.])
    """
    alias = _data(self) if type(self) is Tensor else self.data
    alias._cell = self._cell
    return alias


@traced_as("refused")
def detach_(self: Tensor) -> Tensor:
    """Remove this tensor from the graph: it becomes a leaf that does not require grad.

    Raises:
        RuntimeError: the tensor is a view, as all are inside of `vmap`, unless a `grad` runs there.
    """
    state = local.state
    if state.inference:
        return self  # as in PyTorch
    if state.run is not None:
        state.run.check(self)
    target = innermost(self)
    if target._view is not None or (in_vmap() and target is not self and state.run is None):
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) "
            "for training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and "
            "hence detach_() cannot be called on these gradients. To fix this error, please refer to the "
            "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
        )
    if target._edge is not None:
        keep_tensor_hooks(target, *target._edge)
    target._edge, target._requires_grad = None, False
    for mode in local.state.modes or ():
        mode.event(Event.FORGOTTEN, x=self)
    return self


def _data(self: Tensor) -> Tensor:
    """A tensor that shares this one's memory but not its version counter; an assignment replaces the memory.

    Prefer `detach()`: writes through it that would make gradients wrong raise an error.
    """
    # Tangents belong to arrays: while modes are on, the new tensor gets an array object of its own.
    array, modes = self._array, local.state.modes
    alias: Tensor = wrap(array if modes is None else array.view())
    cell = self._cell
    if cell is None:
        alias._cell = None
    else:
        alias._cell = [0, cell[1]]
        # How often there was an alias comes last: `torch.compile` keeps what it has computed of a weight only while
        # nobody can have written to it.
        cell[2:] = [cell[2] + 1 if len(cell) > 2 else 1]
    for mode in modes or ():
        mode.event(Event.DETACHED, x=self, alias=alias)
    return alias


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if self._requires_grad and value._array.dtype.kind not in DIFFERENTIABLE:
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
    if is_meta(value._array) is not is_meta(self._array):
        raise RuntimeError(
            "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
        )
    self._array = value._array


def _delete_data(self: Tensor) -> None:
    raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate the gradient of this tensor into `.grad` of the leaves that it was computed from.

    Args:
        gradient: a vector of this tensor's shape for the vector-Jacobian product; None for a tensor of one element.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x ** 2).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """
    before, overriding.asks = overriding.asks, ALL_DISABLED  # (as `quiet`)
    try:
        backward(self, gradient, retain_graph, create_graph, inputs=inputs)
    finally:
        overriding.asks = before


_walk_quietly = (*map(quiet, engine.HELPERS[:3]), *engine.HELPERS[3:])

declare_members(
    {
        "backward": short("backward", globals(), _walk_quietly)(_backward),
        "_current": _current,
        "requires_grad": property(_requires_grad, _set_requires_grad),
        "requires_grad_": requires_grad_,
        "is_leaf": property(_is_leaf),
        "grad_fn": property(_grad_fn),
        "output_nr": property(_output_nr),
        "grad": property(_grad, _set_grad, _delete_grad),
        "retains_grad": property(_retains_grad),
        "retain_grad": retain_grad,
        "register_hook": register_hook,
        "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
        "_place_of_hooks": _place_of_hooks,
        "_version": property(_version),
        "_base": property(_base),
        "_is_view": _is_view,
        "_view_func": _view_func,
        "detach": detach,
        "detach_": detach_,
        "data": property(_data, _set_data, _delete_data),
    }
)

# A `__torch_function__` may override these two, but not the operations of a backward pass.
public("autograd.backward")(quiet(backward))
public("autograd.grad")(quiet(grad))
