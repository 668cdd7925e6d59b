"""`Rprop`: step sizes adapted to sign changes of the gradient."""

from __future__ import annotations

from typing import Any, ClassVar

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import LATER, Optimizer, Params, by_kernel, check, pick, scalar, zeros_like

__all__ = ["Rprop"]


class Rprop(Optimizer):
    """Rprop: every element has a step size, and moves by it against the sign of its gradient.

    The step size is multiplied by `etas[1]` while the sign stays the same, and by `etas[0]` when it changes;
    after a change the element is not updated for one step.

    `lr` is the initial step size, `step_sizes` are the smallest and the largest one; other arguments as for `Adam`.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.Rprop([w], lr=0.1)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.7800, -1.7800], requires_grad=True)

    Source:
        Riedmiller and Braun, A Direct Adaptive Method for Faster Backpropagation Learning: The RPROP Algorithm, 1993;
        Igel and Huesken, Improving the Rprop Learning Algorithm, 2000 (Rprop-: no step is taken back).
    """

    _options_added_later: ClassVar[dict[str, Any]] = LATER
    _counts: ClassVar[tuple[str, ...]] = ("step",)
    _elementwise: ClassVar[bool] = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check(lr=lr)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, pick(locals(), "lr etas step_sizes foreach maximize differentiable capturable"))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        sizes = zeros_like(p)
        lr = float(group["lr"])
        sizes._array[...] = complex(lr, lr) if p.is_complex() else lr
        return {"step": scalar(0.0), "prev": zeros_like(p), "step_size": sizes}

    _update = by_kernel(optim.rprop_update)
