"""Order statistics, histograms, finite differences, segment reductions.

The gradient of an op that selects elements goes to the selected elements, as in PyTorch. Quantiles, differences and
most segment reductions are compositions of other ops.
"""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.core.mode import recording
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.kernels import reduce as reductions
from tinytorch.kernels import statistics as kernels
from tinytorch.kernels.checks import refused
from tinytorch.kernels.dtypes import FLOATS
from tinytorch.kernels.meta import known
from tinytorch.kernels.reduce import int_of
from tinytorch.ops import return_types
from tinytorch.ops.arguments import check_elements, not_implemented, op_of, unless_empty, unless_scalar
from tinytorch.ops.arithmetic import ceil, floor, lerp, round
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.compare import logical_xor
from tinytorch.ops.create import zeros_like
from tinytorch.ops.index import index_select
from tinytorch.ops.join import cat
from tinytorch.ops.masks import where
from tinytorch.ops.reduce import selection
from tinytorch.ops.register import public
from tinytorch.ops.scatter import gather, index_reduce
from tinytorch.ops.sequences import linspace
from tinytorch.ops.shape import movedim, narrow, reshape, squeeze
from tinytorch.ops.sort import sort

_INT64 = np.dtype(np.int64)


# One element along a dimension --------------------------------------------------------------------


_mode = selection(kernels.mode, "mode", refuses=unless_empty("mode_cpu", scalar=True))


@public(method=True, out="mode")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """Return `(values, indices)`: the most frequent element along `dim`, of ties the smallest, and its last index.

    Example:
        >>> torch.mode(torch.tensor([3, 1, 2, 1]))
        torch.return_types.mode(
        values=tensor(1),
        indices=tensor(3))
    """
    return _mode(input, reductions.axis_of(dim, input._array.ndim, "mode"), keepdim)


_kthvalue = selection(kernels.kthvalue, "kthvalue", refuses=unless_scalar("kthvalue_cpu"))


@public(method=True, out="kthvalue")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Return `(values, indices)` of the k-th smallest element along `dim`, counted from 1; NaN counts as the largest.

    Among equal elements, `indices` may differ from PyTorch's choice.

    Example:
        >>> torch.kthvalue(torch.tensor([3.0, 1.0, 2.0]), 2)
        torch.return_types.kthvalue(
        values=tensor(2.),
        indices=tensor(2))
    """
    axis = reductions.axis_of(dim, input._array.ndim, "kthvalue")
    return _kthvalue(input, reductions.int_of(k, "kthvalue", "k"), axis, keepdim)


# Quantiles ----------------------------------------------------------------------------------------


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(name: str, input: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str, skip_nan: bool) -> Tensor:
    x, scalar = input, not isinstance(q, Tensor)
    if scalar and (isinstance(q, (str, bool)) or not isinstance(q, (int, float, np.number))):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, {type(q).__name__}), but "
            "expected (Tensor input, Tensor or float q, int dim, bool keepdim, *, str interpolation)"
        )
    if scalar and not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
    axis = None if dim is None else reductions.axis_of(dim, x._array.ndim, name)
    if not x._array.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if scalar:
        q = wrap(np.full((), q, x._array.dtype, like=x._array))
    if q._array.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype != x.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if known(lambda q: ~((q >= 0) & (q <= 1)).all(), q._array):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    shape = x._array.shape
    if axis is None or not shape:
        rows = reshape(x, (-1,))
        kept = (1,) * len(shape)
    else:
        rows = movedim(x, axis, -1)
        kept = (*shape[:axis], 1, *shape[axis + 1 :])
    kept = kept if keepdim else tuple(rows._array.shape[:-1])
    # The final reshape precedes the move of the quantiles to the front, so that it needs no copy.
    ranked = sort(rows, -1)[0]
    last = ranked._array.shape[-1] - 1
    points = reshape(q, (-1,))
    complete = known(lambda x: not np.isnan(x).any(), ranked._array)  # (not known of batches)
    if skip_nan and not complete:
        ranks = points * (ranked.isnan().logical_not().sum(-1, keepdim=True) - 1).clamp(min=0).to(ranked.dtype)
    else:
        ranks = (points * last).expand((*ranked._array.shape[:-1], points._array.shape[0]))
    if not (skip_nan or complete):  # NaN sorts last, so a row with a NaN selects its last element
        ranks = ranks.masked_fill(ranked.isnan().any(-1, keepdim=True), last)
    if interpolation in ("lower", "higher", "nearest"):
        choose: Any = {"lower": floor, "higher": ceil, "nearest": round}[interpolation]
        out = gather(ranked, -1, choose(ranks.detach()).long())
    else:
        below, above = floor(ranks.detach()), ceil(ranks.detach())
        share = ranks - below if interpolation == "linear" else 0.5
        out = lerp(gather(ranked, -1, below.long()), gather(ranked, -1, above.long()), share)
    if not q._array.ndim:
        return reshape(squeeze(out, -1), kept)
    return movedim(reshape(out, (*kept, q._array.shape[0])), -1, 0)


@public(method=True, out="quantile", autocast="float32")
def quantile(input: Tensor, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """Return the quantiles `q` of all elements, or along `dim`; NaN if an element is NaN.

    `q` is a number in [0, 1], or a vector of the dtype of `input`, float32 or float64, whose dimension is the first one
    of the result. `interpolation` between two elements is "linear", "lower", "higher", "midpoint" or "nearest".

    Example:
        >>> torch.quantile(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0.25, 0.5]))
        tensor([1.5000, 2.0000])
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, skip_nan=False)


