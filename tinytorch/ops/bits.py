"""Lazy conjugates and negatives: views of a memory whose elements are conjugated, or negated, when they are read.

`x.conj()` of complex numbers, and `x.conj().imag`, share the memory of `x`. Such a view is a `BitView`: a tensor that
refers to a plain view of the memory, and has two bits, as in PyTorch. Functions read its `_array`, which is a new
array with the conjugates: every function computes right without knowing of the bits. What must reach the memory itself
is received by the class (`_received`) before the op does anything:

- an op that returns views is called on the plain view, and its results get the same bits (`_of_view`);
- an op that writes is called on a copy with the elements of the view, which is then written back (`write_to_bits`).

The array that `_array` returns is read-only: a write that took neither way raises an error, and is never lost.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.core.graph import leaf_edge
from tinytorch.core.mode import innermost, local, recording
from tinytorch.core.op import pointwise
from tinytorch.core.tensor import Size, Tensor
from tinytorch.core.view import USUAL, Nowhere, check_recorded, needs_grad, refresh
from tinytorch.kernels.arithmetic import conjugate as _conjugate
from tinytorch.kernels.dtypes import dtype
from tinytorch.kernels.meta import WithoutElements
from tinytorch.ops import values
from tinytorch.ops.overrides import disabled
from tinytorch.ops.shape import aliased

__all__ = ["BitView", "bit_view", "resolved", "resolving", "through_bits", "write_to_bits"]

_conj = pointwise("_conj", _conjugate, node_name="Conj", complex=OWN, x=lambda g: _conj(g))
_neg = pointwise("_neg_view", np.negative, node_name="NegView", complex=OWN, x=lambda g: _neg(g))
_conj_clone = pointwise("conj_physical", _conjugate, node_name="Clone", complex=OWN, x=lambda g: _conj_clone(g))
_neg_clone = pointwise("neg", np.negative, node_name="Clone", complex=OWN, x=lambda g: _neg_clone(g))
_clone = pointwise("clone", np.positive, node_name="Clone", complex=OWN, x=lambda g: g)


def _on_memory(name: str) -> Any:
    """Return a method that changes the memory that a view refers to, and not the elements."""

    def method(self: BitView, *args: Any, **kwargs: Any) -> Any:
        getattr(self._under, name)(*args, **kwargs)
        return self

    method.__name__ = name
    return method


def of_under(*names: str) -> Any:
    """Return properties of a tensor that is made of another one, `_under`: they are that tensor's."""
    return [property(operator.attrgetter(f"_under.{name}")) for name in names]


def by_under(name: str) -> Any:
    """Return a method of a tensor that is made of another one, `_under`: it is that tensor's."""
    return lambda self, *args, **kwargs: getattr(self._under, name)(*args, **kwargs)


