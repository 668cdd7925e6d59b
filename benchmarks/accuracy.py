"""The rounding errors of functions of one float32 number: of tinytorch, NumPy and PyTorch.

    python -m benchmarks.accuracy               # the table of docs/accuracy.md: 2 minutes
    python -m benchmarks.accuracy exp tanh
    python -m benchmarks.accuracy --step 1 exp  # of all 4 294 967 296 numbers

Errors are in units in the last place (ulp): the distance of neighbouring float32 numbers at the result. They are
differences from PyTorch's float64 function, or from one that loses fewer digits (`EXACT`). The largest error is that of
every `step`-th float32 number, by its bits.
The share of results that are not correctly rounded is that of a million numbers, drawn uniformly from the interval.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tinytorch

Array = Any

#: The functions, with the interval that numbers are drawn from.
FUNCTIONS: dict[str, tuple[float, float]] = {
    **dict.fromkeys("exp exp2 expm1 sinh cosh tanh sin cos tan atan asinh erf erfc sigmoid".split(), (-10, 10)),
    **dict.fromkeys("silu mish elu softplus logsigmoid gelu selu celu softsign tanhshrink".split(), (-10, 10)),
    **dict.fromkeys("hardswish hardsigmoid leaky_relu square deg2rad rad2deg sinc".split(), (-10, 10)),
    **dict.fromkeys("i0 i0e i1 i1e erfcx ndtr log_ndtr spherical_bessel_j0".split(), (-10, 10)),
    **dict.fromkeys("log log2 log10 sqrt rsqrt reciprocal".split(), (0, 10)),
    **dict.fromkeys("lgamma digamma entr modified_bessel_k0 modified_bessel_k1".split(), (0, 10)),
    **dict.fromkeys("asin acos atanh erfinv".split(), (-1, 1)),
    **dict.fromkeys("logit ndtri".split(), (0, 1)),
    "log1p": (-1, 10),
    "acosh": (1, 10),
}
NUMPY = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}
NUMPY["atanh"] = "arctanh"
PIECE = 1 << 20


def tanhshrink(x: Any) -> Any:
    """Return x - tanh(x) of a float64 tensor of PyTorch, near 0 by its power series."""
    square, series = x * x, 0.0
    for coefficient in (-929569 / 638512875, 21844 / 6081075, -1382 / 155925, 62 / 2835, -17 / 315, 2 / 15, -1 / 3):
        series = series * square - coefficient
    return (x * square * series).where(x.abs() < 0.1, x - x.tanh())


def sinc(x: Any) -> Any:
    """Return sin(pi x) / (pi x) of a float64 tensor of PyTorch, which is 0 at integers."""
    whole = x.round()
    return (((x - whole) * math.pi).sin() * (1 - 2 * whole.remainder(2)) / (x * math.pi)).where(x != 0, x.exp())


#: Functions of float64 tensors that lose fewer digits than PyTorch's own.
EXACT: dict[str, Callable[[Any], Any]] = {
    "gelu": lambda x: x * (x * -math.sqrt(0.5)).erfc() / 2,
    "logit": lambda x: ((2 * x - 1) / (1 - x)).log1p().where(x > 0.25, (x / (1 - x)).log()),
    "ndtr": lambda x: (x * -math.sqrt(0.5)).erfc() / 2,
    "rsqrt": lambda x: 1 / x.sqrt(),
    "sinc": sinc,
    "tanhshrink": tanhshrink,
}


def function(torch: Any, name: str) -> Callable[[Array], Array]:
    """Return a function of a library shaped like PyTorch, on arrays."""
    places = torch, torch.special, torch.nn.functional
    found = next(getattr(place, name) for place in places if hasattr(place, name))
    return lambda x: found(torch.from_numpy(x)).numpy()


def errors(found: Array, exact: Array) -> Array:
    """Return in ulp the errors of the results that are not correctly rounded."""
    nearest = exact.astype(np.float32)
    wrong = (found != nearest) & ~(np.isnan(found) & np.isnan(nearest))
    found, exact = found[wrong], exact[wrong]
    exponents = np.frexp(np.clip(exact, -(2.0**127), 2.0**127))[1]
    ulp = np.ldexp(1.0, np.maximum(exponents, -125) - 24)
    infinity = 2.0**128  # where infinity stands among the numbers, as rounding sees it
    apart = np.abs(np.clip(found, -infinity, infinity, dtype=np.float64) - np.clip(exact, -infinity, infinity))
    return np.nan_to_num(apart / ulp, nan=np.inf)


def measured(call: Callable[[Array], Array], exact: Callable[[Array], Array], name: str, step: int) -> str:
    """Return the largest error of a function, and the share of its results that are not correctly rounded."""
    largest = 0.0
    for begin in range(0, 1 << 32, PIECE * step):
        x = np.arange(begin, min(begin + PIECE * step, 1 << 32), step, np.uint32).view(np.float32)
        largest = errors(call(x), exact(x.astype(np.float64))).max(initial=largest)
    x = np.random.default_rng(0).uniform(*FUNCTIONS[name], 1_000_000).astype(np.float32)
    wrong = errors(call(x), exact(x.astype(np.float64))).size / x.size
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
        right = EXACT.get(name)
        exact = (lambda x, right=right: right(torch.from_numpy(x)).numpy()) if right else function(torch, name)
        ours, theirs = (measured(function(each, name), exact, name, given.step) for each in (tinytorch, torch))
        ufunc = getattr(np, NUMPY.get(name, name), None)
        others = measured(ufunc, exact, name, given.step) if ufunc else " | "
        print(f"| {name} | {ours} | {others} | {theirs} |", flush=True)


if __name__ == "__main__":
    main()
