"""`biject_to` and `transform_to`: transforms from unconstrained real numbers to the values that satisfy a constraint.

`biject_to(constraint)` is a bijection, with a Jacobian. `transform_to(constraint)` need not be bijective; it is meant
for constrained optimization.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from tinytorch.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A registry of transforms by class of constraint.

    Example:
        >>> torch.distributions.transform_to(torch.distributions.constraints.simplex)
        SoftmaxTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[Any, Callable[[Any], Any]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Register `factory(constraint)`, which returns a transform; without `factory`, return a decorator."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Return the transform for a constraint."""
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints") from None
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register_structures(to: ConstraintRegistry) -> None:
    """Register transforms of composite constraints, which are composed of those of their parts."""
    independent, cat, stack = transforms.IndependentTransform, transforms.CatTransform, transforms.StackTransform
    to.register(constraints.independent, lambda c: independent(to(c.base_constraint), c.reinterpreted_batch_ndims))
    to.register(constraints.cat, lambda c: cat([to(part) for part in c.cseq], c.dim, c.lengths))
    to.register(constraints.stack, lambda c: stack([to(part) for part in c.cseq], c.dim))


def _to_bound(bound: str, direction: int) -> Callable[[Any], Any]:
    def factory(constraint: Any) -> Any:
        affine = transforms.AffineTransform(getattr(constraint, bound), direction)
        return transforms.ComposeTransform([transforms.ExpTransform(), affine])

    return factory


def _to_interval(constraint: Any) -> Any:
    low: Any = constraint.lower_bound
    high: Any = constraint.upper_bound
    if all(isinstance(bound, Number) for bound in (low, high)) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


for _registry in (biject_to, transform_to):
    _register_structures(_registry)
    _registry.register(constraints.real, lambda constraint: transforms.identity_transform)
    _registry.register(constraints.positive, lambda constraint: transforms.ExpTransform())
    _registry.register(constraints.nonnegative, lambda constraint: transforms.ExpTransform())
    _registry.register(constraints.greater_than, _to_bound("lower_bound", 1))
    _registry.register(constraints.greater_than_eq, _to_bound("lower_bound", 1))
    _registry.register(constraints.less_than, _to_bound("upper_bound", -1))
    _registry.register(constraints.interval, _to_interval)
    _registry.register(constraints.half_open_interval, _to_interval)
    _registry.register(constraints.corr_cholesky, lambda constraint: transforms.CorrCholeskyTransform())

biject_to.register(constraints.simplex, lambda constraint: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda constraint: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda constraint: transforms.LowerCholeskyTransform())
transform_to.register(constraints.positive_definite, lambda constraint: transforms.PositiveDefiniteTransform())
transform_to.register(constraints.positive_semidefinite, lambda constraint: transforms.PositiveDefiniteTransform())
