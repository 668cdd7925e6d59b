"""Convolutions of one to three spatial dimensions, as matrix products.

`conv`, `conv_input` and `conv_weight` are one trilinear form seen from three sides: with `x` the input, `w` the weight
and `y` the output, each returns the one that is missing. So each is the gradient of the others.

How: the padded images of a few samples are laid out by channels, `(C, phases, n, D, H * W)`. A stride of s splits each
dimension into s phases, so that the elements which one tap of the kernel meets are neighbours again. With rows of the
padded width, what a tap meets for all places of the output is one long run of memory, which moves as a block to the
matrix of columns `(C * taps, n * places)`; at the end of each row it has a few places more than the output (rows share
their padding, so that these are as few as can be), and these are left out when the result is stored. A product with the
weight `(O, C * taps)` does the rest, or, the other way, its transpose followed by adding the runs up again.

Each thread takes a part of the batch through all of this, with products in one thread: so threads meet only at the end.
A batch too small for that is worked on by all together, which share copies and products.

Memory: besides the result, in each thread the columns, the images and the results of so many samples (or rows) at a
time that there are at most about `_COLUMNS` elements of columns, 4 MiB of float32, however large the batch is.

Source: Chellapilla et al., "High Performance Convolutional Neural Networks for Document Processing", 2006 (columns).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tinytorch.kernels import blas
from tinytorch.kernels.dtypes import FLOATS
from tinytorch.kernels.native import twin
from tinytorch.kernels.parallel import BLOCK, get_threads, share

Array = Any
Sizes = tuple[int, ...]

_COLUMNS = 1 << 20  # elements of columns at a time
_SHARED = 1 << 17  # elements from which on copies are shared among threads
_PRODUCTS = 1 << 24  # multiplications from which on the batch is


def conv_size(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Sizes:
    """Return the spatial sizes of a convolution's output."""
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True)
    )


def transposed_size(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, more: Sizes, dilation: Sizes) -> Sizes:
    """Return the spatial sizes of a transposed convolution's output, `more` its output padding."""
    return tuple(
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, k, s, p, e, d in zip(size, kernel, stride, padding, more, dilation, strict=True)
    )


# Where what lies ----------------------------------------------------------------------------------


class Layout(NamedTuple):
    """How padded images are laid out, and where a tap's run starts.

    Attributes:
        size, out, kernel: of input, output and kernel, three dimensions each.
        phases: how many phases each dimension has.
        rows: the sizes of one phase of a padded image.
        slack: what a run may read beyond the last row.
        taps: per tap the phases and offsets in the three dimensions.
        fills: per phases, where their elements lie: in the layout, in the image.
        plain: whether what the taps meet is the layout itself, without a copy.
    """

    size: Sizes
    out: Sizes
    kernel: Sizes
    phases: Sizes
    rows: Sizes
    slack: int
    taps: list[tuple[Sizes, Sizes]]
    fills: list[tuple[Any, Any]]
    plain: bool

    @property
    def width(self) -> int:
        """The length of a row."""
        return self.rows[2]


