"""Complex numbers: which ops compute with them, and the gradients of holomorphic functions.

An op refuses complex tensors unless it is declared with `complex=`, which says that its kernel computes with complex
numbers, and how its formulas are meant:

- `HOLOMORPHIC`: a formula multiplies `g` by the derivative (or its transpose), as for real numbers. By PyTorch's
  convention a gradient is the conjugate of the Wirtinger derivative, so the engine computes `conj(formula(conj(g)))`
  for a complex `g`.
- `OWN`: the formulas follow PyTorch's convention themselves, or their factors are real (views, sums).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.core.supplied import bits
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes

HOLOMORPHIC, OWN = "holomorphic", "own"


def refused(name: str, kind: Any) -> NotImplementedError:
    """Return PyTorch's error for a function that does not compute with complex numbers."""
    words = dtypes.from_numpy_dtype(kind).tensor_name
    name = name.strip("_")
    if name == "sign":
        return NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    return NotImplementedError(
        f"\"{name}\" not implemented for '{words}': {name} is not supported for complex types (it does not support "
        "complex input)"
    )


def refuse(name: str, *tensors: Any) -> None:
    """Raise NotImplementedError if one of the tensors is complex: for functions that are composed of ops."""
    for each in tensors:
        if isinstance(each, Tensor) and each._array.dtype.kind == "c":
            raise refused(name, each._array.dtype)


def conjugated(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Return the formula of a holomorphic function for real and for complex gradients."""

    def call(g: Any, *values: Any) -> Any:
        if not is_complex(g):
            return formula(g, *values)
        return _conj(formula(_conj(g), *values))

    return call


def is_complex(g: Any) -> bool:
    """Return whether a gradient is complex, or one of a sequence of gradients."""
    if isinstance(g, (tuple, list)):
        return any(map(is_complex, g))
    return g is not None and g.dtype.numpy.kind == "c"  # (a sparse gradient has no array)


def _conj(g: Any) -> Any:
    if isinstance(g, (tuple, list)):
        return type(g)([_conj(each) for each in g])
    return bits.conjugate(g) if isinstance(g, Tensor) and g._array.dtype.kind == "c" else g
