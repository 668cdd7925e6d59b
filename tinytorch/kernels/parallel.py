"""Elementwise work on large arrays, divided among threads.

NumPy's loops release the interpreter's lock, so Python threads run them in parallel. Handing a piece to another thread
takes about ten microseconds, so only large arrays are divided. The result is the same, bit for bit.
"""

from __future__ import annotations

import functools
import math
import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np

from . import blas, processors, silence

__all__ = [
    "BLOCK", "CHEAP", "LARGE", "blocks", "blockwise", "elementwise", "get_threads", "has_out", "in_blocks",
    "on_threads_set", "parallel_for", "set_threads", "takes_out", "threaded",
]  # fmt: skip

Array = Any
Piece = Callable[[int, int], None]

# Elements from which on a function like exp is divided among threads; sums and products need twice as many.
LARGE = 1 << 18
# Elements that a function of several steps is applied to at a time, so that intermediate results stay in the cache.
# With smaller blocks threads wait for each other: each needs the interpreter's lock between two calls of NumPy.
BLOCK = 1 << 18
# The same for a fused chain of NumPy calls: 9 steps on 9 million elements take 26 ms without blocks, and 18, 16, 11, 12
# ms in blocks of 2**15, 2**16, 2**17, 2**18 elements.
CACHED = 1 << 17


_threads = processors.available()
if processors.quota() is not None and not any(f"{name}_NUM_THREADS" in os.environ for name in blas.SETTINGS):
    blas.limit(_threads)  # it looks at the affinity alone
_listeners: list[Callable[[int], Any]] = []
_tasks: SimpleQueue[Any] = SimpleQueue()
_workers = 0
_starting = threading.Lock()
_worker = threading.local()


def get_threads() -> int:
    """Return the number of threads that large arrays are divided among."""
    return _threads


def set_threads(n: int) -> None:
    """Divide large arrays among `n` threads."""
    global _threads
    _threads = n
    for listener in _listeners:
        listener(n)


def on_threads_set(listener: Callable[[int], Any]) -> None:
    """Call `listener` with the number of threads, now and whenever the number is set."""
    listener(_threads)
    _listeners.append(listener)


def elementwise(function: Callable[..., Array]) -> Callable[..., Array]:
    """Declare a function of arrays of one shape, and arguments that are no arrays, as elementwise.

    Its result for a piece of the arrays is that piece of its result for the whole arrays, bit for bit.
    """
    function.elementwise = True  # type: ignore[attr-defined]
    return function


def takes_out(function: Callable[..., Array]) -> Callable[..., Array]:
    """Declare an elementwise function that writes its result into an argument `out`, as ufuncs do."""
    function.writes = True  # type: ignore[attr-defined]
    return elementwise(function)


def blockwise(function: Callable[..., Array], *operands: Any, out: Array | None = None) -> Array:
    """Return `function(*operands)` of an elementwise function, computed in pieces by several threads.

    A ufunc, or a function that `takes_out`, computes one piece per thread. Any other function is called for blocks, one
    after another in each thread, even where there is one thread: its intermediate results then stay in the cache.

    Args:
        function: a ufunc, or an elementwise function.
        *operands: its arguments: arrays that broadcast, or numbers. If the arrays have different shapes or are not
            contiguous, the function is called once, for the whole arrays.
        out: an array to write into, of the result's shape and dtype; it may be one of the operands.
    """
    if hasattr(function, "shares"):  # it divides its arrays itself: it is `threaded`, or its twin has threads
        return function(*operands) if out is None else function(*operands, out=out)
    arrays = [x for x in operands if isinstance(x, np.ndarray) and x.ndim]
    if out is not None:
        arrays.append(out)
    shape, size = arrays[0].shape, arrays[0].size
    into = has_out(function)
    if size < (2 * LARGE if function in CHEAP else LARGE) or (into and _threads == 1) or not _alike(arrays):
        return _into(function, operands, out)
    flat = [x.reshape(-1) if isinstance(x, np.ndarray) and x.ndim else x for x in operands]

    def part(begin: int, end: int) -> list[Any]:
        return [x[begin:end] if isinstance(x, np.ndarray) and x.ndim else x for x in flat]

    made = np.empty(shape, function(*part(0, 1)).dtype) if out is None else out
    result = made.reshape(-1)

    def work(begin: int, end: int) -> None:
        _into(function, part(begin, end), result[begin:end])

    if into:
        parallel_for(work, size)
    else:
        blocks(work, size, 1)
    return made


def _into(function: Callable[..., Array], operands: Sequence[Any], out: Array | None) -> Array:
    """Return `function(*operands)`, written into `out` unless that is None."""
    if out is None:
        return function(*operands)
    if has_out(function):
        return function(*operands, out=out)
    out[...] = function(*operands)
    return out


