"""Native kernels: each gives what its definition in NumPy gives, on every instruction set and any number of threads."""

from __future__ import annotations

import inspect
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
from tinytorch.kernels import activation, attention, indexing, native, optim, parallel, pool, reduce, rnn

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


def pointwise(inputs: int, *numbers: float, special: bool = True) -> Callable[..., Iterator[Arguments]]:
    """Draw arrays of one shape, of all kinds of sizes and in all orders of dense memory."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        shapes = [(0,), (3, 0), (1,), (1, 1), (7,), (16,), (33,), (5, 13), (2, 3, 4, 5), (70_001,), (40, 2000)]
        for shape in shapes:
            yield *[4 * rng.standard_normal(shape).astype(np.float32) for _ in range(inputs)], *numbers
        for _ in range(4):
            shape = tuple(rng.integers(1, 12, 4))
            order = rng.permutation(4)
            made = [rng.standard_normal(shape).astype(np.float32).transpose(order) for _ in range(inputs)]
            yield *made, *numbers
        for offset in (1, 2, 3):  # not where a vector would start
            made = [rng.standard_normal(1000).astype(np.float32)[offset:] for _ in range(inputs)]
            yield *made, *numbers
        if special:
            for count in (len(SPECIAL), 5):
                pairs = np.array(np.meshgrid(*[SPECIAL[:count]] * inputs)).reshape(inputs, -1)
                yield *pairs, *numbers

    return draw


def steps(kept: int, *numbers: tuple[Any, ...]) -> Callable[..., Iterator[Arguments]]:
    """Draw a parameter, its gradient and what is kept for it, not negative, or the last of it None; and numbers."""

    def draw(rng: np.random.Generator) -> Iterator[Arguments]:
        for given in numbers:
            for shape in [(1, 1), (0,), (7,), (33,), (3, 5), (70_001,)]:
                p, g, *more = rng.standard_normal((2 + kept, *shape)).astype(np.float32)
                for missing in range(2):
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
        for shape in [(3, 7, 9), (40, 28, 30), (2, 40)]:
            x = np.round(2 * rng.standard_normal(shape)).astype(np.float32)
            x[rng.random(shape) < 0.01] = np.nan
            x[rng.random(shape) < 0.2] = -np.inf
            counts = [pool.output_length(n, kernel, stride, padding, dilation, False) for n in shape[1:]]
            given = zip(shape[1:], counts, strict=True)
            yield x, tuple([pool.sliding(n, kernel, stride, padding, dilation, many) for n, many in given]), True


def rows(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape, dim, count in LINES:
        for some in [(count,), (2, count)]:
            x, index = rng.standard_normal(shape, np.float32), rng.integers(0, max(shape[dim], 1), some)
            yield x, dim, index


def added_rows(rng: np.random.Generator) -> Iterator[Arguments]:
    for x, dim, index in rows(rng):
        yield x, dim, index, rng.standard_normal((*x.shape[:dim], *index.shape, *x.shape[dim + 1 :]), np.float32)


def running(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape, dim, _ in LINES:
        yield from ((rng.standard_normal(shape, np.float32), dim, reverse) for reverse in (False, True))
    yield SPECIAL[::-1].copy(), 0, False


#: Of scores.
SCORES = [(5,), (3, 1), (4, 7), (2, 3, 16, 33), (2, 0, 4), (3, 4, 0), (3, 70, 200)]


def scores(rng: np.random.Generator) -> Iterator[Arguments]:
    """Draw scores with and without what is added to them, some of it broadcast, and rows that attend to nothing."""
    for shape in SCORES:
        x = 4 * rng.standard_normal(shape, np.float32)
        bias = np.where(rng.random(shape[-2:]) < 0.5, np.float32(0), np.float32(-np.inf))
        bias[:1] = -np.inf
        yield x, None, 0.125
        yield x, np.broadcast_to(bias, shape), 0.5
    yield SPECIAL[:, None] + np.zeros((1, 20), np.float32), None, 1.0


def score_slopes(rng: np.random.Generator) -> Iterator[Arguments]:
    for shape in SCORES:
        slope, upstream = rng.standard_normal((2, *shape), np.float32)
        yield slope, rng.random(shape, np.float32), upstream, None, 0.25


def cells(rng: np.random.Generator) -> Iterator[Arguments]:
    """Draw steps of an LSTM, which write into columns of a matrix and rows of another one."""
    for size, width in [(1, 1), (3, 5), (20, 16), (33, 20), (7, 1500), (300, 64), (4, 0)]:
        gates, before, c, t = (3 * rng.standard_normal((n * size, width), np.float32) for n in (4, 1, 1, 1))
        h, out = np.zeros((size, width + 3), np.float32)[:, 1 : width + 1], np.zeros((width, size), np.float32)
        yield gates, before, c, t, h, out
        yield gates, before, c, t, None, None


def cell_grads(rng: np.random.Generator) -> Iterator[Arguments]:
    for gates, before, c, t, _, out in cells(rng):
        slopes = np.zeros((gates.shape[0], gates.shape[1] + 2), np.float32)[:, 2:]
        upstream = None if out is None else rng.standard_normal(out.shape, np.float32)
        yield abs(np.tanh(gates)), before, np.tanh(t), upstream, c, c + 1, slopes


#: Every kernel has a line here.
SAMPLES = {
    "sigmoid": Samples(activation.sigmoid, pointwise(1)),
    "silu": Samples(activation.silu, pointwise(1)),
    "silu_grad": Samples(activation.silu_grad, pointwise(2)),
    "gather": Samples(indexing.gather, gathers, 0, 0),
    "scatter": Samples(indexing.scatter, scatters, 0, 0, writes=True),
    "scattered": Samples(indexing.scattered, scattered, 0, 0),
    "place": Samples(pool.place, places, 1e-6, 1e-6),
    "maxima": Samples(pool.maxima, windows, 0, 0),
    "take_rows": Samples(indexing.take_rows, rows, 0, 0),
    "add_rows": Samples(indexing.add_rows, added_rows, 0, 0, writes=True),
    "running_sums": Samples(reduce.running_sums, running, 0, 0),
    "softmax_scores": Samples(attention.softmax_scores, scores, writes=True),
    "softmax_slopes": Samples(attention.softmax_slopes, score_slopes, writes=True),
    "lstm_cell": Samples(rnn.lstm_cell, cells, writes=True),
    "lstm_cell_grad": Samples(rnn.lstm_cell_grad, cell_grads, writes=True),
    "sgd": Samples(
        optim.sgd,
        steps(
            1,
            (1, 1, 0, 0.1, 0.9, 1, False, False),
            (-1, 1, 0.2, 0.1, 0.9, 0.5, True, False),
            (1, 0.99, 0, 0.1, 0.9, 1, False, True),
        ),
        writes=True,
    ),
    "adam": Samples(
        optim.adam,
        steps(
            3,
            (1, 1, 0, 0.1, 0.99, 0.01, 0.1, 1e-3),
            (-1, 1, 0.2, 0.1, 0.99, 0.01, 0.1, 1e-3),
            (1, 0.99, 0, 0.1, 0.99, 0.01, 0.1, 1e-3),
        ),
        writes=True,
    ),
    "rmsprop": Samples(
        optim.rmsprop,
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
}

EACH = pytest.mark.parametrize("name", SAMPLES)
ON_EACH_SET = pytest.mark.parametrize("instructions", library.SETS)


def refusing(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("the native kernel has left these arguments to the definition")


def copied(argument: Any) -> Any:
    """Return a copy of an array, on copied memory of the same layout."""
    if not isinstance(argument, np.ndarray) or (argument.size and 0 in argument.strides):
        return argument
    base = argument.base if isinstance(argument.base, np.ndarray) else argument
    if base.dtype != argument.dtype or argument.flags.c_contiguous or not argument.size:
        return argument.copy()
    begin = argument.ctypes.data - base.ctypes.data
    return np.ndarray(argument.shape, argument.dtype, base.copy(), begin, argument.strides)


def results(samples: Samples, kernel: Callable[..., Any], args: Arguments) -> list[Array]:
    """Return the arrays that a kernel gives, and those that it has written into."""
    if samples.writes:
        args = tuple([copied(each) for each in args])
    result = kernel(*args)
    found = [*(result if isinstance(result, tuple) else [result]), *args[: len(args) * samples.writes]]
    return [each for each in found if isinstance(each, np.ndarray)]


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = parallel.get_threads()
    yield
    parallel.set_threads(before)


def test_every_twin_has_a_kernel_and_samples() -> None:
    folder = Path(tinytorch.__file__).parent / "kernels"
    decorated = re.compile(r"^@twin\n(?:@.*\n)*def (\w+)", re.MULTILINE)
    twins = [name for path in folder.rglob("*.py") for name in decorated.findall(path.read_text("utf-8"))]
    assert sorted(twins) == sorted(library.KERNELS) == sorted(SAMPLES)


@EACH
@ON_EACH_SET
def test_a_kernel_gives_what_its_definition_gives(name: str, instructions: str) -> None:
    samples = SAMPLES[name]
    kernel = library.twin(refusing, name, instructions)
    for args in samples.draw(np.random.default_rng(0)):
        both = results(samples, kernel, args), results(samples, inspect.unwrap(samples.definition), args)
        for found, expected in zip(*both, strict=True):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            finite = expected[np.isfinite(expected)]
            scale = np.abs(finite).max(initial=0, where=np.abs(finite) < 1e30)
            np.testing.assert_allclose(found, expected, samples.rtol, samples.atol * scale)


@EACH
def test_results_do_not_depend_on_threads(name: str) -> None:
    kernel = library.twin(refusing, name, library.SETS[-1])
    for args in SAMPLES[name].draw(np.random.default_rng(1)):
        parallel.set_threads(1)
        expected = [each.tobytes() for each in results(SAMPLES[name], kernel, args)]
        for threads in (2, 3, 7, 2):
            parallel.set_threads(threads)
            assert [each.tobytes() for each in results(SAMPLES[name], kernel, args)] == expected


@pytest.mark.parametrize(
    "x",
    [
        np.ones(5),
        np.ones(5, np.float16),
        np.ones(5, ">f4"),
        np.ones(10, np.float32)[::2],
        np.frombuffer(bytes(21), np.uint8)[1:].view(np.float32),  # no place for a float
        np.array(1, np.float32),
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


def test_arrays_of_two_shapes_or_orders_go_to_the_definition() -> None:
    kernel = library.twin(lambda *args: None, "silu_grad", library.SETS[-1])
    x = np.ones((4, 5), np.float32)
    assert kernel(x, x) is not None
    assert kernel(x, x[0]) is kernel(x, np.ones((5, 4), np.float32).T) is kernel(x, 1.0) is None


@pytest.mark.parametrize("bad", [-1, 4, 2**40, -(2**62)])
def test_indices_out_of_range_go_to_the_definition_before_anything_is_written(bad: int) -> None:
    x, index = np.ones((4, 4), np.float32), np.array([0, 1, 2, bad])
    every = np.stack([index] * 4)
    for name, args in {
        "gather": (x, 1, every),
        "scatter": (x, 1, every, x + 1, "add"),
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
        "scatter": (x[:3], 0, np.zeros((3, 4), np.int64), x[1:], "add"),
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
    assert kernel(out[1:], out=out[:-1]) is None  # parts of it would be overwritten before they are read
    assert (
        kernel(out, out=np.empty(50)) is kernel(out, out=out[:3]) is kernel(out, out=np.broadcast_to(out, 50)) is None
    )


def test_a_twin_looks_like_its_definition() -> None:
    assert activation.sigmoid.__name__ == "sigmoid" and activation.sigmoid.writes
    assert activation.sigmoid.__doc__ == inspect.unwrap(activation.sigmoid).__doc__
    assert list(inspect.signature(activation.sigmoid).parameters) == ["x", "out"]


def test_an_error_of_the_definition_is_raised() -> None:
    with pytest.raises(AssertionError, match="left these"):
        library.twin(refusing, "silu", library.SETS[0])(1)
    with pytest.raises(LookupError, match="no kernel nothing"):
        library.twin(refusing, "nothing", library.SETS[0])


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


def test_the_library_waits_until_it_is_needed() -> None:
    assert ran("import sys, tinytorch; print(*[name for name in sys.modules if 'native' in name])") == "\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_starts_threads_of_its_own() -> None:
    program = """
import os, numpy as np
from tinytorch.kernels import activation, parallel
parallel.set_threads(3)
x = np.random.default_rng(0).standard_normal(500_000).astype(np.float32)
expected = activation.silu(x)
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
    assert f"native kernels: {native.instructions}" in tinytorch.__config__.show()
    program = "import tinytorch; print(tinytorch.__config__.show())"
    assert "native kernels: none" in ran(program, TINYTORCH_NATIVE="0")
