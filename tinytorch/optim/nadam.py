"""`NAdam`: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any, ClassVar

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import LATER, Optimizer, Params, by_kernel, check, initial_state, pick

__all__ = ["NAdam"]


class NAdam(Optimizer):
    """NAdam: Adam with Nesterov momentum: `p = p - lr * (a * g + b * m) / (sqrt(v') + eps)`.

    `m`, `v` and `v'` are those of `Adam`. The factors follow a schedule of momenta, `mu_t = beta1 *
    (1 - 0.96**(t * momentum_decay) / 2)`, and the product `P_t` of those so far:
    `a = (1 - mu_t) / (1 - P_t)` and `b = mu_(t+1) / (1 - P_(t+1))`.

    Arguments as for `Adam`.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.NAdam([w], lr=0.1)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.8200, -1.8179], requires_grad=True)

    Source: Dozat, Incorporating Nesterov Momentum into Adam, 2016.
    """

    _options_added_later: ClassVar[dict[str, Any]] = {**LATER, "decoupled_weight_decay": False}
    _counts: ClassVar[tuple[str, ...]] = ("step", "mu_product")
    _elementwise: ClassVar[bool] = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = pick(
            locals(),
            "lr betas eps weight_decay momentum_decay decoupled_weight_decay "
            "maximize foreach capturable differentiable",
        )
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return initial_state(p, "exp_avg", "exp_avg_sq", mu_product=1.0)

    _update = by_kernel(optim.nadam_update)