def threaded(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return an elementwise function of arrays of one shape, and numbers, that divides large arrays among threads.

    The function gets an argument `out`, an array to write into, which may be one of the operands.
    """

    @functools.wraps(function)
    def shared(x: Array, *others: Any, out: Array | None = None) -> Array:
        if x.size < LARGE or not isinstance(x, np.ndarray):
            return _into(function, (x, *others), out)
        return blockwise(function, x, *others, out=out)

    shared.shares = True  # type: ignore[attr-defined]
    return elementwise(shared)


CHEAP = frozenset(
    (np.add, np.subtract, np.multiply, np.true_divide, np.maximum, np.minimum, np.negative, np.absolute, np.sqrt,
     np.square, np.reciprocal, np.sign, np.greater, np.greater_equal, np.less, np.less_equal, np.equal, np.not_equal)
)  # fmt: skip


def has_out(function: Callable[..., Array]) -> bool:
    """Return whether a function has an argument `out` to write its result into."""
    return isinstance(function, np.ufunc) or hasattr(function, "writes")


def _alike(arrays: Sequence[Array]) -> bool:
    shape = arrays[0].shape
    return all(type(x) is np.ndarray and x.shape == shape and x.flags.c_contiguous for x in arrays)


def parallel_for(work: Piece, size: int) -> None:
    """Call `work(begin, end)` for pieces that make up `range(size)`, one in each thread, and wait for all of them.

    A nested call, from inside `work`, runs in the calling thread alone.
    """
    nested = getattr(_worker, "here", False)
    if _workers < _threads - 1 and not nested:
        _start(_threads - 1)
    count = _threads
    if count == 1 or nested:
        work(0, size)
        return
    step = math.ceil(size / count)
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    begins = range(step, size, step)
    for begin in begins:
        _tasks.put((work, begin, min(begin + step, size), done))
    _worker.here = True
    for listener in _listeners:
        listener(1)
    try:
        work(0, step)
    finally:
        _worker.here = False
        for listener in _listeners:
            listener(_threads)
        errors = [done.get() for _ in begins]
    for error in errors:
        if error is not None:
            raise error


def blocks(work: Piece, planes: int, size: int, cost: int = 1) -> None:
    """Call `work(begin, end)` for blocks of planes of `size` elements, in several threads for large arrays.

    Args:
        work: called with ranges that make up `range(planes)`.
        planes, size: how many planes there are, and elements in each.
        cost: the work for an element, in multiples of that of a function like exp.
    """
    step = max(BLOCK // max(size, 1), 1)

    def pieces(begin: int, end: int) -> None:
        for at in range(begin, end, step):
            work(at, min(at + step, end))

    if planes * size * cost < LARGE or planes < 2:
        pieces(0, planes)
    else:
        parallel_for(pieces, planes)


def in_blocks(
    function: Callable[..., None], inputs: Sequence[Array], outputs: Sequence[Any], scratch: Sequence[Any]
) -> list[Array]:
    """Return new arrays that a function of several elementwise steps fills, a block at a time, in several threads.

    Args:
        function: takes a piece of each input, of each output, and scratch arrays of that length.
        inputs: contiguous arrays of one shape, or numbers broadcast to it.
        outputs: the dtypes of the results, which have that shape.
        scratch: the dtypes of the scratch arrays, for intermediate results.
    """
    results = [np.empty(inputs[0].shape, dtype) for dtype in outputs]
    dense = [x if x.flags.c_contiguous else np.broadcast_to(x[(0,) * x.ndim], x.size) for x in inputs]
    flat = [x.reshape(-1) for x in (*dense, *results)]

    def work(begin: int, end: int) -> None:
        step = math.ceil((end - begin) / math.ceil((end - begin) / CACHED))  # blocks of about equal length
        temporaries = [np.empty(step, dtype) for dtype in scratch]
        for start in range(begin, end, step):
            stop = min(start + step, end)
            function(*[x[start:stop] for x in flat], *[x[: stop - start] for x in temporaries])

    parallel_for(work, flat[0].size)
    return results


def _start(count: int) -> None:
    global _workers
    with _starting:
        while _workers < count:
            try:
                threading.Thread(target=silence.quiet(_run), daemon=True, name="tinytorch").start()
            except RuntimeError:  # the system gives no more threads: the existing ones do all the work
                set_threads(_workers + 1)
                return
            _workers += 1


def _run() -> None:
    _worker.here = True
    tasks = _tasks
    while True:
        work, begin, end, done = tasks.get()
        try:
            work(begin, end)
        except BaseException as error:
            done.put(error)
        else:
            done.put(None)
        work = done = None  # release the arrays that they hold


def _after_fork() -> None:
    """Forget the threads: a forked process does not have them."""
    global _tasks, _workers, _starting
    _tasks, _workers, _starting = SimpleQueue(), 0, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def get_num_threads() -> int:
    """Return the number of threads per operation: `OMP_NUM_THREADS`, or the processors this process may use.

    Example:
        >>> torch.get_num_threads() > 0
        True
    """
    return get_threads()


def set_num_threads(num: int, /) -> None:
    """Set the number of threads for matrix products (by the OpenBLAS that comes with NumPy) and for large arrays.

    The threads of another BLAS are set by its own environment variable.

    Raises:
        RuntimeError: `num` is not a positive int.

    Example:
        >>> before = torch.get_num_threads()
        >>> torch.set_num_threads(1)
        >>> torch.get_num_threads()
        1
        >>> torch.set_num_threads(before)
    """
    set_threads(positive("set_num_threads", num))
    functions = blas.threads()
    if functions is not None:
        functions[0](num)


def positive(name: str, num: Any) -> int:
    """Return `num`; raise PyTorch's error unless it is a positive int."""
    if not isinstance(num, int) or isinstance(num, bool):
        raise RuntimeError(f"{name} expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    return num
