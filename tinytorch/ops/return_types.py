"""Named tuples returned by functions with several results."""

from __future__ import annotations

import operator
from typing import Any

__all__: list[str] = []


class _Result(tuple[Any, ...]):
    """Base class of the named tuples; constructed from a sequence of the elements."""

    __slots__ = ()
    _names: tuple[str, ...] = ()

    def __new__(cls, parts: Any, attributes: Any = None) -> Any:  # (PyTorch's pickles have an empty dict of these)
        return tuple.__new__(cls, parts)

    def __repr__(self) -> str:
        parts = ",\n".join(f"{name}={part!r}" for name, part in zip(self._names, self, strict=True))
        return f"torch.return_types.{type(self).__name__}(\n{parts})"


def __getattr__(name: str) -> Any:  # (for type checkers: the classes are made below)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


#: The names of the elements of each tuple.
for _name, _parts in {
    "aminmax": "min max",
    "cummax": "values indices",
    "cummin": "values indices",
    "frexp": "mantissa exponent",
    "geqrf": "a tau",
    "histogram": "hist bin_edges",
    "histogramdd": "hist bin_edges",
    "kthvalue": "values indices",
    "linalg_cholesky_ex": "L info",
    "linalg_eig": "eigenvalues eigenvectors",
    "linalg_eigh": "eigenvalues eigenvectors",
    "linalg_inv_ex": "inverse info",
    "linalg_ldl_factor": "LD pivots",
    "linalg_ldl_factor_ex": "LD pivots info",
    "linalg_lstsq": "solution residuals rank singular_values",
    "linalg_lu": "P L U",
    "linalg_lu_factor": "LU pivots",
    "linalg_lu_factor_ex": "LU pivots info",
    "linalg_qr": "Q R",
    "linalg_slogdet": "sign logabsdet",
    "linalg_solve_ex": "result info",
    "linalg_svd": "U S Vh",
    "lu_unpack": "P L U",
    "lu_with_info": "LU pivots info",
    "max": "values indices",
    "median": "values indices",
    "min": "values indices",
    "mode": "values indices",
    "nanmedian": "values indices",
    "qr": "Q R",
    "slogdet": "sign logabsdet",
    "sort": "values indices",
    "svd": "U S V",
    "topk": "values indices",
    "triangular_solve": "solution cloned_coefficient",
}.items():
    __all__.append(_name)
    _own = "_lu_with_info" if _name == "lu_with_info" else _name
    *_most, _last = [f"`{each}`" for each in _parts.split()]
    globals()[_name] = type(
        _own,
        (_Result,),
        {"__slots__": (), "__module__": "tinytorch.return_types", "_names": tuple(_parts.split())}
        | {"__doc__": f"What `{_own}` returns: {', '.join(_most)} and {_last}."}
        | {each: property(operator.itemgetter(i)) for i, each in enumerate(_parts.split())},
    )
