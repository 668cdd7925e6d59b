"""Which functions `autocast` changes on the CPU (floor 4): PyTorch's lists, by public name, and their application.

A name that there is not (yet) is skipped. What else is on PyTorch's lists begins itself with a look at
`autograd.autocast`: `matmul`, `mm`, `bmm`, convolutions and attention; the losses, `pad`, `grid_sample` and
`nn.functional.max_pool3d`; `cat` and `stack`; recurrent layers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.ops import autocast

__all__ = ["install"]

Names = dict[str, str]  # names of functions by their module below `torch`

#: Ops that are public functions themselves, run in low precision.
OPS: Names = {
    "": "addbmm addmm baddbmm",
    "nn.functional": "linear",
}

#: Run in low precision.
LOW: Names = {
    "": "conv_tbc prelu",
    "linalg": "vecdot",
}

#: Run in float32.
HIGH: Names = {
    "": """
        cdist cholesky cholesky_inverse cholesky_solve ctc_loss geqrf grid_sampler grid_sampler_2d grid_sampler_3d
        inverse lu_solve max_pool3d nanquantile orgqr ormqr pinverse polar prod qr quantile stft svd trace
        triangular_solve view_as_complex
    """,
    "fft": "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn",
    "linalg": """
        cholesky cholesky_ex cond eig eigh eigvals eigvalsh householder_product inv inv_ex lstsq matrix_rank qr solve
        svd svdvals tensorinv tensorsolve
    """,
    "nn.functional": """
        adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool3d_with_indices avg_pool3d fractional_max_pool2d
        fractional_max_pool2d_with_indices fractional_max_pool3d fractional_max_pool3d_with_indices max_unpool1d
        max_unpool2d max_unpool3d
    """,
}

#: Run in the widest precision of their arguments.
WIDEST: Names = {"": "index_copy"}

#: Left alone: to PyTorch there is no function of the lists in them.
ALONE: Names = {"linalg": "lu_solve"}


def install(torch: dict[str, Any]) -> None:
    """Let the functions of the tables see autocasting: in all modules, and as methods.

    Args:
        torch: the names of the package.
    """
    autocast.ops.update(_found(torch, OPS))
    changed: dict[int, tuple[Any, Any]] = {}  # by the `id` of what they replace
    for names, changing in (
        (LOW, autocast.lowering),
        (HIGH, autocast.raising),
        (WIDEST, autocast.promoting),
        (ALONE, autocast.leaving),
    ):
        for function in _found(torch, names):
            changed[id(function)] = function, changing(function)
    package = torch["__name__"]
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == package:
            names_there = vars(module)
            for name, (_, function) in _changed_among(names_there, changed):
                names_there[name] = function
    for name, (_, function) in _changed_among(vars(Tensor), changed):
        setattr(Tensor, name, function)


def _found(torch: dict[str, Any], names: Names) -> list[Callable[..., Any]]:
    """Return the functions of a table that there are."""
    found = []
    for path, listed in names.items():
        module: Any = torch
        for part in path.split(".") if path else ():
            module = vars(module[part]) if part in module else {}
        found += [module[name] for name in listed.split() if name in module]
    return found


def _changed_among(names: Any, changed: dict[int, tuple[Any, Any]]) -> list[tuple[str, Any]]:
    return [(name, changed[id(value)]) for name, value in names.items() if id(value) in changed]
