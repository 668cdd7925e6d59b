"""Gather and scatter by an index tensor, along a dimension or on the flattened tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.complex import HOLOMORPHIC, OWN
from tinytorch.core.inplace import check_overlap
from tinytorch.core.mode import ForwardLevel, alike, in_vmap, local, short
from tinytorch.core.op import in_place, op
from tinytorch.core.tensor import Tensor, constant, wrap
from tinytorch.core.warning import warn
from tinytorch.kernels import indexing
from tinytorch.kernels import scatter as kernels
from tinytorch.kernels.checks import refused, tensor_name
from tinytorch.kernels.dtypes import RARE
from tinytorch.kernels.indexing import scattered
from tinytorch.kernels.meta import is_meta, within
from tinytorch.kernels.reduce import axis_of
from tinytorch.ops.arguments import check_tensor, op_of, unless_empty
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.index import _INT64, index_put
from tinytorch.ops.join import cat
from tinytorch.ops.register import public
from tinytorch.ops.shape import embed, expand, reshape
from tinytorch.ops.writing import writing

# Gather and scatter -------------------------------------------------------------------------------

#: Declaration arguments that several ops share.
_FACTS: dict[str, Any] = {"complex": OWN, "refuses": unless_empty("scatter_gather_tensor_cpu"), "index": None}


@public(method=True, out="gather")
@op(kernels.gather, **_FACTS, x=lambda g, x_shape, dim, index: _scattered(g, x_shape, dim, index, False))
def gather(x: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """Return the elements at `index` along a dimension: for dim 0, `out[i, j] = x[index[i, j], j]`.

    `index` is int64 or int32, with as many dimensions as `x`; in dimensions other than `dim` not larger than `x`. The
    result has its shape. `sparse_grad` has no effect: gradients are dense.

    Example:
        >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))
        tensor([[1, 1],
                [4, 3]])
    """


_scattered = op_of(
    scattered, complex=OWN, name="GatherBackward", x=lambda g, dim, index: gather(g, dim, index), index=None
)


def _gathered_src(g: Tensor, dim: int, index: Tensor, src_shape: tuple[int, ...]) -> Tensor:
    """Return the gradient of `src`, with zeros where `src` is larger than the index."""
    taken = gather(g, dim, index)
    shape = taken._array.shape
    if shape == src_shape:
        return taken
    if not taken._array.size:
        return constant(np.zeros(src_shape, g._array.dtype, like=g._array))
    if len(shape) != len(src_shape):  # one of them is 0-dim
        if math.prod(src_shape) == 1:
            return reshape(taken, src_shape)
        taken, shape = reshape(taken, (1,)), (1,)
    return embed(taken, src_shape, tuple([slice(n) for n in shape]))


_scatter = writing(
    **_FACTS,
    names=("ScatterBackward1", "ScatterBackward0"),
    x=lambda g, dim, index: _scatter[0][0](g, dim, index, 0),
    src=_gathered_src,
)(kernels.scatter)


_scatter_add = writing(**_FACTS, names=("ScatterAddBackward0",), x=lambda g: g, src=_gathered_src)(kernels.scatter_add)


def _no_gradient(g: Tensor) -> Any:
    raise RuntimeError("the derivative for 'aten::scatter' with reduce='multiply' is not implemented")


_scatter_multiply = writing(complex=OWN, names=("NotImplemented",), x=_no_gradient, index=None, src=_no_gradient)(
    kernels.scatter_multiply
)


def _scatterer(reduce: str | None, src: Any) -> Any:
    """Return the pair (out-of-place op, in-place op) for a call of scatter."""
    if reduce is None:
        return _scatter[isinstance(src, Tensor)]
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if isinstance(src, Tensor):
        warn(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
            "PyTorch release. Use torch.scatter_reduce instead for more reduction options.",
            UserWarning, once=True,
        )  # fmt: skip
    return _scatter_add if reduce == "add" else _scatter_multiply


def _source(src: Any, value: Any) -> Any:
    if src is None and value is None:
        raise TypeError('scatter() missing 1 required positional arguments: "src"')
    if isinstance(value, Tensor) and not value._array.ndim:
        value = value.item()
    return value if src is None else src


@public(method=True, out="scatter")
@short("of_value", *[function for function, _ in _scatter], False)
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """Return a copy with `src` written at `index` along a dimension: for dim 0, `out[index[i, j], j] = src[i, j]`.

    `index` is int64 or int32, with as many dimensions as `input`; `src` a tensor of the same dtype, at least as large
    as the index, or a number, also as `value`. `reduce` "add" or "multiply" combines it with the elements of `input`.

    Example:
        >>> torch.scatter(torch.zeros(2, 3), 1, torch.tensor([[2], [0]]), 1.0)
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """
    src = _source(src, value)
    return _scatterer(reduce, src)[0](input, dim, index, src)


@public("", method="scatter_")
@short("of_value", *[function for _, function in _scatter], False)
def scatter_(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """In-place version of `scatter`."""
    src = _source(src, value)
    return _scatterer(reduce, src)[1](self, dim, index, src)


@public(method=True, out="scatter")
@alike(_scatter_add[0])
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy with `src` added at `index` along a dimension; repeated indices add up. See `scatter`.

    Example:
        >>> torch.scatter_add(torch.zeros(3), 0, torch.tensor([0, 0, 2]), torch.ones(3))
        tensor([2., 0., 1.])
    """
    check_tensor(src, "scatter_add", "src", 4)
    return _scatter_add[0](input, dim, index, src)