@public(method=True, out="quantile", autocast="float32")
def nanquantile(
    input: Tensor, q: Any, dim: Any = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """Return the quantiles of the elements that are not NaN, with the arguments of `quantile`.

    Example:
        >>> torch.nanquantile(torch.tensor([1.0, torch.nan, 3.0]), 0.5)
        tensor(2.)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, skip_nan=True)


# Histograms ---------------------------------------------------------------------------------------


_histogram = op_of(
    kernels.histogram,
    x=not_implemented("histogram"), weight=not_implemented("histogram"), outputs=0, name="NotImplemented",
)  # fmt: skip


def _bin_edges(columns: list[Any], bins: Sequence[Any], range: Any) -> list[Any]:
    """Return the bin edges of each column, from the numbers of bins and the range."""
    bounds = None
    if range is not None:
        if len(range) != 2 * len(columns):
            raise RuntimeError(
                f"torch.histogramdd: for a {len(columns)}-dimensional histogram range should have "
                f"{2 * len(columns)} elements, but got {len(range)}"
            )
        bounds = [(range[2 * d], range[2 * d + 1]) for d in builtins.range(len(columns))]
    outer = kernels.outer_edges(columns, bounds, "torch.histogramdd", 0.5)
    made = []
    for d, (count, (low, high)) in enumerate(zip(bins, outer, strict=True)):
        _check_bins(count, d)
        dtype = dtypes.from_numpy_dtype(columns[d].dtype)
        edge = linspace(float(low), float(high), count + 1, dtype=dtype)._array
        made.append(np.asarray(edge, like=columns[0]))
    return made


def _check_bins(count: int, d: int) -> None:
    if count <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {count} for dimension {d}")


def _given_edges(input: Tensor, bins: Sequence[Tensor]) -> list[Any]:
    """Return copies of the edge vectors `bins` after checking them."""
    check_elements(bins, 1)
    for d, each in enumerate(bins):
        if each._array.ndim != 1:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have one dimension, but got "
                f"{each._array.ndim} dimensions in the bins tensor for dimension {d}"
            )
        if each.dtype != input.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with "
                f"dtype {dtypes.C_NAMES[input.dtype.name]} and bins for dimension {d} with dtype "
                f"{dtypes.C_NAMES[each.dtype.name]}"
            )
        _check_bins(each._array.shape[0] - 1, d)
    return [each._array.copy() for each in bins]


def _check_histogram(input: Tensor, weight: Tensor | None, shape: tuple[int, ...], bounded: bool) -> None:
    # PyTorch has no kernel that computes the outer edges of 16-bit floats.
    if input._array.dtype.kind not in FLOATS or (input._array.dtype.itemsize == 2 and not bounded):
        raise refused("histogramdd", input._array)
    if weight is None:
        return
    if weight.dtype != input.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({dtypes.C_NAMES[input.dtype.name]}), and weight({dtypes.C_NAMES[weight.dtype.name]})"
        )
    if weight._array.shape != shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {list(shape)} and weight with shape "
            f"{list(weight._array.shape)}"
        )


@public(method=True, out="histogram")
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return the number of elements in each of `bins` equal bins of [min, max], in the dtype of the input.

    Elements outside the range, and NaN, are not counted; if `min == max`, it is from the minimum to the maximum of the
    input, which is of a floating dtype.

    Example:
        >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
        tensor([0., 2., 1., 0.])
    """
    if input._array.dtype.kind not in FLOATS:
        raise refused("histogram_cpu", input._array)
    _check_bins(bins, 0)
    given = None if min == max else [(min, max)]
    if given is None and not input._array.size:
        given = [(float(min), float(max))]
    counts: Tensor = _histc(input, bins, given)
    return counts


_histc = op_of(kernels.histc, x=None)


@public(method=True, out="histogram")
@per_example()
def histogram(
    input: Tensor, bins: Any = 100, *, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    """Return `(hist, bin_edges)`: the number of elements in each bin. The last bin includes its right edge.

    `bins` is their number, of equal width in `range`, by default from the smallest to the largest element; or a vector
    of ascending edges. Elements outside, and NaN, are not counted. With `weight`, one per element, `hist` has the sums
    of the weights; `density` normalizes it so that the integral over all bins is 1.

    Example:
        >>> torch.histogram(torch.tensor([1.0, 2.0, 1.0]), bins=2, range=(0.0, 3.0)).hist
        tensor([2., 1.])
    """
    if isinstance(bins, Tensor) and not bins._array.ndim and bins._array.dtype.kind in "iu":
        bins = int(bins)
    if isinstance(weight, Tensor):
        weight = weight.reshape(-1)
    _check_histogram(input, weight, (input._array.size, 1), range is not None or isinstance(bins, Tensor))
    column = input._array.reshape(-1)
    if isinstance(bins, Tensor):
        (edges,) = _given_edges(input, [bins])
    else:
        _check_bins(bins, 0)
        (edges,) = _bin_edges([column], [bins], range)
    return return_types.histogram(_histogram(input, weight, (column,), (edges,), density))


@public()
@per_example()
def histogramdd(
    input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None, density: bool = False
) -> Any:
    """Return `(hist, bin_edges)`: the number of points in each cell of a D-dimensional grid, and D vectors of edges.

    The points are (*, D), float32 or float64. `bins` is one number for all or one for each dimension; or D vectors of
    edges. `range` has two numbers per dimension; `weight` and `density` are as for `histogram`.

    Example:
        >>> torch.histogramdd(torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]), bins=[2, 2]).hist
        tensor([[0., 1.],
                [1., 1.]])
    """
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if not isinstance(bins, (tuple, list)):
        bins = (int_of(bins, "histogramdd", "bins"),) * shape[-1]
    each = tuple(bins)
    if len(each) != shape[-1]:
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    given = [edge for edge in each[:1] if isinstance(edge, Tensor)]
    # (PyTorch needs no kernel for the outer edges of no columns.)
    _check_histogram(input, weight, shape, range is not None or bool(given) or not each)
    points = input._array.reshape(math.prod(shape[:-1]), shape[-1])
    columns = [points[:, d] for d in builtins.range(shape[-1])]
    edges = _given_edges(input, each) if given else _bin_edges(columns, each, range)
    hist, *made = _histogram(input, weight, tuple(columns), tuple(edges), density)
    # Edge tensors passed as `bins` are returned as they are, as in PyTorch.
    return return_types.histogramdd((hist, each if given else tuple(made)))


# Differences --------------------------------------------------------------------------------------


@public(method=True, out="castable")
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return the `n`-th differences of neighbours along `dim`; for booleans, whether neighbours differ.

    `prepend` and `append` are concatenated before and after `input` along `dim`.

    Example:
        >>> torch.diff(torch.tensor([1, 3, 2]))
        tensor([ 2, -1])
    """
    if not input._array.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    axis = reductions.axis_of(dim, input._array.ndim, "diff")
    shape = input._array.shape
    for each in (prepend, append):
        if each is None:
            continue
        if each._array.ndim != len(shape):
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for d, (have, want) in enumerate(zip(each._array.shape, shape, strict=True)):
            if d != axis and have != want:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({d}) = {want}, but got tensor.size({d}) = {have}"
                )
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:  # without `prepend` and `append`, as in PyTorch
        return input.clone()
    parts = [each for each in (prepend, input, append) if each is not None]
    out: Tensor = cat(parts, axis) if len(parts) > 1 else input
    for _ in range(min(n, out._array.shape[axis])):
        length = out._array.shape[axis] - 1
        after, before = narrow(out, axis, 1, length), narrow(out, axis, 0, length)
        out = logical_xor(after, before) if out.dtype is dtypes.bool else after - before
    return out.clone() if out is input else out


@public()
def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    """Estimate the partial derivatives of a function from its values on a grid, as one tensor per dimension.

    `spacing` is a number, one number per dimension, or one vector of coordinates per dimension; `dim` a dimension, or
    several; None for all. Interior points use central differences, of second order even on nonuniform grids; the ends,
    one-sided ones of the order `edge_order`, 1 or 2.

    Example:
        >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0, 16.0]))
        (tensor([3., 4., 6., 7.]),)
    """
    if isinstance(spacing, Tensor):
        if spacing._array.ndim:
            raise TypeError(
                "gradient() received an invalid combination of arguments - got (Tensor, spacing=Tensor), but expected "
                "spacing to be a number or a tuple"
            )
        spacing = spacing.item()
    shape = input._array.shape
    axes: Any
    if dim is None:
        axes = tuple(range(len(shape)))
    elif isinstance(dim, (tuple, list)):
        axes = reductions.axes_of(dim, len(shape), "gradient") or ()
    else:
        axes = (reductions.axis_of(dim, len(shape), "gradient"),)
    if not isinstance(spacing, (tuple, list)):
        steps: Sequence[Any] = [1.0 if spacing is None else spacing] * len(axes)
    else:
        steps = spacing
        if len(steps) != len(axes):
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                f"'self.dim() = {len(shape)}', since dim argument was not given, but got a list of length {len(steps)}"
                if dim is None
                else "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to "
                f"have the same length, but got a spacing argument of length {len(steps)} and a dim argument of length "
                f"{len(axes)}."
            )
    for each in steps:
        if isinstance(each, Tensor) and each._array.ndim != 1:
            raise RuntimeError(
                "torch.gradient expected each element of spacing to have one dimension, but got an element with "
                f"{each._array.ndim} dimensions!"
            )
    if input.dtype is dtypes.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if any(shape[axis] <= edge_order for axis in axes):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    return tuple([_slope(input, axis, step, edge_order) for axis, step in zip(axes, steps, strict=True)])


def _slope(x: Tensor, axis: int, step: Any, edge_order: int) -> Tensor:
    length = x._array.shape[axis]
    behind = (1,) * (x._array.ndim - axis - 1)

    def at(begin: int, count: int = 1) -> Tensor:
        return narrow(x, axis, begin % length, count)

    if isinstance(step, Tensor):
        if step._array.shape[0] != length:
            raise RuntimeError(
                f"torch.gradient expected the coordinates of dimension {axis} to be as many as its elements "
                f"({length}), but got {step._array.shape[0]}"
            )
        short = step._array.dtype.kind == "i" or step._array.dtype == np.uint8  # (PyTorch refuses wider unsigned ones)
        gaps = reshape(diff(step.long() if short else step), (-1, *behind))
    else:
        gaps = None

    def gap(begin: int, count: int = 1) -> Any:
        return step if gaps is None else narrow(gaps, 0, begin % (length - 1), count)

    inner = length - 2
    if gaps is None:
        middle = (at(2, inner) - at(0, inner)) / (2 * step) if inner > 0 else None
    elif inner > 0:
        h, k = gap(0, inner), gap(1, inner)  # the distances to the previous and to the next point
        middle = -k / (h * (h + k)) * at(0, inner) + (k - h) / (h * k) * at(1, inner) + h / (k * (h + k)) * at(2, inner)
    if edge_order == 2 and gaps is None:  # (integers wrap where PyTorch's do)
        first, last = ((at(a) * -1.5 + at(b) * 2 - at(c) * 0.5) / step for a, b, c in ((0, 1, 2), (-1, -2, -3)))
        last = -last
    elif edge_order == 1:
        first, last = (at(1) - at(0)) / gap(0), (at(-1) - at(-2)) / gap(-1)
    else:
        h, k = gap(0), gap(1)
        first = -(2 * h + k) / (h * (h + k)) * at(0) + (h + k) / (h * k) * at(1) - h / (k * (h + k)) * at(2)
        h, k = gap(-2), gap(-1)
        last = k / (h * (h + k)) * at(-3) - (h + k) / (h * k) * at(-2) + (h + 2 * k) / (k * (h + k)) * at(-1)
    return cat([first, middle, last] if inner > 0 else [first, last], axis)


@public()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all combinations of `r` elements of a vector as rows, in the order of `itertools.combinations`.

    `with_replacement`: an element may occur several times.

    Example:
        >>> torch.combinations(torch.tensor([1, 2, 3]))
        tensor([[1, 2],
                [1, 3],
                [2, 3]])
    """
    array = input._array
    if array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return wrap(np.empty_like(array, shape=(0,)))
    of = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.fromiter(itertools.chain.from_iterable(of(range(len(array)), r)), _INT64)
    return reshape(index_select(input, 0, wrap(places)), (-1, r) if places.size else (0, r))


