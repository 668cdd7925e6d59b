"""Distributions of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from tinytorch import linalg
from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.core.warning import warn
from tinytorch.distributions import constraints
from tinytorch.distributions.continuous import Beta, Chi2
from tinytorch.distributions.distribution import Distribution, ExponentialFamily
from tinytorch.distributions.utils import _standard_normal, alias, broadcast_all, formula, lazy_property, method
from tinytorch.kernels.limits import finfo
from tinytorch.ops.create import as_tensor
from tinytorch.ops.join import broadcast_shapes, broadcast_tensors, cat
from tinytorch.ops.linalg.matrices import cholesky_solve
from tinytorch.ops.random import randn
from tinytorch.ops.register import autocasting
from tinytorch.ops.sequences import arange, eye, tril_indices

__all__ = ["MultivariateNormal", "LowRankMultivariateNormal", "Wishart", "LKJCholesky"]


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

    _expand_to_batch = method(lambda self, matrix: matrix.expand(self._batch_shape + matrix.shape[-2:]))

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

    _half_log_det = method(lambda self: self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1))


class MultivariateNormal(MatrixParameterized):
    """The multivariate normal distribution, parameterized by its mean and one of three matrices.

    Args:
        loc: the mean, (..., n).
        covariance_matrix: the covariance, positive definite, (..., n, n).
        precision_matrix: alternatively, its inverse.
        scale_tril: alternatively, its lower Cholesky factor, which is fastest.

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


