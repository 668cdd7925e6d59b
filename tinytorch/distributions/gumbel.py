"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.transforms import AffineTransform, ExpTransform
from tinytorch.distributions.uniform import Uniform
from tinytorch.distributions.utils import alias, broadcast_all, euler_constant, formula
from tinytorch.kernels.limits import finfo
from tinytorch.ops.create import full_like, ones_like

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution: loc - scale * log(-log(u)) for uniform u.

    Example:
        >>> torch.distributions.Gumbel(1.0, 2.0).mode
        tensor(1.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        info = finfo(self.loc.dtype)
        base = Uniform(full_like(self.loc, info.tiny), full_like(self.loc, 1 - info.eps), validate_args=validate_args)
        transforms = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    mean = formula(lambda self: self.loc + self.scale * euler_constant)
    mode = alias("loc")
    stddev = formula(lambda self: (math.pi / math.sqrt(6)) * self.scale)
    variance = formula(lambda self: self.stddev.pow(2))

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