# Segments -----------------------------------------------------------------------------------------


def _extreme_slope(g: Any, rows: Any, out: Any, which: Any) -> Any:
    """Return the gradient of segment extremes: elements that tie for the extreme, or are NaN, share it evenly."""
    chosen = (rows == out.index_select(0, which)) | rows.isnan()
    count = zeros_like(out).index_add(0, which, chosen.to(rows.dtype)).clamp(min=1)
    return where(chosen, (g / count).index_select(0, which), 0.0)


def _product_slope(g: Any, rows: Any, out: Any, which: Any, first: Any) -> Any:
    """Return the gradient of segment products: product / element, or for 0 and NaN the product of the others."""

    def each(x: Any) -> Any:
        return x.index_select(0, which)

    zero, nan = rows == 0, rows.isnan()
    usual = where(zero | nan, 1.0, rows)
    zeros, nans = (
        each(zeros_like(out).index_add(0, which, it.to(rows.dtype))) - it.to(rows.dtype) for it in (zero, nan)
    )
    others = each(index_reduce(first, 0, which, usual, "prod"))
    others = others * where(nans > 0, math.nan, where(zeros > 0, 0.0, 1.0))
    return each(g) * where(zero | nan, others, each(out) / usual)


@op(kernels.already_reduced, name="SegmentReduce", rows=_extreme_slope)
def _extreme(rows: Any, reduced: Any, which: Any, first: Any) -> Any:
    """Return the extremes of segments, `reduced`."""


