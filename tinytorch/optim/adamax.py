"""`Adamax`: Adam with an exponentially weighted maximum of the gradient."""

from __future__ import annotations

from typing import Any, ClassVar

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import LATER, Optimizer, Params, by_kernel, check, initial_state, pick

__all__ = ["Adamax"]


class Adamax(Optimizer):
    """Adamax: Adam with a maximum for the average of squares: `p = p - lr * m' / u`.

    `m'` is that of `Adam`, and `u = max(beta2 * u, abs(g) + eps)`.

    Arguments as for `Adam`.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.Adamax([w], lr=0.1)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.8052, -1.8025], requires_grad=True)

    Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015, algorithm 2.
    """

    _options_added_later: ClassVar[dict[str, Any]] = LATER
    _counts: ClassVar[tuple[str, ...]] = ("step",)
    _elementwise: ClassVar[bool] = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        names = "lr betas eps weight_decay foreach maximize differentiable capturable"
        super().__init__(params, pick(locals(), names))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return initial_state(p, "exp_avg", "exp_inf")

    _update = by_kernel(optim.adamax_update)
