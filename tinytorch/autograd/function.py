"""Custom differentiable functions: `Function`, and its `ctx`. A call is a node whose backward is the user's method.

The state that the graph needs is in a `FunctionNode`. Users see a `BackwardCFunction` in its place, as `ctx` and as
`y.grad_fn`, so that they can set attributes of any name. It is created when it is needed, and its node refers to it
weakly: there is no reference cycle, and the attributes, which the node holds, live as long as the graph.

Source: PyTorch's "Extending torch.autograd".
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.autograd.hooks import RemovableHandle
from tinytorch.autograd.node import SavedTensor
from tinytorch.core.graph import FREED, Edge, Hook, Node, enter, leaf_edge
from tinytorch.core.inplace import written
from tinytorch.core.mode import DispatchMode, Event, dispatch, local
from tinytorch.core.node import INFERENCE_NOT_SAVED, attached, modified, packed, unpacked
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.view import CUSTOM, SEVERAL, check_write, refresh
from tinytorch.core.warning import warn
from tinytorch.kernels.dtypes import DIFFERENTIABLE

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "once_differentiable"]


class FunctionNode(Node):
    """A recorded call of a `Function`; each Function has a subclass of its own, named after it."""

    __slots__ = (
        "_for_forward",
        "_materialize",
        "attributes",
        "constant",
        "dirty_tensors",
        "face",
        "needs_input_grad",
        "non_differentiable",
        "outputs",
        "places",
        "rule",
        "to_save",
    )

    function: Any  # the subclass of Function
    places: tuple[int, ...]  # the positions of the arguments that are tensors
    needs_input_grad: tuple[bool, ...]
    to_save: tuple[Any, ...] | None
    dirty_tensors: tuple[Any, ...] | None
    non_differentiable: tuple[Any, ...] | None
    constant: Collection[int]  # the numbers of the outputs marked as non-differentiable
    rule: Callable[..., Any] | None  # what is called, with `ctx` and the gradients, instead of the user's `backward`

    def __init__(self) -> None:
        self.hooks = self.rule = None
        self.face: Callable[[], Any] | None = None
        self._for_forward: tuple[Any, ...] | None = None
        self.to_save = self.dirty_tensors = self.non_differentiable = None
        self.saved = self.constant = ()
        self.attributes: dict[str, Any] = {}  # what the user has set on `ctx`
        self._materialize = True

    def shown(self) -> Any:
        """Return `ctx`."""
        face = None if self.face is None else self.face()
        if face is None:
            face = self.function._backward_cls(self)
            self.face = weakref.ref(face)
        return face

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The arguments of `save_for_backward`; while `jvp` runs, those of `save_for_forward`."""
        if self._for_forward is not None:
            return self._for_forward
        if self.saved is None:
            raise RuntimeError(FREED)
        if self.saved is _ACCESSED:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
                "autograd.Function. Either access saved_tensors only once, or set clear_saved_tensors_on_access=False."
            )
        tensors = tuple([self._unpack(item) for item in self.saved])
        if self.function.clear_saved_tensors_on_access:
            self.saved = _ACCESSED
        return tensors

    def _unpack(self, item: Any) -> Tensor | None:
        if item is None:
            return None
        if len(item) == 3:
            value, unpack, place = item
            edge = (self, place) if isinstance(place, int) else place
            return attached(unpacked(value, unpack), edge)
        tensor, cell, version, number = item
        if cell is not None and cell[0] != version:
            if number is not None:
                raise modified(self, tensor, self.output(number), cell[0], version)
            edge = tensor._edge
            raise modified(self, tensor._array, edge and edge[0].output(edge[1]), cell[0], version)
        if number is None:
            return tensor
        output: Tensor = wrap(tensor)  # it was saved as an array: the tensor itself would make a cycle
        output._cell, output._edge, output._requires_grad = cell, (self, number), True
        return output

    def pack(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Any]) -> None:
        """Replace the saved tensors by what `pack` returns for them; `saved_tensors` gets them from `unpack`."""
        for k, item in enumerate(self.saved or ()):
            if item is not None and len(item) == 4:
                self.pack_one(k, pack, unpack)

    def pack_one(self, k: int, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Any]) -> None:
        """Replace one saved tensor by what `pack` returns for it."""
        tensor, cell, _, number = self.saved[k]
        place = number  # its place in the graph: the number of an output of this node, or an edge
        if number is not None:
            tensor = wrap(tensor)
            tensor._cell, tensor._requires_grad = cell, True
        elif tensor._requires_grad:
            place = tensor._edge or leaf_edge(tensor)
        items = list(self.saved)
        items[k] = (packed(tensor, pack), unpack, place)
        self.saved = tuple(items)

    def release(self) -> None:
        """Free the saved tensors."""
        self.saved = None

    def without_gradient(self, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the tensor inputs by the user's `backward`, called with zeros or None."""
        return self.backward(None, create_graph, needed)

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the tensor inputs by the user's `backward`."""
        gs = self._as_list(g)
        if self._materialize and None in gs:
            several = self.outputs > 1
            shapes, dtypes = (self.shape, self.dtype) if several else ((self.shape,), (self.dtype,))
            # (Some of PyTorch's own functions set this attribute to False.)
            without = () if self.attributes.get("_materialize_non_diff_grads", True) else self.constant
            for k, grad in enumerate(gs):
                if grad is None and dtypes[k] is not None and k not in without:
                    gs[k] = wrap(np.zeros(shapes[k], dtypes[k]))
                    for mode in local.state.modes or ():
                        mode.event(Event.KNOWN, x=gs[k])
        ctx = self.shown()
        result = ctx.apply(*gs) if self.rule is None else self.rule(ctx, gs)
        grads = result if isinstance(result, tuple) else (result,)
        count = len(self.needs_input_grad)
        if len(grads) > count and all(grad is None for grad in grads[count:]):
            grads = grads[:count]
        if len(grads) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, got {len(grads)})"
            )
        for k, grad in enumerate(grads):
            if grad is None:
                continue
            if k not in self.places:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {k + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
            if not isinstance(grad, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(grad).__name__})")
        return [grads[k] for k in self.places]


