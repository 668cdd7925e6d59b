"""The Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

from tinytorch import linalg
from tinytorch.core.tensor import Size, Tensor
from tinytorch.core.warning import warn
from tinytorch.distributions import constraints
from tinytorch.distributions.chi2 import Chi2
from tinytorch.distributions.exp_family import ExponentialFamily
from tinytorch.distributions.multivariate_normal import MatrixParameterized, specified_matrix, to_scale_tril
from tinytorch.distributions.utils import formula
from tinytorch.ops.create import as_tensor
from tinytorch.ops.join import broadcast_shapes
from tinytorch.ops.linalg.matrices import cholesky_solve
from tinytorch.ops.random import randn
from tinytorch.ops.register import autocasting
from tinytorch.ops.sequences import arange, tril_indices

__all__ = ["Wishart"]

_MAX_RETRIES = 10  # for a singular sample


def _multivariate_digamma(x: Tensor, p: int) -> Tensor:
    """Return the derivative of `x.mvlgamma(p)`."""
    return (x.unsqueeze(-1) - 0.5 * arange(p, dtype=x.dtype)).digamma().sum(-1)


class Wishart(MatrixParameterized, ExponentialFamily):
    """The distribution of scatter matrices X X^T, where X has `df` normal columns with covariance V.

    Args:
        df: the degrees of freedom, greater than n - 1; not necessarily an integer.
        covariance_matrix, precision_matrix, scale_tril: V or an equivalent, as for `MultivariateNormal`.

    Raises:
        AssertionError: not exactly one matrix is passed.
        ValueError: `df` is too low, or a matrix has too few dimensions.

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
