"""`SparseAdam`: Adam for sparse gradients, which do not exist in tinytorch."""

from __future__ import annotations

from typing import Any, ClassVar

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import Optimizer, Params, by_kernel, check, check_one_element

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients. Its arguments are checked; its step raises PyTorch's error for dense gradients.

    All gradients in tinytorch are dense. The arguments are those of `Adam`; `lr` and `eps` are greater than 0.

    Raises:
        ValueError: an argument is out of its range; and as for `Optimizer`.
        RuntimeError: by `step`, for every gradient.

    Example:
        >>> w = torch.ones(2, requires_grad=True)
        >>> optimizer = torch.optim.SparseAdam([w])
        >>> w.sum().backward()
        >>> optimizer.step()
        Traceback (most recent call last):
        RuntimeError: SparseAdam does not support dense gradients, please consider Adam instead
    """

    _options_added_later: ClassVar[dict[str, Any]] = {"maximize": False}

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_one_element("lr", lr)
        if not lr > 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check(betas=betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    _update = by_kernel(optim.sparse_adam_update)
