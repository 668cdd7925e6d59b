"""`torch.masked`: reductions and normalizations of the elements that a mask selects.

Elements whose mask is False take no part: they are replaced by the value that does not change the result (the identity
of the reduction), so the functions are Tensor code, and gradients flow to the other elements alone. `MaskedTensor`, the
prototype of a class that carries its mask, is not implemented.

All functions take `mask`, bools of a shape that broadcasts to that of `input`, and `dtype`, that of the result; by
default it is that of the input (of sums and products of smaller integers int64, of variances of integers float32).
Reductions take `dim`, one or several dimensions, by default all, and `keepdim`, whether these stay with size 1. What
needs a lowest or highest number raises `NotImplementedError` for masks of bools.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any, NoReturn

from tinytorch import linalg
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.kernels.dtypes import dtype as Dtype
from tinytorch.kernels.limits import iinfo
from tinytorch.kernels.reduce import axis_of
from tinytorch.nn import functional as F
from tinytorch.ops import arithmetic, reduce, transcendental
from tinytorch.ops.create import full, ones
from tinytorch.ops.masks import where

__all__ = [
    "MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor",
    "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm", "normalize", "prod", "softmax",
    "softmin", "std", "sum", "var",
]  # fmt: skip

Dims = int | tuple[int, ...] | list[int] | None

_ABSENT = (
    "torch.masked.MaskedTensor: tinytorch has no tensors that carry a mask; pass `mask=` to the functions of masked"
)


class MaskedTensor:
    """PyTorch's prototype of a tensor with a mask, which is not implemented; pass `mask=` to the functions instead.

    Raises:
        NotImplementedError: always.
    """

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> NoReturn:
        """Raise an error: the class has no instances."""
        raise NotImplementedError(_ABSENT)


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> NoReturn:
    """Raise an error: there are no masked tensors.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(_ABSENT)


def as_masked_tensor(data: Any, mask: Any) -> NoReturn:
    """Raise an error: there are no masked tensors.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(_ABSENT)


def is_masked_tensor(obj: Any, /) -> bool:
    """Return False: no object is a masked tensor.

    Example:
        >>> torch.masked.is_masked_tensor(torch.ones(2))
        False
    """
    return isinstance(obj, MaskedTensor)


# Masks and dimensions -----------------------------------------------------------------------------


def _selected(input: Tensor, mask: Tensor) -> Tensor:
    """Return the mask as bools of the input's shape."""
    if mask.shape != input.shape:
        if mask.ndim > input.ndim:
            raise IndexError(
                "_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)"
            )
        mask = mask.broadcast_to(input.shape)
    return mask.to(dtypes.bool)


def _lowest(input: Tensor, kind: Dtype, name: str) -> float:
    return -math.inf if kind.category >= dtypes.FLOATING else _limits(input, kind, name).min


def _highest(input: Tensor, kind: Dtype, name: str) -> float:
    return math.inf if kind.is_floating_point else _limits(input, kind, name).max


def _limits(input: Tensor, kind: Dtype, name: str) -> Any:
    if kind is dtypes.bool or (kind is not dtypes.uint8 and not input.is_signed()):
        raise NotImplementedError(f"identity of {name} on {kind} input")
    return iinfo(kind)


#: By function, the number that takes the place of elements that are masked out.
_IDENTITIES: dict[str, Callable[[Tensor, Dtype, str], float]] = {
    "sum": lambda *_: 0, "prod": lambda *_: 1, "norm": lambda *_: 0, "median": lambda *_: math.nan,
    "amax": _lowest, "argmax": _lowest, "logsumexp": _lowest, "logaddexp": _lowest, "amin": _highest,
    "argmin": _highest,
}  # fmt: skip


def _filled(name: str, input: Tensor, mask: Tensor | None, identity: float | None = None) -> Tensor:
    """Return the input, with the identity of a function where the mask is False."""
    if mask is None:
        return input
    value = _IDENTITIES[name](input, input.dtype, name) if identity is None else identity
    return where(_selected(input, mask), input, full((), value, dtype=input.dtype, device=input.device))


