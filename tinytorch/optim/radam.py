"""`RAdam`: Adam with a rectified adaptive learning rate."""

from __future__ import annotations

from typing import Any, ClassVar

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import LATER, Optimizer, Params, by_kernel, check, initial_state, pick

__all__ = ["RAdam"]


class RAdam(Optimizer):
    """RAdam: Adam whose adaptive rate is rectified by its variance, and not used in the first steps.

    With `rho = 2 / (1 - beta2) - 1` and `rho_t = rho - 2 * t * beta2**t / (1 - beta2**t)`, the step is `p = p - lr * m'
    * r_t * sqrt(1 - beta2**t) / (sqrt(v) + eps)` where `rho_t > 5`, with the factor `r_t**2 = (rho_t - 4) * (rho_t - 2)
    * rho / ((rho - 4) * (rho - 2) * rho_t)`, and `p = p - lr * m'` before that. `m`, `m'` and `v` are those of `Adam`.

    The arguments are those of `Adam`.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.RAdam([w], lr=0.1)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.6211, -1.2421], requires_grad=True)

    Source: Liu et al., On the Variance of the Adaptive Learning Rate and Beyond, 2020, algorithm 2.
    """

    _options_added_later: ClassVar[dict[str, Any]] = {**LATER, "decoupled_weight_decay": False}
    _counts: ClassVar[tuple[str, ...]] = ("step",)
    _elementwise: ClassVar[bool] = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        names = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable"
        super().__init__(params, pick(locals(), names))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return initial_state(p, "exp_avg", "exp_avg_sq")

    _update = by_kernel(optim.radam_update)