_ACCESSED: Any = object()  # replaces the saved tensors after their only permitted access


class FunctionCtx:
    """The methods of `ctx` for `forward` and `setup_context`."""

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors (inputs, outputs or others) for `backward`, which reads them from `saved_tensors`."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `jvp`, which reads them from `saved_tensors`.

        Example:
            >>> class Double(torch.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x, factor):
            ...         ctx.save_for_forward(factor)
            ...         return x * factor
            ...     @staticmethod
            ...     def jvp(ctx, t, _):
            ...         return t * ctx.saved_tensors[0]
            >>> double = lambda x: Double.apply(x, torch.tensor(2.0))
            >>> torch.func.jvp(double, (torch.ones(1),), (torch.tensor([5.0]),))
            (tensor([2.]), tensor([10.]))
        """
        for tensor in tensors:
            if not (isinstance(tensor, Tensor) or tensor is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    "on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Mark inputs that `forward` has written to in place; they must be returned too.

        Example:
            >>> class Double(torch.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         ctx.mark_dirty(x)
            ...         return x.mul_(2)
            ...     @staticmethod
            ...     def backward(ctx, g):
            ...         return 2 * g
            >>> x = torch.ones(1, requires_grad=True)
            >>> y = x.clone()
            >>> _ = Double.apply(y)
            >>> y.sum().backward()
            >>> x.grad
            tensor([2.])
        """
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Do nothing; a deprecated method."""
        warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that "
            "calls to `set_()` are not tracked",
            FutureWarning,
        )

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Mark outputs as not differentiable.

        Example:
            >>> class Sorted(torch.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         values, indices = x.sort()
            ...         ctx.mark_non_differentiable(indices)
            ...         ctx.save_for_backward(indices)
            ...         return values, indices
            ...     @staticmethod
            ...     def backward(ctx, g, _):
            ...         return torch.zeros_like(g).scatter(0, ctx.saved_tensors[0], g)
            >>> values, indices = Sorted.apply(torch.tensor([2.0, 1.0], requires_grad=True))
            >>> values.requires_grad, indices.requires_grad
            (True, False)
        """
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether `backward` receives zeros (the default) or None as the gradient of an unused output.

        Example:
            >>> class Pair(torch.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         ctx.set_materialize_grads(False)
            ...         return x + 1, x + 2
            ...     @staticmethod
            ...     def backward(ctx, g1, g2):
            ...         print(g1, g2)
            ...         return g1
            >>> Pair.apply(torch.ones(1, requires_grad=True))[0].backward()
            tensor([1.]) None
        """
        self.materialize_grads = value


def _node_attribute(name: str) -> Any:
    """Return a property of `ctx` that reads and sets an attribute of the node."""
    return property(
        lambda self: getattr(self._graph_node, name), lambda self, value: setattr(self._graph_node, name, value)
    )


class BackwardCFunction(FunctionCtx):
    """`ctx`, which is also `grad_fn` of the outputs: stands for a `FunctionNode`, which holds its attributes."""

    __slots__ = ("_graph_node",)

    __traced_as__ = "trusted"
    _forward_cls: Any
    _face_of: type = FunctionNode
    _graph_node: FunctionNode

    def __init__(self, node: FunctionNode) -> None:
        self._graph_node = node
        self.__dict__ = node.attributes

    to_save, dirty_tensors, non_differentiable, needs_input_grad, saved_for_forward = map(
        _node_attribute, ("to_save", "dirty_tensors", "non_differentiable", "needs_input_grad", "_for_forward")
    )

    @property
    def materialize_grads(self) -> Any:
        """Whether `backward` receives zeros instead of None; can only be set."""
        raise AttributeError(f"attribute 'materialize_grads' of '{type(self).__name__}' is not readable")

    @materialize_grads.setter
    def materialize_grads(self, value: Any) -> None:
        if not isinstance(value, bool):
            raise TypeError(
                "set_materialize_grads received an invalid combination of arguments - got "
                f"({type(value).__name__}), but expected (bool)"
            )
        self._graph_node._materialize = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to `save_for_backward`.

        Raises:
            RuntimeError: they were freed by an earlier backward, or have been written to.
        """
        return self._graph_node.saved_tensors

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The old name of `saved_tensors`."""
        warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        if self._graph_node.saved is None:
            raise RuntimeError(FREED)
        return tuple([SavedTensor(self._graph_node, k) for k in range(len(self._graph_node.saved))])

    next_functions, metadata, _input_metadata = (
        property(attrgetter(f"_graph_node.{name}"), doc=getattr(Node, name).__doc__)
        for name in ("next_functions", "metadata", "_input_metadata")
    )

    @property
    def requires_grad(self) -> bool:
        """True."""
        return True

    def name(self) -> str:
        """Return the name of the node, "<Function's name>Backward"."""
        return self._graph_node.name()

    def _sequence_nr(self) -> int:
        return self._graph_node._sequence_nr()

    def register_hook(self, fn: Hook) -> RemovableHandle:
        """Run `fn(grad_inputs, grad_outputs)` after `backward`; see `Node.register_hook`."""
        return self._graph_node.register_hook(fn)

    def register_prehook(self, fn: Hook) -> RemovableHandle:
        """Run `fn(grad_outputs)` before `backward`; see `Node.register_prehook`."""
        return self._graph_node.register_prehook(fn)

    def apply(self, *args: Any) -> Any:
        """Return the result of the user's `backward` or `vjp` for the gradients of the outputs."""
        rule = self._rule()
        return rule(self, list(args)) if self._forward_cls.boxed_grads_call else rule(self, *args)

    def _rule(self) -> Callable[..., Any]:
        function = self._forward_cls
        own_backward = function.backward is not Function.backward
        own_vjp = function.vjp is not Function.vjp
        if own_backward and own_vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        rule: Callable[..., Any] = function.vjp if own_vjp else function.backward
        return rule


class FunctionMeta(type):
    """Creates for each Function the class of its nodes and that of their `ctx`, both named `<Name>Backward`."""

    def __init__(cls, name: str, bases: Any, body: Any) -> None:
        super().__init__(name, bases, body)
        cls._node_class = type(f"{name}Backward", (FunctionNode,), {"__slots__": (), "function": cls})
        cls._backward_cls = type(
            f"{name}Backward", (BackwardCFunction,), {"_forward_cls": cls, "_face_of": cls._node_class}
        )


class Function(FunctionCtx, metaclass=FunctionMeta):
    """A custom differentiable function: subclass it, define `forward` and `backward` as static methods, call `apply`.

    `forward(ctx, *args)` computes with recording off and may save tensors by `ctx.save_for_backward`; or
    `forward(*args)` with a separate `setup_context(ctx, inputs, output)`. `backward(ctx, *grad_outputs)` returns one
    gradient (or None) for each argument of `forward`; `vjp` is another name for it.

    Attributes:
        clear_saved_tensors_on_access: `ctx.saved_tensors` can be read once, and is then freed.
        boxed_grads_call: `backward(ctx, grad_outputs)` takes a list, from which it may remove gradients to free them.
        generate_vmap_rule: whether `vmap` runs `forward` and `backward` on batched tensors.

    Example:
        >>> class Cube(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x ** 3
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return g * 3 * x ** 2
        >>> x = torch.tensor(2.0, requires_grad=True)
        >>> Cube.apply(x).backward()
        >>> x.grad
        tensor(12.)
    """

    _node_class: Any
    _backward_cls: Any
    clear_saved_tensors_on_access = False
    boxed_grads_call = False
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise RuntimeError: this way to call a Function was removed."""
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; defined by the subclass."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save tensors and attributes on `ctx` after a `forward` that does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of the inputs; defined by the subclass."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangents of the outputs, given those of the inputs; defined by the subclass for forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Return `(outputs, out_dims)` for tensors with all examples along `in_dims`; defined by the subclass."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call `forward` and record the call."""
        args = cls._arguments(args, kwargs)
        node: FunctionNode = cls._node_class()
        result = cls._call(node, args)
        node._for_forward = None
        return result

    @classmethod
    def _arguments(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the arguments of `forward`, all by position."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if kwargs:
            args = _positional(cls.forward, args, kwargs, 0 if separate else 1)
        for flag in ("clear_saved_tensors_on_access", "boxed_grads_call"):
            value = getattr(cls, flag)
            if value is not True and value is not False:
                raise RuntimeError(f"{flag} must be a bool, got {type(value).__name__}")
        return args

    @classmethod
    def _call(cls, node: FunctionNode, args: tuple[Any, ...]) -> Any:
        if local.state.modes is not None:
            return dispatch(cls, cls._call, (node, args), {})
        return cls._recorded(node, args, cls.forward, cls.setup_context)

    @classmethod
    def _recorded(
        cls, node: FunctionNode, args: tuple[Any, ...], forward: Callable[..., Any], setup_context: Callable[..., Any]
    ) -> Any:
        """Return the result of `forward`, with this node in the graph; modes that are on see what runs."""
        state = local.state
        modes = state.modes
        node.places = tuple([k for k, arg in enumerate(args) if isinstance(arg, Tensor)])
        for k in node.places:
            refresh(args[k])
        node.needs_input_grad = tuple([isinstance(arg, Tensor) and arg._requires_grad for arg in args])
        recording = state.grad
        recorded = recording and True in node.needs_input_grad
        tensors = [args[k] for k in node.places] if recorded else []
        edges = [(arg._edge or leaf_edge(arg)) if arg._requires_grad else None for arg in tensors]
        enter(node, tuple(edges), (), None)  # (its outputs are not known yet)
        ctx = node.shown()
        separate = cls.setup_context is not Function.setup_context
        state.grad = False
        if state.autocast is not None and modes is None:  # the only mode that stays on inside
            state.modes = (state.autocast,)
        try:
            if separate:
                result = forward(*args)
                setup_context(ctx, args, result)
            else:
                result = forward(ctx, *args)
        finally:
            state.grad, state.modes = recording, modes
        results = result if isinstance(result, tuple) else (result,)
        outputs = _record_outputs(node, args, results, recorded, separate)
        return tuple(outputs) if isinstance(result, tuple) else outputs[0]


def _positional(forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any], skipped: int) -> tuple[Any, ...]:
    """Return all arguments of a call by position; `skipped` counts the first parameters of `forward` (`ctx`)."""
    code = forward.__code__
    names = code.co_varnames[skipped : code.co_argcount]
    bound = dict(enumerate(args))
    for name, value in kwargs.items():
        if name not in names:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        if names.index(name) < len(args):
            raise TypeError(f"forward() got multiple values for argument '{name}'")
        bound[names.index(name)] = value
    count = max(bound) + 1
    if count > len(names):
        raise TypeError(f"forward() takes {len(names)} positional arguments but {count} were given")
    for k in range(count):
        if k not in bound:
            raise TypeError(f"forward() missing required argument: '{names[k]}' (position {k})")
    return tuple([bound[k] for k in range(count)])


# After forward --------------------------------------------------------------------------------------


def _record_outputs(
    node: FunctionNode, args: tuple[Any, ...], results: tuple[Any, ...], recorded: bool, separate: bool
) -> list[Any]:
    """Turn the results of `forward` into outputs of the node, and save the tensors that `forward` asked to save."""
    to_save = node.to_save or ()
    for k, result in enumerate(to_save):
        if recorded and not (result is None or isinstance(result, Tensor)):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {k} is of type {type(result).__name__}"
            )
        if recorded and result is not None and result._cell is None:
            raise RuntimeError(INFERENCE_NOT_SAVED)
    # An input that `forward` returns becomes a view as an output; saving it in `setup_context` is an error, see below.
    saved: set[int] = {id(result) for result in (*to_save, *(node._for_forward or ()))} if separate else set()
    constant = _by_id(node.non_differentiable, "mark_non_differentiable only accepts variable")
    dirty = _by_id(node.dirty_tensors, "mark_dirty can only accept variable")
    inputs = {id(result) for result in args if isinstance(result, Tensor)}
    node.outputs = max(len(results), 1)
    node.take_outputs([result._array if isinstance(result, Tensor) else None for result in results])
    outputs: list[Any] = []
    differentiable: dict[int, int] = {}  # id of a result: its output number
    for number, result in enumerate(results):
        out = result
        if isinstance(result, Tensor):
            if recorded and id(result) not in constant and result._array.dtype.kind in DIFFERENTIABLE:
                differentiable[id(result)] = number
                if id(result) in dirty:
                    _check_dirty(result, id(result) in inputs, len(results))
                else:
                    if id(result) in inputs:
                        out = _view_of_input(result, saved)
                    out._edge, out._requires_grad = (node, number), True
                    if out._view is not None:
                        out._view.seen = _version(out)  # its edge describes the memory as `forward` has left it
            elif result.requires_grad:
                if id(result) in inputs:
                    out = result.detach()
                elif result._view is None:
                    result.detach_()
            elif id(result) in inputs and id(result) not in dirty:
                out = _view_of_input(result, saved)
            if out._view is not None and not (id(out) in inputs and id(out) in dirty):
                out._view.kind = CUSTOM
        outputs.append(out)
    if len(differentiable) > 1:
        for out in outputs:
            if isinstance(out, Tensor) and out._view is not None:
                out._view.kind = SEVERAL
    if dirty.keys() - {id(result) for result in results}:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    for result in dirty.values():
        result._bump()
        if id(result) in differentiable:
            result._grad = result._hooks = None
            written(result, (node, differentiable[id(result)]))
    if constant:
        node.constant = {k for k, result in enumerate(results) if id(result) in constant}
    if recorded:
        computed = {id(result) for result in results} - inputs | dirty.keys()
        node.saved = tuple(
            [
                None if result is None
                else (result._array, result._cell, _version(result), differentiable[id(result)])
                if id(result) in computed and id(result) in differentiable
                else (result, result._cell, _version(result), None)
                for result in to_save
            ]
        )  # fmt: skip
    node.to_save = node.dirty_tensors = node.non_differentiable = None
    return outputs


