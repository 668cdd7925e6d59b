"""Elementary functions of one array: NumPy's ufuncs, or native twins, which round the results of float32 once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .native import twin
from .parallel import takes_out

exp = twin(np.exp)
exp2 = twin(np.exp2)
expm1 = twin(np.expm1)
log = twin(np.log)
log2 = twin(np.log2)
log1p = twin(np.log1p)
sin = twin(np.sin)
cos = twin(np.cos)
tan = twin(np.tan)
arcsin = twin(np.arcsin)
arccos = twin(np.arccos)
arctan = twin(np.arctan)
sinh = twin(np.sinh)
cosh = twin(np.cosh)
tanh = twin(np.tanh)
arcsinh = twin(np.arcsinh)
arccosh = twin(np.arccosh)
arctanh = twin(np.arctanh)

_F32 = np.dtype(np.float32)
_LOG2_OF_TEN = np.array(math.log2(10), np.float32)
_whole = np.arange(-10, 11)
# With AVX-512, NumPy returns 2.0000002 for 100; on other processors NumPy, and PyTorch everywhere, return 2.
_IS_EXACT = np.array_equal(np.log10((10.0**_whole).astype(np.float32)), _whole)


@twin
def log10(x: Any, out: Any = None) -> Any:
    """Return the logarithm to base 10; of float32 as log2(x) / log2(10) where that is more accurate."""
    if x.dtype is not _F32 or _IS_EXACT:
        return np.log10(x, out)
    if out is None:
        return np.log2(x) / _LOG2_OF_TEN
    return np.divide(np.log2(x, out), _LOG2_OF_TEN, out)


#: The functions of this module: each takes an array, and an array to write into, which may be the same.
FUNCTIONS: frozenset[Any] = frozenset(
    (exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan, arcsin, arccos, arctan, sinh, cosh, tanh, arcsinh,
     arccosh, arctanh)
)  # fmt: skip
for _each in FUNCTIONS:
    if not isinstance(_each, np.ufunc):
        takes_out(_each)
