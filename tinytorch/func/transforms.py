"""The transforms: `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `linearize` (`vmap` is in `batches.py`).

Forward transforms are levels of forward mode (`autograd/forward_ad.py`). Reverse transforms share one graph: each run
of a function gets new leaves on the memory of its inputs, whose node, `_Input`, has the edges of the original inputs.
So a gradient with respect to these leaves stops there, levels of nesting cannot be confused, and the results of the run
are part of the surrounding graph. Results that depend on nothing tracked in the surroundings are detached.
Source: PyTorch's `torch.func` (functorch).
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tinytorch.autograd import api as engine
from tinytorch.autograd.batches import forward_jacobian, reverse_jacobian, tangent_of
from tinytorch.autograd.forward_ad import Level, _DualLevel
from tinytorch.autograd.grad_mode import enable_grad
from tinytorch.core import mode
from tinytorch.core.graph import AccumulateGrad, Edge, Hooks, Node, enter, leaf_edge, numbers
from tinytorch.core.mode import DispatchMode, local
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.func.pytree import LEAF, TreeSpec, describe, flatten, tree_map, unflatten
from tinytorch.kernels.dtypes import DIFFERENTIABLE
from tinytorch.ops.batching import Batch, at_levels, levels, plain
from tinytorch.ops.bits import through_bits
from tinytorch.ops.create import zeros_like

Argnums = int | tuple[int, ...]
Function = Callable[..., Any]
Leaves = Callable[[Any, str], tuple[list[Tensor], TreeSpec]]


@contextmanager
def _no_inference_mode() -> Iterator[None]:
    """Switch inference mode off, so that transforms work inside of it too (a context manager and a decorator)."""
    state = local.state
    if not state.inference:
        yield
        return
    state.grad, state.inference = state.asked, False
    try:
        yield
    finally:
        state.grad, state.inference = False, True


# Reverse mode: one run of a function --------------------------------------------------------------


class _Input(Node):
    """The node of a run's input: an identity, whose own input is the original input of the run."""

    __slots__ = ("phase",)

    def __init__(self, phase: mode.Run, array: Any, edge: Edge | None) -> None:
        enter(self, (edge,), array.shape, array.dtype)
        self.phase, self.hooks = phase, Hooks()

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradient unchanged."""
        if needed is None and self.phase.active:
            raise RuntimeError(
                "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
                "functorch.vjp instead or call backward() outside of functorch transforms."
            )
        return (g,)


class _Run:
    """One run of a function that is differentiated in reverse mode.

    Attributes:
        start: a creation number; the nodes of the run have greater ones.
        phase: whether the function is still running; nodes refer to this rather than to the run, which refers to them.
        recording: whether the surroundings record; if not, the run is not connected to them.
        inputs: by id of a leaf of the run, this leaf, the original input, and the leaf's node.
    """

    def __init__(self) -> None:
        self.start = next(numbers)
        self.phase = mode.Run()
        self.recording = local.state.grad
        for each in local.state.modes or ():
            if isinstance(each, Batch) and each.tracked is None:
                each.tracked = self.start
        self.inputs: dict[int, tuple[Tensor, Tensor, Node | None]] = {}

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Switch recording on: the result of a transform does not depend on `no_grad` around it."""
        with _no_inference_mode(), enable_grad():
            yield

    def enter(self, x: Any) -> Tensor:
        """Return a new leaf on the memory of `x`, which replaces it in the run."""
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        edge = None
        if self.recording and x.requires_grad:
            edge = x._edge or leaf_edge(x)
        self.phase.take(x)
        inner = _without_graph(mode.without_bits(x))
        leaf = plain(inner)  # (of a batched tensor the one under it, in whose graph it is)
        leaf._cell = [0, mode.runs.begun] if x._cell is None else x._cell
        if leaf._array.dtype.kind not in DIFFERENTIABLE:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        leaf.requires_grad = True
        node = _Input(self.phase, leaf._array, edge)
        leaf._accumulator, leaf._hooks = weakref.ref(node), node.hooks
        self.inputs[id(inner)] = (inner, x, node)
        return inner

    def share(self, x: Any) -> Any:
        """Return the object that replaces an argument which is not differentiated: of a tensor, one on its memory.

        The function may write to that tensor in place, with values that depend on differentiated arguments.
        """
        if not isinstance(x, Tensor) or x.requires_grad:
            return x
        self.phase.take(x)
        inner = _without_graph(x)
        self.inputs[id(inner)] = (inner, x, None)
        return inner

    def inner(self, args: tuple[Any, ...], positions: Sequence[int]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the arguments of the run, and those of them at `positions`, which are differentiated."""
        inner = tuple([tree_map(self.enter if k in positions else self.share, arg) for k, arg in enumerate(args)])
        return inner, tuple([inner[k] for k in positions])

    def gradients(
        self,
        outs: Sequence[Tensor],
        xs: Sequence[Tensor],
        weights: Sequence[Tensor | None],
        create_graph: bool,
        retain_graph: bool = True,
    ) -> list[Tensor]:
        """Return the gradients of the weighted sum of `outs`; zeros for inputs that no output depends on."""
        pairs = [pair for pair in zip(outs, weights, strict=True) if pair[0].requires_grad]
        if not pairs or not xs:
            return [zeros_like(x) for x in xs]
        starts, vectors = zip(*pairs, strict=True)
        grads = engine.grad(starts, xs, vectors, retain_graph, create_graph, allow_unused=True)
        return [zeros_like(x) if g is None else g for g, x in zip(grads, xs, strict=True)]

    def is_connected(self, tensors: Sequence[Any], known: _Surroundings | None = None) -> bool:
        """Return whether the surroundings may differentiate gradients that depend on these tensors."""
        if not self.recording:
            return False
        surroundings = known or _Surroundings()

        def tracked(x: Any, levels: list[Level]) -> bool:
            return isinstance(x, Tensor) and (
                surroundings.track(x) or any(tracked(level.tangent(x), levels[:k]) for k, level in enumerate(levels))
            )

        return any(tracked(tensor, _levels()) for tensor in tensors)

    def leave(self, tree: Any, known: _Surroundings | None = None) -> Any:
        """Return the results of the run for its caller: detached unless they depend on tracked surroundings.

        Raises:
            RuntimeError: a leaf of the tree is no Tensor.
        """
        surroundings = (known or _Surroundings()) if self.recording else None
        return tree_map(lambda x: self._detached_result(x, surroundings, _levels()), tree)

    def _detached_result(self, x: Any, surroundings: _Surroundings | None, levels: list[Level]) -> Tensor:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
        if id(x) in self.inputs and x.is_leaf:
            return self.inputs[id(x)][1]
        tangents = [level.tangent(x) for level in levels]
        ours = x.requires_grad and x._edge is not None and x._edge[0].number > self.start
        out = _without_graph(x) if ours and (surroundings is None or not surroundings.track(x)) else x
        for k, (level, tangent) in enumerate(zip(levels, tangents, strict=True)):
            if tangent is not None:  # a tangent, too, may depend on the run's inputs
                detached_tangent = self._detached_result(tangent, surroundings, levels[:k])
                if detached_tangent is not tangent:
                    out = level.dual(out, detached_tangent)
        return out


class _Surroundings:
    """The tracked tensors around a run: leaves (unless `leaves` is False), and the inputs of active runs."""

    def __init__(self, leaves: bool = True) -> None:
        self._known: dict[Node, bool] = {}
        self._leaves = leaves

    def track(self, x: Tensor) -> bool:
        """Return whether `x` depends on a tracked tensor."""
        if not x.requires_grad:
            return False
        root = (x._edge or leaf_edge(x))[0]
        known, new, stack = self._known, [], [root]
        while stack:
            node = stack.pop()
            if node in known:
                continue
            known[node] = (self._leaves and isinstance(node, AccumulateGrad)) or (
                isinstance(node, _Input) and node.phase.active
            )
            if not known[node]:
                new.append(node)
                stack += [edge[0] for edge in node.edges if edge is not None]
        for node in sorted(new, key=lambda node: node.number):  # in topological order
            known[node] = any(known[edge[0]] for edge in node.edges if edge is not None)
        return known[root]


def _levels() -> list[Level]:
    """Return the active levels of forward mode, the outermost first."""
    return [mode for mode in local.state.modes or () if isinstance(mode, Level)]


def _without_graph(x: Tensor) -> Tensor:
    """Return a tensor on the same memory, with the same tangents, that does not require grad."""
    if mode.is_lazy(x):
        made: Tensor = through_bits(_without_graph, x)
        return made
    if batches := levels(x):
        return at_levels(_without_graph(plain(x)), batches)
    for level in _levels():
        level.tangent(x)  # so that the level computes the tangent of a view from that of its base
    array = x._array
    tensor: Tensor = wrap(array)
    tensor._cell = x._cell
    return tensor


# Arguments ----------------------------------------------------------------------------------------


def _positions(args: tuple[Any, ...], argnums: Any) -> tuple[int, ...]:
    """Return the positions in `args` that `argnums` selects, none of them negative."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    positions = []
    for number in numbers:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
        positions.append(number % len(args))
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(positions)}")
    return tuple(positions)


