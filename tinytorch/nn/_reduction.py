"""Names of reductions and PyTorch's numbers for them; losses written for older versions ask for these."""

from __future__ import annotations

import warnings

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Return the number of a reduction: 0 for "none", 1 for "mean", 2 for "sum".

    Raises:
        ValueError: there is no such reduction.

    Example:
        >>> from tinytorch.nn import _reduction
        >>> _reduction.get_enum("sum")
        2
    """
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
            stacklevel=2,
        )
        reduction = "mean"
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """Return the reduction that the deprecated arguments of losses stand for; None means True.

    Example:
        >>> from tinytorch.nn import _reduction
        >>> _reduction.legacy_get_string(False, None, emit_warning=False)
        'sum'
    """
    if reduce is not None and not reduce:
        name = "none"
    else:
        name = "mean" if size_average is None or size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.",
            stacklevel=2,
        )
    return name


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """Return the number of the reduction that the deprecated arguments stand for.

    Example:
        >>> from tinytorch.nn import _reduction
        >>> _reduction.legacy_get_enum(None, False, emit_warning=False)
        0
    """
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
