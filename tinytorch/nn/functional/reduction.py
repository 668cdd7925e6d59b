"""Names of reductions, PyTorch's numbers for them, and the deprecated arguments `size_average` and `reduce`."""

from __future__ import annotations

from tinytorch.core.warning import warn

NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def checked_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return the name of the reduction, resolving the deprecated arguments.

    Example:
        >>> from tinytorch.nn._reduction import checked_reduction
        >>> checked_reduction(None, None, "sum")
        'sum'
    """
    if size_average is not None or reduce is not None:
        return _of_flags(size_average, reduce)
    if reduction not in ("none", "mean", "sum"):
        if reduction == "elementwise_mean":
            warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
            return "mean"
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _of_flags(size_average: bool | None, reduce: bool | None, warns: bool = True) -> str:
    """Return the reduction that the deprecated arguments select; warn of them if `warns`."""
    if reduce is not None and not reduce:
        name = "none"
    else:
        name = "mean" if size_average is None or size_average else "sum"
    if warns:
        warn(f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.")
    return name


def get_enum(reduction: str) -> int:
    """Return the number of a reduction: 0 for "none", 1 for "mean", 2 for "sum".

    Example:
        >>> from tinytorch.nn import _reduction
        >>> _reduction.get_enum("sum")
        2
    """
    return NUMBERS[checked_reduction(None, None, reduction)]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Return the reduction that the deprecated arguments select; None means True."""
    return _of_flags(size_average, reduce, emit_warning)


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Return the number of the reduction that the deprecated arguments select."""
    return NUMBERS[_of_flags(size_average, reduce, emit_warning)]