def _output_and_aux(result: Any, has_aux: bool, caller: str) -> tuple[Any, Any]:
    """Return the result of a function as (output, aux)."""
    if not has_aux:
        return result, ()
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{caller}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def _tensor_leaves(output: Any, caller: str) -> tuple[list[Tensor], TreeSpec]:
    """Return the leaves of an output and its structure, having checked that they are tensors."""
    leaves, structure = flatten(output)
    if not leaves or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(f"{caller}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{caller}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return leaves, structure


def _floating_leaves(output: Any, caller: str) -> tuple[list[Tensor], TreeSpec]:
    """Return what `_tensor_leaves` does, having checked that the dtypes are differentiable."""
    leaves, structure = _tensor_leaves(output, caller)
    for out in leaves:
        if not (out.is_floating_point() or out.is_complex()):
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with "
                f"dtype {out.dtype}"
            )
    return leaves, structure


# Gradients ----------------------------------------------------------------------------------------


def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """Return the function that computes the gradient of a scalar function.

    It nests: `grad(grad(f))` is the second derivative. `no_grad` has its effect inside `func`, but not around the call.
    The result requires grad only if it depends on a tensor outside that requires grad.

    It has the structure of the argument at `argnums`; for a tuple of positions it is a tuple. With `has_aux`, `func`
    returns `(output, aux)`, and the result is `(gradient, aux)`. A RuntimeError is raised where `func` does not return
    a 0-d Tensor, or `argnums` does not fit; a ValueError for an argument that is no tensor.

    Example:
        >>> from tinytorch.func import grad
        >>> x = torch.tensor(2.0)
        >>> grad(lambda x: x ** 3)(x), grad(grad(lambda x: x ** 3))(x)
        (tensor(12.), tensor(12.))
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """Return the function that computes the gradient and the value of a scalar function.

    It returns `(gradient, value)`; with `has_aux`, `(gradient, (value, aux))`. Arguments and errors are those of
    `grad`.

    Example:
        >>> torch.func.grad_and_value(lambda x: x ** 3)(torch.tensor(2.0))
        (tensor(12.), tensor(8.))
    """

    @functools.wraps(func)
    def gradient_and_value(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        run = _Pullback(func, args, _positions(args, argnums), has_aux, "grad_and_value(f)(*args)", _scalar, kwargs)
        # (Tensors in `aux` may still need the saved tensors of the graph.)
        gradients = run.vjp(None, run.connected or has_aux, run.connected)
        value = (run.output, run.aux) if has_aux else run.output
        return gradients[0] if isinstance(argnums, int) else gradients, value

    return gradient_and_value


def _scalar(output: Any, caller: str) -> tuple[list[Tensor], TreeSpec]:
    """Return an output as the only leaf, having checked that it is a number."""
    if not isinstance(output, Tensor):
        raise RuntimeError(f"{caller}: Expected f(*args) to return a Tensor, got {type(output)}")
    if output.dim() != 0:
        raise RuntimeError(
            f"{caller}: Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe "
            "you wanted to use the vjp or jacrev APIs instead?"
        )
    return [output], LEAF


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return `func(*primals)`, and the function that computes vector-Jacobian products there.

    The result is `(output, vjp_fn)`; with `has_aux`, `func` returns `(output, aux)`, and `aux` comes third.
    `vjp_fn(cotangents)`, for cotangents of the structure of the output, returns a tuple with a gradient for each of
    `primals`; it may be called many times. A RuntimeError is raised for outputs that are no tensors of floating point,
    and for cotangents of another structure; a ValueError for an argument that is no tensor.

    Example:
        >>> output, vjp_fn = torch.func.vjp(lambda x: x ** 2, torch.tensor([1.0, 2.0]))
        >>> vjp_fn(torch.tensor([1.0, 10.0]))
        (tensor([ 2., 40.]),)
    """
    pullback = _Pullback(func, primals, tuple(range(len(primals))), has_aux)
    return (pullback.output, pullback.vjp, pullback.aux) if has_aux else (pullback.output, pullback.vjp)


