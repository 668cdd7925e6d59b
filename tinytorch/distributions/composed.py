"""Distributions made of others: `Independent` and `TransformedDistribution`."""

from __future__ import annotations

from typing import Any, Self

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.transforms import ComposeTransform, Transform
from tinytorch.distributions.utils import _sum_rightmost, alias, method

__all__ = ["Independent", "TransformedDistribution"]


class Independent(Distribution):
    """A distribution with its last `reinterpreted_batch_ndims` batch dimensions as event dimensions.

    Example:
        >>> d = torch.distributions
        >>> d.Independent(d.Normal(torch.zeros(2, 3), 1.0), 1)
        Independent(Normal(loc: torch.Size([2, 3]), scale: torch.Size([2, 3])), 1)
    """

    arg_constraints: dict[str, Any] = {}
    _copied = ("reinterpreted_batch_ndims",)
    _components = ("base_dist",)

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ) -> None:
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        event_dim = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        cut = len(shape) - event_dim
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(Size(shape[:cut]), Size(shape[cut:]), validate_args=validate_args)

    has_rsample: Any = alias("base_dist.has_rsample")

    @property
    def has_enumerate_support(self) -> Any:
        return False if self.reinterpreted_batch_ndims else self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        result = self.base_dist.support
        if self.reinterpreted_batch_ndims:
            result = constraints.independent(result, self.reinterpreted_batch_ndims)
        return result

    mean = alias("base_dist.mean")
    mode = alias("base_dist.mode")
    variance = alias("base_dist.variance")
    sample = method(lambda self, sample_shape=Size(): self.base_dist.sample(sample_shape))
    rsample = method(lambda self, sample_shape=Size(): self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    entropy = method(lambda self: _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims))

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """The distribution of t(x) for x from the base distribution.

    Args:
        transforms: a transform or a list of them, the first applied first.

    Example:
        >>> d = torch.distributions
        >>> log_normal = d.TransformedDistribution(d.Normal(0.0, 1.0), d.transforms.ExpTransform())
        >>> log_normal.log_prob(torch.tensor(1.0))
        tensor(-0.9189)
    """

    arg_constraints: dict[str, Any] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(transform, Transform) for transform in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(shape) < transform.domain.event_dim:
            raise ValueError(
                "base_distribution needs to have shape with size at least "
                f"{transform.domain.event_dim}, but got {shape}."
            )
        forward_shape = transform.forward_shape(shape)
        expanded = transform.inverse_shape(forward_shape)
        if shape != expanded:
            base_distribution = base_distribution.expand(expanded[: len(expanded) - len(base_distribution.event_shape)])
        missing_dims = transform.domain.event_dim - len(base_distribution.event_shape)
        if missing_dims > 0:
            base_distribution = Independent(base_distribution, missing_dims)
        self.base_dist: Any = base_distribution
        change = transform.codomain.event_dim - transform.domain.event_dim
        event_dim = max(transform.codomain.event_dim, base_event_dim + change)
        cut = len(forward_shape) - event_dim
        super().__init__(Size(forward_shape[:cut]), Size(forward_shape[cut:]), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Self:
        new = self._get_checked_instance(self._family, _instance)
        shape = Size(batch_shape) + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        base = self.base_dist
        new.base_dist = base.expand(shape[: len(shape) - len(base.event_shape)])
        new.transforms = self.transforms
        super().expand(batch_shape, _instance=new)
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        if len(self.event_shape) > support.event_dim:
            support = constraints.independent(support, len(self.event_shape) - support.event_dim)
        return support

    has_rsample: Any = alias("base_dist.has_rsample")

    def _transform(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            return self._transform(self.base_dist.sample(sample_shape))

    rsample = method(lambda self, sample_shape=Size(): self._transform(self.base_dist.rsample(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        event_dim = len(self.event_shape)
        result: Any = 0.0
        y = value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            change = transform.log_abs_det_jacobian(x, y)
            result = result - _sum_rightmost(change, event_dim - transform.domain.event_dim)
            y = x
        base = self.base_dist.log_prob(y)
        return result + _sum_rightmost(base, event_dim - len(self.base_dist.event_shape))

    def _reflect_if_decreasing(self, value: Tensor) -> Tensor:
        """Return `value`, or 1 - value if the composed transform is decreasing."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._reflect_if_decreasing(self.base_dist.cdf(value))

    icdf = method(lambda self, value: self._transform(self.base_dist.icdf(self._reflect_if_decreasing(value))))
