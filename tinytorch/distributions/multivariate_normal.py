"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

from tinytorch import linalg
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.utils import _standard_normal, alias, lazy_property
from tinytorch.ops.join import broadcast_shapes
from tinytorch.ops.sequences import eye

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """Return the product of matrices and vectors, for batches."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _squared_length(tril: Tensor, x: Tensor) -> Tensor:
    """Return the squared Mahalanobis norm x^T (L L^T)^-1 x, for L (..., n, n) and x (..., n)."""
    if tril.dim() == 2:  # one matrix: all vectors become columns of one right-hand side
        columns = linalg.solve_triangular(tril, x.reshape(-1, x.shape[-1]).mT, upper=False)
        return columns.pow(2).sum(0).reshape(x.shape[:-1])
    solved = linalg.solve_triangular(tril, x.unsqueeze(-1), upper=False)
    return solved.squeeze(-1).pow(2).sum(-1)


def specified_matrix(
    covariance_matrix: Tensor | None, precision_matrix: Tensor | None, scale_tril: Tensor | None, error: type[Exception]
) -> tuple[str, Tensor]:
    """Return the name and value of the matrix that is not None; raise `error` unless there is exactly one."""
    args = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
    matrices = [(name, matrix) for name, matrix in args.items() if matrix is not None]
    if len(matrices) != 1:
        raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    return matrices[0]


def to_scale_tril(name: str, matrix: Tensor) -> Tensor:
    """Return the lower Cholesky factor of the covariance, from the matrix called `name`."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return linalg.cholesky(matrix)
    return _precision_to_scale_tril(matrix)


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """Return lower triangular L such that L L^T is the inverse of P: with P = U U^T, U upper, L = U^-T."""
    flipped = linalg.cholesky(precision.flip((-2, -1)))
    lower = flipped.flip((-2, -1)).mT
    return linalg.solve_triangular(lower, eye(precision.shape[-1], dtype=precision.dtype), upper=False)


class MatrixParameterized(Distribution):
    """Base class of distributions parameterized by a positive definite matrix, its inverse or its Cholesky factor.

    `_unbroadcasted_scale_tril` is the Cholesky factor. The matrix passed to `__init__` is an attribute; the others are
    computed on first access.
    """

    _unbroadcasted_scale_tril: Tensor
    _copied = ("_unbroadcasted_scale_tril",)

    def _expand_to_batch(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of `covariance_matrix`."""
        return self._expand_to_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The positive definite matrix."""
        tril = self._unbroadcasted_scale_tril
        return self._expand_to_batch(tril @ tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of `covariance_matrix`."""
        tril = self._unbroadcasted_scale_tril
        inverse = linalg.solve_triangular(tril, eye(tril.shape[-1], dtype=tril.dtype), upper=False)
        return self._expand_to_batch(inverse.mT @ inverse)

    def _half_log_det(self) -> Tensor:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class MultivariateNormal(MatrixParameterized):
    """The multivariate normal distribution, parameterized by its mean and one of three matrices.

    Args:
        loc: the mean, (..., n).
        covariance_matrix: the covariance, positive definite, (..., n, n).
        precision_matrix: alternatively, its inverse.
        scale_tril: alternatively, its lower Cholesky factor, which is fastest.

    Raises:
        ValueError: not exactly one matrix is passed, or an argument has too few dimensions.

    Example:
        >>> d = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
        >>> d.log_prob(torch.zeros(2))
        tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = specified_matrix(covariance_matrix, precision_matrix, scale_tril, ValueError)
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} {'' if 'matrix' in name else 'matrix '}must be at least two-dimensional, "
                "with optional leading batch dimensions"
            )
        batch_shape = Size(broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        self.__dict__[name] = matrix.expand(batch_shape + (-1, -1))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = to_scale_tril(name, matrix)

    mean = mode = alias("loc")

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, self.loc.dtype)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        length = _squared_length(self._unbroadcasted_scale_tril, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + length) - self._half_log_det()

    def entropy(self) -> Tensor:
        n = self._event_shape[0]
        entropy = 0.5 * n * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
