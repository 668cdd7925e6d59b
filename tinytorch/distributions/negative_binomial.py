"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.gamma import Gamma
from tinytorch.distributions.utils import ProbsOrLogits, formula, lazy_property
from tinytorch.nn.functional import logsigmoid
from tinytorch.ops.rejection import poisson

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The number of successes before `total_count` failures, in trials with success probability `probs`.

    Example:
        >>> torch.distributions.NegativeBinomial(3, torch.tensor(0.5)).mean
        tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (self.total_count,) = self._set_param(probs, logits, total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    mean = formula(lambda self: self.total_count * self.logits.exp())
    mode = formula(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = formula(lambda self: self.mean / (-self.logits).sigmoid())

    @lazy_property
    def _gamma(self) -> Gamma:
        # Not validated, since the rate is infinite for a probability of zero.
        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        powers = self.total_count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        total = self.total_count + value
        log_norm = -total.lgamma() + (1.0 + value).lgamma() + self.total_count.lgamma()
        return powers - log_norm.masked_fill(total == 0.0, 0.0)