def _dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Return the dimensions as a sorted tuple; None and () are all of them."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    found: list[int] = []
    for each in (dim,) if isinstance(dim, int) else dim:
        if each in found:
            raise RuntimeError(f"dim={each} appears multiple times in the list of dims")
        found.append(axis_of(each, ndim, "masked"))
    return tuple(sorted(found))


def _of_sums(input: Tensor, dtype: Dtype | None) -> Dtype:
    if dtype is not None:
        return dtype
    small = input.dtype in (dtypes.uint8, dtypes.bool, dtypes.int8, dtypes.int16, dtypes.int32)
    return dtypes.int64 if small else input.dtype


# Functions of the same arguments -------------------------------------------------------------------


def _named(function: Callable[..., Tensor], name: str, does: str) -> Callable[..., Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {does}."
    return function


def _over(name: str, does: str, compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a reduction over dimensions, by default all.

    Args:
        name: its name.
        does: what it returns.
        compute: the same of the input, `dim`, `keepdim`, the mask, and `dtype`.
    """

    def function(
        input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: Dtype | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        return compute(input, dim, builtins.bool(keepdim), mask, dtype)

    return _named(function, name, does)


def _along(name: str, does: str, identity: str, compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a function along a dimension.

    Args:
        name: its name.
        does: what it returns.
        identity: the function that has the number that takes the place of elements that are masked out.
        compute: takes the input with that number, and the dimension and `dtype` by name.
    """

    def function(input: Tensor, dim: int, *, dtype: Dtype | None = None, mask: Tensor | None = None) -> Tensor:
        kind, (axis,) = input.dtype if dtype is None else dtype, _dims(dim, input.ndim)
        return compute(_filled(identity, input, mask), dim=axis, dtype=kind).to(kind)

    return _named(function, name, does)


def _selecting(name: str, does: str) -> Callable[..., Tensor]:
    """Return a reduction by which one element is selected, or its index."""
    of_all = getattr(reduce, name)
    dims = (lambda dim, ndim: dim) if name.startswith("arg") else _dims

    def compute(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None, dtype: Dtype | None) -> Tensor:
        result: Tensor = of_all(_filled(name, input, mask), dims(dim, input.ndim), keepdim)
        return result.to(input.dtype if dtype is None else dtype)

    return _over(name, does, compute)


# Reductions ---------------------------------------------------------------------------------------


def _prod(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None, dtype: Dtype | None) -> Tensor:
    result = _filled("prod", input, mask).to(_of_sums(input, dtype))
    for each in reversed(_dims(dim, input.ndim)):
        result = result.prod(dim=each, keepdim=keepdim)
    return result


def _mean(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None, dtype: Dtype | None) -> Tensor:
    source = "Input" if dtype is None else "Optional"
    kind = input.dtype if dtype is None else dtype
    if kind.category < dtypes.FLOATING:
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {kind}"
        )
    count = sum(_ones(input, mask), dim, keepdim=keepdim)
    return sum(input, dim, keepdim=keepdim, dtype=kind, mask=mask) / count


def _ones(input: Tensor, mask: Tensor | None) -> Tensor:
    """Return 1 for each element that takes part, and 0 for others."""
    return ones(input.shape, dtype=dtypes.int64, device=input.device) if mask is None else _selected(input, mask)


sum = _over(
    "sum", "the sums over `dim` of the elements that a mask selects; 0 where it selects none",
    lambda x, dim, keepdim, mask, dtype: reduce.sum(
        _filled("sum", x, mask), _dims(dim, x.ndim), keepdim, dtype=_of_sums(x, dtype)
    ),
)  # fmt: skip
prod = _over("prod", "the products over `dim` of the elements that a mask selects; 1 where it selects none", _prod)
mean = _over("mean", "the means over `dim` of the elements that a mask selects; NaN where it selects none", _mean)
amax = _selecting("amax", "the largest elements over `dim` that a mask selects, or the lowest number")
amin = _selecting("amin", "the smallest elements over `dim` that a mask selects, or the highest number")
argmax = _selecting("argmax", "the indices along `dim` of the largest elements that a mask selects")
argmin = _selecting("argmin", "the indices along `dim` of the smallest elements that a mask selects")
logsumexp = _selecting(
    "logsumexp", "the logarithms of the sums over `dim` of the exponentials of the elements that a mask selects"
)
cumsum = _along("cumsum", "the cumulative sums along `dim` of the elements that a mask selects", "sum", reduce.cumsum)
cumprod = _along(
    "cumprod", "the cumulative products along `dim` of the elements that a mask selects", "prod", reduce.cumprod
)


def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: Dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return the medians along `dim` of the elements that a mask selects; NaN where it selects none.

    Raises:
        ValueError: a mask selects none of the integers in a row.
    """
    kind = input.dtype if dtype is None else dtype
    where_to = _dims(dim, input.ndim)[0]
    real = input if input.is_floating_point() else input.to(dtypes.float32)
    result = reduce.nanmedian(_filled("median", real, mask), where_to, keepdim)[0]
    if real is input:
        return result
    if result.isnan().any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(kind)


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: Dtype | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Return `log(exp(input) + exp(other))`, without the elements of either that its mask does not select.

    Args:
        input_mask: bools, of a shape that broadcasts to that of `input`.
        other_mask: bools, of a shape that broadcasts to that of `other`.
    """
    kind = input.dtype if dtype is None else dtype
    first, second = _filled("logaddexp", input, input_mask), _filled("logaddexp", other, other_mask)
    return transcendental.logaddexp(first, second).to(kind)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: Dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Return the vector norms over `dim` of the elements that a mask selects.

    Args:
        ord: the order of the norm.
    """
    identity = math.inf if ord == -math.inf else 0
    if identity and mask is not None and not input.is_floating_point():
        raise AssertionError(f"input must be floating point, got {input.dtype}")
    filled, kind = _filled("norm", input, mask, identity), input.dtype if dtype is None else dtype
    return linalg.vector_norm(filled, ord, _dims(dim, input.ndim), builtins.bool(keepdim), dtype=kind)


def var(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool | None = False, dtype: Dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the variances over `dim` of the elements that a mask selects; NaN where it selects none.

    Args:
        unbiased: whether to divide by the number of elements minus 1, as by default, or by this number.
        correction: what to subtract from the number of elements, instead of `unbiased`.

    Raises:
        AssertionError: both `unbiased` and `correction` are given.
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool | None = False, dtype: Dtype | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the standard deviations over `dim` of the elements that a mask selects: the roots of `var`."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def _variance(
    input: Tensor, dim: Dims, unbiased: bool | None, correction: float | None, keepdim: bool | None,
    dtype: Dtype | None, mask: Tensor | None,
) -> Tensor:  # fmt: skip
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = float(unbiased is not False) if correction is None else float(correction)
    kind = dtype or (input.dtype if input.dtype.category >= dtypes.FLOATING else dtypes.float32)
    wide = kind if kind.category >= dtypes.FLOATING else dtypes.float32
    count = sum(_ones(input, mask), dim, keepdim=True)
    distance = input - sum(input, dim, keepdim=True, dtype=kind, mask=mask) / count
    total = sum(distance * distance.conj(), dim, keepdim=keepdim, dtype=wide, mask=mask)
    count = count.reshape(total.shape)
    if less:
        count = arithmetic.clamp_min(count.to(wide.to_real()) - less, 0)
    return (total / count).to(kind)


# Normalizations -----------------------------------------------------------------------------------

softmax = _along(
    "softmax", "the softmax along `dim` of the elements that a mask selects; NaN where it selects none", "amax",
    F.softmax,
)  # fmt: skip
log_softmax = _along(
    "log_softmax", "the logarithm of the softmax along `dim` of the elements that a mask selects", "amax", F.log_softmax
)
softmin = _along(
    "softmin", "the softmax of `-input` along `dim`, of the elements that a mask selects", "amin", F.softmin
)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: Dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Return the elements that a mask selects, divided by their norm along `dim`; 0 elsewhere.

    Args:
        ord: the order of the norm.
        eps: the smallest divisor.
    """
    divisor = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled("sum", input, mask) / arithmetic.maximum(divisor, full((), eps, dtype=divisor.dtype))