class _Pullback:
    """The result of a run of a function, with the graph from which its gradients are computed.

    Attributes:
        output, aux: the results for the caller.
        outs: the leaves of the output in the graph of the run.
        xs, structure: the leaves of the differentiated arguments, and the structure of the tuple of these arguments.
    """

    def __init__(
        self, func: Function, args: tuple[Any, ...], positions: tuple[int, ...], has_aux: bool,
        name: str = "vjp(f, *primals)", leaves_of: Leaves | None = None, kwargs: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.run = run = _Run()
        with run():
            inner, differentiated = run.inner(args, positions)
            with run.phase.running():
                result = func(*inner, **tree_map(run.share, kwargs or {}))
            output, aux = _output_and_aux(result, has_aux, name)
            self.outs, self.output_structure = (leaves_of or _floating_leaves)(output, name)
            self.xs, self.structure = flatten(differentiated)
            surroundings = _Surroundings()
            self.connected = run.is_connected(self.outs, surroundings)
            self.output, self.aux = run.leave((output, aux), surroundings)

    @_no_inference_mode()
    def vjp(self, cotangents: Any, retain_graph: bool = True, create_graph: Any = None) -> Any:
        """Return the vector-Jacobian product of `cotangents`, which have the structure of the output."""
        weights, structure = flatten(cotangents)
        if structure != self.output_structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {describe(structure)}, primal output: {describe(self.output_structure)}"
            )
        if create_graph is None:
            create_graph = local.state.grad and (self.connected or self.run.is_connected(weights))
        gradients = self.run.gradients(self.outs, self.xs, weights, create_graph, retain_graph)
        return self.run.leave(unflatten(gradients, self.structure))

    def rows(self, _: int, out: Tensor, units: Tensor) -> list[Tensor]:
        """Return rows of the Jacobian: the gradients of elements of an output, in the graph of the run."""
        connected = self.connected and local.state.grad
        return self.run.gradients([out], self.xs, [units], connected)