def _by_id(tensors: Sequence[Any] | None, what: str) -> dict[int, Tensor]:
    """Return tensors that were marked on `ctx`, by id."""
    for tensor in tensors or ():
        if not isinstance(tensor, Tensor):
            raise RuntimeError(f"{what} arguments, but got {type(tensor).__name__}")
    return {id(tensor): tensor for tensor in tensors or ()}


def _version(tensor: Tensor) -> int:
    return 0 if tensor._cell is None else tensor._cell[0]


def _view_of_input(tensor: Tensor, saved: set[int]) -> Tensor:
    """Return a view of an input that `forward` has returned: the output is another tensor than the input."""
    if id(tensor) in saved:
        raise RuntimeError(
            "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
            "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or "
            "setup ctx inside the forward function itself."
        )
    with no_grad():
        return tensor.view_as(tensor)


def _check_dirty(tensor: Tensor, is_input: bool, count: int) -> None:
    """Raise PyTorch's error unless a tensor that `forward` has written to can become an output."""
    if not is_input:
        text = (
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
            "should be passed to ctx.mark_dirty()."
        )
        if tensor._view is not None:
            raise RuntimeError(text)
        warn(text, UserWarning)
    if tensor._view is not None and count > 1:
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return "
            "more than one Tensor. This is not supported by the current autograd engine. You should either make sure "
            "the input is not a view (using .clone() for example) or make your Function only return one Tensor "
            "(potentially splitting it into two Functions: one doing the inplace that returns a single Tensor and a "
            "second one that does the other operations)."
        )
    check_write(tensor, True, overlap=True)


