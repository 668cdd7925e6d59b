"""The categorical distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.utils import ProbsOrLogits, alias, formula, lazy_property, logits_to_probs, probs_to_logits
from tinytorch.kernels import dtypes, limits
from tinytorch.ops.create import full
from tinytorch.ops.join import broadcast_tensors
from tinytorch.ops.random import multinomial
from tinytorch.ops.sequences import arange

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits, Distribution):
    """The distribution of an index from 0 to K - 1.

    Args:
        probs: the probabilities, (..., K); they are normalized to sum to one.
        logits: alternatively, unnormalized log probabilities.

    Example:
        >>> torch.distributions.Categorical(torch.tensor([0.0, 1.0, 0.0])).sample((2,))
        tensor([1, 1])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _copied = ("_given", "_num_events")

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._check_exclusive(probs, logits)
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(Size(self._param.size()[:-1]), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    mean = formula(lambda self: full(self._extended_shape(), float("nan"), dtype=self.probs.dtype))
    variance = mean
    mode = formula(lambda self: self.probs.argmax(-1))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        samples = multinomial(rows, sample_shape.numel(), True).T
        return samples.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        index, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits.clamp(min=limits.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._shape_support(arange(self._num_events, dtype=dtypes.int64), expand)


class CategoricalBased(Distribution):
    """Base class of distributions that wrap a `Categorical`."""

    _categorical: Categorical
    _components: tuple[str, ...] = ("_categorical",)
    logits = alias("_categorical.logits", "The logarithms of the probabilities.")
    probs = alias("_categorical.probs", "The probabilities.")

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._categorical.param_shape
