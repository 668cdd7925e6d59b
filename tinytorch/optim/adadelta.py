"""`Adadelta`: steps in the unit of the parameter, without a learning rate to tune."""

from __future__ import annotations

from typing import Any, ClassVar

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import LATER, Optimizer, Params, by_kernel, check, initial_state, pick

__all__ = ["Adadelta"]


class Adadelta(Optimizer):
    """Adadelta: `p = p - lr * d` with `d = sqrt(a + eps) / sqrt(v + eps) * g`.

    `v` is a running average of `g * g`, and `a`, of the steps before, one of `d * d`.

    `rho` is the decay factor of the averages; other arguments as for `Adam`.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.Adadelta([w])
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.9936, -1.9936], requires_grad=True)

    Source: Zeiler, ADADELTA: An Adaptive Learning Rate Method, 2012, algorithm 1.
    """

    _options_added_later: ClassVar[dict[str, Any]] = LATER
    _counts: ClassVar[tuple[str, ...]] = ("step",)
    _elementwise: ClassVar[bool] = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr)
        if not 0 <= rho <= 1:
            raise ValueError(f"Invalid rho value: {rho}")
        check(eps=eps, weight_decay=weight_decay)
        super().__init__(params, pick(locals(), "lr rho eps weight_decay maximize capturable foreach differentiable"))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return initial_state(p, "square_avg", "acc_delta")

    _update = by_kernel(optim.adadelta_update)
