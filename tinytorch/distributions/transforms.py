"""Transforms of random variables, with the logarithms of their Jacobian determinants."""

from __future__ import annotations

import functools
import math
import operator
import weakref
from collections.abc import Sequence
from numbers import Number
from typing import Any, ClassVar

from tinytorch import linalg
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.utils import (
    Formulas,
    _sum_rightmost,
    alias,
    broadcast_all,
    formula,
    lazy_property,
    method,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from tinytorch.kernels.limits import finfo
from tinytorch.nn.functional import logsigmoid, pad, softplus
from tinytorch.ops.create import full_like, zeros_like
from tinytorch.ops.join import broadcast_shapes, cat, stack
from tinytorch.ops.sequences import eye

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform",
    "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform",
    "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


def _check_dims(dims: int, required: int) -> None:
    if dims < required:
        raise ValueError("Too few dimensions on input")


class Transform(Formulas):
    """A differentiable map y = t(x) with a computable log |det dy/dx|.

    A subclass defines `domain`, `codomain`, `_call`, `_inverse` and `log_abs_det_jacobian`.

    Args:
        cache_size: 1 to cache the last pair (x, y), so that the inverse of y is x itself; 0 for no cache.

    Example:
        >>> t = torch.distributions.transforms.ExpTransform()
        >>> t(torch.zeros(2)), t.inv(torch.ones(2))
        (tensor([1., 1.]), tensor([0., 0.]))
    """

    # Attributes with the arguments of `__init__`, for `with_cache`.
    _arguments: ClassVar[tuple[str, ...]]

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        self._cache_size = cache_size
        self._inv: Any = None
        if cache_size == 1:
            self._cached_x_y: tuple[Any, Any] = None, None
        elif cache_size != 0:
            raise ValueError("cache_size must be 0 or 1")
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """The number of event dimensions, if it is the same for the domain and the codomain."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The inverse transform; `t.inv.inv` is `t`."""
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = self._make_inverse()
            self._inv = weakref.ref(inverse)
        return inverse

    def _make_inverse(self) -> Transform:
        return _InverseTransform(self)

    @property
    def sign(self) -> Any:
        """The sign of the derivative, if it is the same everywhere."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """Return the same transform with another `cache_size`.

        Example:
            >>> torch.distributions.transforms.ExpTransform().with_cache(1) is not None
            True
        """
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        cls: Any
        for cls in type(self).__mro__:
            if "_arguments" in vars(cls):
                return cls(*[getattr(self, name) for name in cls._arguments], cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self._equals(other)

    __hash__ = object.__hash__

    _equals = method(lambda self, other: self is other)

    def __call__(self, x: Tensor) -> Tensor:
        """Return y = t(x)."""
        if self._cache_size == 0:
            return self._call(x)
        x_old, y_old = self._cached_x_y
        if x is x_old:
            return y_old
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        x_old, y_old = self._cached_x_y
        if y is y_old:
            return x_old
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log |det dy/dx|.

        Example:
            >>> x = torch.tensor([0.0, 1.0])
            >>> transform = torch.distributions.transforms.ExpTransform()
            >>> transform.log_abs_det_jacobian(x, transform(x))
            tensor([0., 1.])
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__ + "()"

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of t(x) for x of shape `shape`.

        Example:
            >>> torch.distributions.transforms.StickBreakingTransform().forward_shape((2, 3))
            (2, 4)
        """
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of x for t(x) of shape `shape`.

        Example:
            >>> torch.distributions.transforms.StickBreakingTransform().inverse_shape((2, 3))
            (2, 2)
        """
        return shape


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    domain = constraints.dependent_property(lambda self: self._inv.codomain, is_discrete=False)
    codomain = constraints.dependent_property(lambda self: self._inv.domain, is_discrete=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    bijective: Any = alias("_inv.bijective")
    sign: Any = alias("_inv.sign")
    inv: Any = alias("_inv")

    def with_cache(self, cache_size: int = 1) -> Any:
        return self.inv.with_cache(cache_size).inv

    _equals = method(lambda self, other: isinstance(other, _InverseTransform) and self._inv == other._inv)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    log_abs_det_jacobian = method(lambda self, x, y: -self._inv.log_abs_det_jacobian(y, x))
    forward_shape = method(lambda self, shape: self._inv.inverse_shape(shape))
    inverse_shape = method(lambda self, shape: self._inv.forward_shape(shape))


class ComposeTransform(Transform):
    """The composition of transforms; the first of `parts` is applied first.

    Example:
        >>> T = torch.distributions.transforms
        >>> T.ComposeTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)])(torch.zeros(1))
        tensor([3.])
    """

    _arguments = ("parts",)

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    _equals = method(lambda self, other: isinstance(other, ComposeTransform) and self.parts == other.parts)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        domain = self.parts[0].domain
        # The event dimensions of the composition's codomain, propagated back through the parts.
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        extra_dims = event_dim - domain.event_dim
        return constraints.independent(domain, extra_dims) if extra_dims > 0 else domain

    codomain = constraints.dependent_property(lambda self: self.inv.domain, is_discrete=False)

    @lazy_property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        """The product of the signs."""
        return functools.reduce(operator.mul, (part.sign for part in self.parts), 1)

    def _make_inverse(self) -> Transform:
        inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
        inverse._inv = weakref.ref(self)
        return inverse

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return zeros_like(x)
        points = [x]
        for part in self.parts[:-1]:
            points.append(part(points[-1]))
        points.append(y)
        terms = []
        event_dim = self.domain.event_dim
        for part, before, after in zip(self.parts, points[:-1], points[1:], strict=True):
            term = part.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform with the last `reinterpreted_batch_ndims` batch dimensions as event dimensions.

    Example:
        >>> T = torch.distributions.transforms
        >>> t = T.IndependentTransform(T.ExpTransform(), 1)
        >>> t.log_abs_det_jacobian(torch.ones(3), torch.ones(3).exp())
        tensor(3.)
    """

    _arguments = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective: Any = alias("base_transform.bijective")
    sign: Any = alias("base_transform.sign")

    def _call(self, x: Tensor) -> Tensor:
        _check_dims(x.dim(), self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        _check_dims(y.dim(), self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return _sum_rightmost(result, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    forward_shape = method(lambda self, shape: self.base_transform.forward_shape(shape))
    inverse_shape = method(lambda self, shape: self.base_transform.inverse_shape(shape))


class ReshapeTransform(Transform):
    """A reshape of the trailing dimensions from `in_shape` to `out_shape`.

    Example:
        >>> torch.distributions.transforms.ReshapeTransform((4,), (2, 2))(torch.zeros(3, 4)).shape
        torch.Size([3, 2, 2])
    """

    bijective = True
    _arguments = ("in_shape", "out_shape")

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape = Size(in_shape)
        self.out_shape = Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    domain = constraints.dependent_property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = constraints.dependent_property(
        lambda self: constraints.independent(constraints.real, len(self.out_shape))
    )

    _call = method(lambda self, x: x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape))
    _inverse = method(lambda self, y: y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape))
    log_abs_det_jacobian = method(lambda self, x, y: x.new_zeros(x.shape[: x.dim() - len(self.in_shape)]))

    def _shape(self, shape: Any, old: Size, new: Size) -> Size:
        _check_dims(len(shape), len(old))
        cut = len(shape) - len(old)
        if tuple(shape[cut:]) != old:
            raise ValueError(f"Shape mismatch: expected {Size(shape[cut:])} but got {old}")
        return Size(shape[:cut]) + new

    forward_shape = method(lambda self, shape: self._shape(shape, self.in_shape, self.out_shape))
    inverse_shape = method(lambda self, shape: self._shape(shape, self.out_shape, self.in_shape))


class _ParameterFree(Transform):
    """Base class of transforms without parameters, of which all instances are equal."""

    _equals = method(lambda self, other: type(other) is type(self))


class _Increasing(_ParameterFree):
    """Base class of increasing bijections from the real numbers."""

    domain = constraints.real
    bijective = True
    sign = 1


class ExpTransform(_Increasing):
    """y = exp(x).

    Example:
        >>> transform = torch.distributions.transforms.ExpTransform()
        >>> transform(torch.zeros(2)), transform.inv(torch.ones(2))
        (tensor([1., 1.]), tensor([0., 0.]))
    """

    codomain = constraints.positive

    _call = method(lambda self, x: x.exp())
    _inverse = method(lambda self, y: y.log())
    log_abs_det_jacobian = method(lambda self, x, y: x)


class PowerTransform(Transform):
    """y = x**exponent, for positive x.

    Example:
        >>> torch.distributions.transforms.PowerTransform(2.0)(torch.tensor([3.0]))
        tensor([9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True
    _arguments = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> Any:
        """The sign of the exponent."""
        return self.exponent.sign()

    def _equals(self, other: Any) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all().item())

    _call = method(lambda self, x: x.pow(self.exponent))
    _inverse = method(lambda self, y: y.pow(1 / self.exponent))
    log_abs_det_jacobian = method(lambda self, x, y: (self.exponent * y / x).abs().log())
    forward_shape = method(lambda self, shape: broadcast_shapes(shape, getattr(self.exponent, "shape", ())))

    inverse_shape = forward_shape


def _clipped_sigmoid(x: Tensor) -> Tensor:
    info = finfo(x.dtype)
    return x.sigmoid().clamp(info.tiny, 1.0 - info.eps)


class SigmoidTransform(_Increasing):
    """y = 1 / (1 + exp(-x)), clamped to exclude 0 and 1.

    Example:
        >>> torch.distributions.transforms.SigmoidTransform()(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """

    codomain = constraints.unit_interval

    _call = method(lambda self, x: _clipped_sigmoid(x))

    def _inverse(self, y: Tensor) -> Tensor:
        info = finfo(y.dtype)
        y = y.clamp(info.tiny, 1.0 - info.eps)
        return y.log() - (-y).log1p()

    log_abs_det_jacobian = method(lambda self, x, y: -softplus(-x) - softplus(x))


class SoftplusTransform(_Increasing):
    """y = log(1 + exp(x)).

    Example:
        >>> torch.distributions.transforms.SoftplusTransform()(torch.zeros(2))
        tensor([0.6931, 0.6931])
    """

    codomain = constraints.positive

    _call = method(lambda self, x: softplus(x))
    _inverse = method(lambda self, y: (-y).expm1().neg().log() + y)
    log_abs_det_jacobian = method(lambda self, x, y: -softplus(-x))


class TanhTransform(_Increasing):
    """y = tanh(x).

    Example:
        >>> torch.distributions.transforms.TanhTransform()(torch.zeros(2))
        tensor([0., 0.])
    """

    codomain = constraints.interval(-1.0, 1.0)

    _call = method(lambda self, x: x.tanh())
    _inverse = method(lambda self, y: y.atanh())

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # log(1 - tanh(x)^2), in a form that is accurate for large x
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_ParameterFree):
    """y = |x|; the inverse returns the nonnegative x.

    Example:
        >>> torch.distributions.transforms.AbsTransform()(torch.tensor([-1.0, 2.0]))
        tensor([1., 2.])
    """

    domain = constraints.real
    codomain = constraints.positive

    _call = method(lambda self, x: x.abs())
    _inverse = method(lambda self, y: y)


class AffineTransform(Transform):
    """y = loc + scale * x, where `loc` and `scale` are numbers or tensors.

    Args:
        event_dim: the number of trailing dimensions of one event.

    Example:
        >>> torch.distributions.transforms.AffineTransform(1.0, 2.0)(torch.ones(1))
        tensor([3.])
    """

    bijective = True
    _arguments = ("loc", "scale", "event_dim")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    event_dim: Any = alias("_event_dim")

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if self.event_dim == 0:
            return constraints.real
        return constraints.independent(constraints.real, self.event_dim)

    codomain = domain

    def _equals(self, other: Any) -> bool:
        return isinstance(other, AffineTransform) and all(
            one == two if isinstance(one, Number) and isinstance(two, Number) else bool((one == two).all().item())
            for one, two in ((self.loc, other.loc), (self.scale, other.scale))
        )

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    _call = method(lambda self, x: self.loc + self.scale * x)
    _inverse = method(lambda self, y: (y - self.loc) / self.scale)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shape = x.shape
        scale = self.scale
        result = scale.abs().log() if isinstance(scale, Tensor) else full_like(x, math.log(abs(scale)))
        if self.event_dim:
            result = result.view(result.shape[: -self.event_dim] + (-1,)).sum(-1)
            shape = shape[: -self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape: Any) -> Any:
        return broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class CorrCholeskyTransform(Transform):
    """Map vectors of D(D-1)/2 real numbers to Cholesky factors of D x D correlation matrices.

    tanh maps the numbers to partial correlations, from which follow the rows, points of the unit sphere.

    Example:
        >>> torch.distributions.transforms.CorrCholeskyTransform()(torch.zeros(3))
        tensor([[1., 0., 0.],
                [0., 1., 0.],
                [0., 0., 1.]])

    Source:
        Lewandowski, Kurowicka and Joe, "Generating Random Correlation Matrices Based on Vines and Extended Onion
        Method", 2009.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = x.tanh()
        eps = finfo(x.dtype).eps
        x = x.clamp(-1 + eps, 1 - eps)
        r = vec_to_tril_matrix(x, diag=-1)
        remaining = (1 - r**2).sqrt().cumprod(-1)
        r = r + eye(r.shape[-1], dtype=r.dtype)
        return r * pad(remaining[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        remaining = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(remaining, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        remaining = 1 - (y * y).cumsum(-1)
        stick_breaking = 0.5 * tril_matrix_to_vec(remaining, diag=-2).log().sum(-1)
        return stick_breaking - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _check_dims(len(shape), 1)
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape: Any) -> Any:
        _check_dims(len(shape), 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        d = shape[-1]
        return shape[:-2] + (d * (d - 1) // 2,)


class SoftmaxTransform(_ParameterFree):
    """y = exp(x) / sum(exp(x)) over the last dimension, which is not a bijection.

    Example:
        >>> torch.distributions.transforms.SoftmaxTransform()(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        powers = (x - x.max(-1, True)[0]).exp()
        return powers / powers.sum(-1, True)

    _inverse = method(lambda self, y: y.log())

    def forward_shape(self, shape: Any) -> Any:
        _check_dims(len(shape), 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_ParameterFree):
    """Map vectors of K-1 real numbers to the simplex in K dimensions, by stick-breaking with sigmoid fractions.

    Example:
        >>> torch.distributions.transforms.StickBreakingTransform()(torch.zeros(2))
        tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        offset = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        z = _clipped_sigmoid(x - offset.log())
        return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        first = y[..., :-1]
        offset = y.shape[-1] - y.new_ones(first.shape[-1]).cumsum(-1)
        remaining = (1 - first.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return first.log() - remaining.log() + offset.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        offset = x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)
        x = x - offset.log()
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        _check_dims(len(shape), 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        _check_dims(len(shape), 1)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_ParameterFree):
    """Map square matrices to lower triangular ones with a positive diagonal, by exp on the diagonal.

    Example:
        >>> torch.distributions.transforms.LowerCholeskyTransform()(torch.tensor([[0.0, 5.0], [2.0, 0.0]]))
        tensor([[1., 0.],
                [2., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    _call = method(lambda self, x: x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed())
    _inverse = method(lambda self, y: y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed())


class PositiveDefiniteTransform(_ParameterFree):
    """Map square matrices to positive definite ones, L L^T with the L of `LowerCholeskyTransform`.

    Example:
        >>> torch.distributions.transforms.PositiveDefiniteTransform()(torch.tensor([[0.0, 5.0], [2.0, 0.0]]))
        tensor([[1., 2.],
                [2., 5.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    _inverse = method(lambda self, y: LowerCholeskyTransform().inv(linalg.cholesky(y)))


class _PartwiseTransform(Transform):
    """Base class of transforms that are applied to the parts of a tensor along a dimension."""

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        if cache_size:
            tseq = [t.with_cache(cache_size) for t in tseq]
        super().__init__(cache_size=cache_size)
        self.transforms = list(tseq)
        self.dim = dim

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        """Split a tensor into one part per transform."""
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        """Combine the parts into one tensor."""
        raise NotImplementedError

    def _constraint(self, parts: list[Any]) -> Any:
        """Combine constraints of the parts into one of the tensor."""
        raise NotImplementedError

    domain = constraints.dependent_property(lambda self: self._constraint([t.domain for t in self.transforms]))
    codomain = constraints.dependent_property(lambda self: self._constraint([t.codomain for t in self.transforms]))

    def _checked(self, x: Tensor, length: int) -> Tensor:
        if not -x.dim() <= self.dim < x.dim() or x.size(self.dim) != length:
            raise AssertionError(f"expected size {length} in dimension {self.dim}, got {tuple(x.shape)}")
        return x

    def _call(self, x: Tensor) -> Tensor:
        return self._join([t(part) for t, part in zip(self.transforms, self._parts(x), strict=True)])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._parts(y), strict=True)])

    bijective: Any = formula(lambda self: all(t.bijective for t in self.transforms))


class CatTransform(_PartwiseTransform):
    """Transforms of consecutive slices of a dimension, with lengths `lengths`.

    Example:
        >>> T = torch.distributions.transforms
        >>> T.CatTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)])(torch.zeros(2))
        tensor([1., 1.])
    """

    _arguments = ("transforms", "dim", "lengths")

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths must have same length as tseq, got {len(self.lengths)} vs {len(self.transforms)}"
            )

    @lazy_property
    def event_dim(self) -> int:
        """The largest number of event dimensions of the transforms."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The total length of the slices."""
        return sum(self.lengths)

    _parts = method(lambda self, x: self._checked(x, self.length).split(self.lengths, self.dim))
    _join = method(lambda self, parts: cat(parts, self.dim))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for t, before, after in zip(self.transforms, self._parts(x), self._parts(y), strict=True):
            term = t.log_abs_det_jacobian(before, after)
            terms.append(_sum_rightmost(term, self.event_dim - t.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return cat(terms, dim) if dim < 0 else functools.reduce(operator.add, terms)

    _constraint = method(lambda self, parts: constraints.cat(parts, self.dim, self.lengths))


class StackTransform(_PartwiseTransform):
    """Transforms of the slices at each index of a dimension.

    Example:
        >>> T = torch.distributions.transforms
        >>> T.StackTransform([T.ExpTransform(), T.AffineTransform(1.0, 2.0)])(torch.zeros(2))
        tensor([1., 1.])
    """

    _arguments = ("transforms", "dim")

    _parts = method(lambda self, x: self._checked(x, len(self.transforms)).unbind(self.dim))
    _join = method(lambda self, parts: stack(parts, self.dim))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        triples = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return stack([t.log_abs_det_jacobian(a, b) for t, a, b in triples], self.dim)

    _constraint = method(lambda self, parts: constraints.stack(parts, self.dim))


class CumulativeDistributionTransform(Transform):
    """y = P(X <= x), the cumulative distribution function of a distribution.

    Example:
        >>> d = torch.distributions.Exponential(1.0)
        >>> t = torch.distributions.transforms.CumulativeDistributionTransform(d)
        >>> t(torch.zeros(1))
        tensor([0.])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1
    _arguments = ("distribution",)

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain: Any = alias("distribution.support")
    _call = method(lambda self, x: self.distribution.cdf(x))
    _inverse = method(lambda self, y: self.distribution.icdf(y))
    log_abs_det_jacobian = method(lambda self, x, y: self.distribution.log_prob(x))