class BitView(Tensor):
    """A view whose elements are the conjugates, or the negatives, of those in its memory."""

    # _under        a plain tensor: the same view of the memory without the bits; what the engine asks of a tensor
    #               (its edge, version ...) is answered by it
    # _conjugated, _negated   the bits
    # _own          whether `requires_grad` was set on this tensor: then it is a leaf, although it shares memory
    # _made         the edge of `_under` and that of this tensor, which leads to it through the nodes of the bits
    __slots__ = ("_conjugated", "_made", "_negated", "_own", "_under")

    __module__ = "tinytorch"
    __torch_function__ = disabled

    _under: Tensor
    _conjugated: bool
    _negated: bool
    _own: bool
    _made: Any

    @property
    def _array(self) -> Any:
        array = _read(self)
        array.flags.writeable = False
        return array

    @_array.setter
    def _array(self, array: Any) -> None:  # (`data = ...`, `set_`: the memory changes, the bits stay, as in PyTorch)
        self._under._array = array

    _memory = property(lambda self: self._under._array)
    _view = property(lambda self: None)

    @property
    def _requires_grad(self) -> bool:
        under = self._under
        if under._view is not None and under._view.kind == USUAL:
            refresh(under)
        return self._own or needs_grad(under)

    @_requires_grad.setter
    def _requires_grad(self, value: bool) -> None:
        if value and not self._own:
            self._accumulator = None  # from now on its gradient is accumulated
        self._own = value

    @property
    def _edge(self) -> Any:  # type: ignore[override]
        under = self._under
        refresh(under)
        if self._own or not needs_grad(under) or under._edge is None:
            return None
        edge = under._edge
        if self._made is None or self._made[0] is not edge:
            self._made = (edge, self._through_bits(edge))
        return self._made[1]

    def _through_bits(self, edge: Any) -> Any:
        """Return the edge of the conjugates, or negatives, of what an edge leads to."""
        under = innermost(self)
        for op in (_conj.op,) * self._conjugated + (_neg.op,) * self._negated:
            edge = (op.node(257, (edge,), (under,), (under._array,), under._cell), 0)
        return edge

    @property
    def _plain(self) -> Tensor:
        """The plain view, in the graph computed from this one, whose hooks see the gradients of what it becomes."""
        if not (local.state.grad and self._requires_grad):
            return self._under
        made = aliased(self._under, ())
        made._edge, made._requires_grad = self._through_bits(self._edge or leaf_edge(self)), True
        return made

    # Members that tell of the memory, or that would read elements needlessly ---------------------------

    shape = property(lambda self: Size(self._under._array.shape))
    ndim = property(lambda self: self._under._array.ndim)
    _cell, _base, dtype, device, is_cpu, is_meta = of_under("_cell", "_base", "dtype", "device", "is_cpu", "is_meta")
    _is_view = by_under("_is_view")

    @property
    def data(self) -> Tensor:
        """The same view, detached."""
        return bit_view(self._under.data, self._conjugated, self._negated)

    @data.setter
    def data(self, value: Tensor) -> None:
        self._under.data = value

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return values._text(self, "tensor")

    def _view_func(self, *args: Any, **kwargs: Any) -> Tensor | None:
        under = self._under._view_func(*args, **kwargs)
        return None if under is None else bit_view(under, self._conjugated, self._negated)

    def detach(self) -> Tensor:
        """Return the same view, detached."""
        return bit_view(self._under.detach(), self._conjugated, self._negated)

    def numpy(self, *, force: bool = False) -> Any:
        """Return the elements as an array if `force`; else RuntimeError: the array could not share the memory."""
        if force:
            return _read(self)
        which, remedy = ("conjugate", "conj") if self._conjugated else ("negative", "neg")
        raise RuntimeError(
            f"Can't call numpy() on Tensor that has {which} bit set. Use tensor.resolve_{remedy}().numpy() instead."
        )

    def view(self, *shape: Any, **named: Any) -> Tensor:
        """Return a view of another shape. RuntimeError if a dtype is given."""
        if "dtype" in named or isinstance(shape[0] if shape else None, dtype):
            which = "conjugate view tensors" if self._conjugated else "tensors with negative bit set"
            raise RuntimeError(f"torch.Tensor.view is not supported for {which} when converting to a different dtype.")
        return _of_view(Tensor.view, self, shape, named)

    as_strided_, resize_, resize_as_, set_ = map(_on_memory, ("as_strided_", "resize_", "resize_as_", "set_"))
    share_memory_, squeeze_, unsqueeze_, t_ = map(_on_memory, ("share_memory_", "squeeze_", "unsqueeze_", "t_"))
    swapaxes_, swapdims_, transpose_, detach_ = map(_on_memory, ("swapaxes_", "swapdims_", "transpose_", "detach_"))

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise BufferError: other libraries do not know of the bits."""
        raise BufferError(f"Can't export tensors with the {'conjugate' if self._conjugated else 'negative'} bit set")

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) not in memo:
            memo[id(self)] = resolved(self).detach().requires_grad_(self.requires_grad)
        made: Tensor = memo[id(self)]
        return made

    def __copy__(self) -> Tensor:
        rebuild, arguments = self.__reduce_ex__(2)
        made: Tensor = rebuild(*arguments)
        return made


def _read(x: BitView) -> Any:
    """Return a new array with the elements of a view."""
    array = x._under._array
    if isinstance(array, WithoutElements):  # (of a batched tensor)
        with recording(False):
            return _copied(x, x._under)._array
    if x._conjugated:
        array = _conjugate(array)
    if x._negated:
        array = np.negative(array)
    return np.asarray(array) if isinstance(array, np.generic) else array  # (a ufunc returns a scalar for a 0-d array)


def through_bits(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Return the result of a function that gives another view of a tensor, which gets the bits of the tensor."""
    if not isinstance(x, BitView):
        return function(x)
    # (An alias of a batched tensor cannot be made once its level has ended.)
    under = x._under if isinstance(x._under._array, WithoutElements) else x._plain
    return bit_view(function(under), x._conjugated, x._negated)


def bit_view(under: Tensor, conjugated: bool, negated: bool) -> Tensor:
    """Return the lazy conjugates, or negatives, of a plain tensor, which must be a view that nobody else refers to."""
    if not (conjugated or negated):
        return under
    made: Any = object.__new__(BitView)
    made._under, made._conjugated, made._negated, made._own, made._made = under, conjugated, negated, False, None
    made._grad = made._hooks = None
    made._accumulator = functools.partial(Nowhere, under._array)
    return made


