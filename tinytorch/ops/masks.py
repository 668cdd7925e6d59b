"""Boolean masks: masked reads and writes, `where`, `nonzero`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.core.mode import short
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, constant, wrap
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes
from tinytorch.kernels import indexing as kernels
from tinytorch.kernels.activation import where as where_
from tinytorch.kernels.checks import broadcast, refused, tensor_name
from tinytorch.kernels.dtypes import RARE
from tinytorch.kernels.intp import as_int64
from tinytorch.kernels.limits import fits
from tinytorch.kernels.meta import is_meta
from tinytorch.kernels.silence import cast
from tinytorch.ops.arguments import op_of, unless_empty
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.index import _BOOL, _INT64, _OPERANDS, _deprecated_fill, _scalar, _wrapped
from tinytorch.ops.register import public
from tinytorch.ops.shape import expand
from tinytorch.ops.writing import writing

_masked_fill = writing(
    batch="masked fill",
    complex=OWN,
    refuses="masked_fill",
    names=("MaskedFillBackward0", "MaskedFillBackward1"),
    prepare=kernels.wide_copy,
    repeats=_deprecated_fill,
    reads={"mask": "same", "value": "any"},
    broadcasts=True,
    x=lambda g, mask: masked_fill(g, mask, 0),
    mask=None,
    value=lambda g, mask: _where(mask, g, 0.0).sum(),
)(kernels.masked_fill)


@public(method=True)
@short("of_value", *[function for function, _ in _masked_fill], True)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return a copy with `value` (a number or a 0-dim tensor) where the mask is true.

    The mask is boolean and broadcasts with `input`; the value is cast to the dtype of `input`.

    Example:
        >>> torch.masked_fill(torch.tensor([1.0, -2.0]), torch.tensor([False, True]), 0)
        tensor([1., 0.])
    """
    return _masked_fill[isinstance(value, Tensor)][0](input, mask, _scalar("masked_fill", value))


@public("", method="masked_fill_")
@short("of_value", *[function for _, function in _masked_fill], True)
def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """In-place version of `masked_fill`."""
    return _masked_fill[isinstance(value, Tensor)][1](self, mask, _scalar("masked_fill", value))


@public(method=True, out="index_select")
@op(
    kernels.masked_select,
    batch="dynamic",
    complex=OWN,
    data_dependent=True,
    refuses=unless_empty("masked_select"),
    x=lambda g, x_shape, mask: _unmasked(g, x_shape, mask),
    mask=None,
    broadcasts=True,
)
def masked_select(x: Any, mask: Any) -> Any:
    """Return a 1-d tensor of the elements where the boolean mask, which broadcasts with `x`, is true.

    Example:
        >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
        tensor([1, 3])
    """


def _unmasked_by_index(x: Tensor, mask: Tensor) -> Tensor:
    """Return the elements written into zeros where the mask is true, by which `vmap` computes it."""
    return x.new_zeros(mask.numel()).index_put(mask.reshape(-1).nonzero(as_tuple=True), x).reshape(mask.shape)


_unmasked = op_of(
    kernels.unmasked,
    batch=lambda x, shape, mask: _unmasked_by_index(x, expand(mask, np.broadcast_shapes(shape, tuple(mask.shape)))),
    complex=OWN,
    name="MaskedSelectBackward",
    x=lambda g, shape, mask: masked_select(expand(g, np.broadcast_shapes(shape, mask.shape)), mask),
    mask=None,
)


def _masked_source_x(g: Tensor, x_shape: tuple[int, ...], mask: Tensor) -> Tensor:
    return _masked_scatter[0](constant(np.zeros(x_shape, g._array.dtype, like=g._array)), mask, g)


_masked_source = op_of(kernels.masked_source, complex=OWN, name="MaskedScatterBackward", x=_masked_source_x, mask=None)
_masked_scatter = writing(
    batch=lambda *given: NotImplemented,  # (the mask says how many elements of the source are before one)
    complex=OWN,
    refuses="masked_scatter",
    names=("MaskedScatterBackward0",),
    prepare=kernels.wide_copy,
    reads="same",
    broadcasts=True,
    x=lambda g, mask: masked_fill(g, mask, 0),
    mask=None,
    source=lambda g, mask, source_shape: _masked_source(g, mask, source_shape),
)(kernels.masked_scatter)


