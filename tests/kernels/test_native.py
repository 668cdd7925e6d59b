"""Native kernels: each gives what its definition in NumPy gives, on every instruction set and any number of threads."""

from __future__ import annotations

import ast
import inspect
import itertools
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tinytorch
from tests.filled import filled
from tinytorch.kernels import (
    activation,
    arithmetic,
    attention,
    channels_last,
    conv,
    decompose,
    distances,
    elementary,
    embedding,
    fft,
    gamma,
    implicit,
    indexing,
    layer_norm,
    loss,
    native,
    norm,
    optim,
    parallel,
    pool,
    products,
    quantized,
    random,
    rearrange,
    reduce,
    rejection,
    resample,
    rnn,
    scatter,
    sort,
    sparse,
    special,
    statistics,
    transcendental,
)  # fmt: skip
from tinytorch.kernels import shape as shapes

library = pytest.importorskip("tinytorch.kernels.native._native", reason="the native kernels have not been built")

Array = Any
Arguments = tuple[Any, ...]

SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0, -0.0, 1e-45, -1e-40, 1e-38, 3e38, -3e38, 20, -20, 88.7, -88.7, 104, -104], np.float32
)


class Samples(NamedTuple):
    """Arguments that a kernel takes, and how near its results are to those of the definition."""

    definition: Callable[..., Any]
    draw: Callable[[np.random.Generator], Iterator[Arguments]]
    rtol: float = 2e-6
    atol: float = 2e-7  # times the largest finite number of what is expected
    writes: bool = False  # into its arguments


def pointwise(
    inputs: int, *numbers: float, each: tuple[str, ...] = (), special: bool = True
) -> Callable[..., Iterator[Arguments]]:
    """Draw arrays of one shape, of all kinds of sizes and in all orders of dense memory; what follows them is given."""

    def arrays(rng: np.random.Generator) -> Iterator[Arguments]:
        shapes = [(0,), (3, 0), (1,), (1, 1), (7,), (16,), (33,), (5, 13), (2, 3, 4, 5), (70_001,), (40, 2000)]
        for shape in shapes:
            yield tuple([4 * rng.standard_normal(shape).astype(np.float32) for _ in range(inputs)])
        for _ in range(4):
            shape = tuple(rng.integers(1, 12, 4))
            order = rng.permutation(4)
            yield tuple([rng.standard_normal(shape).astype(np.float32).transpose(order) for _ in range(inputs)])
            yield tuple([viewed(rng, shape) for _ in range(inputs)])
        for offset in (1, 2, 3):  # not where a vector would start
            yield tuple([rng.standard_normal(1000).astype(np.float32)[offset:] for _ in range(inputs)])
        for count in (len(SPECIAL), 5) if special else ():
            yield tuple(np.array(np.meshgrid(*[SPECIAL[:count]] * inputs)).reshape(inputs, -1))

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for some in arrays(rng):
            yield from ((*some, *numbers, option) for option in each) if each else [(*some, *numbers)]

    return draw


def viewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw an array in any order, which is expanded along some dimensions, and has gaps or is reversed along others."""
    order = rng.permutation(len(shape))
    x = normal(rng, *[1 if rng.random() < 0.4 else 2 * shape[d] for d in order]).transpose(np.argsort(order))
    return np.broadcast_to(x[tuple([slice(None, None, rng.choice((-2, 2))) for _ in shape])], shape)


def slopes(function: Any) -> Callable[..., Iterator[Arguments]]:
    """Draw gradients, results of the function, and its arguments or None."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for k, (g, x) in enumerate(pointwise(2)(rng)):
            yield g, function(x), x if k % 4 else None

    return draw


def along(inputs: int) -> Callable[..., Iterator[Arguments]]:
    """Draw arrays of one shape, and an axis."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        shapes = [(1,), (16,), (70,), (5, 3), (9, 16), (6, 100), (3, 4, 5), (2, 7, 9, 11), (2, 5, 200), (300, 130)]
        for shape in shapes:
            for axis in range(len(shape)):
                yield *[8 * rng.standard_normal(shape).astype(np.float32) for _ in range(inputs)], axis
        for hidden in (0, 3, 40):  # up to whole rows and columns of -inf
            x = rng.standard_normal((41, 40)).astype(np.float32)
            x[hidden:, :hidden] = -np.inf
            x[:2, 0] = np.nan, np.inf
            for axis in (0, 1):
                yield *[x] * inputs, axis

    return draw


def spectra(kind: str) -> Callable[..., Iterator[Arguments]]:
    """Draw rows of complex numbers, of real numbers, or of halves of spectra; most lengths are powers of two."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for rows, length in ((3, 128), (1, 256), (17, 512), (5, 1024), (40, 2048), (2, 1 << 14), (0, 128), (4, 24)):
            floats = length * 2 if kind in ("complex", "inverse") else length + 2 * (kind == "half")
            x = normal(rng, rows, floats)
            factor = 1 / length
            yield from [(x, factor)] if kind in ("half", "inverse") else [(x, flag, factor) for flag in (True, False)]

    return draw


def matrices(rng: np.random.Generator) -> Iterator[Arguments]:
    sizes = [(4, 40, 513), (64, 28, 512), (33, 100, 17), (512, 30, 10), (100, 300, 100), (7, 1000, 9), (16, 16, 128)]
    for m, k, n in [*sizes, (1029, 1030, 50), *rng.integers(30, 130, (6, 3)).tolist()]:
        a, b = normal(rng, m, k), normal(rng, k, n)
        columns = np.asfortranarray(b)
        yield from ((x, y) for x in (a, np.asfortranarray(a), normal(rng, m, k + 9)[:, 5:-4]) for y in (b, columns))
        yield normal(rng, m, 2 * k)[:, ::2], normal(rng, k, 2 * n)[:, ::2]
    for shape in ((7,), (3, 2), (2, 1, 2, 3)):
        a, b = normal(rng, *shape, 24, 20), normal(rng, *shape, 20, 25)
        yield a, b
        yield a.swapaxes(0, -2).copy().swapaxes(0, -2), b.swapaxes(-1, -2).copy().swapaxes(-1, -2)
        yield np.broadcast_to(a[:1], a.shape), b
    a[0, 0, 0, 0, 3, :3] = np.nan, np.inf, -np.inf
    yield a, b


def linears(rng: np.random.Generator) -> Iterator[Arguments]:
    for m, k, n in (
        (64, 28, 512),
        (9, 9001, 20),
        (256, 100, 33),
        (33, 256, 10),
        (100, 100, 100),
        *rng.integers(32, 130, (6, 3)).tolist(),
    ):
        yield normal(rng, m, k), normal(rng, n, k), normal(rng, n)
        yield normal(rng, m, k), normal(rng, k, n).T, None
        yield normal(rng, k, m).T, normal(rng, n, k), normal(rng, n)
    yield normal(rng, m, k), normal(rng, n, k), normal(rng, 1)


def small_matrices(transposed_a: bool, transposed_b: bool) -> Callable[..., Iterator[Arguments]]:
    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for kind in (np.float32, np.float64):
            for m, k, n in ((8, 8, 8), (1, 5, 3), (2, 3, 2), (2, 2, 2), (0, 3, 2), (40, 50, 60), (3, 99, 1), (9, 7, 4)):
                a, b = normal(rng, m, k).astype(kind), normal(rng, k, n).astype(kind)
                for x, y in ((a, b), (np.asfortranarray(a), np.asfortranarray(b))):
                    yield x.T if transposed_a else x, y.T if transposed_b else y

    return draw


def small_linears(rng: np.random.Generator) -> Iterator[Arguments]:
    for x, weight in small_matrices(False, True)(rng):
        yield x, weight, None
        yield x, weight, normal(rng, len(weight)).astype(x.dtype)
        yield np.resize(x, weight.shape[1]), weight, None
        yield x[:, None], weight, normal(rng, len(weight)).astype(x.dtype)
    yield from linears(rng)


