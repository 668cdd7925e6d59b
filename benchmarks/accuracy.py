"""The rounding errors of functions of one float32 number: of tinytorch, NumPy and PyTorch.

    python -m benchmarks.accuracy               # the table of docs/accuracy.md: 2 minutes
    python -m benchmarks.accuracy exp tanh
    python -m benchmarks.accuracy --step 1 exp  # of all 4 294 967 296 numbers

Errors are in units in the last place (ulp): the distance of neighbouring float32 numbers at the result. They are
differences from PyTorch's float64 function. The largest error is that of every `step`-th float32 number, by its bits.
The share of results that are not correctly rounded is that of a million numbers, drawn uniformly from the interval.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import tinytorch

Array = Any

#: The functions, with the interval that numbers are drawn from.
FUNCTIONS: dict[str, tuple[float, float]] = {
    **dict.fromkeys("exp exp2 expm1 sinh cosh tanh sin cos tan atan asinh erf erfc sigmoid".split(), (-10, 10)),
    **dict.fromkeys("silu mish elu softplus logsigmoid".split(), (-10, 10)),
    **dict.fromkeys("log log2 log10 sqrt rsqrt reciprocal".split(), (0, 10)),
    **dict.fromkeys("asin acos atanh erfinv".split(), (-1, 1)),
    "log1p": (-1, 10),
    "acosh": (1, 10),
}
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}
NUMPY["atanh"] = "arctanh"
PIECE = 1 << 22


def function(torch: Any, name: str) -> Callable[[Array], Array]:
    """Return a function of a library shaped like PyTorch, on arrays."""
    found = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    return lambda x: found(torch.from_numpy(x)).numpy()


def errors(found: Array, exact: Array) -> Array:
    """Return the errors in ulp; 0 where a result is correctly rounded."""
    nearest = exact.astype(np.float32)
    right = (found == nearest) | (np.isnan(found) & np.isnan(nearest))
    exponents = np.frexp(np.clip(exact, -(2.0**127), 2.0**127))[1]
    ulp = np.ldexp(1.0, np.maximum(exponents, -125) - 24)
    infinity = 2.0**128  # where infinity stands among the numbers, as rounding sees it
    apart = np.abs(np.clip(found, -infinity, infinity, dtype=np.float64) - np.clip(exact, -infinity, infinity))
    return np.where(right, 0, np.nan_to_num(apart / ulp, nan=np.inf))


def measured(call: Callable[[Array], Array], exact: Callable[[Array], Array], name: str, step: int) -> str:
    """Return the largest error of a function, and the share of its results that are not correctly rounded."""
    largest = 0.0
    for begin in range(0, 1 << 32, PIECE * step):
        x = np.arange(begin, min(begin + PIECE * step, 1 << 32), step, np.uint32).view(np.float32)
        largest = max(largest, errors(call(x), exact(x.astype(np.float64))).max())
    x = np.random.default_rng(0).uniform(*FUNCTIONS[name], 1_000_000).astype(np.float32)
    wrong = (errors(call(x), exact(x.astype(np.float64))) > 0).mean()
    return f"{largest:.2f} | {wrong:.2%}" if largest < 1000 else f"{largest:.0e} | {wrong:.2%}"


def main() -> None:
    """Print a row for each function that the command line names."""
    import torch

    parser = argparse.ArgumentParser(description="Measure the errors of functions of one float32 number.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="functions of PyTorch; all, if there are none")
    parser.add_argument("--step", type=int, default=257, help="try every STEP-th number")
    given = parser.parse_args()
    np.seterr(all="ignore")
    print("| | largest error | not rounded correctly | NumPy's | | PyTorch's | |\n|---|---|---|---|---|---|---|")
    for name in given.names or FUNCTIONS:
        exact = function(torch, name)
        ours, theirs = (measured(function(each, name), exact, name, given.step) for each in (tinytorch, torch))
        ufunc = getattr(np, NUMPY.get(name, name), None)
        others = measured(ufunc, exact, name, given.step) if ufunc else " | "
        print(f"| {name} | {ours} | {others} | {theirs} |", flush=True)


if __name__ == "__main__":
    main()
