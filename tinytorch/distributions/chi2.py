"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.distributions import constraints
from tinytorch.distributions.gamma import Gamma
from tinytorch.distributions.utils import formula

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution with `df` degrees of freedom: Gamma(df / 2, 1 / 2).

    Example:
        >>> torch.distributions.Chi2(3.0).mean
        tensor(3.)
    """

    arg_constraints = {"df": constraints.positive}
    _expanded_params = Gamma.arg_constraints

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = formula(lambda self: self.concentration * 2, "The degrees of freedom.")
