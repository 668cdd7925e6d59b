"""Utilities of distributions: broadcasting of parameters, probabilities and logits, lazy properties."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper, wraps
from numbers import Number
from operator import attrgetter
from typing import Any, cast

from tinytorch.autograd.grad_mode import enable_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.kernels.limits import finfo
from tinytorch.ops.create import ones, tensor, zeros
from tinytorch.ops.join import broadcast_tensors
from tinytorch.ops.random import randn

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits",
    "tril_matrix_to_vec", "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Return numbers and tensors as tensors of one shape, by broadcasting.

    Numbers get the dtype of the first tensor, or the default dtype.

    Example:
        >>> torch.distributions.utils.broadcast_all(1, torch.zeros(2))
        (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all([isinstance(value, (Tensor, Number)) for value in values]):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    dtype = next((value.dtype for value in values if isinstance(value, Tensor)), None)
    if dtype is None:
        values = tuple(float(value) for value in values)
    tensors = (value if isinstance(value, Tensor) else tensor(value, dtype=dtype) for value in values)
    return tuple(broadcast_tensors(*tensors))


def _standard_normal(shape: Any, dtype: Any, device: Any = None) -> Tensor:
    return randn(shape, dtype=dtype)


def _sum_rightmost(value: Tensor, dims: int) -> Tensor:
    """Return `value` with its last `dims` dimensions summed."""
    if dims == 0:
        return value
    return value.reshape(value.shape[:-dims] + (-1,)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return the probabilities for log odds (binary) or for unnormalized log probabilities.

    Example:
        >>> torch.distributions.utils.logits_to_probs(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Return probabilities clamped to [eps, 1 - eps], where eps is the dtype's machine epsilon.

    Example:
        >>> torch.distributions.utils.clamp_probs(torch.tensor([0.0, 0.5])) > 0
        tensor([True, True])
    """
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the log odds (binary) or logarithms of probabilities.

    Example:
        >>> torch.distributions.utils.probs_to_logits(torch.tensor([0.5]), is_binary=True)
        tensor([0.])
    """
    clamped = clamp_probs(probs)
    return clamped.log() - (-clamped).log1p() if is_binary else clamped.log()


class lazy_property:
    """A property that is computed on first access and then stored as an attribute.

    Example:
        >>> class A:
        ...     @torch.distributions.utils.lazy_property
        ...     def x(self):
        ...         print("computed")
        ...         return 1
        >>> a = A()
        >>> a.x, a.x
        computed
        (1, 1)
    """

    def __init__(self, wrapped: Callable[..., Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def alias(name: str, doc: str | None = None) -> Tensor:
    """Return a property that reads another attribute, whose name may be dotted, such as "base_dist.mean"."""
    return cast(Tensor, property(attrgetter(name), doc=doc))


def formula(compute: Callable[[Any], Any], doc: str | None = None) -> Tensor:
    """Return a property that is computed by a function of the object."""
    return cast(Tensor, property(compute, doc=doc))


def method(compute: Callable[..., Any]) -> Any:
    """Return a method that is computed by a function of the object and the arguments."""
    return compute


def checked(compute: Callable[[Any, Tensor], Any]) -> Any:
    """Return a method of a distribution that is computed by a function of the object and a sample, which is checked."""

    @wraps(compute)
    def call(self: Any, value: Tensor) -> Any:
        self._check_sample(value)
        return compute(self, value)

    return call


class Formulas:
    """Base class of classes with rows of `formula`, `method` and `checked`, which get the names that they have there.

    By the names `help` finds the docstrings of base classes.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, member in vars(cls).items():
            function: Any = getattr(member, "fget", member)
            if getattr(function, "__name__", "") == "<lambda>":
                function.__name__, function.__qualname__ = name, f"{cls.__qualname__}.{name}"


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Return the lower triangles of matrices (..., D, D), row by row, as vectors.

    Args:
        diag: the last diagonal that is included, as for `tril`.

    Example:
        >>> torch.distributions.utils.tril_matrix_to_vec(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 3, 4])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., ones(n, n).tril(diag).bool()]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Return the lower triangular matrices whose triangles are `vec`, row by row.

    Example:
        >>> torch.distributions.utils.vec_to_tril_matrix(torch.tensor([1, 3, 4]))
        tensor([[1, 0],
                [3, 4]])
    """
    size = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * size + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if n % 1 > 1e-6:
        raise ValueError(
            f"The size of last dimension is {size} which cannot be expressed as the lower "
            "triangular part of a square D x D matrix."
        )
    n = round(n)
    mat = zeros(vec.shape[:-1] + (n, n), dtype=vec.dtype)
    mat[..., ones(n, n).tril(diag).bool()] = vec
    return mat


class ProbsOrLogits:
    """Mixin of distributions parameterized by `probs` or `logits`; the other one is computed on first access.

    The parameter passed to `__init__` is an attribute, whose name is `_given`. The lazy properties here convert between
    probabilities and log odds, elementwise.
    """

    _copied: tuple[str, ...] = ("_given",)
    _given: str

    def _check_exclusive(self, probs: Any, logits: Any) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        self._given = "logits" if probs is None else "probs"

    def _set_param(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Store the one of `probs` and `logits` that is not None; return other parameters broadcast with it."""
        self._check_exclusive(probs, logits)
        *rest, value = broadcast_all(*others, logits if probs is None else probs)
        self.__dict__[self._given] = value
        return tuple(rest)

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def _param(self) -> Tensor:
        return self.__dict__[self._given]

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.size()
