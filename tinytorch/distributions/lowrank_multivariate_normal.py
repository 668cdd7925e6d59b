"""The multivariate normal distribution with a covariance of low rank plus diagonal."""

from __future__ import annotations

import math
from typing import Any

from tinytorch import linalg
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.multivariate_normal import _batch_mv
from tinytorch.distributions.utils import _standard_normal, alias, lazy_property
from tinytorch.ops.join import broadcast_tensors
from tinytorch.ops.sequences import eye

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The multivariate normal distribution with covariance W W^T + D, computed in time linear in n.

    Args:
        loc: the mean, (..., n).
        cov_factor: W, (..., n, rank).
        cov_diag: the diagonal of D, (..., n).

    Raises:
        ValueError: the shapes are incompatible.

    Example:
        >>> d = torch.distributions.LowRankMultivariateNormal(
        ...     torch.zeros(2), torch.tensor([[1.0], [0.0]]), torch.ones(2)
        ... )
        >>> d.variance
        tensor([2., 1.])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _copied = ("_capacitance_tril", "_unbroadcasted_cov_diag", "_unbroadcasted_cov_factor")

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = Size(loc.shape[-1:])
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        column, diagonal = loc.unsqueeze(-1), cov_diag.unsqueeze(-1)
        try:
            column, self.cov_factor, diagonal = broadcast_tensors(column, cov_factor, diagonal)
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = column[..., 0], diagonal[..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        # The Cholesky factor of the capacitance matrix I + W^T D^-1 W.
        scaled = cov_factor.mT / cov_diag.unsqueeze(-2)
        capacitance = scaled @ cov_factor + eye(cov_factor.shape[-1], dtype=cov_factor.dtype)
        self._capacitance_tril = linalg.cholesky(capacitance)
        super().__init__(Size(self.loc.shape[:-1]), event_shape, validate_args=validate_args)

    mean = mode = alias("loc")

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        variance = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """W W^T + D."""
        factor = self._unbroadcasted_cov_factor
        matrix = factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed()
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by the matrix inversion lemma."""
        inverse = self._inverse_factor()
        matrix = self._unbroadcasted_cov_diag.reciprocal().diag_embed() - inverse.mT @ inverse
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    def _inverse_factor(self) -> Tensor:
        """Return A, (..., rank, n), such that D^-1 - A^T A is the inverse of the covariance."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        return linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)

    def _log_det(self) -> Tensor:
        """Return the log determinant of the covariance."""
        half = self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return 2 * half + self._unbroadcasted_cov_diag.log().sum(-1)

    def _squared_length(self, x: Tensor) -> Tensor:
        """Return the squared Mahalanobis norm x^T Sigma^-1 x."""
        diagonal = (x.pow(2) / self._unbroadcasted_cov_diag).sum(-1)
        return diagonal - _batch_mv(self._inverse_factor(), x).pow(2).sum(-1)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rank = self.cov_factor.shape[-1:]
        eps_factor = _standard_normal(shape[:-1] + rank, self.loc.dtype)
        eps_diag = _standard_normal(shape, self.loc.dtype)
        low_rank = _batch_mv(self._unbroadcasted_cov_factor, eps_factor)
        return self.loc + low_rank + self._unbroadcasted_cov_diag.sqrt() * eps_diag

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        length = self._squared_length(value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + length)

    def entropy(self) -> Tensor:
        entropy = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return entropy.expand(self._batch_shape) if self._batch_shape else entropy
