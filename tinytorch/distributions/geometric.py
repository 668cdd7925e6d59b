"""The geometric distribution."""

from __future__ import annotations

from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributions import constraints
from tinytorch.distributions.distribution import Distribution
from tinytorch.distributions.utils import ProbsOrLogits, broadcast_all, formula
from tinytorch.kernels.limits import finfo
from tinytorch.nn.functional import binary_cross_entropy_with_logits
from tinytorch.ops.create import empty, zeros_like
from tinytorch.ops.random import apart

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits, Distribution):
    """The number of failures before the first success, in trials with success probability `probs`.

    Raises:
        ValueError: a probability is zero.

    Example:
        >>> torch.distributions.Geometric(0.25).mean
        tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._set_param(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value = self.probs
            valid = value > 0
            if not valid.all():
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to be positive but found invalid values:\n{value.detach()[~valid]}"
                )

    mean = formula(lambda self: 1.0 / self.probs - 1.0)
    mode = formula(lambda self: zeros_like(self.probs))
    variance = formula(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        dtype = self.probs.dtype
        with no_grad():
            u = apart(empty(shape, dtype=dtype)).uniform_(finfo(dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        cross_entropy = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return cross_entropy / self.probs
