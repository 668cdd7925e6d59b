"""Constraints: sets of values that a parameter or a sample may have.

`constraint.check(value)` returns a bool for each event of `value`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinytorch import linalg
from tinytorch.core.tensor import Tensor
from tinytorch.distributions.utils import Formulas, formula, method
from tinytorch.ops.join import cat as concatenated
from tinytorch.ops.join import stack as stacked

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint(Formulas):
    """A set of values.

    Attributes:
        is_discrete: whether the set is discrete.
        event_dim: number of trailing dimensions of one event.

    Example:
        >>> torch.distributions.constraints.positive.check(torch.tensor([-1.0, 1.0]))
        tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0
    _shown: tuple[str, ...] = ()

    def check(self, value: Tensor) -> Tensor:
        """Return, for each event of `value`, whether it is in the set.

        Example:
            >>> torch.distributions.constraints.simplex.check(torch.tensor([0.25, 0.75]))
            tensor(True)
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self._shown)
        return f"{type(self).__name__.removeprefix('_')}({shown})"


class _Dependent(Constraint):
    """A set that depends on other values, such as the support of a uniform distribution."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> Any:
        """Whether the set is discrete, if known statically."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> Any:
        """The number of dimensions of an event, if known statically."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, x: Tensor) -> Tensor:
        """Raise ValueError: the set is not known without the values that it depends on."""
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Return whether a constraint depends on other values.

    Example:
        >>> torch.distributions.constraints.is_dependent(torch.distributions.constraints.real)
        False
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that returns a constraint; accessed on the class, it is itself a dependent constraint.

    Example:
        >>> torch.distributions.Uniform(0.0, 2.0).support
        Interval(lower_bound=0.0, upper_bound=2.0)
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """A constraint whose last batch dimensions are part of the event: all their elements must satisfy the base.

    Example:
        >>> constraint = torch.distributions.constraints.independent(torch.distributions.constraints.positive, 1)
        >>> constraint.check(torch.tensor([[1.0, 2.0], [1.0, -2.0]]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    is_discrete: Any = formula(lambda self: self.base_constraint.is_discrete)
    event_dim: Any = formula(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            expected = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        batch_dims = result.dim() - self.reinterpreted_batch_ndims
        if self.reinterpreted_batch_ndims == 1:
            return result.all(-1)
        return result.reshape(result.shape[:batch_dims] + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The constraint of a mixture's samples, which must satisfy that of all its components.

    Example:
        >>> c = torch.distributions.constraints
        >>> c.MixtureSameFamilyConstraint(c.positive)
        MixtureSameFamilyConstraint(GreaterThan(lower_bound=0.0))
    """

    def __init__(self, base_constraint: Any) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"Expected base_constraint to be a Constraint, got {type(base_constraint)}")
        self.base_constraint = base_constraint

    is_discrete: Any = formula(lambda self: self.base_constraint.is_discrete)
    event_dim: Any = formula(lambda self: self.base_constraint.event_dim)

    def check(self, value: Tensor) -> Tensor:
        event = self.base_constraint.event_dim
        checks = self.base_constraint.check(value.unsqueeze(-1 - event))
        batch = value.dim() - event
        if batch < 0:
            raise ValueError(f"Expected value.dim() >= {event} but got {value.dim()}")
        return checks.reshape(checks.shape[:batch] + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    """The numbers zero and one."""

    is_discrete = True

    check = method(lambda self, value: (value == 0) | (value == 1))


class _OneHot(Constraint):
    """One-hot vectors."""

    is_discrete = True
    event_dim = 1

    check = method(lambda self, value: ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1))


class _TwoBounds(Constraint):
    _shown = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


def _whole(value: Tensor, allowed: Tensor) -> Tensor:
    """Return where numbers are integers, and allowed."""
    return (value % 1 == 0) & allowed if value.is_floating_point() else allowed


class _IntegerInterval(_TwoBounds):
    """Integers in a closed interval.

    Example:
        >>> torch.distributions.constraints.integer_interval(0, 3).check(torch.tensor([2.0, 2.5]))
        tensor([ True, False])
    """

    is_discrete = True

    check = method(lambda self, value: _whole(value, (self.lower_bound <= value) & (value <= self.upper_bound)))


class _Interval(_TwoBounds):
    """Numbers in a closed interval.

    Example:
        >>> torch.distributions.constraints.interval(0.0, 1.0).check(torch.tensor([1.0, 2.0]))
        tensor([ True, False])
    """

    check = method(lambda self, value: (self.lower_bound <= value) & (value <= self.upper_bound))