scatter_add_ = public("", method="scatter_add_")(_scatter_add[1])


def _extreme_rule(
    g: Tensor, needs: tuple[bool, ...], x: Tensor, dim: int, index: Tensor, src: Tensor, how: str, include_self: bool,
    out: Tensor,
) -> Any:  # fmt: skip
    """Return the gradients of "amax" and "amin": divided evenly among all elements equal to the result."""
    part_of_src = src if src._array.shape == index._array.shape else src[tuple([slice(n) for n in index.shape])]
    mine = (x == out).to(g.dtype)
    if not include_self:
        mine = _scatter[0][0](mine, dim, index, 0)
    theirs = (part_of_src == gather(out, dim, index)).to(g.dtype)
    share = g / _scatter_add[0](mine, dim, index, theirs)
    to_src = theirs * gather(share, dim, index)
    if to_src._array.shape != src._array.shape:
        to_src = embed(to_src, src._array.shape, tuple([slice(n) for n in index.shape]))
    return mine * share, None, to_src


def _kept_self(g: Tensor, dim: int, index: Tensor, include_self: bool) -> Tensor:
    """Return the gradient of `x`: zero at `index` unless `include_self`."""
    return g if include_self else _scatter[0][0](g, dim, index, 0)


_scatter_sum = op_of(
    kernels.scatter_sum,
    **_FACTS,
    name="ScatterReduce",
    x=lambda g, dim, index, include_self: _kept_self(g, dim, index, include_self),
    src=lambda g, dim, index, src_shape: _gathered_src(g, dim, index, src_shape),
)
_met = op_of(kernels.met, complex=OWN, index=None)


def _mean_rule(
    g: Tensor, needs: tuple[bool, ...], counts: Tensor | None, x_shape: tuple[int, ...], dim: int, index: Tensor,
    src_shape: tuple[int, ...], include_self: bool,
) -> Any:  # fmt: skip
    if counts is None:
        counts = _met(x_shape, dim, index, include_self)
    share = g / counts
    to_x = _kept_self(share, dim, index, include_self) if needs[0] else None
    return to_x, None, _gathered_src(share, dim, index, src_shape) if needs[2] else None


