"""Distributions of the exponential family."""

from __future__ import annotations

from typing import Any

from tinytorch.autograd import grad
from tinytorch.core.tensor import Tensor
from tinytorch.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution of an exponential family, with density exp(<t(x), θ> - F(θ) + k(x)).

    A subclass defines the natural parameters θ as `_natural_params`, F as `_log_normalizer` and the mean of k as
    `_mean_carrier_measure`. The entropy is computed from them.

    Example:
        >>> isinstance(torch.distributions.Normal(0.0, 1.0), torch.distributions.ExponentialFamily)
        True

    Source:
        Nielsen and Nock, "Entropies and Cross-entropies of Exponential Families", 2010.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Return the entropy, F(θ) - <θ, ∇F(θ)> minus the mean of k."""
        result: Any = -self._mean_carrier_measure
        params = [param.detach().requires_grad_() for param in self._natural_params]
        normalizer = self._log_normalizer(*params)
        gradients = grad(normalizer.sum(), params, create_graph=True)
        result = result + normalizer
        for param, gradient in zip(params, gradients, strict=True):
            result = result - (param * gradient).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
