"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.exp_family import ExponentialFamily
from tinytorch.distributions.utils import ProbsOrLogits, alias, broadcast_all, formula
from tinytorch.nn.functional import binary_cross_entropy_with_logits
from tinytorch.ops.random import bernoulli
from tinytorch.ops.sequences import arange

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """The distribution of a value that is one with probability `probs` (or log odds `logits`), and else zero.

    Example:
        >>> torch.distributions.Bernoulli(torch.tensor([0.0, 1.0])).sample()
        tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_param(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    mean = alias("probs")

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = float("nan")
        return mode

    variance = formula(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._shape_support(arange(2, dtype=self._param.dtype), expand)

    _natural_params: Any = formula(lambda self: (self.probs.logit(),))

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp().log1p()