class LowRankMultivariateNormal(Distribution):
    """The multivariate normal distribution with covariance W W^T + D, computed in time linear in n.

    Args:
        loc: the mean, (..., n).
        cov_factor: W, (..., n, rank).
        cov_diag: the diagonal of D, (..., n).

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


_MAX_RETRIES = 10  # for a singular sample


def _multivariate_digamma(x: Tensor, p: int) -> Tensor:
    """Return the derivative of `x.mvlgamma(p)`."""
    return (x.unsqueeze(-1) - 0.5 * arange(p, dtype=x.dtype)).digamma().sum(-1)


class Wishart(MatrixParameterized, ExponentialFamily):
    """The distribution of scatter matrices X X^T, where X has `df` normal columns with covariance V.

    Args:
        df: the degrees of freedom, greater than n - 1; not necessarily an integer.
        covariance_matrix, precision_matrix, scale_tril: V or an equivalent, as for `MultivariateNormal`.

    Source:
        Bartlett, "On the theory of statistical regression", 1933: the decomposition from which samples are computed.

    Example:
        >>> torch.distributions.Wishart(torch.tensor(4.0), torch.eye(2)).mean
        tensor([[4., 0.],
                [0., 4.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _components = ("_chi2",)

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = specified_matrix(covariance_matrix, precision_matrix, scale_tril, AssertionError)
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        is_number = not isinstance(df, Tensor)
        if is_number:
            df = as_tensor(df, dtype=matrix.dtype)
        batch_shape = Size(broadcast_shapes(matrix.shape[:-2], df.shape))
        n = matrix.shape[-1]
        self.__dict__[name] = matrix.expand(batch_shape + (-1, -1))
        self.df = df if is_number else df.expand(batch_shape)
        if (self.df <= n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        super().__init__(batch_shape, Size((n, n)), validate_args=validate_args)
        if (self.df < n).any():
            warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.")
        self._unbroadcasted_scale_tril = to_scale_tril(name, matrix)
        # The squared diagonal elements in Bartlett's decomposition.
        offsets = arange(n, dtype=self._unbroadcasted_scale_tril.dtype)
        self._chi2 = Chi2((self.df.unsqueeze(-1) - offsets).expand(batch_shape + (-1,)))

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """The constraints of the parameters, by name; that of `df` depends on the size of the matrices."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[0] - 1),
        }

    mean = formula(lambda self: self.df[..., None, None] * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[0] - 1
        return factor.masked_fill(factor <= 0, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (v.pow(2) + products)

    def _bartlett(self, sample_shape: Any) -> Tensor:
        n = self._event_shape[0]
        factor = self._chi2.rsample(sample_shape).sqrt().diag_embed()
        below = tril_indices(n, n, offset=-1)
        shape = Size(sample_shape) + self._batch_shape + (n * (n - 1) // 2,)
        factor[..., below[0], below[1]] = randn(shape, dtype=factor.dtype)
        root = self._unbroadcasted_scale_tril @ factor
        return root @ root.mT

    def _any_of_batch(self, checks: Tensor) -> Tensor:
        return checks.flatten(-len(self._batch_shape)).any(-1) if self._batch_shape else checks

    def rsample(self, sample_shape: Any = Size(), max_try_correction: int | None = None) -> Tensor:
        """Return reparameterized samples; samples that are singular by rounding are redrawn a limited number of times.

        PyTorch redraws the samples that are *not* singular, and warns. The same is done here first, so that the random
        numbers agree; then the singular samples are redrawn.

        Args:
            sample_shape: the shape of the batch of samples.
            max_try_correction: the number of times; 10 if None.
        """
        sample = self._bartlett(sample_shape)
        again = self._any_of_batch(self.support.check(sample))
        if sample.numel():
            warn("Singular sample detected.")
        for _ in range(1 + (_MAX_RETRIES if max_try_correction is None else max_try_correction)):
            if again.any():
                sample[again] = self._bartlett((int(again.sum()),))
            again = self._any_of_batch(self.support.check(sample).logical_not())
            if not again.any():
                break
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        n, half = self._event_shape[0], self.df / 2
        solved = autocasting(cholesky_solve)(value, self._unbroadcasted_scale_tril)
        log_det = linalg.slogdet(value).logabsdet
        return (
            -half * (n * math.log(2) + 2 * self._half_log_det())
            - half.mvlgamma(n)
            + 0.5 * (self.df - n - 1) * log_det
            - 0.5 * solved.diagonal(dim1=-2, dim2=-1).sum(-1)
        )

    def entropy(self) -> Tensor:
        n, half = self._event_shape[0], self.df / 2
        return (
            (n + 1) * (0.5 * n * math.log(2) + self._half_log_det())
            + half.mvlgamma(n)
            - 0.5 * (self.df - n - 1) * _multivariate_digamma(half, n)
            + half * n
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -0.5 * self.precision_matrix, 0.5 * (self.df - self._event_shape[0] - 1)

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        x, y = natural_params
        n = self._event_shape[0]
        half = y + 0.5 * (n + 1)
        return half * (n * math.log(2) - linalg.slogdet(-2 * x).logabsdet) + half.mvlgamma(n)


class LKJCholesky(Distribution):
    """The distribution of lower Cholesky factors of correlation matrices M with density proportional to det(M)^(c - 1).

    Args:
        dim: the size of the matrices, at least 2.
        concentration: c; with 1, correlation matrices are uniformly distributed.

    Source:
        Lewandowski, Kurowicka and Joe, "Generating Random Correlation Matrices Based on Vines and Extended Onion
        Method", 2009: the onion method.

    Example:
        >>> torch.distributions.LKJCholesky(3, 0.5).sample().shape
        torch.Size([3, 3])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _copied = ("dim",)
    _components = ("_beta",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        batch_shape = self.concentration.size()
        # The first k - 1 elements of row k are a point of a ball, whose squared radius is beta-distributed.
        half = 0.5 * (self.dim - 2)
        marginal = self.concentration + half
        offset = arange(self.dim - 1, dtype=self.concentration.dtype)
        offset = cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(batch_shape, Size((dim, dim)), validate_args)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            u = randn(shape, dtype=y.dtype).tril(-1)
            sphere = u / u.norm(dim=-1, keepdim=True)
            sphere[..., 0, :].fill_(0.0)
            w = y.sqrt() * sphere
            rest = (1 - (w**2).sum(-1)).clamp(min=finfo(w.dtype).tiny).sqrt()
            return w + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = arange(2, self.dim + 1, dtype=self.concentration.dtype)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        powers = (order * diagonal.log()).sum(-1)
        # The normalizing constant: Lewandowski, Kurowicka and Joe, page 1999.
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        denominator = alpha.lgamma() * n
        numerator = (alpha - 0.5).mvlgamma(n)
        norm = 0.5 * n * math.log(math.pi) + numerator - denominator
        return powers - norm