@op(kernels.already_reduced, name="SegmentReduce", rows=_product_slope)
def _product(rows: Any, reduced: Any, which: Any, first: Any) -> Any:
    """Return the products of segments, `reduced`."""


@public(also="_segment_reduce")
@per_example()
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """Reduce each of the consecutive segments along `axis` to one element.

    `reduce` is "sum", "mean", "max" (or "amax"), "min" (or "amin") or "prod", of floating-point numbers. `lengths` are
    those of the segments, (*, segments), where * are the dimensions before `axis`; or `offsets` has the start of each
    segment and the end of the last one, (*, segments + 1). `unsafe` does not check that the lengths sum to the size of
    `axis`; `initial` is the initial value of every reduction. `indices` are not supported, as in PyTorch.

    Example:
        >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([1, 2]))
        tensor([1., 5.])
    """
    reduce = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if reduce not in ("sum", "mean", "max", "min", "prod"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    at = reductions.axis_of(axis, data._array.ndim, "segment_reduce")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    given = (lengths if lengths is not None else offsets)._array  # type: ignore[union-attr]
    if given.dtype.kind != "i" or given.dtype.itemsize < 4:
        raise refused("_segment_reduce_lengths_cpu_kernel1", given)
    if data._array.dtype.kind not in FLOATS:
        raise refused("_segment_reduce_cpu", data._array)
    if data._array.ndim < given.ndim:
        raise RuntimeError("Expected data.dim() >= lengths_value.dim() to be true, but got false.")
    if at != given.ndim - 1:
        name = "offsets" if lengths is None else "lengths"
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}.")
    shape = data._array.shape
    if lengths is None and not given.shape[-1]:
        asked = [*shape[:at], -1, *shape[at + 1 :]]
        raise RuntimeError(f"Trying to create tensor with negative dimension -1: {asked}")
    if lengths is not None and not unsafe and not given.size:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    counts = np.diff(given, axis=-1) if lengths is None else given
    if known((counts < 0).any()):
        raise RuntimeError("lengths contains negative value!")
    filled = counts.sum(axis=-1)
    if lengths is not None and not unsafe and known((filled != shape[at]).any()):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            "!unsafe."
        )
    outer, segments, inner = shape[:at], counts.shape[-1], shape[at + 1 :]
    rows = reshape(data, (math.prod(shape[: at + 1]), *inner))
    many = math.prod(outer)
    begin = given[..., 0] if lengths is None else np.zeros(outer, _INT64, like=given)
    if known((begin != 0).any()) or known((filled != shape[at]).any()):  # drop rows that are in no segment
        steps = np.arange(shape[at], like=data._array)
        inside = (steps >= begin[..., None]) & (steps < (begin + filled)[..., None])
        rows = index_select(rows, 0, wrap(np.flatnonzero(inside)))
    which: Tensor = wrap(kernels.segments_of(counts, rows._array.shape[0]))
    target = (many * segments, *inner)
    empty = {"sum": 0.0, "mean": 0.0, "max": -math.inf, "min": math.inf, "prod": 1.0}[reduce]
    first: Tensor = wrap(np.full_like(data._array, empty if initial is None else initial, shape=target))
    if reduce in ("sum", "mean"):
        out = first.index_add(0, which, rows)
    elif reduce == "prod" and known(np.isfinite(rows._array).all()) and known(np.isfinite(first._array).all()):
        out = index_reduce(first, 0, which, rows, "prod")
    else:
        with recording(False):
            if reduce == "prod":
                out = index_reduce(first, 0, which, rows, "prod")
            else:
                out = index_reduce(first, 0, which, rows, f"a{reduce}", include_self=False)
                if initial is not None:
                    beyond = out < first if reduce == "max" else out > first
                    out = where(beyond | (first != first), first, out)
        out = (_product if reduce == "prod" else _extreme)(rows, out._array, which, first)
    if reduce == "mean":
        sizes = counts.reshape((-1,) + (1,) * len(inner)).astype(data._array.dtype)
        if initial is not None:
            sizes = np.maximum(sizes, sizes.dtype.type(1))
        out = out / wrap(sizes)
    return reshape(out, (*outer, segments, *inner))
