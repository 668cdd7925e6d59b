"""The user's own ops: `Function`, with `ctx` (floor 2). A call is a node whose rule is a class.

Source: PyTorch's "Extending torch.autograd".
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch._tensor import Tensor, wrap
from tinytorch.autograd.graph import Node, leaf_edge, numbers
from tinytorch.autograd.inplace import written
from tinytorch.autograd.mode import local, no_grad
from tinytorch.autograd.op import modified
from tinytorch.autograd.view import check_write, refresh

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx(Node):
    """What `forward` leaves for `backward`: saved tensors, marks, and any attribute set on it.

    It is the node of the call in the graph, as in PyTorch.
    """

    __slots__ = (
        "_dirty", "_materialize", "_non_differentiable", "_places", "_to_save", "needs_input_grad", "outputs",
    )  # fmt: skip

    _function: Any  # the subclass of Function
    _places: tuple[int, ...]  # which arguments are tensors
    needs_input_grad: tuple[bool, ...]
    outputs: int

    def __init__(self) -> None:
        self.hooks = None
        self.saved = ()
        self._to_save: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._non_differentiable: tuple[Any, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (inputs, outputs or others) for `backward`, which finds them in `saved_tensors`."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument is of type {type(tensor).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`; forward mode is not there yet, so they are dropped."""

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` wrote to in place; they must be returned too."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether `backward` gets zeros (the default) or None for outputs that nobody used."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to `save_for_backward`.

        Raises:
            RuntimeError: they were freed by an earlier backward, or written to since.
        """
        if self.saved is None:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved tensors after they "
                "have already been freed). Saved intermediate values of the graph are freed when you call "
                ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
                "graph a second time or if you need to access saved tensors after calling backward."
            )
        return tuple([self._unpack(item) for item in self.saved])

    def _unpack(self, item: Any) -> Tensor | None:
        if item is None:
            return None
        tensor, cell, version, number = item
        if cell is not None and cell[0] != version:
            array = tensor if number is not None else tensor._array
            raise modified(self, array, f"output {number or 0} of {self.name()}", cell[0], version)
        if number is None:
            return tensor
        output: Tensor = wrap(
            tensor
        )  # an output was kept as a bare array: keeping the tensor would be a cycle
        output._cell = cell
        if number >= 0:
            output._edge, output._requires_grad = (self, number), True
        return output

    def release(self) -> None:
        """Free the saved tensors."""
        if self.saved:
            self.saved = None

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the tensor inputs by the user's rule."""
        gs = list(g) if self.outputs > 1 else [g]
        if self._materialize:
            shapes = self.shape if self.outputs > 1 else (self.shape,)
            kinds = self.dtype if self.outputs > 1 else (self.dtype,)
            for k, each in enumerate(gs):
                if each is None:
                    gs[k] = wrap(np.zeros(shapes[k], kinds[k]))
        result = self._function.backward(self, *gs)
        grads = list(result) if isinstance(result, (tuple, list)) else [result]
        count = len(self.needs_input_grad)
        while len(grads) > count and grads[-1] is None:
            grads.pop()
        if len(grads) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, got {len(grads)})"
            )
        for k, each in enumerate(grads):
            if each is not None and not isinstance(each, Tensor):
                raise TypeError(
                    f"{self.name()}.backward: expected Variable or None (got {type(each).__name__} for argument {k})"
                )
            if each is not None and k not in self._places:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different from None at position {k + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
        return [grads[k] for k in self._places]


class _FunctionMeta(type):
    """Gives each Function the node class named after it, `<Name>Backward`."""

    def __init__(cls, name: str, bases: Any, body: Any) -> None:
        super().__init__(name, bases, body)
        cls._node_class = type(
            f"{name}Backward", (FunctionCtx,), {"__slots__": (), "_function": cls}
        )


class Function(metaclass=_FunctionMeta):
    """An op of one's own: subclass, give `forward` and `backward` as static methods, call `apply`.

    `forward(ctx, *args)` computes with recording off and may save tensors by `ctx.save_for_backward`; or
    `forward(*args)` with a separate `setup_context(ctx, inputs, output)`. `backward(ctx, *grad_outputs)` returns one
    gradient (or None) for each argument of `forward`.

    Example:
        >>> import tinytorch as torch
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

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; to be given by the subclass."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Fill `ctx` after a `forward` that does not take it."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of the inputs; to be given by the subclass."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call `forward` and record the call."""
        ctx: FunctionCtx = cls._node_class()
        tensors = [(k, each) for k, each in enumerate(args) if isinstance(each, Tensor)]
        edges = []
        for _, tensor in tensors:
            refresh(tensor)
            edges.append((tensor._edge or leaf_edge(tensor)) if tensor._requires_grad else None)
        recording = local.state.grad and any(edge is not None for edge in edges)
        ctx.edges = tuple(edges)
        ctx._places = tuple(k for k, _ in tensors)
        ctx.needs_input_grad = tuple(
            [isinstance(each, Tensor) and each._requires_grad for each in args]
        )
        ctx.number = next(numbers)
        with no_grad():
            if cls.setup_context is not Function.setup_context:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        results = list(result) if isinstance(result, tuple) else [result]
        outputs = cls._outputs(ctx, args, results, recording)
        return tuple(outputs) if isinstance(result, tuple) else outputs[0]

    @classmethod
    def _outputs(
        cls, ctx: FunctionCtx, args: tuple[Any, ...], results: list[Any], recording: bool
    ) -> list[Any]:
        """Return the results as outputs of the node `ctx`."""
        dirty = {id(each) for each in ctx._dirty}
        constant = {id(each) for each in ctx._non_differentiable}
        given = {id(each) for each in args}
        for each in ctx._dirty:
            if recording:
                check_write(each, True)
        outputs: list[Any] = []
        differentiable: dict[int, int] = {}  # id of a result -> its output number
        arrays: list[Any] = []
        for each in results:
            if not isinstance(each, Tensor):
                outputs.append(each)
                continue
            number = len(arrays)
            arrays.append(each._array)
            out = each
            if id(each) in dirty:
                each._bump()
            elif id(each) in given or each._requires_grad:
                out = (
                    each.detach()
                )  # an input handed through: a tensor of its own on the same memory
                if id(each) in constant:
                    constant.add(id(out))
            outputs.append(out)
            if recording and id(out) not in constant and out._array.dtype.kind == "f":
                differentiable[id(each)] = number
                if id(each) in dirty:
                    continue
                out._edge, out._requires_grad = (ctx, number), True
        ctx.outputs = max(len(arrays), 1)
        ctx.shape = (
            tuple([array.shape for array in arrays])
            if len(arrays) > 1
            else arrays[0].shape
            if arrays
            else ()
        )
        ctx.dtype = (
            tuple([array.dtype for array in arrays])
            if len(arrays) > 1
            else arrays[0].dtype
            if arrays
            else None
        )
        if recording:
            own = {id(each) for each in results if isinstance(each, Tensor)} - given
            ctx.saved = tuple(
                [
                    None if each is None
                    else (each._array, each._cell, each._cell[0], differentiable.get(id(each), -1))
                    if id(each) in own or id(each) in dirty
                    else (each, each._cell, 0 if each._cell is None else each._cell[0], None)
                    for each in ctx._to_save
                ]
            )  # fmt: skip
            for each in results:
                if id(each) in dirty and id(each) in differentiable:
                    written(each, (ctx, differentiable[id(each)]))
        ctx._to_save = ctx._dirty = ctx._non_differentiable = ()
        return outputs


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `backward` whose own computation cannot be differentiated: a second derivative raises.

    Example:
        >>> import tinytorch as torch
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

    @functools.wraps(function)
    def once(ctx: Any, *gs: Any) -> Any:
        with no_grad():
            result = function(ctx, *gs)
        if not local.state.grad or not any(isinstance(g, Tensor) and g.requires_grad for g in gs):
            return result
        several = isinstance(result, tuple)
        found = list(result) if several else [result]
        found = [_Refuse.apply(each, *gs) if isinstance(each, Tensor) else each for each in found]
        return tuple(found) if several else found[0]

    return once


class _Refuse(Function):
    """Hands a result through and refuses to be differentiated."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        return args[0].detach()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )
