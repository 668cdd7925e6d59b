"""Sorting, unique elements, counting, searching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.core.complex import refuse
from tinytorch.core.mode import short
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.kernels import sort as kernels
from tinytorch.kernels.checks import refused, tensor_name
from tinytorch.kernels.dtypes import RARE
from tinytorch.kernels.indexing import check_bounds
from tinytorch.kernels.intp import as_int64, as_intp
from tinytorch.kernels.meta import is_meta
from tinytorch.kernels.programs import as_array
from tinytorch.kernels.reduce import in_rows, int_of
from tinytorch.ops.arguments import also_by, check_tensor, not_derived, not_implemented, op_of, unless_scalar
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.index import _INT64
from tinytorch.ops.reduce import selection
from tinytorch.ops.register import public
from tinytorch.ops.scatter import _scattered

# Sorting ------------------------------------------------------------------------------------------


def _back(g: Any, index: Tensor, shape: tuple[int, ...], dim: int) -> Tensor:
    """Scatter the gradients of the sorted elements back to their original positions."""
    return _scattered(g[0], shape, dim, index, True) if shape else g[0]


_sort, _sort_stable = (selection(kernels.sort, "sort", _back, overload=k) for k in range(2))
_topk = selection(kernels.topk, "topk", _back, refuses=unless_scalar("topk_cpu"))


@public(method=True, out="exact")
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
    """Return the elements sorted along a dimension, and their indices, as a named tuple `(values, indices)`.

    Sorting is always stable: equal elements keep their order.

    Example:
        >>> torch.sort(torch.tensor([3, 1, 2])).indices
        tensor([1, 2, 0])
    """
    return (_sort if stable is None else _sort_stable)(input, dim, descending)


@public(method=True, out="exact")
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """Return the indices that sort a tensor along a dimension; see `sort`.

    Example:
        >>> torch.argsort(torch.tensor([3.0, 1.0, 2.0]))
        tensor([1, 2, 0])
    """
    return sort(input.detach(), dim, descending)[1]


@public(method=True, out="exact")
def msort(input: Tensor) -> Tensor:
    """Return the elements sorted along the first dimension.

    Example:
        >>> torch.msort(torch.tensor([[3, 1], [2, 4]]))
        tensor([[2, 1],
                [3, 4]])
    """
    return sort(input, 0)[0]


@public(method=True, out="exact")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Return the k largest elements along a dimension, and their indices, as a named tuple `(values, indices)`.

    False for `largest` returns the k smallest. The result is always sorted. Among equal elements, the choice and the
    order may differ from PyTorch.

    Example:
        >>> torch.topk(torch.tensor([1, 4, 2]), 2).values
        tensor([4, 2])
    """
    return _topk(input, k if type(k) is int else int_of(k, "topk", "k"), dim, largest)


_UNIQUE: Any = {"data_dependent": True, "outputs": 3, "nondiff": (1, 2)}
_unique2 = op_of(kernels.unique2, batch="dynamic", x=not_derived("_unique2"), **_UNIQUE)
_unique_dim = op_of(kernels.unique_dim, batch="dynamic", x=not_derived("unique_dim"), **_UNIQUE)
_unique_runs = op_of(
    kernels.unique_runs, batch="dynamic", x=not_derived("unique_consecutive"), name="UniqueConsecutive", **_UNIQUE
)


@public(python=True, method=True)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements in ascending order (NaNs are all distinct), or a tuple with inverse and counts.

    `return_inverse`: also the index into the distinct elements for each input element; `return_counts`: also the number
    of occurrences of each. `dim`: compare the slices along this dimension instead of single elements.

    Example:
        >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    found = _unique2(input) if dim is None else _unique_dim(input, dim)
    return _asked_for(found, return_inverse, return_counts)


@public(python=True, method=True)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return one element of each run of equal elements; for the arguments see `unique`.

    Example:
        >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    check_tensor(input, "unique_consecutive")
    return _asked_for(_unique_runs(input, dim), return_inverse, return_counts)


def _asked_for(found: Sequence[Tensor], return_inverse: bool, return_counts: bool) -> Any:
    values, inverse, counts = found
    results = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return results if len(results) > 1 else values


# Counting and searching ---------------------------------------------------------------------------


@public(method=True)
@per_example()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return the number of occurrences of each integer from 0 on in a vector, or the sum of their weights.

    `weights` is a vector of the same length; `minlength` the minimum length of the result.

    Example:
        >>> torch.bincount(torch.tensor([0, 2, 2]))
        tensor([1, 0, 2])
    """
    array = input._array
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if array.dtype.kind not in "iu" or array.dtype.char in RARE:
        raise refused("bincount_cpu", array)
    if array.ndim != 1 or (array.size and array.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights._array.shape != array.shape and array.size:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if weights is None or not array.size:
        return wrap(as_int64(np.bincount(as_intp(array), minlength=minlength)))
    return _bincount(weights.double() if weights.dtype.is_complex else weights, array, minlength)


_bincount = op_of(
    kernels.bincount, batch="dynamic", data_dependent=True, weights=not_implemented("bincount"), name="NotImplemented"
)


@public(out="searchsorted")
@short("search", kernels.search, 0)
@per_example()
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the index at which each value would be inserted to keep the sequence (or each of its rows) sorted.

    The sequence (n,) or (*, n) is ascending along the last dimension, or sorted by the indices `sorter`; the values are
    a tensor of any shape for a vector, (*, m) for rows, or a number. `right`, or "right" as `side`, inserts after equal
    elements, not before them.

    Example:
        >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 6]))
        tensor([1, 3])
    """
    refuse("searchsorted", sorted_sequence, input)
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    sequence = sorted_sequence._array
    values = input._array if isinstance(input, Tensor) else np.asarray(input)
    if not sequence.ndim:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if sequence.ndim > 1 and not values.ndim:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we "
            f"got boundaries tensor dim({sequence.ndim}) and input value's dim(0) numel(1)"
        )
    if sequence.ndim > 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(sequence.shape)} and input "
            f"value tensor {list(values.shape)}"
        )
    if sorter is not None:
        order = sorter._array
        if order.shape != sequence.shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(sequence.shape)} and got sorter tensor {list(order.shape)}"
            )
        if order.dtype != _INT64:
            raise RuntimeError(
                f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {tensor_name(order)}"
            )
        if not is_meta(order):
            check_bounds(order, sequence.shape[-1], 0, RuntimeError, "torch.searchsorted(): sorter index out of range")
        sequence = np.take_along_axis(sequence, order, -1)
    if values.dtype != sequence.dtype:
        rank = 0 if not isinstance(input, Tensor) else 2 if values.ndim else 1
        kind = dtypes.of_number(input) if rank == 0 else input.dtype
        common = dtypes.result_dtype((sorted_sequence.dtype, 2), (kind, rank)).numpy
        sequence, values = sequence.astype(common), values.astype(common)
    if sequence.dtype.char in RARE and values.size:
        raise refused("searchsorted_out_cpu", sequence)
    found = in_rows(as_array(kernels.search(sequence, values, right or side == "right")))
    return wrap(found.astype(np.int32 if out_int32 else _INT64, copy=False))


@public(out="searchsorted")
@short("search", kernels.search, 1)
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Return for each value the index of its bucket between ascending boundaries, a vector; see `searchsorted`.

    `right`: a value equal to a boundary belongs to the bucket above the boundary, not below it.

    Example:
        >>> torch.bucketize(torch.tensor([1, 4, 9]), torch.tensor([2, 5]))
        tensor([0, 1, 2])
    """
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@public(out="exact")
@also_by(element="elements", test_element="test_elements")
@per_example()
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Return for each of `elements` whether it is in `test_elements` (with `invert`: whether it is not).

    One of them may be a number. `assume_unique` has no effect.

    Example:
        >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2]))
        tensor([False,  True, False])
    """
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError(
            "isin() received an invalid combination of arguments - got "
            f"({type(elements).__name__}, {type(test_elements).__name__}), but expected a Tensor among them"
        )
    given, among = (each._array if isinstance(each, Tensor) else np.asarray(each) for each in (elements, test_elements))
    if given.dtype.kind == "b" or among.dtype.kind == "b":
        raise RuntimeError("Unsupported input type encountered for isin(): Bool")
    for each in (given, among):
        if each.dtype.kind == "c":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {tensor_name(each)}")
    if isinstance(test_elements, Tensor) and among.dtype.char in RARE:
        raise refused("isin_default_cpu", among)
    return wrap(as_array(np.isin(given, among, invert=invert)))


@public(python=True)
@per_example()
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Return indices of a flattened tensor of `shape`, ints or an int, as one index tensor per dimension.

    Example:
        >>> torch.unravel_index(torch.tensor([3, 7]), (2, 4))
        (tensor([0, 1]), tensor([3, 3]))
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    array = indices._array
    if array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    dtypes.promote_types(indices.dtype, dtypes.int64)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if array.size and 0 in sizes:
        raise RuntimeError("ZeroDivisionError")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if not sizes:
        return ()
    steps = np.asarray([int(np.prod(sizes[d + 1 :])) for d in range(len(sizes))], like=array)
    # As in PyTorch, out-of-range indices wrap around without an error, and the results share one array.
    found = array[..., None] // steps % np.asarray(sizes, like=array)
    return tuple([wrap(found[..., d]) for d in range(len(sizes))])
