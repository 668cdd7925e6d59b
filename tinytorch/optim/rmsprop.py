"""`RMSprop`: steps scaled by a running average of the squared gradient."""

from __future__ import annotations

from typing import Any, ClassVar

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import LATER, Optimizer, Params, by_kernel, check, initial_state, pick

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """RMSprop: `p = p - lr * g / (sqrt(v) + eps)`, where `v` is a running average of `g * g`.

    If `centered`, the square of the average gradient is subtracted from `v`, which then is the variance. With momentum
    the quotient is accumulated in a buffer, `b = momentum * b + g / (sqrt(v) + eps)`, and the step is `lr * b`.

    `alpha` is the decay factor of the averages; other arguments as for `Adam`.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.RMSprop([w])
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.8329, -1.8309], requires_grad=True)

    Source:
        Tieleman and Hinton, Lecture 6.5 of Neural Networks for Machine Learning, 2012; Graves,
        Generating Sequences With Recurrent Neural Networks, 2013, equations 38 to 41 (centered).
    """

    _options_added_later: ClassVar[dict[str, Any]] = {"momentum": 0, "centered": False, **LATER}
    _counts: ClassVar[tuple[str, ...]] = ("step",)
    _elementwise: ClassVar[bool] = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        names = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
        super().__init__(params, pick(locals(), names))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        momentum = ["momentum_buffer"] * bool(group["momentum"] > 0)
        centered = ["grad_avg"] * bool(group["centered"])
        return initial_state(p, "square_avg", *momentum, *centered)

    _update = by_kernel(optim.rmsprop_update)