class InplaceFunction(Function):
    """A deprecated name of `Function`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class _Undefined(Function):
    """Returns its input; the gradient that its backward returns is undefined (None)."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        return args[0].view_as(args[0])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> None:
        return None


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` whose computation cannot be differentiated: a second derivative raises an error.

    Example:
        >>> class Double(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @torch.autograd.function.once_differentiable
        ...     def backward(ctx, g):
        ...         return g * 2
        >>> x = torch.tensor(1.0, requires_grad=True)
        >>> Double.apply(x).backward()
        >>> x.grad
        tensor(2.)
    """

    @functools.wraps(fn)
    def once(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with no_grad():
            result = fn(ctx, *args, **kwargs)
        if not local.state.grad:
            return result
        edges = [arg._edge or leaf_edge(arg) for arg in args if isinstance(arg, Tensor) and arg.requires_grad]
        # Outside of `torch.func` the node has no way to what the gradient depends on, as in PyTorch.
        of_ctx = ctx._graph_node.edges if isinstance(ctx, BackwardCFunction) else ()
        sources = [] if local.state.run is None else [*edges, *of_ctx]
        if not (edges or sources):
            return result
        refusing = _with_error_node(result if isinstance(result, tuple) else (result,), sources)
        return refusing if isinstance(result, tuple) else refusing[0]

    once.__first_order__ = fn  # type: ignore[attr-defined]  # (read by `torch.compile`)
    return once


def _with_error_node(results: tuple[Tensor | None, ...], sources: Sequence[Edge | None]) -> tuple[Tensor | None, ...]:
    """Return the results of a `backward` as outputs of a node whose own backward raises an error.

    Args:
        sources: the edges of what they depend on: each way there leads through the error.
    """
    node = Error(len(results))
    aliases: list[Tensor | None] = []
    edges: list[Edge | None] = []
    for number, result in enumerate(results):
        alias = edge = None
        if result is not None:
            alias, edge = result.detach(), leaf_edge(wrap(result._array))
            alias._edge, alias._requires_grad = (node, number), True
        edges.append(edge)
        aliases.append(alias)
    enter(node, (*edges, *sources), (), None)
    node.take_outputs([None if result is None else result._array for result in results])
    return tuple(aliases)


class Error(Node):
    """A node whose backward raises an error."""

    __slots__ = ("outputs",)

    def __init__(self, outputs: int) -> None:
        self.outputs, self.saved = outputs, ()

    def name(self) -> str:
        """Return PyTorch's name, with its namespace."""
        return "torch::autograd::Error"

    def _inputs(self) -> Sequence[int]:
        return range(self.outputs)

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Raise RuntimeError."""
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def forward_seen(mode: DispatchMode, function: Any) -> Any:
    """Return a `Function` like a user's, of which a mode also receives the calls in `forward`."""
    seen = mode.__dict__.setdefault("_functions", {})
    if function not in seen:

        def forward(*args: Any) -> Any:
            DispatchMode.__enter__(mode)
            try:
                return function.forward(*args)
            finally:
                DispatchMode.__exit__(mode)

        seen[function] = type(function)(function.__name__, (function,), {"forward": staticmethod(forward)})
    return seen[function]