def along_dimensions(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape in ((8, 8), (7,), (2, 3, 4), (1, 70_000), (300, 5), (1, 1)):
        x = normal(rng, *shape)
        for dim in (None, *range(-len(shape), len(shape))):
            yield x, dim, False, None
            yield x, dim, True, None


def reduced(
    *before: Any, after: Arguments = (), along: str = "ik", kinds: Any = (np.float32, np.float64, np.int64)
) -> Callable[..., Iterator[Arguments]]:
    """Draw small arrays, some with NaN, and the dimensions `along`: an int (i), all by None (k), or by () (t)."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for shape, kind in itertools.product(((8, 8), (7,), (2, 3, 4), (3, 1), (1,)), kinds):
            x = np.round(3 * normal(rng, *shape)).astype(kind)
            bad = x.copy()
            bad.reshape(-1)[::5] = np.nan if bad.dtype.kind == "f" else 0
            if not along:
                yield from ((each, *after) for each in (x, bad))
            for dim in ([*range(len(shape))] if "i" in along else []) + [None] * ("k" in along) + [()] * ("t" in along):
                yield from ((each, *before, dim, kept, *after) for each in (x, bad) for kept in (False, True))

    return draw


def numbers_and_shapes(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape in ((8, 8), (3,), (2, 0, 3), (), (100, 50)):
        yield normal(rng, 1)[0:1].reshape(()), shape, None
        yield normal(rng, 1).reshape((1,) * len(shape)), shape, None


def squares(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape in ((0,), (), (7,), (3, 4), (2, 3, 40), (150, 150)):
        yield normal(rng, *shape), 2
        yield normal(rng, *shape), 2.0


def random_fills(
    *numbers: tuple[float, float], kinds: Any = (np.float32, np.float64), large: int = 1
) -> Callable[..., Iterator[Arguments]]:
    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for size in (2, 3, 5, 16, 17, 40, 1000, large):
            yield from ((np.zeros(size, kind), random.Source(size), *each) for kind in kinds for each in numbers)

    return draw


def between(
    *ranges: tuple[float, float], kinds: Any = (np.float64,), then: Any = ()
) -> Callable[..., Iterator[Arguments]]:
    """Draw arrays of one shape of numbers in ranges; what follows them is given, or a generator."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for shape in ((1,), (7,), (30, 50)):
            for kind in kinds:
                last = (random.Source(shape[0]),) if then is random.Source else then
                yield *[rng.uniform(*each, shape).astype(kind) for each in ranges], *last

    return draw


def bytes_and_taps(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape, count in (((3, 20, 30), 7), ((2, 5, 300), 9), ((1, 1), 1), ((4, 3, 5, 2), 6)):
        for axis in range(1, len(shape)):
            x, index = rng.integers(0, 256, shape).astype(np.uint8), rng.integers(0, shape[axis], (count, 4))
            yield x, axis, index, rng.integers(-(2**12), 2**14, (count, 4)).astype(np.float64), 14


def rows_of_two(rng: np.random.Generator) -> Iterator[Arguments]:
    for lead, rows, others, length in (
        ((), 3, 5, 7),
        ((2,), 40, 3, 33),
        ((2, 3), 1, 2, 100),
        ((), 4, 0, 3),
        ((), 2, 2, 0),
    ):
        x, y = normal(rng, *lead, rows, length), normal(rng, *lead, others, length)
        yield from ((x, y, p) for p in (1.0, 2.0, np.inf))
    x, y = (np.tile(part, (2, 3)) for part in (SPECIAL[:7], SPECIAL[1:8]))
    yield from ((x, y, p) for p in (1.0, 2.0, np.inf))


def weights_of_rows(rng: np.random.Generator) -> Iterator[Arguments]:
    yield from ((rng.random((rows, n), np.float32), 5, random.Source(n)) for rows, n in ((1, 1), (3, 7), (40, 300)))


def narrow_linears(rng: np.random.Generator) -> Iterator[Arguments]:
    for m, k, n in (
        (1, 768, 40),
        (2, 33, 17),
        (3, 5, 1),
        (8, 100, 70),
        (9, 64, 33),
        (70, 40, 130),
        (33, 1000, 9),
        (1, 1, 1),
        *rng.integers(1, 130, (6, 3)).tolist(),
    ):
        x, scale, bias = normal(rng, m, k), 0.01 + rng.random(n, np.float32), normal(rng, n)
        yield x, rng.integers(-128, 128, (n, k)).astype(np.int8), scale, bias
        halves = (normal(rng, n, k) * 10 ** rng.uniform(-9, 3, (n, k))).astype(np.float16)
        yield x, halves, None, bias
        yield x, quantized.bfloat16_bits(normal(rng, n, k)), None, None
    every = np.arange(1 << 16, dtype=np.uint16).reshape(-1, 1)
    for weight in (every, every.view(np.float16), every[:256].astype(np.uint8).view(np.int8)):
        yield np.ones((1, 1), np.float32), weight, None, None


def bytes_of_matrices(rng: np.random.Generator) -> Iterator[Arguments]:
    for m, k, n in ((1, 1, 1), (4, 32, 2), (5, 33, 35), (17, 100, 64), (64, 768, 40), (2, 2000, 9), (3, 60_000, 3)):
        b = rng.integers(-128, 128, (k, n)).astype(np.int8)
        for a in (rng.integers(-128, 128, (m, k)).astype(np.int8), rng.integers(0, 256, (m, k)).astype(np.uint8)):
            yield a, b
            yield np.asfortranarray(a), np.asfortranarray(b)
            yield a[:, ::-2], b[::-2]
    yield np.full((2, k), 255, np.uint8), np.full((k, 3), -128, np.int8)


def class_scores(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape in ((1,), (70,), (5, 3), (64, 10), (40, 1000), (3, 5, 7), (2, 19, 9, 11)):
        places = shape[:1] + shape[2:] if len(shape) > 1 else ()
        for ignored in (-100, 0):
            x, target = (
                rng.standard_normal(shape).astype(np.float32),
                rng.integers(0, shape[min(1, len(shape) - 1)], places),
            )
            target = np.where(rng.random(places) < 0.2, ignored, target)
            weight = rng.integers(1, 9, shape[min(1, len(shape) - 1)]).astype(np.float32) / 8
            smooth = (0.0,) if shape == (1,) else (0.0, 0.25)  # (of one class, rounding is all that is left)
            for reduction, weights, smoothing in itertools.product(("mean", "sum", "none"), (None, weight), smooth):
                yield x, target, weights, ignored, reduction, smoothing
    x[:, 3] = -np.inf
    yield x, target, None, 0, "mean", 0.0
    yield x, np.zeros_like(target), None, 0, "mean", 0.0  # none counts


def scores_of_labels(rng: np.random.Generator) -> Iterator[Arguments]:
    yield from (args[:-1] for args in class_scores(rng))


def gradients_of_labels(rng: np.random.Generator) -> Iterator[Arguments]:
    for x, target, *more in scores_of_labels(rng):
        yield normal(rng, *(target.shape if more[-1] == "none" else ())), x, target, *more


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return np.asarray(rng.standard_normal(shape), np.float32)


def channels(of: str) -> Callable[..., Iterator[Arguments]]:
    """Draw arguments of normalisation by channels and by groups."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        places = ((), (2,), (16,), (3, 7), (10, 20))
        shapes = [(n, c, *rest) for n, c in ((4, 6), (3, 20), (70, 6), (5, 100)) for rest in places]
        for shape in [(1, 6, 16), (2, 4, 40, 130), *shapes]:
            for given in (True, False):
                x, count = 3 * normal(rng, *shape) + 2, shape[1]
                weight, bias = (normal(rng, count), normal(rng, count)) if given else (None, None)
                if of == "batch":
                    yield x, weight, bias, 0.5
                elif of == "given":
                    yield x, weight, bias, normal(rng, count), np.square(normal(rng, count)), 0.5
                elif of == "batch grad":
                    _, _, _, mean, scale = norm.batch_norm(x, weight, bias, 0.5)
                    yield normal(rng, *shape), x, weight, mean, scale, given
                elif len(shape) > 2:
                    for groups in (1, 2, count):
                        if of == "group":
                            yield x, groups, weight, bias, 0.5
                        else:
                            _, mean, scale = norm.group_norm(x, groups, weight, bias, 0.5)
                            yield normal(rng, *shape), x, weight, mean, scale, given

    return draw


def statistics_of_batches(rng: np.random.Generator) -> Iterator[Arguments]:
    for size, count in ((1, 0), (7, 2), (64, 0), (100, 31)):
        yield normal(rng, size), normal(rng, size), count, 0.1


def layers(grad: bool, centred: bool = True) -> Callable[..., Iterator[Arguments]]:
    """Draw arguments of normalisation over the last dimensions."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for shape, count in (
            ((7,), 1),
            ((5, 3), 1),
            ((9, 16), 1),
            ((2, 70, 100), 1),
            ((3, 4, 5, 6), 2),
            ((2, 5000), 1),
        ):
            for given in (True, False):
                x, last = 3 * normal(rng, *shape) + 2, shape[len(shape) - count :]
                weight, bias = (normal(rng, *last), normal(rng, *last)) if given else (None, None)
                if not grad:
                    yield (x, count, weight, bias, 0.5) if centred else (x, count, weight, 0.5)
                    continue
                _, mean, scale = layer_norm.layer_norm(x, count, weight, bias, 0.5)
                if not centred:
                    for pair in ((True, True), (True, False), (False, True)):
                        yield normal(rng, *shape), pair, x, count, weight, scale
                    continue
                for needs in ((True, True, True), (True, False, False), (False, True, False), (False, False, True)):
                    yield normal(rng, *shape), needs, x, count, weight, mean, scale

    return draw


def convolutions(side: str) -> Callable[..., Iterator[Arguments]]:
    """Draw convolutions of all kinds, and give the arguments of one of their sides."""

    def lying(x: Array, how: int) -> Array:
        """Return `x` in some order of memory: as it is, with its spatial dimensions first, or its channels last."""
        dims = tuple(range(2, x.ndim))
        order = (tuple(range(x.ndim)), (*dims, 0, 1), (0, *dims, 1))[how]
        return np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        kinds = [
            # samples, groups, channels and rows of each, size, kernel, stride, padding, dilation
            (2, 1, 3, 17, (16, 16), (3, 3), (1, 1), (1, 1), (1, 1)),
            (3, 1, 16, 8, (30, 14), (3, 3), (2, 2), (1, 1), (1, 1)),
            (40, 1, 5, 33, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),  # several images in a block
            (1, 1, 40, 9, (90, 70), (5, 3), (1, 2), (2, 0), (2, 1)),  # several blocks in an image
            (2, 1, 20, 70, (12, 13), (1, 1), (1, 1), (0, 0), (1, 1)),
            (2, 1, 3, 4, (9, 9), (1, 1), (3, 2), (0, 0), (1, 1)),  # places that no tap meets
            (2, 1, 3, 4, (6, 6), (2, 2), (1, 1), (4, 3), (3, 1)),  # and places in the padding alone
            (3, 7, 1, 1, (33, 34), (3, 3), (1, 1), (1, 1), (1, 1)),
            (2, 5, 1, 2, (33, 18), (5, 3), (2, 2), (2, 1), (1, 2)),
            (2, 3, 4, 1, (10, 18), (3, 3), (2, 1), (1, 1), (1, 1)),
            (2, 1, 2, 3, (5000,), (31,), (1,), (15,), (1,)),
            (1, 1, 1, 3, (40_000,), (3,), (4,), (0,), (5,)),
            (2, 1, 4, 5, (6, 7, 20), (3, 2, 3), (1, 2, 1), (1, 0, 2), (1, 1, 2)),
            (2, 1, 3, 4, (6,), (3,), (1,), (0,), (1,)),  # samples as far apart as one is long
            (1, 1, 300, 20, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1)),
            # many channels
            (9, 1, 24, 64, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
            (2, 1, 32, 80, (16, 16), (3, 3), (1, 1), (1, 1), (1, 1)),  # channels a power of two apart
            (1, 1, 16, 32, (64, 48), (3, 3), (1, 1), (1, 1), (1, 1)),  # that, and several blocks in an image
            (3, 2, 16, 47, (9, 7), (4, 3), (2, 2), (1, 2), (1, 1)),
            (2, 1, 16, 32, (5, 6, 8), (2, 3, 3), (1, 2, 1), (1, 0, 2), (1, 1, 2)),
            (1, 1, 40, 32, (5, 5), (7, 7), (1, 1), (3, 3), (1, 1)),
            (2, 1, 24, 112, (300,), (7,), (1,), (9,), (3,)),
            (1, 1, 9, 16, (4, 16), (5, 5), (3, 1), (5, 4), (3, 2)),  # places in the padding alone
        ]
        for _ in range(40):
            dims = rng.integers(1, 4)
            some = [
                tuple(int(n) for n in rng.integers(low, high, dims)) for low, high in [(8, 16), (1, 4)] + [(1, 3)] * 3
            ]
            size, kernel, stride, padding, dilation = some
            groups, channels, rows, samples = (int(rng.integers(1, most)) for most in (4, 7, 40, 4))
            kinds.append((samples, groups, channels, rows, size, kernel, stride, padding, dilation))
        for number, (samples, groups, channels, rows, size, kernel, stride, padding, dilation) in enumerate(kinds):
            places = conv.conv_size(size, kernel, stride, padding, dilation)
            x, w, y, b = (
                rng.standard_normal(shape).astype(np.float32)
                for shape in (
                    (samples, groups * channels, *size),
                    (groups * rows, channels, *kernel),
                    (samples, groups * rows, *places),
                    (groups * rows,),
                )
            )
            if number % 5 == 1:  # PyTorch has such values meet what they meet by the kernel, and nothing else
                x[..., -1, 2] = np.inf
                # (In PyTorch not padding either, which in NumPy is zeros; and so it is where channels are many.)
                y[(0, 0, *([..., 0] if channels < 4 else [n // 2 for n in places]))] = np.nan
            x, w, y = (lying(each, number % 3) for each in (x, w, y))
            settings = (stride, padding, dilation, groups)
            bias = b if number % 2 else None
            yield {
                "y": (x, w, bias, *settings, places if number % 4 else None),
                "x": (y, w, size, *settings),
                "w": (x, y, kernel, *settings),
            }[side]

    return draw


#: The epilogues, with the bounds of "clamp".
EPILOGUES: list[tuple[Any, ...]] = [
    ("none",), ("relu",), ("clamp", -1.5, 2.0), ("silu",), ("hardswish",), ("hardsigmoid",), ("sigmoid",), ("gelu",),
    ("gelu_tanh",),
]  # fmt: skip


def images_with_channels_last(rng: np.random.Generator) -> Iterator[Arguments]:
    """Draw convolutions with packed weights, with each epilogue, with residuals and without."""
    kinds = [
        # samples, groups, channels and rows of each, size, kernel, stride, padding, dilation
        (2, 1, 3, 17, (16, 16), (3, 3), (1, 1), (1, 1), (1, 1)),
        (2, 1, 3, 40, (17, 19), (7, 7), (2, 2), (3, 3), (1, 1)),
        (3, 1, 16, 8, (30, 14), (3, 3), (2, 2), (1, 1), (1, 1)),
        (9, 1, 24, 64, (7, 7), (3, 3), (1, 1), (1, 1), (1, 1)),
        (1, 1, 40, 33, (40, 30), (5, 3), (1, 2), (2, 0), (2, 1)),
        (2, 1, 20, 150, (12, 13), (1, 1), (1, 1), (0, 0), (1, 1)),
        (2, 1, 3, 4, (9, 9), (1, 1), (3, 2), (0, 0), (1, 1)),
        (2, 1, 9, 4, (6, 6), (2, 2), (1, 1), (4, 3), (3, 1)),  # places in the padding alone
        (5, 1, 300, 20, (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
        (3, 48, 1, 1, (33, 34), (3, 3), (1, 1), (1, 1), (1, 1)),  # depthwise
        (2, 37, 1, 1, (14, 15), (5, 3), (2, 1), (2, 1), (1, 2)),
        (1, 64, 1, 1, (7, 7), (7, 7), (1, 1), (3, 3), (1, 1)),
        (2, 5, 1, 2, (33, 18), (5, 3), (2, 2), (2, 1), (1, 2)),
        (2, 3, 8, 20, (10, 18), (3, 3), (2, 1), (1, 1), (1, 1)),
        (2, 2, 32, 32, (9, 8), (3, 3), (1, 1), (1, 1), (1, 1)),
    ]
    for number, (samples, groups, channels, rows, size, *settings) in enumerate(kinds):
        kernel, stride, padding, dilation = settings
        places = conv.conv_size(size, kernel, stride, padding, dilation)
        x = normal(rng, samples, *size, groups * channels)
        if number in (1, 5, 12):  # images whose channels are apart
            x = np.ascontiguousarray(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)
        w = channels_last.packed(
            normal(rng, groups * rows, channels, *kernel) / np.float32(channels * kernel[0] * kernel[1]) ** 0.5, groups
        )
        b = channels_last.padded_bias(normal(rng, groups * rows), normal(rng, groups * rows, 1))
        for k, epilogue in enumerate(EPILOGUES):
            residual = normal(rng, samples, *places, groups * rows) if (k + number) % 2 else None
            yield x, w, b, residual, kernel, stride, padding, dilation, groups, groups * rows, *epilogue
    x[0, 1, 1, :3] = np.nan, np.inf, -np.inf
    yield x, w, b, None, kernel, stride, padding, dilation, groups, groups * rows, "relu"


def convolutions_of_convolutions(rng: np.random.Generator) -> Iterator[Arguments]:
    """Draw a convolution with one group, and a depthwise one of its result, with each epilogue."""
    kinds = [
        # samples, channels, outputs, size; kernel, stride and padding of each
        (2, 16, 96, (112, 112), (1, 1, 0), (3, 2, 1)),
        (1, 3, 32, (80, 301), (3, 2, 1), (3, 1, 1)),
        (7, 24, 150, (9, 9), (1, 1, 0), (5, 1, 2)),
        (3, 33, 64, (30, 31), (3, 1, 0), (2, 3, 0)),
        (2, 5, 20, (40, 90), (1, 1, 0), (7, 2, 3)),
        (1, 4, 48, (40, 300), (1, 1, 2), (3, 1, 4)),
    ]
    for number, (samples, channels, outputs, size, *settings) in enumerate(kinds):
        for k, epilogue in enumerate(EPILOGUES[number % 2 :: 2]):
            x, given, sizes, inputs = normal(rng, samples, *size, channels), [], size, channels
            for groups, (kernel, stride, padding) in zip((1, outputs), settings, strict=True):
                where = (kernel,) * 2, (stride,) * 2, (padding,) * 2, (1, 1)
                sizes = conv.conv_size(sizes, *where)
                w = normal(rng, outputs, inputs, kernel, kernel) / np.float32(inputs * kernel**2) ** 0.5
                b = channels_last.padded_bias(normal(rng, outputs), w)
                residual = normal(rng, samples, *sizes, outputs) if groups > 1 and k == 2 else None
                args = x, channels_last.packed(w, groups), b, residual, *where, groups, outputs, *epilogue
                given.append(channels_last.whole(args))
                inputs = 1
            yield x, *given


def finished_products(rng: np.random.Generator) -> Iterator[Arguments]:
    for m, k, n in (
        (64, 28, 512),
        (9, 9001, 20),
        (256, 100, 33),
        (33, 256, 10),
        (8, 700, 300),
        *rng.integers(32, 130, (6, 3)).tolist(),
    ):
        for number, epilogue in enumerate(EPILOGUES):
            b, residual = normal(rng, n) if number % 3 else None, normal(rng, m, n) if number % 2 else None
            x, w = normal(rng, m, k), normal(rng, n, k) / np.float32(k) ** 0.5
            yield x, w, b, residual, *epilogue
            yield np.asfortranarray(x), np.asfortranarray(w), b, residual, *epilogue


def images(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape in ((1, 1, 1, 1), (2, 3, 5, 7), (1, 7, 7, 64), (3, 20, 18, 37), (2, 56, 56, 24)):
        yield (normal(rng, *shape),)


def scales(rng: np.random.Generator) -> Iterator[Arguments]:
    yield from ((x, normal(rng, x.shape[0], 1, 1, x.shape[3])) for (x,) in images(rng))


def pooled_images(rng: np.random.Generator) -> Iterator[Arguments]:
    for (x,) in images(rng):
        for settings in (
            ((3, 3), (2, 2), (1, 1), (1, 1)),
            ((2, 3), (1, 2), (0, 1), (2, 1)),
            ((1, 1),) * 2 + ((0, 0), (1, 1)),
        ):
            counts = conv.conv_size(x.shape[1:3], *settings)
            if min(counts) > 0:
                yield x, *settings, counts
                if min(x.shape[1:3]) > 2:  # (with `ceil_mode`)
                    yield x, *settings, tuple([n + (s > 1) for n, s in zip(counts, settings[1], strict=True)])
    x[0, 3, :3, 0] = np.nan, np.inf, -np.inf
    yield x, (3, 3), (2, 2), (1, 1), (1, 1), (28, 28)


def steps(kept: int, *numbers: tuple[Any, ...], optional: bool = False) -> Callable[..., Iterator[Arguments]]:
    """Draw a parameter, its gradient and what is kept for it, not negative, or an optional one None; and numbers."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for given in numbers:
            for shape in [(1, 1), (0,), (7,), (33,), (3, 5), (70_001,)]:
                p, g, *more = rng.standard_normal((2 + kept, *shape)).astype(np.float32)
                for missing in range(1 + optional):
                    rest = [abs(each) for each in more]
                    yield p, g, *[None if missing and k == kept - 1 else each for k, each in enumerate(rest)], *given
        tiny = [np.array([np.nan, np.inf, 1, 0, 0], np.float32) for _ in range(2 + kept)]
        yield *tiny, *numbers[0]

    return draw


#: Shape, dimension and how many indices.
LINES = [((5,), 0, 7), ((4, 6), 0, 3), ((4, 6), 1, 6), ((3, 4, 5), 1, 9), ((2, 3, 4), 2, 1), ((40, 900), 1, 900),
         ((700, 70), 0, 700), ((3, 200, 300), 1, 20), ((1, 0, 5), 1, 0), ((0, 4), 1, 3), ((9, 4), 0, 0)]  # fmt: skip


def lines(rng: np.random.Generator) -> Iterator[tuple[Any, tuple[int, ...], int, Any]]:
    """Draw arrays, with indices as `gather` takes them."""
    for shape, dim, count in LINES:
        size = (*shape[:dim], count, *shape[dim + 1 :])
        for index in (size, (size[0] // 2, *size[1:])) if dim else (size,):
            yield rng.standard_normal(shape, np.float32), shape, dim, rng.integers(0, max(shape[dim], 1), index)


def gathers(rng: np.random.Generator) -> Iterator[Arguments]:
    yield from ((x, dim, index) for x, _, dim, index in lines(rng))


def scatters(rng: np.random.Generator) -> Iterator[Arguments]:
    for x, _, dim, index in lines(rng):
        yield from ((x, dim, index, rng.standard_normal(index.shape, np.float32), how) for how in ("put", "add"))


def scattered(rng: np.random.Generator) -> Iterator[Arguments]:
    for _, shape, dim, index in lines(rng):
        yield rng.standard_normal(index.shape, np.float32), shape, dim, index, False


def places(rng: np.random.Generator) -> Iterator[Arguments]:
    for planes, spatial, windows in [
        (3, (4, 5), (7,)),
        (1, (30, 40), (20, 50)),
        (0, (2,), (2,)),
        (40, (28, 28), (14, 14)),
    ]:
        index = rng.integers(0, np.prod(spatial), (planes, *windows))
        yield rng.standard_normal(index.shape, np.float32), index, spatial, False


def windows(rng: np.random.Generator) -> Iterator[Arguments]:
    """Draw planes with ties and NaNs, and windows that slide over them, some with padding and in steps."""
    for kernel, stride, padding, dilation in [
        (2, 2, 0, 1),
        (3, 2, 1, 1),
        (3, 1, 1, 1),
        (5, 3, 2, 1),
        (2, 1, 0, 3),
        (3, 2, 1, 2),
    ]:
        for shape in [(3, 7, 9), (40, 28, 30), (2, 40), (2, 6, 7, 9)]:
            x = np.round(2 * rng.standard_normal(shape)).astype(np.float32)
            x[rng.random(shape) < 0.01] = np.nan
            x[rng.random(shape) < 0.2] = -np.inf
            counts = [pool.output_length(n, kernel, stride, padding, dilation, False) for n in shape[1:]]
            given = zip(shape[1:], counts, strict=True)
            yield x, tuple([pool.sliding(n, kernel, stride, padding, dilation, many) for n, many in given]), True


def windows_that_differ(rng: np.random.Generator) -> Iterator[Arguments]:
    for x, sliding, _ in windows(rng):
        lengths, kernel = x.shape[1:], (3,) * (x.ndim - 1)
        adaptive = tuple([pool.adaptive(n, 5) for n in lengths])
        u = rng.random((len(x), len(lengths)))
        drawn = tuple([pool._fractional(u[:, k], n, kernel[k], 4) for k, n in enumerate(lengths)])
        for along in (sliding, adaptive, drawn):
            yield from ((x, along, True), (x.clip(-3), along, False))


def rows(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape, dim, count in LINES:
        for some in [(count,), (2, count)]:
            x, index = rng.standard_normal(shape, np.float32), rng.integers(0, max(shape[dim], 1), some)
            yield x, dim, index


def averaged(backward: bool) -> Callable[..., Iterator[Arguments]]:
    """Draw planes, or gradients of averages, with windows of one divisor or one each."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for x, along, _ in windows(rng):
            n, counts = len(along), tuple([axis.many for axis in along])
            lead, spatial = x.shape[: x.ndim - n], x.shape[x.ndim - n :]
            for divisor in (4, -3, 1 + rng.random(counts, np.float32)):
                if backward:
                    yield normal(rng, *lead, *counts), along, spatial, divisor
                else:
                    yield normal(rng, *lead, 1, *spatial), along, divisor, True

    return draw


def halves(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape, dim in (((2,), 0), ((8, 8), -1), ((3, 70), 1), ((6, 7), 0), ((2, 0), 1), ((0, 4), 1), ((300, 4, 90), 1)):
        yield 3 * normal(rng, *shape), dim
    yield np.resize(SPECIAL, (4, 40)), 1


def probabilities(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape in ((1,), (0, 3), (8, 8), (3, 1000), (70_001,)):
        x, y = rng.random((2, *shape), np.float32)
        x.reshape(-1)[:2], y.reshape(-1)[-2:] = (0, 1)[: x.size], (0, 1)[: x.size]
        yield x, y


def margins(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape in ((1,), (7,), (1, 4), (8, 8), (300, 90)):
        x, target = normal(rng, *shape), rng.integers(0, shape[-1], shape[:-1])
        for p, margin, reduction in itertools.product((1, 2), (1.0, 0.3), ("mean", "sum")):
            yield from (
                (x, target, p, margin, weight, reduction) for weight in (None, rng.random(shape[-1], np.float32))
            )


def rectangles(rng: np.random.Generator) -> Iterator[Arguments]:
    for rows, columns in ((1, 1), (8, 8), (3, 70), (200, 9), (0, 4)):
        x = normal(rng, rows, columns)
        yield from ((each,) for each in (x, x.T, x[:, ::-2]))


def medians(rng: np.random.Generator) -> Iterator[Arguments]:
    for x, axis in along(1)(rng):
        order = np.argsort(np.argsort(x, axis, kind="stable"), axis).astype(np.float32)  # without ties
        order[np.isnan(x)] = np.nan
        yield from ((order, axis, kept, skip) for kept in (False, True) for skip in (False, True))


def norms(rng: np.random.Generator) -> Iterator[Arguments]:
    for p in (1.0, 2.0, np.inf):
        for x, dim, kept in reduced(kinds=(np.float32,))(rng):
            yield from ((each, p, None if dim is None else (dim,), kept) for each in (x, x * np.float32(1e30)))


def factored(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape in ((8, 8), (1, 1), (3, 7), (2, 3, 9, 4), (20, 30)):
        x = normal(rng, *shape)
        x[..., 0] = 0
        yield from ((each, mode) for each in (x, normal(rng, *shape)) for mode in ("reduced", "complete"))


def clamped(rng: np.random.Generator) -> Iterator[Arguments]:
    for (x,) in pointwise(1)(rng):
        yield from ((x, *bounds) for bounds in ((-0.5, 0.5), (None, 1), (0.25, None), (1.0, -1.0)))


def searched(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape, count in (((7,), 5), ((1,), 3), ((100,), 0), ((1000,), 9000), ((3, 9), 4), ((2, 3, 1), 6), ((0,), 4)):
        sequence = np.sort(np.round(2 * normal(rng, *shape)), -1)
        values = np.round(3 * normal(rng, *shape[:-1], count))
        for right in (False, True):
            yield sequence, values, right
    sequence[..., -1:] = values[..., ::3] = np.nan
    yield from ((sequence, values, right) for right in (False, True))


def moved(*shifts: int) -> Callable[..., Iterator[Arguments]]:
    """Draw arrays of all kinds of numbers, and what they are to be shifted by, or for `roll`, dimensions, too."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for shape in ((1, 1), (3, 5), (6, 2), (2, 3, 4, 5), (0, 3), (3, 0), (40, 70)):
            for kind in (np.float32, np.int64, np.bool_, np.complex64):
                x = rng.integers(0, 9, shape).astype(kind)
                for shift in shifts or (0, 2, -1, 100):
                    yield from [(x, (shift,), (d,)) for d in (0, -1)] + [(x, (shift,), ())] if shifts else [(x, shift)]

    return draw


def of_shapes(more: Any, given: Any = None) -> Callable[..., Iterator[Arguments]]:
    """Draw arrays of several shapes, with the arguments `more` of each; or all arguments, `given` of float32."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for shape in ((1, 1), (3, 5), (6, 2), (2, 3, 4, 5), (40, 70)):
            for kind in (np.float32,) if given else (np.float32, np.int64, np.bool_):
                x = rng.integers(0, 9, shape).astype(kind)
                yield from given(x) if given else [(x, *each) for each in more(x)]

    return draw


def named_rows(source: bool, *last: Any) -> Callable[..., Iterator[Arguments]]:
    """Draw arrays, a dimension, indices along it, perhaps as many rows, and what follows."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for size, dim, count in (((4, 3), 0, 5), ((4, 3), -1, 2), ((2, 5, 3), 1, 4), ((6,), 0, 3), ((3, 2), 0, 0)):
            index = rng.integers(0, size[dim], count)
            rows = (*size[:dim], count, *size[dim % len(size) + 1 :])
            yield normal(rng, *size), dim, index, *([normal(rng, *rows)] if source else []), *last

    return draw


def selections(rng: np.random.Generator) -> Iterator[Arguments]:
    """Draw arrays with a mask, or with indices of the first dimensions, or of a later one."""
    for kind in (np.float32, np.int64, np.bool_, np.complex64):
        x = rng.integers(0, 9, (3, 4, 5)).astype(kind)
        i, j = rng.integers(-3, 3, (2, 2, 6))
        yield from ((x, key) for key in ((i,), (i, j), (None, j), (x[..., 0] != 0,), (x != 0,), (i[:0],)))


def put_at(numbers: bool) -> Callable[..., Iterator[Arguments]]:
    """Draw arrays, what is selected, and what is written there: as much, a row for each place, or a number."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for x, indices in selections(rng):
            found = indexing.take(x, indices)
            yield x, indices, found + found, False
            yield x, indices, x[:1, 0, 0].reshape(()).copy(), False
            if numbers and x.dtype in (np.float32, np.int64):
                yield x, indices, 3, False

    return draw


def divisions(floating: bool) -> Callable[..., Iterator[Arguments]]:
    """Draw ints, and floats, with divisors other than zero."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for kind in (np.int64, np.float32, np.float64) if floating else (np.int64,):
            x, y = rng.integers(-20, 20, (3, 40)).astype(kind), rng.integers(1, 9, (3, 40)).astype(kind)
            yield from ((x, y), (x, -y), (x, y[:1, 0].reshape(())), (x[:1, 0].reshape(()), y), (x[0], -y[1]))

    return draw


def crossed(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape, dim in (((3,), 0), ((8, 3), 1), ((3, 7), 0), ((2, 3, 40), -2), ((0, 3), 1), ((500, 3), -1)):
        x, y = normal(rng, *shape), normal(rng, *shape)
        yield x, y, dim
        yield x, x, dim
        yield np.asfortranarray(x), y, dim


def sampled(kind: str) -> Callable[..., Iterator[Arguments]]:
    """Draw arguments of sampling at the points of a grid: far outside, on borders, and NaN among them."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        shapes = [
            ((2, 3, 8, 8), (8, 8)),
            ((1, 1, 5, 1), (3, 70)),
            ((3, 20, 7, 9), (13, 40)),
            ((2, 4, 3, 4, 5), (2, 9, 4)),
        ]
        for number, (shape, counts) in enumerate([*shapes, ((0, 2, 3, 3), (2, 2)), ((2, 0, 3, 3), (2, 2))]):
            spatial = shape[2:]
            for mode, padding, corners in itertools.product((0, 1), (0, 1, 2), (False, True)):
                x, grid = normal(rng, *shape), 1.5 * normal(rng, shape[0], *counts, len(spatial))
                grid.reshape(-1)[:6] = (0, -1, np.nan, 30, np.inf, -1e30)[: grid.size]
                g = normal(rng, *shape[:2], *counts)
                if number % 2:
                    grid, g = np.ascontiguousarray(grid.T).T, np.broadcast_to(g[:1], g.shape)
                options = (mode, padding, corners, (0,) * len(spatial))
                if kind == "values":
                    yield x, grid, *options
                elif kind == "spread":
                    yield g, grid, *options, spatial
                else:
                    yield g, x, grid, *options

    return draw


def mapped(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape in ((2, 3, 8, 8), (1, 5, 4), (3, 2, 4, 3, 5)):
        x, bad = normal(rng, *shape), normal(rng, *shape)
        bad[..., 1] = np.inf
        for make, count in itertools.product((resample.nearest, resample.linear, resample.averages), (3, 7, 8)):
            more = {resample.nearest: (None, False, False), resample.linear: (False, None, np.float32)}.get(make, ())
            maps = tuple([make(n, count, *more) for n in shape[2:]])
            for each in (x, bad):
                yield each, maps, True
                yield each, (None, *maps[1:-1], maps[-1]), False


def ranked(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape, k in (((70,), 1), ((5, 7), 3), ((3, 100), 12), ((2, 3, 2000), 10), ((40, 999), 100), ((2, 70_001), 200)):
        x = np.broadcast_to(np.linspace(-9, 9, shape[-1], dtype=np.float32), shape).copy()
        x = rng.permuted(x, axis=-1)
        for some in (x, np.sort(x), np.sort(x)[..., ::-1].copy()):
            yield from ((some, k, largest) for largest in (True, False))
    x[:, :8:2], x[0, 1], x[1, 5] = np.nan, np.inf, -np.inf
    yield from ((x, 9, largest) for largest in (True, False))
    x = np.full((2, 100), np.nan, np.float32)
    x[:, 50:60] = np.arange(10)
    yield from ((x, 9, largest) for largest in (False,))


def uniforms(rng: np.random.Generator) -> Iterator[Arguments]:
    for size in (16, 320, 3 * 2**13 + 16):
        numbers = rng.integers(0, 2**24, size)
        numbers[:4] = 0, 1, 2**23, 2**24 - 1
        yield (np.ldexp(rng.permutation(numbers), -24).astype(np.float32),)


def words(rng: np.random.Generator) -> Iterator[Arguments]:
    yield from ((rng.integers(0, 2**32, n, np.uint32),) for n in (1, 2, 40, 5000))


def entries_by_rows(rng: np.random.Generator) -> Iterator[Arguments]:
    """Draw matrices in the format CSR, with empty rows, and dense ones."""
    for rows, columns, width, density in ((1, 1, 1, 1.0), (7, 5, 3, 0.4), (300, 200, 64, 0.1), (2000, 50, 33, 0.02)):
        filled = rng.random((rows, columns)) < density
        filled[rows // 2] = False
        start = np.concatenate([[0], filled.sum(1).cumsum()])
        values = rng.standard_normal(int(start[-1])).astype(np.float32)
        yield values, np.nonzero(filled)[1].copy(), start, rng.standard_normal((columns, width)).astype(np.float32)


def added_rows(rng: np.random.Generator) -> Iterator[Arguments]:
    for x, dim, index in rows(rng):
        yield x, dim, index, rng.standard_normal((*x.shape[:dim], *index.shape, *x.shape[dim + 1 :]), np.float32)


def running(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape, dim, _ in LINES:
        yield from ((rng.standard_normal(shape, np.float32), dim, reverse) for reverse in (False, True))
    yield SPECIAL[::-1].copy(), 0, False


def spread(rng: np.random.Generator) -> Iterator[Arguments]:
    """Draw arrays of one shape, and of two of which the one is spread out to that of the other."""
    yield from pointwise(2)(rng)
    for shape, other in [
        ((64, 512), (512,)), ((40, 300), (40, 1)), ((3, 5), (5,)), ((1000, 3), (3,)), ((1001, 10), (1, 10)),
        ((7, 16), ()), ((4, 6, 20), (6, 1)), ((70_001,), (1,)), ((3, 5, 7), (5, 7)), ((300, 300), (300,)),
        ((90, 17), (90, 1)), ((2, 3, 4, 5), (1, 3, 4, 5)), ((300, 200), ()), ((9, 1), (1,)), ((5, 1, 40), (5, 1, 1)),
        ((6, 16), (1, 1)),
    ]:  # fmt: skip
        x, y = normal(rng, *shape), np.asarray(normal(rng, *other))
        yield x, y
        yield y, x
    x = normal(rng, 16, 16) + SPECIAL
    yield from ((x, y) for y in (SPECIAL[::-1].copy(), SPECIAL[:, None].copy()))


def summed(rng: np.random.Generator) -> Iterator[Arguments]:
    """Draw arrays, and which of their dimensions are summed."""
    for shape in [(1,), (7,), (70_001,), (5, 3), (40, 4), (64, 512), (1000, 10), (3000, 17), (20, 3000), (9, 1),
                  (1, 40), (300, 2), (300, 3), (3, 4, 5), (6, 700, 3), (2, 3, 4, 5), (70, 9, 6, 16)]:  # fmt: skip
        x = rng.random(shape, np.float32)
        yield (x,)
        for chosen in range(1, 2 ** len(shape)):
            axes = tuple([axis for axis in range(len(shape)) if chosen >> axis & 1])
            yield from ((x, axes), (x, axes[::-1], True))
    x = normal(rng, 50, 50)
    x[3, 4], x[5, 6], x[5, 7], x[8, 4] = np.inf, np.inf, -np.inf, np.nan
    yield from ((x, axes, False) for axes in ((0,), (1,), None))


def columns(rng: np.random.Generator) -> Iterator[Arguments]:
    yield from (
        (normal(rng, *shape),) for shape in ((3, 4), (64, 10), (70, 512), (3000, 30), (2, 3, 5), (5, 1), (900, 1))
    )


def matrix_and_row(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape in ((3, 4), (64, 10), (70, 512), (1001, 3), (5, 1), (9, 100)):
        yield normal(rng, *shape), normal(rng, shape[1])


#: Of scores.
def attentions(grad: bool) -> Callable[..., Iterator[Arguments]]:
    """Draw attention of few and many heads that lie beside each other in memory, with each kind of mask and dropout."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        sizes = [((), 5, 3, 4, 2), ((3,), 2, 40, 16, 16), ((2, 5), 64, 64, 32, 32), ((9,), 7, 20, 1, 33)]
        sizes += [((2, 1), 300, 150, 20, 9), ((2, 2, 3), 33, 17, 24, 24), ((12,), 130, 200, 8, 8), ((1,), 4, 1, 3, 1)]
        for batch, queries, keys, features, results in sizes:
            q, g, out = (
                np.moveaxis(normal(rng, queries, *batch, width), 0, -2) for width in (features, results, results)
            )
            k, v = (np.moveaxis(normal(rng, keys, *batch, width), 0, -2) for width in (features, results))
            some = rng.random((*batch, queries, keys)) < 0.6
            some[..., -1:, :] = False  # attends to nothing
            numbers = np.where(some[..., :1, :], normal(rng, keys), np.float32(-np.inf))
            columns = np.where(some, 1, normal(rng, *some.shape)).swapaxes(-1, -2).copy().swapaxes(-1, -2)
            masks = [None, some, some[(0,) * len(batch)], some[..., :1], numbers, columns]
            keeps = [None, None, (some / 0.6).astype(np.float32)]
            for mask, keep, is_causal in [
                *zip(masks, keeps * 2, [False] * 6, strict=True),
                *[(None, each, True) for each in keeps[1:]],
            ]:
                weights, out = np.zeros(some.shape, np.float32), np.zeros_like(out)
                args = (q, k, v, keep, is_causal, 0.25, weights, out)
                if not grad:
                    yield *args, mask
                    continue
                inspect.unwrap(attention.attend)(*args, mask)
                # (The gradient by a single score is zero, but for rounding.)
                wanted = [0 * x if keys > 1 or x is v else None for x in (q, k, v)]
                yield *args, g, *wanted, None if is_causal or keys == 1 else 0 * weights
                yield *args, g, None, wanted[1], None, None
        if not grad:
            q[..., 0, 0], k[..., :, 1] = np.nan, np.inf
            yield q, k, v, None, False, 0.25, weights, out, None

    return draw


def joined(rng: np.random.Generator) -> Iterator[Arguments]:
    """Draw arrays to join."""
    for sizes, dim, lengths in [
        ((3,), 0, (3, 5)), ((2, 3), 1, (1, 0, 4)), ((4, 1, 7), -2, (3, 3)), ((0, 5), 1, (2, 2)), ((2, 2), 0, (0, 0)),
        ((300, 5, 40), 1, (3, 5, 1, 2)), ((70_001,), 0, (70_001, 3, 40_000)), ((2, 3, 2, 2, 3), 4, (5, 1)),
        ((9,), 0, (9,)),
    ]:  # fmt: skip
        arrays = [rng.standard_normal([*sizes[:dim], n, *sizes[dim % len(sizes) + 1 :]], np.float32) for n in lengths]
        yield (arrays if dim else tuple(arrays)), dim


def weights_of_gates(rng: np.random.Generator) -> Iterator[Arguments]:
    for size, features, hidden in ((1, 1, 1), (8, 5, 8), (3, 0, 2)):
        biases = normal(rng, 4 * size), normal(rng, 4 * size)
        for b in (biases, (None, None)):
            yield normal(rng, 4 * size, features), normal(rng, 4 * size, hidden), *b


def recurrent(rng: np.random.Generator) -> Iterator[Arguments]:
    """Draw layers of an LSTM: of even and uneven widths, in one and in two parts, in both directions."""

    def numbers(*shape: int) -> Any:
        return 0.5 * rng.standard_normal(shape, np.float32)

    def empty(*shape: int) -> Any:
        return np.zeros(shape, np.float32)

    for size, features, widths, bounds in [
        (1, 1, (1,), (0, 1)), (5, 3, (4, 4, 4), (0, 2, 4)), (20, 7, (33, 20, 20, 1), (0, 33)),
        (33, 5, (70, 70), (0, 35, 70)), (7, 2, (300, 300, 300), (0, 150, 300)), (130, 16, (20, 17), (0, 20)),
        (4, 3, (0, 0), (0, 0)),
    ]:  # fmt: skip
        depth, columns, batch = features + 1 + size, sum(widths), widths[0]
        for reverse in (False, True):
            weights, matrix = numbers(4 * size, depth) / np.sqrt(np.float32(depth)), numbers(depth, columns)
            states = [numbers(batch, size), numbers(batch, size)]
            begin, end = rnn.spans(widths, reverse)[0]
            matrix[-size:, begin:end] = states[0][: end - begin].T
            kept = [empty(4 * size * columns), empty(size * columns), empty(size * columns)]
            last = [empty(columns, size), empty(batch, size), empty(batch, size)]
            yield weights, None, *states, widths, reverse, np.array(bounds), matrix, *kept, *last


def recurrent_grads(rng: np.random.Generator) -> Iterator[Arguments]:
    for arguments in recurrent(rng):
        weights, _, h, c, widths, reverse, bounds, matrix, *kept, out, h_n, c_n = arguments
        rnn.lstm_steps(*arguments)
        w_hh, slopes = weights[:, -h.shape[1] :].copy(), np.zeros((weights.shape[0], matrix.shape[1]), np.float32)
        for upstream in (out, None):
            yield w_hh, None, upstream, h, c, widths, reverse, bounds, *kept, slopes, h_n, c_n


ELEMENTARY = (
    "exp exp2 expm1 log log2 log10 log1p sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh "
    "erf erfc rsqrt sinc entropy log_odds lgamma digamma erfinv"
).split()

DEFINITIONS = vars(elementary) | vars(special) | vars(transcendental) | vars(gamma)
#: Every kernel has a line here.
SAMPLES = {
    **{name: Samples(DEFINITIONS[name], pointwise(1)) for name in ELEMENTARY},
    "batch_norm": Samples(norm.batch_norm, channels("batch"), 1e-5, 1e-6),
    "batch_norm_grad": Samples(norm.batch_norm_grad, channels("batch grad"), 1e-5, 2e-6),
    "complex_rows": Samples(fft.complex_rows, spectra("complex"), 1e-5, 5e-7),
    "cross_entropy": Samples(loss.cross_entropy, class_scores),
    "nll": Samples(loss.nll, scores_of_labels),
    "nll_loss_grad": Samples(loss.nll_loss_grad, gradients_of_labels),
    "elu": Samples(activation.elu, pointwise(1, 1.6, 1.05, 0.7)),
    "elu_grad": Samples(activation.elu_grad, pointwise(2, 1.6, 1.05, 0.7)),
    "mish": Samples(activation.mish, pointwise(1)),
    "gelu": Samples(activation.gelu, pointwise(1, each=("none", "tanh"))),
    "gelu_grad": Samples(activation.gelu_grad, pointwise(2, each=("none", "tanh"), special=False)),
    "log_sigmoid": Samples(activation.log_sigmoid, pointwise(1)),
    "logistic": Samples(loss.logistic, pointwise(2)),
    "given_norm": Samples(norm.given_norm, channels("given"), 1e-5, 1e-6),
    "group_norm": Samples(norm.group_norm, channels("group"), 1e-5, 1e-6),
    "group_norm_grad": Samples(norm.group_norm_grad, channels("group grad"), 1e-5, 2e-6),
    "hardswish": Samples(activation.hardswish, pointwise(1)),
    "hardswish_grad": Samples(activation.hardswish_grad, pointwise(2)),
    "layer_norm": Samples(layer_norm.layer_norm, layers(False), 1e-5, 1e-6),
    "layer_norm_grad": Samples(layer_norm.layer_norm_grad, layers(True), 1e-5, 2e-6),
    "leaky_relu": Samples(activation.leaky_relu, pointwise(1, 0.01)),
    "leaky_relu_grad": Samples(activation.leaky_relu_grad, pointwise(2, 0.01)),
    "log_softmax": Samples(activation.log_softmax, along(1)),
    "log_softmax_grad": Samples(activation.log_softmax_grad, along(2), 1e-5, 1e-6),
    "relu": Samples(activation.relu, pointwise(1)),
    "relu_grad": Samples(activation.relu_grad, pointwise(2)),
    "rms_norm": Samples(layer_norm.rms_norm, layers(False, centred=False), 1e-5, 1e-6),
    "rms_norm_grad": Samples(layer_norm.rms_norm_grad, layers(True, centred=False), 1e-5, 2e-6),
    "rows_of_reals": Samples(fft.rows_of_reals, spectra("real"), 1e-5, 5e-7),
    "rows_to_real_part": Samples(fft.rows_to_real_part, spectra("inverse"), 1e-5, 5e-7),
    "rows_to_reals": Samples(fft.rows_to_reals, spectra("half"), 1e-5, 5e-7),
    "sigmoid": Samples(activation.sigmoid, pointwise(1)),
    "softsign": Samples(activation.softsign, pointwise(1)),
    "tanhshrink": Samples(activation.tanhshrink, pointwise(1)),
    "sigmoid_slope": Samples(activation.sigmoid_slope, slopes(activation.sigmoid)),
    "silu": Samples(activation.silu, pointwise(1)),
    "silu_grad": Samples(activation.silu_grad, pointwise(2)),
    "conv": Samples(conv.conv, convolutions("y"), 1e-5, 2e-6),
    "conv_input": Samples(conv.conv_input, convolutions("x"), 1e-5, 2e-6),
    "conv_weight": Samples(conv.conv_weight, convolutions("w"), 1e-5, 2e-6),
    "convolved": Samples(channels_last.convolved, images_with_channels_last, 1e-5, 2e-6),
    "convolved_twice": Samples(channels_last.convolved_twice, convolutions_of_convolutions, 1e-5, 3e-6),
    "finished": Samples(channels_last.finished, finished_products, 2e-5, 2e-6),
    "means": Samples(channels_last.means, images, 1e-5, 1e-6),
    "scaled": Samples(channels_last.scaled, scales, 0, 0),
    "maxima_of": Samples(channels_last.maxima_of, pooled_images, 0, 0),
    "softmax": Samples(activation.softmax, along(1)),
    "softmax_grad": Samples(activation.softmax_grad, along(2), 1e-5, 1e-6),
    "softplus": Samples(activation.softplus, pointwise(1, 1.5, 20.0)),
    "softplus_grad": Samples(activation.softplus_grad, pointwise(2, 1.5, 20.0)),
    "tanh_slope": Samples(activation.tanh_slope, slopes(np.tanh)),
    "gather": Samples(indexing.gather, gathers, 0, 0),
    "scatter_by": Samples(indexing.scatter_by, scatters, 0, 0, writes=True),
    **{
        name: Samples(getattr(scatter, name), lambda rng: (each[:4] for each in scatters(rng)), 0, 0, writes=True)
        for name in ("scatter", "scatter_add")
    },
    "index_add": Samples(indexing.index_add, named_rows(True, 1), 0, 0, writes=True),
    "index_copy": Samples(indexing.index_copy, named_rows(True), 0, 0, writes=True),
    "index_fill": Samples(indexing.index_fill, named_rows(False, 2.5), 0, 0, writes=True),
    "masked_fill": Samples(
        indexing.masked_fill,
        of_shapes(None, lambda x: [(x, x > 4, each) for each in (2.5, np.array(7, np.float32))]),
        0,
        0,
        writes=True,
    ),
    "take": Samples(indexing.take, selections, 0, 0),
    "put": Samples(indexing.put, put_at(True), 0, 0, writes=True),
    "index_put": Samples(indexing.index_put, put_at(False), 0, 0, writes=True),
    "one_hot": Samples(embedding.one_hot, lambda rng: [(rng.integers(0, 5, s), 5) for s in ((3,), (0,), (2, 4))], 0, 0),
    "unique2": Samples(sort.unique2, lambda rng: [(rng.integers(-3, 4, s),) for s in ((7,), (0,), (2, 50))], 0, 0),
    **{
        name: Samples(getattr(arithmetic, name), divisions(name != "floor_divide"), 0, 0)
        for name in ("floor_divide", "trunc_divide", "fmod", "remainder")
    },
    "rounded": Samples(arithmetic.rounded, of_shapes(None, lambda x: [(x / 2 - 1.25,), (-x / 2,), (x / 7, 2)]), 0, 0),
    "taken": Samples(scatter.taken, of_shapes(lambda x: [(np.array([[0, x.size - 1], [-1, -x.size]]),)]), 0, 0),
    "count_nonzero": Samples(reduce.count_nonzero, of_shapes(lambda x: [(None,)]), 0, 0),
    "scattered": Samples(indexing.scattered, scattered, 0, 0),
    "place": Samples(pool.place, places, 1e-6, 1e-6),
    "maxima": Samples(pool.maxima, windows, 0, 0),
    "max_pool": Samples(pool.max_pool, windows, 0, 0),
    "max_values": Samples(pool.max_values, lambda rng: (args[:2] for args in windows(rng)), 0, 0),
    "maxima_at": Samples(pool.maxima_at, windows_that_differ, 0, 0),
    "product": Samples(products.product, matrices, 2e-5, 1e-6),
    "linear": Samples(products.linear, linears, 2e-5, 1e-6),
    "widening_linear": Samples(quantized.widening_linear, narrow_linears, 2e-5, 1e-6),
    "byte_product": Samples(quantized.byte_product, bytes_of_matrices, 0, 0),
    "avg_pool": Samples(pool.avg_pool, averaged(False), 1e-5, 1e-6),
    "spread_averages": Samples(pool.spread_averages, averaged(True), 1e-5, 1e-6),
    "binary_entropies": Samples(loss.binary_entropies, probabilities),
    "multi_margin_loss": Samples(loss.multi_margin_loss, margins),
    "sign": Samples(arithmetic.sign, pointwise(1), 0, 0),
    "trace": Samples(products.trace, rectangles),
    "glu": Samples(activation.glu, halves),
    "median_all": Samples(statistics.median_all, reduced(after=(False,), along="", kinds=(np.float32,)), 0, 0),
    **{f"{name}_all": Samples(getattr(reduce, f"{name}_all"), reduced(along=""), 0, 0) for name in ("max", "min")},
    **{f"{name}_dim": Samples(getattr(reduce, f"{name}_dim"), reduced(along="i"), 0, 0) for name in ("max", "min")},
    **{name: Samples(getattr(reduce, name), reduced(along="it"), 0, 0) for name in ("amax", "amin")},
    **{f"{name}_over": Samples(getattr(reduce, f"{name}_over"), reduced(kinds=(np.bool_,))) for name in ("any", "all")},
    "prod": Samples(reduce.prod, reduced(after=(None,)), 0, 0),
    "norm": Samples(reduce.norm, norms),
    "qr": Samples(decompose.qr, factored, 1e-5, 1e-6),
    "clamp": Samples(arithmetic.clamp, clamped, 0, 0),
    "median_dim": Samples(statistics.median_dim, medians, 0, 0),
    "search": Samples(sort.search, searched, 0, 0),
    "cross": Samples(products.cross, crossed),
    "flip": Samples(rearrange.flip, of_shapes(lambda x: [(dims,) for dims in ((), (0,), (-1, 0), (1,))]), 0, 0),
    "expand": Samples(shapes.expand, of_shapes(lambda x: [((2, *x.shape),), ([-1] * x.ndim,)]), 0, 0),
    "pieces": Samples(shapes.pieces, of_shapes(lambda x: [([1, n - 1], 1) for n in x.shape[1:2] if n > 1]), 0, 0),
    "unbind": Samples(shapes.unbind, of_shapes(lambda x: [(), (1,), (-1,)]), 0, 0),
    "tril": Samples(rearrange.tril, moved(), 0, 0),
    "triu": Samples(rearrange.triu, moved(), 0, 0),
    "roll": Samples(rearrange.roll, moved(0, 1, -2, 7), 0, 0),
    "sample": Samples(resample.sample, sampled("values"), 1e-5, 1e-6),
    "resample": Samples(resample.resample, mapped, 1e-5, 1e-6),
    "spread_at": Samples(resample.spread_at, sampled("spread"), 1e-5, 1e-6),
    "slopes_at": Samples(resample.slopes_at, sampled("slopes"), 1e-5, 2e-6),
    "few": Samples(sort.few, ranked, 0, 0),
    "box_muller": Samples(random.box_muller, uniforms, 0, 0),
    "shuffled": Samples(random.shuffled, words, 0, 0),
    "uniform": Samples(
        random.uniform, random_fills((0, 1), (-0.3, 0.71), (1000, 1001), large=40_000), 0, 0, writes=True
    ),
    "normal": Samples(random.normal, random_fills((0, 1), (0.5, 2.0), kinds=(np.float32,)), 0, 0, writes=True),
    "drawn_words": Samples(
        random.drawn_words, random_fills((), kinds=(np.uint32, np.uint64), large=40_000), 0, 0, writes=True
    ),
    "bernoulli": Samples(random.bernoulli, random_fills((0.5,), (0.0,), (1.0,), large=40_000), 0, 0, writes=True),
    "bernoulli_each": Samples(
        random.bernoulli_each,
        lambda rng: [(*args, rng.random(args[0].size).astype(args[0].dtype)) for args in random_fills(())(rng)],
        0,
        0,
        writes=True,
    ),
    "permutation": Samples(random.permutation, random_fills((), kinds=(np.int64,)), 0, 0, writes=True),
    "integers": Samples(random.integers, random_fills((0, 5), (-3, 2**40), kinds=(np.int64,)), 0, 0, writes=True),
    "gammas": Samples(
        rejection.gammas, between((0.1, 5), kinds=(np.float32, np.float64), then=random.Source), 0, 0, writes=True
    ),
    "poissons": Samples(rejection.poissons, between((0, 30), then=random.Source), 0, 0, writes=True),
    "binomials": Samples(rejection.binomials, between((0, 90), (-0.1, 1.1), then=random.Source), 0, 0, writes=True),
    "picks": Samples(random.picks, weights_of_rows, 0, 0, writes=True),
    "gamma_slope": Samples(implicit.gamma_slope, between((0.1, 50), (0, 60)), 1e-9, 1e-10),
    "beta_slope": Samples(implicit.beta_slope, between((0, 1), (0.1, 5), (5.1, 20)), 1e-9, 1e-10),
    "igamma": Samples(gamma.igamma, between((0.01, 50), (0, 60), kinds=(np.float32,))),
    "igammac": Samples(gamma.igammac, between((0.01, 50), (0, 60), kinds=(np.float32,))),
    "polygamma": Samples(
        gamma.polygamma,
        lambda rng: ((x, n) for n in (1, 2, 5) for (x,) in between((0.001, 30), kinds=(np.float32,))(rng)),
    ),
    "running_extremes": Samples(reduce.running_extremes, running, 0, 0),
    "bytes_along": Samples(resample.bytes_along, bytes_and_taps, 0, 0),
    "cdist": Samples(distances.cdist, rows_of_two, 1e-5, 1e-6),
    "pdist": Samples(distances.pdist, lambda rng: ((x, p) for x, _, p in rows_of_two(rng) if x.ndim == 2), 1e-5, 1e-6),
    "by_rows": Samples(sparse.by_rows, entries_by_rows),
    "take_rows": Samples(indexing.take_rows, rows, 0, 0),
    "add_rows": Samples(indexing.add_rows, added_rows, 0, 0, writes=True),
    "blend": Samples(norm.blend, statistics_of_batches, writes=True),
    "running_sums": Samples(reduce.running_sums, running, 0, 0),
    "total": Samples(reduce.total, summed, 2e-5, 2e-6),
    "column_sums": Samples(products.column_sums, columns, 2e-5, 2e-6),
    "sum_over": Samples(reduce.sum_over, along_dimensions, 2e-5, 2e-6),
    "mean_over": Samples(reduce.mean_over, along_dimensions, 2e-5, 2e-6),
    "spread": Samples(reduce.spread, numbers_and_shapes, 0, 0),
    "power": Samples(transcendental.power, squares, 0, 0),
    "mm": Samples(products.mm, small_matrices(False, False), 2e-5, 1e-6),
    "mm_nt": Samples(products.mm_nt, small_matrices(False, True), 2e-5, 1e-6),
    "mm_tn": Samples(products.mm_tn, small_matrices(True, False), 2e-5, 1e-6),
    "affine": Samples(products.affine, small_linears, 2e-5, 1e-6),
    "add_to_rows": Samples(reduce.add_to_rows, matrix_and_row, 0, 0, writes=True),
    "add": Samples(arithmetic.add, spread, 0, 0),
    "subtract": Samples(arithmetic.subtract, spread, 0, 0),
    "multiply": Samples(arithmetic.multiply, spread, 0, 0),
    "divide": Samples(arithmetic.divide, spread, 0, 0),
    # (A product beyond the numbers, added to the other infinity, is one rounding here and two in NumPy.)
    "addcmul": Samples(arithmetic.addcmul, pointwise(3, 1.5, special=False)),
    "attend": Samples(attention.attend, attentions(False), 1e-5, 1e-6, writes=True),
    "attend_grad": Samples(attention.attend_grad, attentions(True), 1e-5, 2e-6, writes=True),
    "concatenated": Samples(shapes.concatenated, joined, 0, 0),
    "stacked": Samples(shapes.stacked, of_shapes(None, lambda x: [([x, x + 1], d) for d in (0, 1, -1)]), 0, 0),
    "lstm_weights": Samples(rnn.lstm_weights, weights_of_gates, 0, 0),
    "lstm_steps": Samples(rnn.lstm_steps, recurrent, 2e-5, 2e-6, writes=True),
    "lstm_steps_grad": Samples(rnn.lstm_steps_grad, recurrent_grads, 2e-5, 2e-6, writes=True),
    "sgd": Samples(
        optim.sgd.kernel,
        steps(
            1,
            (1, 1, 0, 0.1, 0.9, 1, False, False),
            (-1, 1, 0.2, 0.1, 0.9, 0.5, True, False),
            (1, 0.99, 0, 0.1, 0.9, 1, False, True),
            optional=True,
        ),
        writes=True,
    ),
    "adam": Samples(
        optim.adam.kernel,
        steps(
            3,
            (1, 1, 0, 0.1, 0.99, 0.01, 0.1, 1e-3),
            (-1, 1, 0.2, 0.1, 0.99, 0.01, 0.1, 1e-3),
            (1, 0.99, 0, 0.1, 0.99, 0.01, 0.1, 1e-3),
            optional=True,
        ),
        writes=True,
    ),
    "rmsprop": Samples(
        optim.rmsprop.kernel,
        # (Of what may be negative but for rounding there is no root to compare.)
        lambda rng: (
            (p, g, 1 + v + m * m, *([m, b], [m, None], [None, b], [None, None])[i], *numbers)
            for p, g, v, m, b, *numbers in steps(
                3, (1, 1, 0, 0.1, 0.9, 0.1, 1e-3, 0.9), (-1, 1, 0.1, 0.1, 0.9, 0.1, 1e-3, 0.9)
            )(rng)
            for i in range(4)
        ),
        writes=True,
    ),
    "adamax": Samples(
        optim.adamax.kernel, steps(2, (1, 1, 0, 0.1, 0.99, 1e-3, 0.1), (-1, 0.9, 0, 0.1, 0.99, 1e-3, 0.1)), writes=True
    ),
    "nadam": Samples(optim.nadam.kernel, steps(2, (1, 1, 0.1, 0.1, 0.99, 0.01, 0.02, 0.1, 1e-3)), writes=True),
    "radam": Samples(
        optim.radam.kernel,
        steps(2, (1, 1, 0.1, 0.1, 0.99, 0.01, 1e-3, 0.1, False), (-1, 1, 0, 0.1, 0.99, 0.01, 1e-3, 0.1, True)),
        writes=True,
    ),
    "adadelta": Samples(optim.adadelta.kernel, steps(2, (1, 1, 0.1, 0.9, 0.1, 1e-3, 0.5)), writes=True),
    "adagrad": Samples(optim.adagrad.kernel, steps(1, (1, 1, 0.1, 1e-3, 0.5)), writes=True),
    "rprop": Samples(
        optim.rprop.kernel, steps(2, (1, 1, 0, 0.5, 1.2, 1e-6, 50), (-1, 1, 0, 0.5, 1.2, 0.1, 0.2)), writes=True
    ),
    "asgd": Samples(optim.asgd.kernel, steps(1, (1, 1, 0.1, 0.9, 0.1, 1), (-1, 1, 0, 0.9, 0.1, 0.5)), writes=True),
}

EACH = pytest.mark.parametrize("name", SAMPLES)
ON_EACH_SET = pytest.mark.parametrize("instructions", library.SETS)


def refusing(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("the native kernel has left these arguments to the definition")


def copied(argument: Any) -> Any:
    """Return a copy of an array, on copied memory of the same layout; or of a new generator."""
    if isinstance(argument, random.Source):
        return random.Source(argument.seed)
    if not isinstance(argument, np.ndarray) or (argument.size and 0 in argument.strides):
        return argument
    base = argument.base if isinstance(argument.base, np.ndarray) else argument
    if base.dtype != argument.dtype or argument.flags.c_contiguous or not argument.size:
        return argument.copy()
    begin = argument.ctypes.data - base.ctypes.data
    return np.ndarray(argument.shape, argument.dtype, base.copy(), begin, argument.strides)


LEFT = object()


def results(samples: Samples, kernel: Callable[..., Any], args: Arguments) -> Any:
    """Return the arrays that a kernel gives, and those that it has written into; None if it has left that."""
    if samples.writes:
        args = tuple([copied(each) for each in args])
    result = kernel(*args)
    if result is LEFT:
        return None
    found = [*(result if isinstance(result, tuple) else [result]), *args[: len(args) * samples.writes]]
    return [np.asarray(each) for each in found if isinstance(each, (np.ndarray, np.generic))]


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = parallel.get_threads()
    yield
    parallel.set_threads(before)
    # A kernel that has used MMX registers, and left them so, makes the next numbers of x87 NaN.
    assert np.longdouble(3) * np.longdouble(5) == 15


def test_every_twin_has_a_kernel_and_samples() -> None:
    twins: list[str] = []
    for path in Path(tinytorch.__file__).parent.rglob("*.py"):
        if "twin" not in (text := path.read_text("utf-8")):
            continue
        twins += re.findall(r"^(\w+) = twin\(np\.", text, re.MULTILINE)
        for node in [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FunctionDef)]:
            decorators = [ast.unparse(each).partition("(")[0] for each in node.decorator_list]
            if not {"twin", "step"}.isdisjoint(decorators):
                right = decorators[0] in ("twin", "step") and path.parent.name == "kernels"
                assert right, f"{path}: @twin is above all other decorators, in kernels/, but not of {node.name}"
                twins.append(node.name)
    assert len(twins) == len(set(twins)), f"two functions with @twin have one name: {sorted(twins)}"
    places = {"ENTRY in C that scripts/build_native.py has built": library.KERNELS, "function with @twin": twins}
    places |= {"line in SAMPLES": SAMPLES}
    names = {*twins, *library.KERNELS, *SAMPLES}
    wrong = [f"{name} has no {place}" for name in sorted(names) for place, known in places.items() if name not in known]
    assert not wrong


@EACH
def test_a_kernel_has_the_parameters_of_its_definition(name: str) -> None:
    definition, names = inspect.unwrap(SAMPLES[name].definition), library.KERNELS[name]
    if isinstance(definition, np.ufunc):
        parameters: tuple[str, ...] = ("x1", "x2") if definition.nin == 2 else ("x",)  # as in NumPy's documentation
    else:
        parameters = tuple(inspect.signature(definition).parameters)
    # (A pointwise kernel can take `out`, whether its definition does or not.)
    assert names in (parameters, (*parameters, "out")), f"{name} in C has {names}, in Python {parameters}"


def test_constants_that_python_and_c_share_are_equal() -> None:
    assert library.MIN_PRODUCT == products.SMALL


def test_keywords_are_bound_before_the_kernel_is_called() -> None:
    """Every way to pass the same arguments reaches the kernel, with the same result."""
    for name in ("elu", "conv", "total", "product", "linear", "softmax_grad", "layer_norm"):
        samples = SAMPLES[name]
        definition = inspect.unwrap(samples.definition)
        names = tuple(inspect.signature(definition).parameters)
        kernel = library.twin(refusing, name, library.SETS[-1], native.defaults(definition))
        taken = 0
        for args in samples.draw(np.random.default_rng(2)):
            try:
                expected = kernel(*args)
            except AssertionError:  # left to the definition
                continue
            taken += 1
            for positional in range(len(args) + 1):
                keywords = dict(zip(names[positional:], args[positional:], strict=False))
                for named in (keywords, dict(reversed(keywords.items()))):
                    np.testing.assert_equal(kernel(*args[:positional], **named), expected)
            if taken == 5:
                break
        # (Products are left to BLAS where vectors are short.)
        assert taken or (name in ("product", "linear") and library.SETS[-1] == "baseline"), name


def test_keywords_need_not_be_interned() -> None:
    kernel = library.twin(refusing, "leaky_relu", library.SETS[-1])
    x = np.array([-2.0, 3.0], np.float32)
    assert kernel(x, **{"".join(["slo", "pe"]): 0.5}).tolist() == [-1, 3]


@pytest.mark.parametrize(
    ("args", "keywords"),
    [
        ((), {}),
        ((), {"slope": 0.5}),
        ((1,), {"x": 2, "slope": 0.5}),
        ((1,), {"slope": 0.5, "gradient": 3}),
        ((1, 0.5, None, 4), {}),
        ((1,), {}),
    ],
)
def test_calls_that_do_not_fit_the_parameters_go_to_the_definition(args: Arguments, keywords: dict[str, Any]) -> None:
    calls: list[Any] = []
    kernel = library.twin(lambda *args, **named: calls.append((args, named)), "leaky_relu", library.SETS[-1])
    assert kernel(*args, **keywords) is None
    assert calls == [(args, keywords)]


def test_twins_take_keywords_as_their_definitions_do() -> None:
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(reduce.total(np.ones((3, 4), np.float32), keepdims=True), [[12]])
    np.testing.assert_array_equal(reduce.total(axes=(0,), x=np.ones((3, 4), np.float32)), [3, 3, 3, 3])
    expected = layer_norm.rms_norm(x, 1, None, 0.5)
    np.testing.assert_equal(layer_norm.rms_norm(eps=0.5, x=x, weight=None, count=1), expected)
    for args, keywords in [((x, 1), {}), ((x, 1, None, 0.5), {"eps": 0.5}), ((x, 1, None), {"epsilon": 0.5})]:
        with pytest.raises(TypeError, match="rms_norm"):
            layer_norm.rms_norm(*args, **keywords)


@EACH
@ON_EACH_SET
def test_a_kernel_gives_what_its_definition_gives(name: str, instructions: str) -> None:
    samples, left = SAMPLES[name], 0
    kernel = library.twin(lambda *args: LEFT, name, instructions, native.defaults(inspect.unwrap(samples.definition)))
    drawn = list(samples.draw(np.random.default_rng(0)))
    for args in drawn:
        given = results(samples, kernel, args)
        if given is None:  # the kernel may leave what another is better at, but not much of it
            left += 1
            continue
        with np.errstate(all="ignore"):  # as in the package
            wanted = results(samples, inspect.unwrap(samples.definition), args)
        for found, expected in zip(given, wanted, strict=True):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            finite = expected[np.isfinite(expected)]
            scale = np.abs(finite).max(initial=0, where=np.abs(finite) < 1e30)
            np.testing.assert_allclose(found, expected, samples.rtol, samples.atol * scale)
    # (There BLAS is faster, and products and sums are not fused.)
    of_others = ("product", "linear", "widening_linear", "finished", "box_muller", "normal")
    assert left <= len(drawn) / 8 or (name in of_others and instructions == "baseline")


@EACH
@ON_EACH_SET
def test_results_do_not_depend_on_threads_nor_on_what_memory_held(name: str, instructions: str) -> None:
    definition = inspect.unwrap(SAMPLES[name].definition)
    kernel = library.twin(definition, name, instructions, native.defaults(definition))

    def found(args: Arguments, threads: int, byte: int) -> list[bytes]:
        parallel.set_threads(threads)
        with filled(byte):
            return [each.tobytes() for each in results(SAMPLES[name], kernel, args)]

    for args in SAMPLES[name].draw(np.random.default_rng(1)):
        expected = found(args, 1, 0xFF)
        for threads in (2, 3, 7, 2):
            assert found(args, threads, 0x7B) == expected


@pytest.mark.parametrize(("name", "count"), [("tanh", 1), ("silu_grad", 2), ("subtract", 2), ("sigmoid_slope", 3)])
def test_results_do_not_depend_on_the_order_of_memory(name: str, count: int) -> None:
    kernel, rng = library.twin(refusing, name, library.SETS[-1]), np.random.default_rng(2)
    for shape in ((), (1, 1), (0, 3), (7,), (3, 1, 5), (2, 3, 4, 5), (40, 3000), (1100, 70)):
        args = [viewed(rng, shape) for _ in range(count)]
        np.testing.assert_array_equal(kernel(*args), kernel(*[x.copy("C") for x in args]))
    kernel, g, out = library.twin(refusing, "softmax_grad", library.SETS[-1]), normal(rng, 5, 1), normal(rng, 5, 7)
    np.testing.assert_array_equal(kernel(np.broadcast_to(g, (5, 7)), out, 1), kernel(g.repeat(7, 1), out, 1))


@pytest.mark.parametrize("name", [*ELEMENTARY, "softsign"])
def test_elementary_functions_are_rounded_once(name: str) -> None:
    """The results are the same bits on every instruction set, for every length and layout."""
    limit = dict.fromkeys("exp log tanh erf".split(), 0.6)
    x = np.arange(0, 2**32, 65521, np.uint32).view(np.float32)  # of all magnitudes, with NaN
    definition = inspect.unwrap(SAMPLES[name].definition)
    with np.errstate(all="ignore"):
        wanted = definition(x.astype(np.float64))
        nearest = wanted.astype(np.float32)
    for instructions in library.SETS:
        kernel = library.twin(refusing, name, instructions)
        found = kernel(x)
        with np.errstate(invalid="ignore"):
            bound = limit.get(name, 0.51) * np.spacing(np.abs(nearest)).astype(np.float64)
            wrong = (np.abs(found - wanted) > bound) & (found != nearest)
        assert not wrong.any(), x[wrong]
        assert (np.signbit(found) == np.signbit(nearest))[nearest == 0].all()
        if instructions == library.SETS[0]:
            first = found
        np.testing.assert_array_equal(found, first)
        for part in [np.s_[:n] for n in range(20)] + [np.s_[::3], np.s_[::-1], np.s_[7, ...]]:
            np.testing.assert_array_equal(kernel(x[part]), found[part])
            whole = x.copy()
            np.testing.assert_array_equal(kernel(whole[part], out=whole[part]), found[part])


@pytest.mark.parametrize(
    "x",
    [
        np.ones(5),
        np.ones(5, np.float16),
        np.ones(5, ">f4"),
        np.frombuffer(bytes(21), np.uint8)[1:].view(np.float32),  # no place for a float
        np.ones(5, np.float32).view(np.ma.MaskedArray),
        [1.0, 2.0],
    ],
    ids=lambda x: f"{type(x).__name__} {getattr(x, 'dtype', '')} {getattr(x, 'strides', '')}",
)
def test_what_is_not_the_kernels_goes_to_the_definition(x: Any) -> None:
    given: list[Any] = []
    kernel = library.twin(lambda *args, **named: given.append((args, named)), "silu", library.SETS[-1])
    assert kernel(x) is None and kernel(x, order=3) is None and kernel() is None
    assert [(len(args), named) for args, named in given] == [(1, {}), (1, {"order": 3}), (0, {})]
    assert given[0][0][0] is x


def test_arrays_of_two_shapes_go_to_the_definition() -> None:
    kernel = library.twin(lambda *args: None, "silu_grad", library.SETS[-1])
    x = np.ones((4, 5), np.float32)
    assert kernel(x, x) is not None
    assert kernel(x, x[0]) is kernel(x, np.ones((5, 4), np.float32)) is kernel(x, 1.0) is None


@pytest.mark.parametrize("bad", [-1, 4, 2**40, -(2**62)])
def test_indices_out_of_range_go_to_the_definition_before_anything_is_written(bad: int) -> None:
    x, index = np.ones((4, 4), np.float32), np.array([0, 1, 2, bad])
    every = np.stack([index] * 4)
    for name, args in {
        "gather": (x, 1, every),
        "scatter_by": (x, 1, every, x + 1, "add"),
        "scattered": (x, (4, 4), 1, every, False),
        "place": (x, every, (4,), False),
        "take_rows": (x, 0, index),
        "add_rows": (x, 0, index, x + 1),
    }.items():
        with pytest.raises(AssertionError, match="left these"):
            library.twin(refusing, name, library.SETS[-1])(*args)
    assert (x == 1).all()


def test_what_is_read_where_it_is_written_goes_to_the_definition() -> None:
    x, index = np.ones((4, 4), np.float32), np.zeros(3, np.int64)
    for name, args in {
        "add_rows": (x, 0, index, x[1:]),
        "scatter_by": (x[:3], 0, np.zeros((3, 4), np.int64), x[1:], "add"),
        "sgd": (x, x, None, 1, 1, 0, 0.1, 0, 1, False, False),
    }.items():
        with pytest.raises(AssertionError, match="left these"):
            library.twin(refusing, name, library.SETS[-1])(*args)


def test_out_is_written() -> None:
    kernel = library.twin(lambda *args, **named: None, "sigmoid", library.SETS[-1])
    x = np.linspace(-3, 3, 50, dtype=np.float32)
    out, expected = np.empty_like(x), kernel(x)
    assert kernel(x, out=out) is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(kernel(x, out=None), expected)
    assert kernel(out, out=out) is out  # in place, from itself
    np.testing.assert_array_equal(out, kernel(expected))
    expected = kernel(out[1:])
    np.testing.assert_array_equal(kernel(out[1:], out=out[:-1]), expected)  # read before it is overwritten
    assert (
        kernel(out, out=np.empty(50)) is kernel(out, out=out[:3]) is kernel(out, out=np.broadcast_to(out, 50)) is None
    )


@pytest.mark.parametrize("other", [(), (1,), (101,), (5, 1), (5, 101)])
def test_what_is_spread_out_is_combined_in_place(other: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    for name, ufunc in (("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide)):
        kernel = library.twin(lambda *args, **named: None, name, library.SETS[-1])
        x, y = normal(rng, 5, 101), np.asarray(normal(rng, *other))
        expected = ufunc(x, y)
        assert kernel(x, y, out=x) is x
        np.testing.assert_array_equal(x, expected)
    assert kernel(x, x[0], out=x) is kernel(x, x[:, :1].copy(), out=np.empty((5, 100), np.float32)) is None


def test_a_twin_looks_like_its_definition() -> None:
    assert activation.sigmoid.__name__ == "sigmoid" and activation.sigmoid.writes
    assert activation.sigmoid.__doc__ == inspect.unwrap(activation.sigmoid).__doc__
    assert list(inspect.signature(activation.sigmoid).parameters) == ["x", "out"]


def test_an_error_of_the_definition_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        library.twin(lambda x: 1 / 0, "silu", library.SETS[0])(1)
    with pytest.raises(LookupError, match="no kernel nothing"):
        library.twin(print, "nothing", library.SETS[0])


def test_python_threads_share_the_pool() -> None:
    """Who finds the pool taken works alone; all get their own results."""
    parallel.set_threads(3)
    x = np.random.default_rng(0).standard_normal(300_000).astype(np.float32)
    expected = activation.silu(x).tobytes()
    found: list[bytes] = []

    def work() -> None:
        found.extend(activation.silu(x).tobytes() for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [expected] * 80


def ran(program: str, **environment: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_environment_chooses() -> None:
    program = "from tinytorch.kernels import activation, native; print(native.instructions, type(activation.silu))"
    assert ran(program, TINYTORCH_NATIVE="0") == "None <class 'function'>\n"
    for each in library.SETS:
        assert ran(program, TINYTORCH_NATIVE=each).startswith(f"{each} <class 'tinytorch.kernels.native.Twin'>")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_starts_threads_of_its_own() -> None:
    program = """
import os, time, numpy as np
from tinytorch.kernels import activation, parallel
parallel.set_threads(3)
x = np.random.default_rng(0).standard_normal(500_000).astype(np.float32)
expected = activation.silu(x)
time.sleep(0.2)  # (a thread that just begins may hold a lock of a sanitizer's, which knows nothing of fork)
for _ in range(3):
    child = os.fork()
    if not child:
        for _ in range(5):
            assert (activation.silu(x) == expected).all()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert (activation.silu(x) == expected).all()
print("well")  # and the process ends with threads parked
"""
    assert ran(program) == "well\n"


def test_workers_leave_signals_to_python() -> None:
    program = """
import os, signal, numpy as np
from tinytorch.kernels import activation, parallel
parallel.set_threads(4)
heard = []
signal.signal(signal.SIGUSR1, lambda *args: heard.append(args[0]))
x = np.ones(500_000, np.float32)
for _ in range(20):
    activation.silu(x)
    os.kill(os.getpid(), signal.SIGUSR1)
print(len(heard))
"""
    assert ran(program) == "20\n"


def test_the_configuration_says_what_is_used() -> None:
    assert f"native kernels: {native.instructions or 'none'}" in tinytorch.__config__.show()
    program = "import tinytorch; print(tinytorch.__config__.show())"
    assert "native kernels: none" in ran(program, TINYTORCH_NATIVE="0")


def test_packed_weights_are_unpacked() -> None:
    rng = np.random.default_rng(0)
    for outputs, channels, groups in ((5, 3, 1), (40, 7, 1), (36, 4, 3), (20, 1, 20), (40, 1, 20)):
        w = normal(rng, outputs, channels, 3, 2)
        panels = channels_last.packed(w, groups)
        assert panels.shape == channels_last.packed_shape(w.shape, groups)
        np.testing.assert_array_equal(channels_last.unpacked(panels, (3, 2), groups, outputs), w)


def test_epilogues_write_into_out() -> None:
    """The result of a convolution may take the place of the residual; that of a product is computed elsewhere then."""
    rng = np.random.default_rng(0)
    for args in list(images_with_channels_last(rng))[:60]:
        if args[3] is not None:
            expected, residual = channels_last.convolved(*args), args[3].copy()
            given = [*args[:3], residual, *args[4:], *(-np.inf, np.inf)[len(args) - 11 :]]
            assert channels_last.convolved(*given, out=residual) is residual
            np.testing.assert_array_equal(residual, expected)
    x, w, residual = normal(rng, 64, 40), normal(rng, 50, 40), normal(rng, 64, 50)
    expected = channels_last.finished(x, w, None, residual, "silu")
    out = np.empty_like(residual)
    assert channels_last.finished(x, w, None, residual, "silu", out=out) is out
    np.testing.assert_array_equal(out, expected)
    assert channels_last.finished(x, w, None, residual, "silu", out=residual) is residual
    np.testing.assert_allclose(residual, expected, 1e-5, 1e-5)


CHANNELS_LAST = Path(native.__file__).with_name("channels_last.c")


@pytest.mark.skipif(not CHANNELS_LAST.exists(), reason="an installed package has no sources in C")
def test_the_channels_of_panels_are_those_of_the_kernels() -> None:
    assert f"PANEL = {channels_last.PANEL}," in CHANNELS_LAST.read_text("utf-8")
