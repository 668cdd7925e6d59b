"""Categorical distributions over one-hot vectors."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.categorical import Categorical, CategoricalBased
from tinytorch.distributions.utils import alias, formula
from tinytorch.nn.functional import one_hot
from tinytorch.ops.sequences import eye

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(CategoricalBased):
    """The categorical distribution over one-hot vectors; the arguments are those of `Categorical`.

    Example:
        >>> torch.distributions.OneHotCategorical(torch.tensor([0.0, 1.0, 0.0])).sample()
        tensor([0., 1., 0.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    _param = alias("_categorical._param")
    mean = alias("_categorical.probs")
    mode = formula(lambda self: one_hot(self._categorical.mode, self._event_shape[-1]).to(self.probs))
    variance = formula(lambda self: self._categorical.probs * (1 - self._categorical.probs))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        indices = self._categorical.sample(Size(sample_shape))
        return one_hot(indices, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = eye(n, dtype=self._param.dtype)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n,) + self.batch_shape + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` with straight-through gradients: samples have the gradient of the probabilities.

    Source:
        Bengio, Léonard and Courville, "Estimating or Propagating Gradients Through Stochastic Neurons for
        Conditional Computation", 2013.

    Example:
        >>> p = torch.tensor([0.0, 1.0], requires_grad=True)
        >>> torch.distributions.OneHotCategoricalStraightThrough(p).rsample().requires_grad
        True
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        samples = self.sample(sample_shape)
        probs = self._categorical.probs  # a cached tensor, to which the gradient goes
        return samples + (probs - probs.detach())
