"""Student's t-distribution."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.chi2 import Chi2
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.utils import _standard_normal, alias, broadcast_all, formula

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t-distribution with `df` degrees of freedom, location `loc` and scale `scale`.

    Example:
        >>> torch.distributions.StudentT(4.0).variance
        tensor(2.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _components = ("_chi2",)

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    mean = formula(lambda self: self.loc.masked_fill(self.df <= 1, float("nan")))
    mode = alias("loc")

    @property
    def variance(self) -> Tensor:
        # df is replaced where the variance is infinite: there the formula's gradient would be NaN.
        df = self.df.masked_fill(self.df <= 2, 3.0)
        finite = self.scale.pow(2) * df / (df - 2)
        return finite.masked_fill(self.df <= 2, float("inf")).masked_fill(self.df <= 1, float("nan"))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        x = _standard_normal(shape, self.df.dtype)
        z = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (x * (z / self.df).rsqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        y = (value - self.loc) / self.scale
        half, above = 0.5 * self.df, 0.5 * (self.df + 1.0)
        z = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + half.lgamma() - above.lgamma()
        return -above * (y**2.0 / self.df).log1p() - z

    def entropy(self) -> Tensor:
        half, above = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + 0.5 * math.log(math.pi) - above.lgamma()
        return self.scale.log() + above * (above.digamma() - half.digamma()) + 0.5 * self.df.log() + log_beta