@public(method=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy in which the mask's true positions hold the first elements of `source`, in order.

    Example:
        >>> torch.masked_scatter(torch.zeros(3), torch.tensor([True, False, True]), torch.tensor([5.0, 6.0]))
        tensor([5., 0., 6.])
    """
    return _masked_scatter[0](input, mask, source)


masked_scatter_ = public("", method="masked_scatter_")(_masked_scatter[1])


_where = op(
    moves=True,
    condition=None,
    x=lambda g, condition: _where(condition, g, 0.0),
    y=lambda g, condition: _where(condition, 0.0, g),
    broadcasts=True,
    name="Where",
)(where_)


@public(out="where")
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Return `input` where the condition is true and `other` elsewhere; with the condition alone, its true indices.

    `input` and `other` are tensors or numbers; the three arguments broadcast, and the result has the common dtype.
    Without them it is `nonzero(condition, as_tuple=True)`.

    Example:
        >>> x = torch.tensor([1.0, -2.0])
        >>> torch.where(x > 0, x, 0.0)
        tensor([1., 0.])
    """
    if (
        type(condition) is type(input) is type(other) is Tensor
        and condition._array.dtype is _BOOL
        and input._array.dtype is other._array.dtype
    ):  # fast path
        try:
            return _where(condition, input, other)
        except RuntimeError:
            broadcast(condition._array.shape, input._array.shape, other._array.shape)
            raise
    if input is None and other is None:
        return _where_true(condition, as_tuple=True)
    if not (isinstance(condition, Tensor) and isinstance(input, _OPERANDS) and isinstance(other, _OPERANDS)):
        kinds = ", ".join(type(each).__name__ for each in (condition, input, other) if each is not None)
        raise TypeError(
            f"where() received an invalid combination of arguments - got ({kinds}), but expected (Tensor condition, "
            "Tensor or Number input, Tensor or Number other)"
        )
    kind = condition._array.dtype
    if kind.kind != "b":
        if kind != np.uint8:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{tensor_name(condition._array)}"
            )
        warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead.",
            UserWarning, once=True,
        )  # fmt: skip
        condition = condition.bool()
    pair: list[Any] = [input, other]
    if not (isinstance(input, Tensor) and isinstance(other, Tensor) and input._array.dtype == other._array.dtype):
        ranked = [
            (each.dtype, 2 if each._array.ndim else 1) if isinstance(each, Tensor) else (dtypes.of_number(each), 0)
            for each in pair
        ]
        common = dtypes.result_dtype(*ranked)
        for i, each in enumerate(pair):
            if not isinstance(each, Tensor):
                number = each if common.is_floating_point else fits(each, common)
                pair[i] = constant(cast(np.asarray(number), common.numpy))
            elif each.dtype is not common:
                pair[i] = each.to(common)
    try:
        return _where(condition, *pair)
    except RuntimeError:
        broadcast(*[each._array.shape for each in (condition, *pair)])
        raise


def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Return this tensor where the condition is true and `other` elsewhere; see `where`."""
    return where(condition, self, other)


@public(method=True, out="nonzero")
@short("nonzero")
@per_example(dynamic="nonzero")
def nonzero(input: Tensor, *, out: Any = None, as_tuple: bool = False) -> Any:
    """Return the indices of all elements that are not zero, int64 (number of such elements, ndim).

    `as_tuple` returns a tuple of index vectors, one per dimension, usable as an index.

    Example:
        >>> torch.nonzero(torch.tensor([[1, 0], [0, 2]]))
        tensor([[0, 0],
                [1, 1]])
    """
    if type(as_tuple) is not bool:
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {type(as_tuple).__name__}")
    if out is not None:  # `ops/out.py` handles the `out` of the function
        raise TypeError('nonzero() missing 1 required positional arguments: "as_tuple"')
    array = input._array
    if array.dtype.char in RARE and array.dtype.kind == "u":
        raise refused("nonzero_count_cpu", array)
    if not array.ndim and not as_tuple:
        return wrap(np.zeros((int(bool(array)), 0), _INT64, like=array))
    # PyTorch's memory layout: the indices of each dimension are contiguous.
    found = as_int64(np.stack(np.nonzero(array if array.ndim else array[None])))
    return tuple([wrap(each) for each in found]) if as_tuple else wrap(found.T)


_where_true = per_example(dynamic="where")(nonzero)


@public(method=True, out="nonzero")
@per_example()
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Return the indices of the first `size` nonzero elements, padded with `fill_value` if there are fewer.

    Example:
        >>> torch.nonzero_static(torch.tensor([1, 0, 2]), size=3)
        tensor([[ 0],
                [ 2],
                [-1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if is_meta(input._array):
        return wrap(np.empty((size, input._array.ndim), _INT64, like=input._array))
    found = nonzero(input)._array
    out = np.full_like(found, fill_value, shape=(size, found.shape[1]), order="C")
    out[: len(found)] = found[:size]
    return _wrapped(out)


@public(method=True)
@short("nonzero")
@per_example()
def argwhere(input: Tensor) -> Tensor:
    """Return the indices of all nonzero elements, one row per element; see `nonzero`.

    Example:
        >>> torch.argwhere(torch.tensor([[0, 1], [2, 0]]))
        tensor([[0, 1],
                [1, 0]])
    """
    return nonzero(input)
