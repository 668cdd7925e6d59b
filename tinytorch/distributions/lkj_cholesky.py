"""The LKJ distribution over Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.beta import Beta
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.utils import broadcast_all
from tinytorch.kernels.limits import finfo
from tinytorch.ops.join import cat
from tinytorch.ops.random import randn
from tinytorch.ops.sequences import arange

__all__ = ["LKJCholesky"]


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
