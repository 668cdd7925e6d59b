"""`torch.__config__`: the versions of Python, NumPy and BLAS, as text for bug reports."""

from __future__ import annotations

import sys

import numpy as np

from tinytorch._version import __version__
from tinytorch.kernels import blas, native

from .switches import get_num_interop_threads, get_num_threads

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Return the versions of Python, NumPy and BLAS; of the native kernels, which and how built, or why there are none.

    Example:
        >>> print(torch.__config__.show())
        tinytorch ... on:
          - Python ...
          - NumPy ...
          - BLAS ...
          - native kernels: ...
    """
    settings = np.show_config(mode="dicts")
    built = (settings or {}).get("Build Dependencies", {})
    blas = built.get("blas", {})
    facts = (
        f"Python {sys.version.split()[0]}",
        f"NumPy {np.__version__}",
        f"BLAS {blas.get('name', 'unknown')} {blas.get('version', '')}".rstrip(),
        f"native kernels: {native.instructions or 'none'} ({native.absence() or native.build() or 'built by hand'})",
    )
    return f"tinytorch {__version__} on:\n" + "".join(f"  - {fact}\n" for fact in facts)


def parallel_info() -> str:
    """Return the numbers of threads."""
    numbers = {"get_num_threads()": get_num_threads(), "get_num_interop_threads()": get_num_interop_threads()}
    openblas = blas.threads()
    if openblas is not None:
        numbers["openblas_get_num_threads()"] = openblas[1]()
    return "".join(f"{name} : {number}\n" for name, number in numbers.items())
