"""`ASGD`: gradient descent with a running average of the parameters."""

from __future__ import annotations

from typing import Any, ClassVar

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import LATER, Optimizer, Params, by_kernel, check, initial_state, pick

__all__ = ["ASGD"]


class ASGD(Optimizer):
    """Averaged stochastic gradient descent: `p = p * (1 - lambd * eta) - eta * g`, with a running average.

    The state "ax" is the average of the parameter over the steps after `t0`; up to then it equals the
    parameter. After step t, `eta = lr / (1 + lambd * lr * t)**alpha`.

    `weight_decay` is in addition to the decay by `lambd`; other arguments as for `Adam`.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.ASGD([w], lr=0.1)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.6400, -1.2800], requires_grad=True)

    Source:
        Polyak and Juditsky, Acceleration of Stochastic Approximation by Averaging, 1992; Bottou,
        Large-Scale Machine Learning with Stochastic Gradient Descent, 2010 (the learning rate).
    """

    _options_added_later: ClassVar[dict[str, Any]] = LATER
    _counts: ClassVar[tuple[str, ...]] = ("step", "eta", "mu")
    _elementwise: ClassVar[bool] = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check(lr=lr, weight_decay=weight_decay)
        names = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
        super().__init__(params, pick(locals(), names))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return initial_state(p, "ax", eta=float(group["lr"]), mu=1.0)

    _update = by_kernel(optim.asgd_update)
