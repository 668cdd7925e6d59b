"""The beta distribution."""

from __future__ import annotations

from numbers import Real
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.dirichlet import Dirichlet
from tinytorch.distributions.exp_family import ExponentialFamily
from tinytorch.distributions.utils import broadcast_all, formula
from tinytorch.ops.create import tensor
from tinytorch.ops.join import stack

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The beta distribution, with density x^(concentration1 - 1) (1 - x)^(concentration0 - 1) / B.

    Example:
        >>> torch.distributions.Beta(1.0, 3.0).mean
        tensor(0.2500)
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _components = ("_dirichlet",)

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        if isinstance(concentration1, Real) and isinstance(concentration0, Real):
            concentration = tensor([float(concentration1), float(concentration0)])
        else:
            concentration = stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(concentration, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    mean = formula(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = formula(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self._dirichlet.log_prob(stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    concentration1 = formula(lambda self: self._dirichlet.concentration[..., 0], "The exponent of x, plus one.")
    concentration0 = formula(lambda self: self._dirichlet.concentration[..., 1], "The exponent of 1 - x, plus one.")

    _natural_params: Any = formula(lambda self: (self.concentration1, self.concentration0))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return x.lgamma() + y.lgamma() - (x + y).lgamma()