def with_bits(x: Tensor, conjugated: bool, negated: bool) -> Tensor:
    """Return a view of `x` with the given bits changed."""
    if isinstance(x, BitView):
        return bit_view(aliased(x._plain, ()), x._conjugated is not conjugated, x._negated is not negated)
    return bit_view(aliased(x, ()), conjugated, negated)


def resolved(x: Tensor) -> Tensor:
    """Return the elements of a tensor in memory of their own if it has bits, else the tensor."""
    if not isinstance(x, BitView):
        return x
    made = _copied(x, x._under)
    if local.state.grad and x._requires_grad:
        array = innermost(made)._array
        node = _clone.op.node(257, (x._edge or leaf_edge(x),), (x,), (array,), made._cell)
        made._edge, made._requires_grad = (node, 0), True
    return made


def _copied(x: BitView, under: Tensor) -> Tensor:
    """Return a copy of the elements, computed from a plain view of the same memory."""
    made = _conj_clone(under) if x._conjugated else _neg_clone(under)
    return _neg_clone(made) if x._conjugated and x._negated else made


# Calls -------------------------------------------------------------------------------------------


def _with_resolved(value: Any) -> Any:
    """Return an argument with tensors without bits in the place of those with bits."""
    if isinstance(value, BitView):
        return resolved(value)
    if type(value) in (list, tuple):
        return type(value)([_with_resolved(each) for each in value])
    return value


def _received(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of an op that writes into, or returns a view of, a tensor with bits; else NotImplemented.

    The result of a view op has the bits of the argument; a write goes to the memory.
    """
    if isinstance(args[0], BitView) and hasattr(function, "caller"):
        if function.writes:
            return write_to_bits(function, args[0], args[1:], kwargs)
        if function.op.view:
            return _of_view(function, args[0], args[1:], kwargs)
    return NotImplemented


BitView._receives = staticmethod(_received)


def resolving(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of an op's function some of whose arguments have bits, for modes: they see plain tensors."""
    made = _received("", function, args, kwargs) if args else NotImplemented
    if made is not NotImplemented:
        return made
    return function(*_with_resolved(args), **{key: _with_resolved(value) for key, value in kwargs.items()})


def _of_view(function: Callable[..., Any], x: BitView, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    made = function(x._plain, *args, **kwargs)
    if isinstance(made, Tensor):
        return bit_view(made, x._conjugated, x._negated)
    return type(made)([bit_view(each, x._conjugated, x._negated) for each in made])


def write_to_bits(function: Callable[..., Any], x: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function that writes into its first argument, on a view with bits; return the view."""
    assert isinstance(x, BitView)
    if x._own and local.state.grad:
        check_recorded(x)  # raises the error of a leaf
    view = x._under._view
    plain = _copied(x, x._under if view is None else view.replay(view.base))  # (from the base, as in `CopySlices`)
    function(plain, *args, **kwargs)
    _write_back(x, plain)
    return x


def into_bits(write: Callable[[Any], Any], out: Any, outs: Any) -> Any:
    """Write results into tensors `outs`, some of which have bits, by `write`, as `out=` does; return `out`."""
    plain = [resolved(each).detach() if isinstance(each, BitView) else each for each in outs]
    made = write(plain[0] if isinstance(out, Tensor) else type(out)(plain))
    for each, new in zip(outs, plain, strict=True):
        if isinstance(each, BitView):
            _write_back(each, new)
    return out if isinstance(out, Tensor) or type(made) is not tuple else tuple(outs)


def _write_back(x: BitView, plain: Tensor) -> None:
    if plain.shape != x.shape:
        raise RuntimeError("a conjugate or negative view cannot be resized: use resolve_conj() or resolve_neg()")
    x._under.copy_(with_bits(plain, x._conjugated, x._negated))


# Members of Tensor ---------------------------------------------------------------------------------


def _writing(name: str) -> Any:
    def method(self: BitView, *args: Any, **kwargs: Any) -> Any:
        made = write_to_bits(getattr(Tensor, name), self, args, kwargs)
        return None if name == "__setitem__" else made

    method.__name__ = name
    return method


_OPERATORS = """
    __setitem__ __iadd__ __isub__ __imul__ __itruediv__ __idiv__ __ifloordiv__ __imod__ __ipow__ __iand__ __ior__
    __ixor__
"""


def _complete() -> None:
    for name in vars(Tensor):
        if name in vars(BitView):
            continue
        if name.endswith("_") and not name.startswith("_") and name not in ("requires_grad_", "rename_"):
            setattr(BitView, name, _writing(name))
    for name in _OPERATORS.split():
        if name in vars(Tensor):
            setattr(BitView, name, _writing(name))


BitView.__name__ = BitView.__qualname__ = Tensor.__name__  # (which users see)
_complete()
