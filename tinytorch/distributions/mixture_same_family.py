"""Mixtures of distributions of the same family."""

from __future__ import annotations

from typing import Any, Self

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.categorical import Categorical
from tinytorch.distributions.constraints import MixtureSameFamilyConstraint
from tinytorch.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture whose components are indexed by the last batch dimension of `component_distribution`.

    Args:
        mixture_distribution: a `Categorical` over the components.

    Raises:
        ValueError: the arguments are of a wrong type, or their shapes are incompatible.

    Example:
        >>> d = torch.distributions
        >>> mixture = d.Categorical(torch.ones(2))
        >>> d.MixtureSameFamily(mixture, d.Normal(torch.tensor([0.0, 4.0]), 1.0)).mean
        tensor(2.)
    """

    arg_constraints: dict[str, Any] = {}
    _copied = ("_num_component", "_event_ndims")
    _components = ("_component_distribution",)

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution need to be an instance of torch.distributions.Distribution")
        mixture_shape = mixture_distribution.batch_shape
        batch_shape = component_distribution.batch_shape[:-1]
        for one, other in zip(reversed(mixture_shape), reversed(batch_shape), strict=False):
            if one != 1 and other != 1 and one != other:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_shape}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch_shape})"
                )
        n, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if n != components:
            raise ValueError(
                f"`mixture_distribution component` ({n}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components})"
            )
        self._num_component = n
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape=Size(batch_shape), event_shape=event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    @property
    def mean(self) -> Tensor:
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return (probs * self.component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self) -> Tensor:
        # The law of total variance.
        probs = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        dim = -1 - self._event_ndims
        within = (probs * self.component_distribution.variance).sum(dim)
        difference = self.component_distribution.mean - self._pad(self.mean)
        return within + (probs * difference.pow(2.0)).sum(dim)

    def cdf(self, x: Tensor) -> Tensor:
        cdf = self.component_distribution.cdf(self._pad(x))
        return (cdf * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check_sample(x)
        log_prob = self.component_distribution.log_prob(self._pad(x))
        weights = self.mixture_distribution.logits.log_softmax(-1)
        return (log_prob + weights).logsumexp(-1)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            component = self.mixture_distribution.sample(sample_shape)
            component = component.reshape(component.shape + (1,) * (self._event_ndims + 1))
            samples = self.component_distribution.sample(sample_shape)
            shape = samples.shape[:dim] + (1,) + self.event_shape
            return samples.gather(dim, component.expand(shape)).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        missing = len(self.batch_shape) - len(self.mixture_distribution.batch_shape)
        shape = x.shape[:-1] + (1,) * missing + x.shape[-1:] + (1,) * self._event_ndims
        return x.reshape(shape)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
