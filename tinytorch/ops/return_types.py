"""Named tuples returned by functions with several results."""

from __future__ import annotations

import operator
from typing import Any

__all__ = [
    "aminmax",
    "cummax",
    "cummin",
    "frexp",
    "geqrf",
    "histogram",
    "histogramdd",
    "kthvalue",
    "linalg_cholesky_ex",
    "linalg_eig",
    "linalg_eigh",
    "linalg_inv_ex",
    "linalg_ldl_factor",
    "linalg_ldl_factor_ex",
    "linalg_lstsq",
    "linalg_lu",
    "linalg_lu_factor",
    "linalg_lu_factor_ex",
    "linalg_qr",
    "linalg_slogdet",
    "linalg_solve_ex",
    "linalg_svd",
    "lu_unpack",
    "lu_with_info",
    "max",
    "median",
    "min",
    "mode",
    "nanmedian",
    "qr",
    "slogdet",
    "sort",
    "svd",
    "topk",
    "triangular_solve",
]


class _Result(tuple[Any, ...]):
    """Base class of the named tuples; constructed from a sequence of the elements."""

    __slots__ = ()
    _names: tuple[str, ...] = ()

    def __new__(cls, parts: Any, attributes: Any = None) -> Any:  # (PyTorch's pickles have an empty dict of these)
        return tuple.__new__(cls, parts)

    def __repr__(self) -> str:
        parts = ",\n".join(f"{name}={part!r}" for name, part in zip(self._names, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{parts})"


def _result(name: str, *names: str) -> Any:
    names = names or ("values", "indices")
    parts = {each: property(operator.itemgetter(i)) for i, each in enumerate(names)}
    *most, last = [f"`{each}`" for each in names]
    doc = f"What `{name}` returns: {', '.join(most)} and {last}."
    own = {"__slots__": (), "__module__": "tinytorch.return_types", "__doc__": doc, "_names": tuple(parts)}
    return type(name, (_Result,), {**own, **parts})


aminmax = _result("aminmax", "min", "max")
cummax = _result("cummax")
cummin = _result("cummin")
frexp = _result("frexp", "mantissa", "exponent")
histogram = _result("histogram", "hist", "bin_edges")
histogramdd = _result("histogramdd", "hist", "bin_edges")
geqrf = _result("geqrf", "a", "tau")
kthvalue = _result("kthvalue")
linalg_cholesky_ex = _result("linalg_cholesky_ex", "L", "info")
linalg_eig = _result("linalg_eig", "eigenvalues", "eigenvectors")
linalg_eigh = _result("linalg_eigh", "eigenvalues", "eigenvectors")
linalg_inv_ex = _result("linalg_inv_ex", "inverse", "info")
linalg_ldl_factor = _result("linalg_ldl_factor", "LD", "pivots")
linalg_ldl_factor_ex = _result("linalg_ldl_factor_ex", "LD", "pivots", "info")
linalg_lstsq = _result("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
linalg_lu = _result("linalg_lu", "P", "L", "U")
linalg_lu_factor = _result("linalg_lu_factor", "LU", "pivots")
linalg_lu_factor_ex = _result("linalg_lu_factor_ex", "LU", "pivots", "info")
linalg_qr = _result("linalg_qr", "Q", "R")
linalg_slogdet = _result("linalg_slogdet", "sign", "logabsdet")
linalg_solve_ex = _result("linalg_solve_ex", "result", "info")
linalg_svd = _result("linalg_svd", "U", "S", "Vh")
lu_unpack = _result("lu_unpack", "P", "L", "U")
lu_with_info = _result("_lu_with_info", "LU", "pivots", "info")
max = _result("max")
median = _result("median")
min = _result("min")
mode = _result("mode")
nanmedian = _result("nanmedian")
qr = _result("qr", "Q", "R")
slogdet = _result("slogdet", "sign", "logabsdet")
sort = _result("sort")
svd = _result("svd", "U", "S", "V")
topk = _result("topk")
triangular_solve = _result("triangular_solve", "solution", "cloned_coefficient")
