"""Methods of Tensor as functions of the package: `torch.abs_(x)` for `x.abs_()` (floor 4)."""

from __future__ import annotations

from typing import Any

from tinytorch._tensor import Tensor
from tinytorch.nn import functional

__all__ = [
    "alpha_dropout", "alpha_dropout_", "dropout", "dropout_", "feature_alpha_dropout", "feature_alpha_dropout_",
    "feature_dropout", "feature_dropout_",
]  # fmt: skip

#: The methods that PyTorch has as functions too, and no module of the ops exports.
METHODS = """
    abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan_
    atanh_ ceil_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach detach_ erf_ erfc_ exp2_
    exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ get_device i0_ index_put_ is_nonzero is_same_size is_signed lcm_ ldexp_
    log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ resize_as_ round_ rsqrt_
    sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ xlogy_ zero_
"""


def functions() -> dict[str, Any]:
    """Return the methods of the table by their names."""
    return {name: getattr(Tensor, name) for name in METHODS.split() if hasattr(Tensor, name)}


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Return `input`, each element zeroed with probability `p`, the others divided by `1 - p`, if `train`.

    Raises:
        RuntimeError: `p` is no probability.

    Example:
        >>> import tinytorch as torch
        >>> torch.dropout(torch.ones(2), 0.5, False)
        tensor([1., 1.])
    """
    _check_probability(p)
    return functional.dropout(input, p, train)


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero elements in place with probability `p`, and scale the others by 1 / (1 - p), if `train`.

    Example:
        >>> import tinytorch as torch
        >>> torch.dropout_(torch.ones(3), 0.5, False)
        tensor([1., 1., 1.])
    """
    _check_probability(p)
    return functional.dropout(input, p, train, True)


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Return `nn.functional.alpha_dropout(input, p, train)`.

    Example:
        >>> import tinytorch as torch
        >>> torch.alpha_dropout(torch.ones(2), 0.5, False)
        tensor([1., 1.])
    """
    _check_probability(p)
    return functional.alpha_dropout(input, p, train)


def alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply `nn.functional.alpha_dropout` in place, if `train`.

    Example:
        >>> import tinytorch as torch
        >>> torch.alpha_dropout_(torch.ones(3), 0.5, False)
        tensor([1., 1., 1.])
    """
    _check_probability(p)
    return functional.alpha_dropout(input, p, train, True)


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Set whole channels, the second dimension, to what keeps mean and variance after `selu`, if `train`.

    Raises:
        RuntimeError: `p` is no probability, or there are less than two dimensions.

    Example:
        >>> import tinytorch as torch
        >>> torch.feature_alpha_dropout(torch.ones(1, 2), 0.5, False)
        tensor([[1., 1.]])

    Source:
        Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    _check_probability(p)
    return functional.feature_alpha_dropout(input, p, train)


def feature_alpha_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply `feature_alpha_dropout` in place.

    Example:
        >>> import tinytorch as torch
        >>> torch.feature_alpha_dropout_(torch.ones(1, 2), 0.5, False)
        tensor([[1., 1.]])
    """
    _check_probability(p)
    return functional.feature_alpha_dropout(input, p, train, True)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zero whole channels, the second dimension, with probability `p`, and scale the others by 1 / (1 - p), if `train`.

    Raises:
        RuntimeError: `p` is no probability, or there are less than two dimensions.

    Example:
        >>> import tinytorch as torch
        >>> channels = torch.feature_dropout(torch.ones(1, 100, 3), 0.5, True)
        >>> set(channels.sum(-1).flatten().tolist()) == {0.0, 6.0}
        True
    """
    _check_probability(p)
    return functional._channels_dropped(input, p, train, False)


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply `feature_dropout` in place.

    Example:
        >>> import tinytorch as torch
        >>> torch.feature_dropout_(torch.ones(1, 2), 0.5, False)
        tensor([[1., 1.]])
    """
    _check_probability(p)
    return functional._channels_dropped(input, p, train, True)
