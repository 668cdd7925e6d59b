"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.cauchy import Cauchy
from tinytorch.distributions.half_normal import FoldedDistribution
from tinytorch.distributions.transforms import AbsTransform
from tinytorch.distributions.utils import formula
from tinytorch.ops.create import as_tensor, full

__all__ = ["HalfCauchy"]


class HalfCauchy(FoldedDistribution):
    """The distribution of |x| for x from Cauchy(0, scale).

    Example:
        >>> torch.distributions.HalfCauchy(1.0).mode
        tensor(0.)
    """

    arg_constraints = {"scale": constraints.positive}

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    mean = formula(lambda self: full(self._extended_shape(), math.inf, dtype=self.scale.dtype))
    variance = formula(lambda self: self.base_dist.variance)

    def _log_prob(self, value: Any) -> Tensor:
        return super()._log_prob(as_tensor(value, dtype=self.scale.dtype))