def jacrev(
    func: Function,
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:
    """Return the function that computes the Jacobian of a function by reverse mode.

    One backward pass computes all rows of it. For more outputs than inputs `jacfwd` is faster.

    The result has the structure of the output, in which each leaf is replaced by the structure of the argument (a tuple
    of them for a tuple of `argnums`), whose leaves have the shape `output.shape + input.shape`. A backward pass
    computes `chunk_size` rows at most. Other arguments and errors are those of `grad` and `vjp`.

    Example:
        >>> torch.func.jacrev(torch.sin)(torch.zeros(2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    @_no_inference_mode()
    def jacobian(*args: Any) -> Any:
        positions = _positions(args, argnums)
        _check_real("jacrev", "inputs", flatten(tuple([args[k] for k in positions]))[0])
        pullback = _Pullback(func, args, positions, has_aux)
        _check_real("jacrev", "outputs", pullback.outs)
        blocks = reverse_jacobian(pullback.rows, pullback.outs, pullback.xs, chunk_size)
        result_blocks = pullback.run.leave(blocks)
        result = _jacobian_tree(result_blocks, pullback.output_structure, pullback.structure, argnums)
        return (result, pullback.aux) if has_aux else result

    return jacobian


def _check_real(name: str, what: str, tensors: Sequence[Any]) -> None:
    """Raise PyTorch's error if a tensor is complex: its Jacobians are of real functions."""
    for k, each in enumerate(tensors):
        if isinstance(each, Tensor) and each.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened {what[:-1]} idx: {k}"
            )


