"""The time of forty common ops on 8 x 8 and on a million elements, with tinytorch and PyTorch."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

#: By name, calls of the library `t` with these inputs: `x` and `y` are square matrices of positive float32 numbers that
#: require grad, `v` is such a vector, `i` a matrix of indices and `m` a mask.
OPS: dict[str, Callable[..., object]] = {
    "add": lambda t, x, y, v, i, m: x + y,
    "sub": lambda t, x, y, v, i, m: x - y,
    "mul": lambda t, x, y, v, i, m: x * y,
    "div": lambda t, x, y, v, i, m: x / y,
    "pow": lambda t, x, y, v, i, m: x**2,
    "neg": lambda t, x, y, v, i, m: -x,
    "add number": lambda t, x, y, v, i, m: x + 1.5,
    "mul by a row": lambda t, x, y, v, i, m: x * v,
    "exp": lambda t, x, y, v, i, m: t.exp(x),
    "log": lambda t, x, y, v, i, m: t.log(x),
    "sqrt": lambda t, x, y, v, i, m: t.sqrt(x),
    "sin": lambda t, x, y, v, i, m: t.sin(x),
    "tanh": lambda t, x, y, v, i, m: t.tanh(x),
    "sigmoid": lambda t, x, y, v, i, m: t.sigmoid(x),
    "relu": lambda t, x, y, v, i, m: t.relu(x),
    "abs": lambda t, x, y, v, i, m: x.abs(),
    "clamp": lambda t, x, y, v, i, m: x.clamp(0.2, 0.8),
    "maximum": lambda t, x, y, v, i, m: t.maximum(x, y),
    "where": lambda t, x, y, v, i, m: t.where(m, x, y),
    "gt": lambda t, x, y, v, i, m: x > y,
    "sum": lambda t, x, y, v, i, m: x.sum(),
    "sum over dim": lambda t, x, y, v, i, m: x.sum(1),
    "mean": lambda t, x, y, v, i, m: x.mean(),
    "max over dim": lambda t, x, y, v, i, m: x.max(1),
    "argmax": lambda t, x, y, v, i, m: x.argmax(1),
    "var": lambda t, x, y, v, i, m: x.var(1),
    "cumsum": lambda t, x, y, v, i, m: x.cumsum(1),
    "softmax": lambda t, x, y, v, i, m: x.softmax(1),
    "log_softmax": lambda t, x, y, v, i, m: t.nn.functional.log_softmax(x, 1),
    "matmul": lambda t, x, y, v, i, m: x @ y,
    "linear": lambda t, x, y, v, i, m: t.nn.functional.linear(x, y, v),
    "view": lambda t, x, y, v, i, m: x.view(-1),
    "transpose": lambda t, x, y, v, i, m: x.transpose(0, 1),
    "unsqueeze": lambda t, x, y, v, i, m: x.unsqueeze(0),
    "slice": lambda t, x, y, v, i, m: x[1:, :4],
    "cat": lambda t, x, y, v, i, m: t.cat([x, y]),
    "stack": lambda t, x, y, v, i, m: t.stack([x, y]),
    "index by a tensor": lambda t, x, y, v, i, m: x[i[0]],
    "gather": lambda t, x, y, v, i, m: x.gather(1, i),
    "masked_fill": lambda t, x, y, v, i, m: x.masked_fill(m, 0.0),
}


def bound(torch: Any, call: Callable[..., object], size: int) -> Callable[[], object]:
    """Return a call with bound inputs of `size` x `size`."""
    torch.manual_seed(0)
    # Not leaves, as in a model, where the inputs of most ops are results of other ops.
    x, y, v = ((torch.rand(*shape) + 0.1).requires_grad_() * 1 for shape in ((size, size), (size, size), (size,)))
    i = torch.randint(0, size, (size, size))
    m = torch.rand(size, size) > 0.5
    return lambda: call(torch, x, y, v, i, m)


def seconds(work: Callable[[], object], times: int) -> float:
    """Return the time of one call in seconds, measured over `times` calls."""
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times


def settle(work: Callable[[], object], rest: float) -> None:
    """Repeat the work for `rest` seconds, while the idle threads of the other library may still spin."""
    start = time.perf_counter()
    while time.perf_counter() - start < rest:
        work()


def compare(libraries: list[Any], size: int, blocks: int) -> dict[str, tuple[float, ...]]:
    """Return the time of each library in seconds, by op: the minimum over turns, which the libraries alternate."""
    result = {}
    times, rest = (300, 0.002) if size < 100 else (5, 0.3)
    for name, call in OPS.items():
        works = [bound(library, call, size) for library in libraries]
        turns: list[list[float]] = [[] for _ in works]
        for _ in range(blocks):
            for work, measured in zip(works, turns, strict=True):
                settle(work, rest)
                measured.append(seconds(work, times))
        result[name] = tuple(min(measured) for measured in turns)
    return result