class _HalfOpenInterval(_TwoBounds):
    """Numbers in an interval that includes the lower bound only.

    Example:
        >>> torch.distributions.constraints.half_open_interval(0.0, 1.0).check(torch.tensor([0.0, 1.0]))
        tensor([ True, False])
    """

    check = method(lambda self, value: (self.lower_bound <= value) & (value < self.upper_bound))


class _LowerBound(Constraint):
    _shown = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _IntegerGreaterThan(_LowerBound):
    """Integers that are at least the bound."""

    is_discrete = True

    check = method(lambda self, value: _whole(value, value >= self.lower_bound))


class _GreaterThan(_LowerBound):
    """Numbers greater than the bound.

    Example:
        >>> torch.distributions.constraints.greater_than(1.0).check(torch.tensor([1.0, 2.0]))
        tensor([False,  True])
    """

    check = method(lambda self, value: self.lower_bound < value)


class _GreaterThanEq(_LowerBound):
    """Numbers that are at least the bound.

    Example:
        >>> torch.distributions.constraints.greater_than_eq(1.0).check(torch.tensor([1.0, 2.0]))
        tensor([True, True])
    """

    check = method(lambda self, value: self.lower_bound <= value)


class _UpperBound(Constraint):
    _shown: tuple[str, ...] = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _LessThan(_UpperBound):
    """Numbers less than the bound.

    Example:
        >>> torch.distributions.constraints.less_than(1.0).check(torch.tensor([0.0, 1.0]))
        tensor([ True, False])
    """

    check = method(lambda self, value: value < self.upper_bound)


class _Multinomial(_UpperBound):
    """Vectors of nonnegative counts whose sum is at most the bound.

    Example:
        >>> torch.distributions.constraints.multinomial(3).check(torch.tensor([1.0, 2.0]))
        tensor(True)
    """

    is_discrete = True
    event_dim = 1
    _shown = ()

    check = method(lambda self, value: (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound))


class _Real(Constraint):
    """All numbers except NaN."""

    check = method(lambda self, value: value == value)


class _Simplex(Constraint):
    """Vectors of nonnegative numbers that sum to one."""

    event_dim = 1

    check = method(lambda self, value: (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6))


class _Matrices(Constraint):
    event_dim = 2


class _LowerTriangular(_Matrices):
    """Lower triangular square matrices."""

    check = method(lambda self, value: (value.tril() == value).reshape(value.shape[:-2] + (-1,)).all(-1))


class _LowerCholesky(_LowerTriangular):
    """Lower triangular square matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlation matrices: their rows have norm one."""

    def check(self, value: Tensor) -> Tensor:
        # PyTorch's tolerance: 10 times the float32 epsilon per element of a row, also for float64.
        tolerance = 1.1920928955078125e-07 * value.shape[-1] * 10
        norm = (value * value).sum(-1).sqrt()  # of each row
        return super().check(value) & ((norm - 1).abs() < tolerance).all(-1)


class _Square(_Matrices):
    """Square matrices."""

    def check(self, value: Tensor) -> Tensor:
        square = value.shape[-2] == value.shape[-1]
        return value.new_full(value.shape[:-2], square).bool()


class _Symmetric(_Square):
    """Symmetric square matrices."""

    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if not square.all():
            return square
        return value.isclose(value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices with positive eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not symmetric.all():
            return symmetric
        return linalg.cholesky_ex(value).info.eq(0)


class _PartwiseConstraint(Constraint):
    """Base class of constraints of parts of a tensor along a dimension."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0) -> None:
        if not all(isinstance(part, Constraint) for part in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    is_discrete: Any = formula(lambda self: any(part.is_discrete for part in self.cseq))

    def _check_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value of {value.dim()} dims")


class _Cat(_PartwiseConstraint):
    """Constraints of consecutive slices of a dimension, with lengths `lengths`.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> constraints.cat([constraints.positive, constraints.unit_interval]).check(torch.tensor([3.0, 3.0]))
        tensor([ True, False])
    """

    def __init__(self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths must have same length as cseq, got {len(self.lengths)} vs {len(self.cseq)}")

    event_dim: Any = formula(lambda self: max(part.event_dim for part in self.cseq))

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        checks, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return concatenated(checks, self.dim)


class _Stack(_PartwiseConstraint):
    """Constraints of the slices at each index of a dimension.

    Example:
        >>> constraints = torch.distributions.constraints
        >>> constraints.stack([constraints.positive, constraints.unit_interval]).check(torch.tensor([3.0, 3.0]))
        tensor([ True, False])
    """

    @property
    def event_dim(self) -> Any:
        dim = max(part.event_dim for part in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        # As in PyTorch, surplus slices or constraints are ignored.
        pairs = zip(value.unbind(self.dim), self.cseq, strict=False)
        return stacked([constraint.check(part) for part, constraint in pairs], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