def _jacobian_tree(blocks: Sequence[Sequence[Tensor]], outputs: TreeSpec, inputs: TreeSpec, argnums: Any) -> Any:
    """Return the blocks `[i][j]` of a Jacobian as a tree: the structure of the inputs in that of the outputs."""
    parts = [unflatten(row, inputs) for row in blocks]
    return unflatten([part[0] for part in parts] if isinstance(argnums, int) else parts, outputs)


# Forward mode -------------------------------------------------------------------------------------

_JVP = "jvp(f, primals, tangents)"


@_no_inference_mode()
def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> tuple[Any, ...]:
    """Return `func(*primals)` and the Jacobian-vector product with `tangents`, by forward mode.

    `primals` is the tuple of the arguments, and `tangents` has their structure and shapes. The result is `(output,
    tangent of the output)`; with `has_aux`, `aux` comes third. With `strict`, an output that does not depend on the
    inputs is an error, instead of zeros. A RuntimeError is raised where the structures differ, or `func` does not
    return tensors.

    Example:
        >>> x, y = torch.tensor(2.0), torch.tensor(3.0)
        >>> torch.func.jvp(torch.mul, (x, y), (torch.tensor(1.0), torch.tensor(0.0)))
        (tensor(6.), tensor(3.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    xs, structure = flatten(primals)
    vs, structure_of_vs = flatten(tangents)
    if structure != structure_of_vs:
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {describe(structure)} and tangents "
            f"with structure {describe(structure_of_vs)}"
        )
    for name, leaves in (("primals", xs), ("tangents", vs)):
        if not leaves:
            raise RuntimeError(f"{_JVP}: Expected {name} to contain at least one Tensor.")
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(f"{_JVP}: Expected {name} to only contain Tensors, got {type(leaf)}")
    if any(isinstance(level, _DualLevel) for level in _levels()):
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    with Level() as level:
        duals = [level.dual(x, v) for x, v in zip(xs, vs, strict=True)]
        with mode.Run(*duals).running():
            result = func(*unflatten(duals, structure))
        output, aux = _output_and_aux(result, has_aux, _JVP)
        outs, structure = _tensor_leaves(output, _JVP)
        if strict and any(level.tangent(out) is None for out in outs):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed with strict=True."
            )
        both = (
            unflatten([level.unpack(out).primal for out in outs], structure),
            unflatten([tangent_of(level, out) for out in outs], structure),
        )
        return (*both, _primals(level, aux)) if has_aux else both


def _primals(level: Level, tree: Any) -> Any:
    def primal(x: Any) -> Tensor:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")
        return level.unpack(x).primal

    return tree_map(primal, tree)


def jacfwd(
    func: Function, argnums: Argnums | None = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Function:
    """Return the function that computes the Jacobian of a function by forward mode.

    One call of `func` per input computes all columns of it. For more inputs than outputs `jacrev` is faster.

    Arguments and result are those of `jacrev`, but `argnums` may be None, for all arguments, and `randomness` is that
    of `vmap`: whether random numbers are the same for all columns. An argument that is not of floating point is a
    ValueError.

    Example:
        >>> torch.func.jacfwd(torch.sin)(torch.zeros(2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    @functools.wraps(func)
    @_no_inference_mode()
    def jacobian(*args: Any) -> Any:
        positions = tuple(range(len(args))) if argnums is None else _positions(args, argnums)
        xs, inputs = flatten(tuple([args[k] for k in positions]))
        _check_real("jacfwd", "inputs", xs)
        outputs = LEAF
        auxes: list[Any] = []

        def flat_func(level: Level | None, *duals: Tensor) -> list[Tensor]:
            nonlocal outputs
            duals_at = dict(zip(positions, unflatten(duals, inputs), strict=True))
            with mode.Run(*duals).running():
                result = func(*[duals_at.get(k, arg) for k, arg in enumerate(args)])
            output, aux = _output_and_aux(result, has_aux, _JVP)
            outs, outputs = _tensor_leaves(output, _JVP)
            if not auxes:
                auxes.append(aux if level is None else _primals(level, aux))
            return outs

        blocks = forward_jacobian(flat_func, xs, randomness)
        result = _jacobian_tree(blocks, outputs, inputs, argnums)
        return (result, auxes[0]) if has_aux else result

    return jacobian


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """Return the function that computes the Hessian of a function: `jacfwd(jacrev(func))`.

    Its tensors have the shape `output.shape + input.shape + input.shape`; they are structured as the results of
    `jacrev`, twice.

    Example:
        >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


class _Recorded(DispatchMode):
    """Records inside of `no_grad`, too, since forward mode, whose derivatives these are, does not need recording."""

    def call(self, op: Any, caller: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with enable_grad():
            return caller(*args, **kwargs)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """Return `func(*primals)`, and the function that computes Jacobian-vector products there.

    `func` runs once, and its graph is kept: for many tangents this takes less time than `jvp`, and more memory.

    The result is `(output, jvp_fn)`; `jvp_fn(*tangents)` returns the tangents of the output, in its structure. A
    RuntimeError is raised for tangents that differ from the primals in structure, shape or dtype.

    Example:
        >>> output, jvp_fn = torch.func.linearize(torch.sin, torch.zeros(2))
        >>> jvp_fn(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
    """
    with _no_inference_mode():
        recording = local.state.grad
        with enable_grad():
            with _Recorded():
                output, vjp_fn = vjp(func, *primals)
            # vjp_fn is linear, v -> J^T v: the transpose of its Jacobian is J, at any point.
            _, jvp_of = vjp(vjp_fn, tree_map(zeros_like, output))
        if not recording:
            output = tree_map(Tensor.detach, output)
    xs, structure = flatten(primals)
    expected = [(x.shape, x.device, x.dtype) for x in xs]

    def jvp_fn(*tangents: Any) -> Any:
        vs, tangent_structure = flatten(tangents)
        if tangent_structure != structure:
            raise RuntimeError(
                f"Expected the tangents {describe(tangent_structure)} to have the same argspec as the primals "
                f"{describe(structure)}"
            )
        for k, v in enumerate(vs):
            for what, have, want in zip(
                ("shape", "device", "dtype"), (v.shape, v.device, v.dtype), expected[k], strict=True
            ):
                if have != want:
                    raise RuntimeError(
                        f"tangent:{k} with {what} {have} in flattened pytree doesn't match the {what} {want} of the "
                        "corresponding primal."
                    )
        return jvp_of(tangents)[0]

    return output, jvp_fn


# Other functions ----------------------------------------------------------------------------------


def functionalize(func: Function, *, remove: str = "mutations") -> Function:
    """Return a function without writes in place that computes the same as `func`, for tracing compilers.

    Here there is no such compiler: the result calls `func` unchanged, including its writes to arguments.

    `remove` is "mutations", or "mutations_and_views"; anything else is a RuntimeError.

    Example:
        >>> torch.func.functionalize(lambda x: x.clone().add_(1))(torch.zeros(2))
        tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are: "
            "'mutations' and 'mutations_and_views'"
        )

    @functools.wraps(func)
    def functional(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return functional


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the value of a tensor inside of a transform without graph and tangents, for debuggers.

    Inside of a transform it is a copy, elsewhere the tensor itself. Inside of `vmap` it holds all
    examples, along its first dimension.

    `recurse` has no effect: the graph is shared by all transforms, so all of them are unwrapped at once.

    Example:
        >>> def f(x):
        ...     print(torch.func.debug_unwrap(x * 2))
        ...     return x.sum()
        >>> torch.func.grad(f)(torch.ones(2))
        tensor([2., 2.])
        tensor([1., 1.])
    """
    surroundings = _Surroundings(leaves=False)
    if surroundings.track(tensor) or any(level.tangent(tensor) is not None for level in _levels()):
        return wrap(plain(tensor)._array.copy())  # (a tangent belongs to the array)
    return plain(tensor)
