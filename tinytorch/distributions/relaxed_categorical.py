"""Relaxed one-hot categorical distributions."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.categorical import Categorical, CategoricalBased
from tinytorch.distributions.transformed_distribution import TransformedDistribution
from tinytorch.distributions.transforms import ExpTransform
from tinytorch.distributions.utils import alias, broadcast_all, clamp_probs
from tinytorch.ops.create import full_like
from tinytorch.ops.random import rand

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(CategoricalBased):
    """The distribution of the logarithm of a `RelaxedOneHotCategorical` variable.

    Source:
        Maddison, Mnih and Teh, "The Concrete Distribution", 2017.

    Example:
        >>> from tinytorch.distributions.relaxed_categorical import ExpRelaxedCategorical
        >>> ExpRelaxedCategorical(torch.tensor(0.5), probs=torch.ones(3)).event_shape
        torch.Size([3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # the logarithms of a point of the simplex
    has_rsample = True
    _copied = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        u = clamp_probs(rand(self._extended_shape(sample_shape), dtype=self.logits.dtype))
        gumbels = -((-(u.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self._categorical._num_events
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_scale = full_like(self.temperature, float(k)).lgamma() - self.temperature.log().mul(-(k - 1))
        score = logits - value.mul(self.temperature)
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + log_scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """A continuous distribution on the simplex that approaches `OneHotCategorical` as the temperature goes to 0.

    Source:
        Maddison, Mnih and Teh, "The Concrete Distribution", 2017; Jang, Gu and Poole, "Categorical
        Reparametrization with Gumbel-Softmax", 2017.

    Example:
        >>> d = torch.distributions.RelaxedOneHotCategorical(torch.tensor(0.5), probs=torch.ones(3))
        >>> d.rsample().shape
        torch.Size([3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    temperature: Any = alias("base_dist.temperature", "The temperature.")
    logits = alias("base_dist.logits", "The logarithms of the probabilities.")
    probs = alias("base_dist.probs", "The probabilities.")
