"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.utils import ProbsOrLogits, formula
from tinytorch.ops.rejection import binomial
from tinytorch.ops.sequences import arange

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits, Distribution):
    """The number of successes in `total_count` trials with success probability `probs` (or log odds `logits`).

    Example:
        >>> torch.distributions.Binomial(5, torch.tensor([0.0, 1.0])).sample()
        tensor([0., 5.])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (self.total_count,) = self._set_param(probs, logits, total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    mean = formula(lambda self: self.total_count * self.probs)
    mode = formula(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = formula(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        log_coefficient = (
            (self.total_count + 1).lgamma() - (value + 1).lgamma() - (self.total_count - value + 1).lgamma()
        )
        # log(1 + exp(logits)), written so that autograd's gradient at logits = 0 is 1/2.
        positive = (self.logits.clamp(min=0) + self.logits - self.logits.clamp(max=0)) / 2
        log_norm = positive + (-self.logits.abs()).exp().log1p()
        return value * self.logits + log_coefficient - self.total_count * log_norm

    def _count(self, function: str) -> int:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{function}`.")
        return count

    def entropy(self) -> Tensor:
        self._count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(1 + self._count("enumerate_support"), dtype=self._param.dtype)
        return self._shape_support(values, expand)
