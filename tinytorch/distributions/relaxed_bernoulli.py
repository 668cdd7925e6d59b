"""Relaxed Bernoulli distributions."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.transforms import SigmoidTransform
from tinytorch.distributions.utils import ProbsOrLogits, alias, broadcast_all, clamp_probs
from tinytorch.ops.random import rand

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The distribution of the log odds of a `RelaxedBernoulli` variable.

    Source:
        Maddison, Mnih and Teh, "The Concrete Distribution", 2017.

    Example:
        >>> from tinytorch.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
        >>> LogitRelaxedBernoulli(torch.tensor(0.5), probs=torch.tensor([0.5])).batch_shape
        torch.Size([1])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _copied = ("_given", "temperature")

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._set_param(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(rand(shape, dtype=probs.dtype))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value.mul(self.temperature)
        return self.temperature.log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A continuous distribution on (0, 1) that approaches `Bernoulli` as the temperature goes to 0.

    Source:
        Maddison, Mnih and Teh, "The Concrete Distribution", 2017; Jang, Gu and Poole, "Categorical
        Reparametrization with Gumbel-Softmax", 2017.

    Example:
        >>> d = torch.distributions.RelaxedBernoulli(torch.tensor(0.1), probs=torch.tensor([0.5]))
        >>> d.rsample().shape
        torch.Size([1])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    temperature: Any = alias("base_dist.temperature", "The temperature.")
    logits = alias("base_dist.logits", "The log odds.")
    probs = alias("base_dist.probs", "The probabilities.")
