"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.binomial import Binomial
from tinytorch.distributions.categorical import Categorical, CategoricalBased
from tinytorch.distributions.utils import broadcast_all, formula
from tinytorch.ops.create import ones_like, tensor, zeros

__all__ = ["Multinomial"]


class Multinomial(CategoricalBased):
    """The distribution of the counts of each category in `total_count` draws.

    Args:
        total_count: the number of draws, an int.
        probs, logits: as for `Categorical`.

    Example:
        >>> torch.distributions.Multinomial(3, torch.tensor([0.0, 1.0])).sample()
        tensor([0., 3.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _copied = ("total_count",)
    _components = ("_categorical", "_binomial")

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    mean = formula(lambda self: self.probs * self.total_count)
    variance = formula(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        draws = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        draws = draws.movedim(0, -1)
        counts = zeros(self._extended_shape(sample_shape), dtype=draws.dtype)
        counts.scatter_add_(-1, draws, ones_like(draws))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        n = tensor(self.total_count)
        values = self._binomial.enumerate_support(expand=False)[1:]
        weights = self._binomial.log_prob(values).exp() * (values + 1).lgamma()
        return (n * self._categorical.entropy() - (n + 1).lgamma()) + weights.sum([0, -1])

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_coefficient = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        # A count of zero contributes nothing, also if the category has probability zero.
        logits = logits.masked_fill((value == 0) & (logits == -float("inf")), 0)
        return log_coefficient + (logits * value).sum(-1)