@functools.lru_cache(maxsize=256)
def _layout(size: Sizes, kernel: Sizes, out: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Layout:
    taps_of: list[list[tuple[int, int]]] = []
    fills_of: list[list[tuple[Any, Any]]] = []
    rows: list[int] = []
    for dim, (n, k, m, s, p, d) in enumerate(zip(size, kernel, out, stride, padding, dilation, strict=True)):
        phases = sorted({j * d % s for j in range(k)})
        taps_of.append([(phases.index(j * d % s), j * d // s) for j in range(k)])
        met = length = m + max((offset for _, offset in taps_of[-1]), default=0)
        if dim == 2 and s == 1:  # the zeros before a row, p of them, serve the one above it, too
            length = min(met, max(m, n + p, met - p))
        rows.append(length)
        fills: list[tuple[Any, Any]] = []
        for phase in phases:
            first = max(-(-(p - phase) // s), 0)
            last = min((n - 1 + p - phase) // s + 1, length)
            start = first * s + phase - p
            stop = start + max(last - first - 1, 0) * s + 1
            fills.append((slice(first, last), slice(start, stop, s)) if last > first else (None, None))
        fills_of.append(fills)
    taps = [
        (tuple(phase for phase, _ in each), tuple(offset for _, offset in each)) for each in itertools.product(*taps_of)
    ]
    fills = []
    for each in itertools.product(*[list(enumerate(fills)) for fills in fills_of]):
        if all(to is not None for _, (to, _) in each):
            chosen = tuple(phase for phase, _ in each)
            fills.append(
                (
                    (slice(None), *chosen, slice(None), *[to for _, (to, _) in each]),
                    (slice(None), slice(None), *[at for _, (_, at) in each]),
                )
            )
    counts = tuple(len(fills) for fills in fills_of)
    plain = all(offset == (0, 0, 0) for _, offset in taps) and len(taps) == math.prod(counts)
    slack = max((offset[2] for _, offset in taps), default=0)
    return Layout(size, out, kernel, counts, tuple(rows), slack, taps, fills, plain)


def _tiles(layout: Layout, some: range, channels: int) -> Iterator[tuple[slice, list[Any]]]:
    """Yield pieces of some of the batch, and for each the pieces of depths and rows to go through."""
    depth, height, _ = layout.out
    row = max(channels * len(layout.taps) * layout.width, 1)
    image = row * depth * height
    if image <= _COLUMNS:
        pieces = math.ceil(len(some) * image / _COLUMNS)
        step = math.ceil(len(some) / max(pieces, 1))
        for begin in some[::step]:
            yield slice(begin, min(begin + step, some.stop)), [(0, depth, 0, height)]
        return
    depths = max(_COLUMNS // (row * height), 1)
    rows = height if depths > 1 else min(max(_COLUMNS // row, 1), height)
    rows = math.ceil(height / math.ceil(height / rows))
    parts = [
        (d, min(d + depths, depth), r, min(r + rows, height))
        for d in range(0, depth, depths)
        for r in range(0, height, rows)
    ]
    for n in some:
        yield slice(n, n + 1), parts


class _Buffers:
    """Memory that the tiles use one after another; all zero when its shape is new."""

    def __init__(self, like: Array) -> None:
        self.like = like
        self.held: dict[str, Array] = {}

    def zeros(self, name: str, shape: Sizes) -> Array:
        if name not in self.held or self.held[name].shape != shape:
            self.held[name] = np.zeros_like(self.like, shape=shape, order="C")
        return self.held[name]

    def empty(self, name: str, shape: Sizes) -> Array:
        if name not in self.held or self.held[name].shape != shape:
            self.held[name] = np.empty_like(self.like, shape=shape, order="C")
        return self.held[name]

    def matrix(self, name: str, rows: Sizes, places: Sizes, zeros: bool = False) -> Array:
        """Return memory `(*rows, *places)`, the rows an odd multiple of 64 bytes apart (of float32).

        With a power of two in the distance many rows compete for few places of the cache.
        """
        count = math.prod(places)
        shape = (*rows, (-(-count // 16) | 1) * 16)
        # (Other places, though as many, leave other zeros.)
        found = self.zeros(f"{name} {places}", shape) if zeros else self.empty(name, shape)
        return found[..., :count].reshape((*rows, *places))


def _by_samples(work: Callable[[range], None], samples: int, products: int, like: Array) -> None:
    """Call `work` with parts that make up the batch: one for each thread where that pays."""
    threads = get_threads()
    if (
        threads > 1
        and (samples >= 4 * threads or samples % threads == 0)
        and products >= _PRODUCTS
        and type(like) is np.ndarray
        and blas.threads() is not None
    ):
        with blas.one_thread():
            share(lambda begin, end: work(range(begin, end)), samples)
    else:
        work(range(samples))


def _shared(work: Callable[[int, int], None], length: int, elements: int, like: Array) -> None:
    """Call `work` for all of `range(length)`, in several threads where that pays."""
    if elements >= _SHARED and length > 1 and type(like) is np.ndarray and get_threads() > 1:
        share(work, length)
    else:
        work(0, length)


def _memory(layout: Layout, samples: int, channels: int) -> tuple[Sizes, Sizes]:
    """Return the shapes of the layout: with rows joined, and with rows apart."""
    depth, height, width = layout.rows
    front = (channels, *layout.phases, samples, depth)
    return (*front, height * width + layout.slack), (*front, height, width)


def _apart(laid: Array, shape: Sizes) -> Array:
    """Return a view of laid out images with rows apart."""
    return laid[..., : shape[-2] * shape[-1]].reshape(shape)


def _lay_out(buffers: _Buffers, layout: Layout, x: Array) -> Array:
    """Return images in the layout; what lies around them stays zero."""
    joined, apart = _memory(layout, x.shape[0], x.shape[1])
    laid = buffers.zeros("laid", joined)
    view = _apart(laid, apart)

    def work(begin: int, end: int) -> None:
        part, source = view[begin:end], x[:, begin:end]
        for to, at in layout.fills:
            part[to] = source[at].swapaxes(0, 1)

    _shared(work, x.shape[1], x.size, x)
    return laid


def _runs(layout: Layout, part: Any) -> list[Any]:
    """Return per tap the index of its run in laid out images, for a piece of depths and rows."""
    d0, d1, r0, r1 = part
    width = layout.width
    every = slice(None)
    found = []
    for phases, (o0, o1, o2) in layout.taps:
        start = (o1 + r0) * width + o2
        run = slice(start, start + (r1 - r0) * width)
        found.append((every, *phases, every, slice(o0 + d0, o0 + d1), run))
    return found


def _columns(buffers: _Buffers, layout: Layout, laid: Array, part: Any) -> Array:
    """Return the columns `(C, taps, n, depths, rows * width)` of a piece."""
    d0, d1, r0, r1 = part
    channels, samples = laid.shape[0], laid.shape[4]
    rows = (channels, len(layout.taps))
    places = (samples, d1 - d0, (r1 - r0) * layout.width)
    if layout.plain and (d1 - d0, r1 - r0) == layout.out[:2]:
        return laid.reshape((*rows, *places))
    columns = buffers.matrix("columns", rows, places)
    runs = _runs(layout, part)

    def work(begin: int, end: int) -> None:
        to, source = columns[begin:end], laid[begin:end]
        for t, run in enumerate(runs):
            to[:, t] = source[run]

    def work_by_taps(begin: int, end: int) -> None:
        for t in range(begin, end):
            columns[:, t] = laid[runs[t]]

    if channels > 1:
        _shared(work, channels, columns.size, laid)
    else:
        _shared(work_by_taps, len(runs), columns.size, laid)
    return columns


def _widened(buffers: _Buffers, layout: Layout, y: Array, part: Any) -> Array:
    """Return a piece of outputs `(O, n, depths, rows, width)`, zero beyond the output's width."""
    d0, d1, r0, r1 = part
    places = (y.shape[0], d1 - d0, r1 - r0, layout.width)
    wide = buffers.matrix("wide", y.shape[1:2], places, zeros=True)

    def work(begin: int, end: int) -> None:
        wide[begin:end, ..., : layout.out[2]] = y[:, begin:end, d0:d1, r0:r1].swapaxes(0, 1)

    _shared(work, y.shape[1], wide.size, y)
    return wide


# The three sides ----------------------------------------------------------------------------------


def _spatial(given: Sizes, filler: int) -> Sizes:
    """Return settings of three dimensions: (1, length, 1) stands for one."""
    if len(given) == 1:
        return (filler, given[0], filler)
    return (filler,) * (3 - len(given)) + tuple(given)


def _three(x: Array) -> Array:
    """Return an array with three spatial dimensions."""
    return x.reshape((*x.shape[:2], *_spatial(x.shape[2:], 1)))


def _settings(stride: Sizes, padding: Sizes, dilation: Sizes) -> tuple[Sizes, Sizes, Sizes]:
    return _spatial(stride, 1), _spatial(padding, 0), _spatial(dilation, 1)


def _is_short(x: Array) -> bool:
    return x.dtype.itemsize < 4 and x.dtype.kind in FLOATS


def _wide_enough(*arrays: Array) -> list[Array]:
    """Return arrays as the products take them: float16 and bfloat16 as float32."""
    return [x.astype(np.float32) if x is not None and _is_short(x) else x for x in arrays]


def _is_matmul(kernel: Sizes, stride: Sizes, padding: Sizes, places: int) -> bool:
    """Return whether a convolution is a product per sample, without any copy, worth it as such."""
    return set(kernel) == {1} == set(stride) and not any(padding) and places >= 64


def _is_one_place(kernel: Sizes, image: Sizes, places: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> bool:
    """Return whether a kernel as large as the image meets it in one place: one product for the whole batch."""
    spread = any(k > 1 and d > 1 for k, d in zip(kernel, dilation, strict=True))
    return kernel == image and set(places) == {1} and groups == 1 and not any(padding) and not spread


@twin
def conv(
    x: Array, w: Array, b: Array | None, stride: Sizes, padding: Sizes, dilation: Sizes,
    groups: int, size: Sizes | None = None,
) -> Array:  # fmt: skip
    """Return the convolution of `x` `(N, C, ...)` with `w` `(O, C / groups, ...)`, plus `b` `(O,)`.

    Args:
        stride, padding, dilation: per spatial dimension.
        groups: how many groups of channels there are, each convolved with its part of the weight.
        size: the spatial sizes of the result, if it is not to have all that fit in.
    """
    if size is None:
        size = conv_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if _is_short(x):
        short, (x, w, b) = x.dtype, _wide_enough(x, w, b)
        return conv(x, w, b, stride, padding, dilation, groups, size).astype(short)
    shape = (x.shape[0], w.shape[0], *size)
    x, w = _three(x), _three(w)
    stride, padding, dilation = _settings(stride, padding, dilation)
    out = np.empty_like(x, shape=(*shape[:2], *_spatial(size, 1)), order="C")
    if not out.size or not w.size:
        out[...] = 0 if b is None else b.reshape((-1, 1, 1, 1))
    elif w.shape[1] == 1 and groups > 1:
        _depthwise(x, w, b, stride, padding, dilation, out)
    else:
        _convolve(x, w, b, stride, padding, dilation, groups, out)
    return out.reshape(shape)


def _convolve(
    x: Array, w: Array, b: Array | None, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, out: Array
) -> None:
    """Write the convolution into `out`."""
    samples, channels = x.shape[:2]
    kernel, size, rows = w.shape[2:], out.shape[2:], w.shape[0]
    matrix = w.reshape((groups, rows // groups, -1))
    if _is_matmul(kernel, stride, padding, math.prod(size)) and size == x.shape[2:]:
        flat = x.reshape((samples, groups, channels // groups, -1))
        result = out.reshape((samples, groups, rows // groups, -1))
        np.matmul(matrix, flat, out=result)
        if b is not None:
            result += b.reshape((groups, -1, 1))
        return
    if _is_one_place(kernel, x.shape[2:], size, padding, dilation, groups):
        result = out.reshape((samples, rows))
        np.matmul(x.reshape((samples, -1)), matrix[0].T, out=result)
        if b is not None:
            result += b
        return
    layout = _layout(x.shape[2:], kernel, size, stride, padding, dilation)
    bias = None if b is None else b.reshape((-1, 1, 1, 1, 1))

    def work(some: range) -> None:
        buffers = _Buffers(x)
        for piece, parts in _tiles(layout, some, channels):
            laid = _lay_out(buffers, layout, x[piece])
            for part in parts:
                d0, d1, r0, r1 = part
                columns = _columns(buffers, layout, laid, part)
                columns = columns.reshape((groups, matrix.shape[2], -1))
                product = buffers.matrix("product", matrix.shape[:2], columns.shape[2:])
                np.matmul(matrix, columns, out=product)
                result = product.reshape((rows, -1, d1 - d0, r1 - r0, layout.width))
                _store(result[..., : size[2]], bias, out[piece, :, d0:d1, r0:r1].swapaxes(0, 1))

    _by_samples(work, samples, out.size * matrix.shape[2], x)


def _store(result: Array, bias: Array | None, to: Array) -> None:
    def work(begin: int, end: int) -> None:
        if bias is None:
            to[begin:end] = result[begin:end]
        else:
            np.add(result[begin:end], bias[begin:end], out=to[begin:end])

    _shared(work, len(result), result.size, result)


@twin
def conv_input(y: Array, w: Array, size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Array:
    """Return what lies on the input's side: the gradient of an input of spatial sizes `size`, `y` that of the output.

    It is also the transposed convolution of `y` with `w` `(channels of y, channels of the result / groups, ...)`.
    """
    if _is_short(y):
        short, (y, w) = y.dtype, _wide_enough(y, w)
        return conv_input(y, w, size, stride, padding, dilation, groups).astype(short)
    channels = w.shape[1] * groups
    shape = (y.shape[0], channels, *size)
    y, w, size = _three(y), _three(w), _spatial(size, 1)
    stride, padding, dilation = _settings(stride, padding, dilation)
    kernel, samples, rows = w.shape[2:], y.shape[0], w.shape[0]
    out = np.empty_like(y, shape=(samples, channels, *size), order="C")
    around = tuple((k - 1) * d - p for k, d, p in zip(kernel, dilation, padding, strict=True))
    if not out.size or not y.size or not w.size:
        out[...] = 0
    elif w.shape[1] == 1 and groups > 1:
        _depthwise_input(y, w, stride, padding, dilation, out)
    elif _is_matmul(kernel, stride, padding, math.prod(size)) and size == y.shape[2:]:
        matrix = w.reshape((groups, rows // groups, -1)).swapaxes(1, 2)
        flat = y.reshape((samples, groups, rows // groups, -1))
        np.matmul(matrix, flat, out=out.reshape((samples, groups, w.shape[1], -1)))
    elif _is_one_place(kernel, size, y.shape[2:], padding, dilation, groups):
        flat = y.reshape((samples, rows))
        np.matmul(flat, w.reshape((rows, -1)), out=out.reshape((samples, -1)))
    elif set(stride) == {1} and min(around) >= 0 and 2 * rows <= 3 * channels:
        # A convolution of `y` with the kernels turned round: fewer passes than adding columns up.
        turned = w[:, :, ::-1, ::-1, ::-1].reshape((groups, -1, *w.shape[1:])).swapaxes(1, 2)
        turned = turned.reshape((channels, rows // groups, *kernel))
        _convolve(y, turned, None, stride, around, dilation, groups, out)
    else:
        _add_columns(y, w, stride, padding, dilation, groups, out)
    return out.reshape(shape)


def _add_columns(y: Array, w: Array, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int, out: Array) -> None:
    """Write into `out` the transposed convolution, by a product and adding up what the taps give."""
    samples, channels = out.shape[:2]
    matrix = w.reshape((groups, w.shape[0] // groups, -1)).swapaxes(1, 2)
    layout = _layout(out.shape[2:], w.shape[2:], y.shape[2:], stride, padding, dilation)

    def work(some: range) -> None:
        buffers = _Buffers(y)
        for piece, parts in _tiles(layout, some, channels):
            joined, apart = _memory(layout, piece.stop - piece.start, channels)
            laid = buffers.empty("laid", joined)
            laid[...] = 0
            for part in parts:
                d0, d1, r0, r1 = part
                wide = _widened(buffers, layout, y[piece], part)
                wide = wide.reshape((groups, matrix.shape[2], -1))
                columns = buffers.matrix("columns", matrix.shape[:2], wide.shape[2:])
                np.matmul(matrix, wide, out=columns)
                columns = columns.reshape((channels, len(layout.taps), joined[4], d1 - d0, (r1 - r0) * layout.width))
                _add_runs(laid, columns, _runs(layout, part))
            _take_out(layout, _apart(laid, apart), out[piece])

    _by_samples(work, samples, y.size * matrix.shape[1], y)


def _add_runs(laid: Array, columns: Array, runs: list[Any]) -> None:
    def work(begin: int, end: int) -> None:
        to, source = laid[begin:end], columns[begin:end]
        for t, run in enumerate(runs):
            to[run] += source[:, t]

    _shared(work, len(laid), columns.size, laid)


def _take_out(layout: Layout, view: Array, out: Array) -> None:
    """Write laid out images into `out`; what no tap meets is zero."""
    whole = set(layout.phases) == {1} or math.prod(layout.phases) == len(layout.fills)
    if not whole or sum(out[at].size for _, at in layout.fills) < out.size:
        out[...] = 0

    def work(begin: int, end: int) -> None:
        part, to = view[begin:end], out[:, begin:end]
        for at, index in layout.fills:
            to[index] = part[at].swapaxes(0, 1)

    _shared(work, len(view), out.size, out)


@twin
def conv_weight(
    x: Array, y: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> Array:
    """Return what lies on the weight's side: the gradient of a weight with spatial sizes `kernel`, `y` the output's."""
    if _is_short(x):
        short, (x, y) = x.dtype, _wide_enough(x, y)
        return conv_weight(x, y, kernel, stride, padding, dilation, groups).astype(short)
    shape = (y.shape[1], x.shape[1] // groups, *kernel)
    x, y, kernel = _three(x), _three(y), _spatial(kernel, 1)
    stride, padding, dilation = _settings(stride, padding, dilation)
    samples, channels, size, rows = x.shape[0], x.shape[1], y.shape[2:], y.shape[1]
    if not x.size or not y.size or not math.prod(shape):
        return np.zeros_like(x, shape=shape, order="C")
    places = math.prod(size)
    if channels == groups > 1:
        out = _depthwise_weight(x, y, kernel, stride, padding, dilation)
    elif (
        _is_matmul(kernel, stride, padding, places)
        and size == x.shape[2:]
        and 2 * rows * (channels // groups) <= places * (rows + channels)
    ):
        flat = x.reshape((samples, groups, channels // groups, -1))
        out = np.matmul(y.reshape((samples, groups, rows // groups, -1)), flat.swapaxes(2, 3))
        out = np.add.reduce(out, axis=0)
    elif _is_one_place(kernel, x.shape[2:], size, padding, dilation, groups):
        out = np.matmul(y.reshape((samples, rows)).T, x.reshape((samples, -1)))
    else:
        layout = _layout(x.shape[2:], kernel, size, stride, padding, dilation)
        taps = channels // groups * len(layout.taps)
        sums: dict[int, Array] = {}

        def work(some: range) -> None:
            buffers, out = _Buffers(x), None
            for piece, parts in _tiles(layout, some, channels):
                laid = _lay_out(buffers, layout, x[piece])
                for part in parts:
                    columns = _columns(buffers, layout, laid, part).reshape((groups, taps, -1))
                    # The places that are too many meet zeros.
                    wide = _widened(buffers, layout, y[piece], part)
                    wide = wide.reshape((groups, rows // groups, -1))
                    found = np.matmul(wide, columns.swapaxes(1, 2))
                    out = found if out is None else np.add(out, found, out=out)
            sums[some.start] = out

        _by_samples(work, samples, y.size * taps, x)
        out = functools.reduce(np.add, [sums[start] for start in sorted(sums)])
    return out.reshape(shape)


# Depthwise: one input channel per group -----------------------------------------------------------


def _blocks(begin: int, end: int, per_channel: int) -> Iterator[slice]:
    """Yield pieces of a range of channels that stay in the cache."""
    step = max(BLOCK // max(per_channel, 1), 1)
    for start in range(begin, end, step):
        yield slice(start, min(start + step, end))


def _factors(w: Array, groups: int) -> Array:
    """Return the weight as `(groups, outputs per group, taps, 1, 1, 1)`, to multiply runs by."""
    return w.reshape((groups, w.shape[0] // groups, -1, 1, 1, 1))


def _depthwise(x: Array, w: Array, b: Array | None, stride: Sizes, padding: Sizes, dilation: Sizes, out: Array) -> None:
    """Write into `out` the convolution of each channel with its own kernels, by adding shifted images."""
    samples, channels = x.shape[:2]
    size, several = out.shape[2:], out.shape[1] // channels
    layout = _layout(x.shape[2:], w.shape[2:], size, stride, padding, dilation)
    buffers, factors = _Buffers(x), _factors(w, channels)
    bias = None if b is None else b.reshape((channels, several, 1, 1, 1, 1))
    length = size[1] * layout.width
    runs = _runs(layout, (0, size[0], 0, size[1]))
    result = out.reshape((samples, channels, several, *size))
    for piece, _ in _tiles(layout, range(samples), channels):
        laid = _lay_out(buffers, layout, x[piece])
        count = laid.shape[4]

        def work(begin: int, end: int, laid: Array = laid, piece: slice = piece) -> None:
            total = term = np.empty_like(x, shape=0)
            for block in _blocks(begin, end, laid.shape[4] * size[0] * length):
                source = laid[block]
                shape = (len(source), laid.shape[4], size[0], length)
                if total.shape != shape:
                    total, term = (np.empty_like(x, shape=shape, order="C") for _ in range(2))
                for k in range(several):
                    for t, run in enumerate(runs):
                        if t:
                            np.multiply(source[run], factors[block, k, t], out=term)
                            np.add(total, term, out=total)
                        else:
                            np.multiply(source[run], factors[block, k, t], out=total)
                    found = total.reshape((*shape[:3], size[1], layout.width))[..., : size[2]]
                    to = result[piece, block, k].swapaxes(0, 1)
                    if bias is None:
                        to[...] = found
                    else:
                        np.add(found, bias[block, k], out=to)

        _shared(work, channels, count * channels * length, x)


def _depthwise_input(y: Array, w: Array, stride: Sizes, padding: Sizes, dilation: Sizes, out: Array) -> None:
    """Write the transposed convolution of each channel into `out`."""
    samples, channels = out.shape[:2]
    size, several = y.shape[2:], y.shape[1] // channels
    layout = _layout(out.shape[2:], w.shape[2:], size, stride, padding, dilation)
    buffers, factors = _Buffers(y), _factors(w, channels)
    whole = (0, size[0], 0, size[1])
    length = size[1] * layout.width
    runs = _runs(layout, whole)
    for piece, _ in _tiles(layout, range(samples), channels):
        joined, apart = _memory(layout, piece.stop - piece.start, channels)
        laid = buffers.empty("laid", joined)
        wide = _widened(buffers, layout, y[piece], whole)
        wide = wide.reshape((channels, several, -1, size[0], length))

        def work(begin: int, end: int, laid: Array = laid, wide: Array = wide) -> None:
            term = np.empty_like(y, shape=0)
            for block in _blocks(begin, end, laid.shape[4] * size[0] * length):
                to = laid[block]
                to[...] = 0
                shape = (len(to), *wide.shape[2:])
                if term.shape != shape:
                    term = np.empty_like(y, shape=shape, order="C")
                for k in range(several):
                    for t, run in enumerate(runs):
                        np.multiply(wide[block, k], factors[block, k, t], out=term)
                        place = to[run]
                        np.add(place, term, out=place)

        _shared(work, channels, wide.size, y)
        _take_out(layout, _apart(laid, apart), out[piece])


def _depthwise_weight(x: Array, y: Array, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> Array:
    """Return the gradient of the kernels of each channel: per tap the scalar products of runs."""
    samples, channels = x.shape[:2]
    size, several = y.shape[2:], y.shape[1] // channels
    layout = _layout(x.shape[2:], kernel, size, stride, padding, dilation)
    buffers = _Buffers(x)
    whole = (0, size[0], 0, size[1])
    runs = _runs(layout, whole)
    found = np.zeros_like(x, shape=(channels, several, len(runs)), order="C")
    for piece, _ in _tiles(layout, range(samples), channels):
        laid = _lay_out(buffers, layout, x[piece])
        wide = _widened(buffers, layout, y[piece], whole)
        wide = wide.reshape((channels, several, -1, size[0], size[1] * layout.width))

        def work(begin: int, end: int, laid: Array = laid, wide: Array = wide) -> None:
            for block in _blocks(begin, end, wide[0, 0].size):
                source = laid[block]
                for k in range(several):
                    for t, run in enumerate(runs):
                        found[block, k, t] += np.einsum("cndl,cndl->c", source[run], wide[block, k])

        _shared(work, channels, wide.size, x)
    return found


# Columns for their own sake -----------------------------------------------------------------------


def _windows(
    size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> tuple[Sizes, Sizes, list[Any]]:
    """Return the sizes of the padded image and of the places, and per tap what it meets."""
    places = conv_size(size, kernel, stride, padding, dilation)
    padded = tuple(n + 2 * p for n, p in zip(size, padding, strict=True))
    taps = []
    for offsets in itertools.product(*[range(k) for k in kernel]):
        met = [
            slice(o * d, o * d + (n - 1) * s + 1, s)
            for o, d, n, s in zip(offsets, dilation, places, stride, strict=True)
        ]
        taps.append((slice(None), slice(None), *met))
    return padded, places, taps


def _inside(size: Sizes, padding: Sizes) -> Any:
    return (slice(None), slice(None), *[slice(p, p + n) for n, p in zip(size, padding, strict=True)])


def unfold(x: Array, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Array:
    """Return the columns of images `(N, C, H, W)`: `(N, C * taps, places)`."""
    samples, channels, *rest = x.shape
    size = tuple(rest)
    padded, places, taps = _windows(size, kernel, stride, padding, dilation)
    if any(padding):
        wide = np.zeros_like(x, shape=(samples, channels, *padded), order="C")
        wide[_inside(size, padding)] = x
        x = wide
    out = np.empty_like(x, shape=(samples, channels, len(taps), *places), order="C")
    for t, tap in enumerate(taps):
        out[:, :, t] = x[tap]
    return out.reshape((samples, channels * len(taps), math.prod(places)))


def fold(x: Array, size: Sizes, kernel: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Array:
    """Return images `(N, C, *size)` that columns `(N, C * taps, places)` add up to."""
    dtype = x.dtype
    (x,) = _wide_enough(x)
    padded, places, taps = _windows(size, kernel, stride, padding, dilation)
    samples = x.shape[0]
    channels = x.shape[1] // len(taps)
    columns = x.reshape((samples, channels, len(taps), *places))
    wide = np.zeros_like(x, shape=(samples, channels, *padded), order="C")
    for t, tap in enumerate(taps):
        wide[tap] += columns[:, :, t]
    out = wide[_inside(size, padding)] if any(padding) else wide
    return out.astype(dtype, order="C", copy=out is not wide)