def _as_reduce(
    kernel: Callable[..., Any],
    joint: Callable[..., Any],
    *residuals: str,
    refuses: str = "scatter_gather_tensor_cpu",
    complex: str | None = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return the ops of `scatter_reduce` and `index_reduce` with a kernel, each with its in-place form."""
    facts: Any = {"joint": joint, "inputs": ("x", "index", "src"), "index": None, "residuals": residuals}
    scatter = op_of(kernel, name="ScatterReduce", refuses=unless_empty(refuses), complex=complex, **facts)
    index = op_of(kernel, name="IndexReduce", **facts)
    return (scatter, in_place(scatter)), (index, in_place(index))


def _scatter_prod_rule(
    g: Tensor, needs: tuple[bool, ...], x: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, out: Tensor
) -> Any:
    """Return the gradients of "prod": product / factor, or the product of the other factors if any factor is zero."""
    state = local.state
    if not (state.grad or any(isinstance(mode, ForwardLevel) for mode in state.modes or ())):
        to_x, to_src = _prod_grad(g, x, dim, index, src, include_self, out)
        return to_x, None, to_src
    part_of_src = src if src._array.shape == index._array.shape else src[tuple([slice(n) for n in index.shape])]
    if not is_meta(src._array) and not in_vmap() and part_of_src.all() and (not include_self or x.all()):
        share = g * out
        to_x = share / x if include_self else _scatter[0][0](g, dim, index, 0)
        to_src = gather(share, dim, index) / part_of_src
    else:
        to_x, to_src = _products_of_others(g, x, dim, index, part_of_src, include_self)
    if to_src._array.shape != src._array.shape:
        to_src = embed(to_src, src._array.shape, tuple([slice(n) for n in index.shape]))
    return to_x, None, to_src


@per_example("index")
def _products_of_others(
    g: Tensor, x: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool
) -> tuple[Tensor, Tensor]:
    """Return the gradients of "prod" from a matrix of factors with one column per output element."""
    shape = x._array.shape
    axis = axis_of(dim, len(shape), "scatter")
    places = indexing.flat(indexing.along(shape, axis, index._array))
    key = (wrap(indexing.ranks(places) + 1), wrap(places))
    factors = reshape(x, (1, -1))
    if not include_self:
        ones = wrap(np.ones(places.shape, x._array.dtype, like=x._array))
        factors = index_put(factors, (wrap(np.zeros_like(places)), key[1]), ones)
    count = int(key[0]._array.max()) if places.size else 0
    rest = wrap(np.ones((count, x._array.size), x._array.dtype, like=x._array))
    matrix = cat([factors, rest], 0)
    matrix = index_put(matrix, key, reshape(src, (-1,)))
    # product of the other factors = exclusive cumulative product from above * from below
    edge = wrap(np.ones((1, x._array.size), x._array.dtype, like=x._array))
    before = _product_before(cat([edge, matrix[:-1]], 0))
    after = _product_before(cat([edge, matrix.flip(0)[:-1]], 0)).flip(0)
    shares = reshape(g, (1, -1)) * before * after
    to_x = reshape(shares[0], shape)
    if not include_self:
        to_x = _scatter[0][0](to_x, dim, index, 0)
    return to_x, reshape(shares[key], index._array.shape)


def _product_before(x: Tensor) -> Tensor:
    return x.cumprod(0)


_prod_grad = op_of(
    kernels.prod_grad,
    complex=OWN,
    name="ScatterReduceBackward",
    outputs=2,
    g=None,
    x=None,
    index=None,
    src=None,
    out=None,
)
_mean = _as_reduce(
    kernels.scatter_mean, _mean_rule, "counts", refuses="scatter_gather_tensor_cpu_reduce_{4}", complex=OWN
)
_prod = _as_reduce(kernels.scatter_prod, _scatter_prod_rule, complex=HOLOMORPHIC)
_extreme = _as_reduce(kernels.scatter_extreme, _extreme_rule, refuses="scatter_gather_tensor_cpu_reduce_{4}")
#: By the name of the reduction: the op and its in-place form.
_SCATTER_REDUCTIONS = {
    "sum": (_scatter_sum, in_place(_scatter_sum)), "mean": _mean[0], "prod": _prod[0], "amax": _extreme[0],
    "amin": _extreme[0],
}  # fmt: skip
_INDEX_REDUCTIONS = {"amax": _extreme[1], "amin": _extreme[1], "mean": _mean[1], "prod": _prod[1]}


def _scatter_reducer(reduce: str) -> tuple[Callable[..., Any], Callable[..., Any], str]:
    """Return the op, its in-place form, and the name of the reduction ("max" and "min" are PyTorch's aliases)."""
    how = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    try:
        return (*_SCATTER_REDUCTIONS[how], how)
    except KeyError:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}") from None


@public(method=True, out="scatter")
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy with `src` reduced into the elements at `index` along a dimension; see `scatter`.

    `reduce` is "sum", "prod", "mean", "amax" or "amin". `include_self`: the elements of `input` at `index` take part.

    Example:
        >>> torch.scatter_reduce(torch.zeros(2), 0, torch.tensor([0, 0, 1]), torch.tensor([1.0, 5.0, -2.0]), "amax")
        tensor([5., 0.])
    """
    check_tensor(src, "scatter_reduce", "src", 4)
    reducer, _, how = _scatter_reducer(reduce)
    return reducer(input, dim, index, src, how, include_self)


@public("", method="scatter_reduce_")
def scatter_reduce_(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place version of `scatter_reduce`."""
    if src._cell is self._cell:
        check_overlap(self._array, src._array, False)
    _, reducer, how = _scatter_reducer(reduce)
    return reducer(self, dim, index, src, how, include_self)


@public(method=True, out="gather")
@per_example("index")
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy with the rows of `source` reduced into the rows at `index` along `dim`.

    `index` is an int64 or int32 vector with one index per row of `source`, which has the shape of `input` except in
    `dim`. `reduce` is "prod", "mean", "amax" or "amin". `include_self`: the elements of `input` at `index` take part.

    Example:
        >>> torch.index_reduce(torch.zeros(2), 0, torch.tensor([0, 0]), torch.tensor([1.0, 5.0]), "amax")
        tensor([5., 0.])
    """
    everywhere = _rows_everywhere(input, dim, index, source, reduce)
    return _INDEX_REDUCTIONS[reduce][0](input, dim, everywhere, source, reduce, include_self)


def _rows_everywhere(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> Tensor:
    """Expand the index vector of `index_reduce` to the shape of `source`, as `scatter_reduce` expects it."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    x, rows, places = input._array, source._array, index._array
    axis = indexing.rows_of("index_reduce", x, dim, places, rows)
    indexing.check_rows("index_reduce", x, axis, places, rows)
    if x.dtype.char in RARE and x.size:
        raise refused("index_func_", x)
    if not is_meta(places):
        indexing.check_bounds(places, x.shape[axis] if x.ndim else 1, axis, IndexError, "index out of range in self")
    wide = places.reshape((-1,) + (1,) * (x.ndim - axis - 1)) if x.ndim else places.reshape(())
    return wrap(np.broadcast_to(wide, rows.shape))


@public("", method="index_reduce_")
@per_example("index")
def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place version of `index_reduce`."""
    everywhere = _rows_everywhere(self, dim, index, source, reduce)
    if source._cell is self._cell:
        check_overlap(self._array, source._array, False)
    return _INDEX_REDUCTIONS[reduce][1](self, dim, everywhere, source, reduce, include_self)


# The flattened tensor -----------------------------------------------------------------------------


@public(method=True, out="take")
@op(
    kernels.taken,
    batch=lambda x, index: x.reshape(-1)[index],
    complex=OWN,
    refuses=unless_empty("take_cpu"),
    x=lambda g, x_shape, index: _taken_back(g, x_shape, index),
    index=None,
)
def take(x: Any, index: Any) -> Any:
    """Return the elements of the flattened tensor at `index` (int64, any shape).

    Example:
        >>> torch.take(torch.tensor([[4, 3, 5], [6, 7, 8]]), torch.tensor([0, 2, 5]))
        tensor([4, 5, 8])
    """


_taken_back = op_of(
    kernels.taken_back,
    batch=lambda x, shape, index: (
        x.new_zeros(math.prod(shape)).index_put((index.reshape(-1),), x.reshape(-1), True).reshape(shape)
    ),
    complex=OWN,
    name="TakeBackward",
    x=lambda g, index: take(g, index),
    index=None,
)


def _put_x(g: Tensor, index: Tensor, accumulate: bool) -> Tensor:
    if accumulate:
        return g
    zeros = constant(np.zeros(index._array.shape, g._array.dtype, like=g._array))
    return _put[0](g, index, zeros, False)


_put = writing(
    complex=OWN, refuses=unless_empty("take_put_cpu"), names=("PutBackward0",), prepare=indexing.copy_in_order,
    x=_put_x, index=None,
    source=lambda g, index, source_shape: reshape(take(g, index), source_shape),
)(kernels.put)  # fmt: skip


@public(method=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy with `source` written (with `accumulate`: added) at `index` of the flattened tensor.

    Example:
        >>> torch.put(torch.zeros(2, 2), torch.tensor([0, 3]), torch.tensor([1.0, 2.0]))
        tensor([[1., 0.],
                [0., 2.]])
    """
    return _put[0](input, index, source, accumulate)


@public("", method="put_")
def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """In-place version of `put`."""
    return _put[1](self, index, source, accumulate)


@public(method=True, out="gather")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return the elements at `indices` along `dim` (default: flattened); the other dimensions broadcast.

    Example:
        >>> x = torch.tensor([[3, 1], [2, 4]])
        >>> torch.take_along_dim(x, torch.argsort(x, dim=1), dim=1)
        tensor([[1, 3],
                [2, 4]])
    """
    shape, wanted = input._array.shape, indices._array.shape
    if dim is not None and len(shape) != len(wanted):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(shape)} dimensions for input, and {len(wanted)} dimensions for indices"
        )
    if dim is None:
        return gather(reshape(input, (-1,)), 0, reshape(indices, (-1,)))
    if indices._array.dtype != _INT64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {tensor_name(indices._array)}"
        )
    axis = axis_of(dim, len(shape), "take_along_dim")
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    places = indices._array
    length = shape[axis]
    if length and not (type(places) is np.ndarray and within(places, 0, length)):
        indices = indices.remainder(length)  # as in PyTorch, out-of-range indices wrap around
    common = [max(n, m) if 0 not in (n, m) else 0 for n, m in zip(shape, wanted, strict=True)]
    sizes, reached = list(common), list(common)
    sizes[axis], reached[axis] = shape[axis], wanted[axis]
    input, indices = (
        x if list(x._array.shape) == size else expand(x, size) for x, size in ((input, sizes), (indices, reached))
    )
    return gather(input, axis, indices)
