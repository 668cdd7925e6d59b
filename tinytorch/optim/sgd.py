"""`SGD`: stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.optim._axpy import axpy
from tinytorch.optim.optimizer import Optimizer, Params, check_one_element, chosen, of_group

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent: `p = p - lr * d`.

    The direction `d` starts as the gradient (negated for `maximize`) plus `weight_decay * p`. With
    momentum it enters the buffer, `b = d` at the first step and `b = momentum * b + (1 - dampening)
    * d` later, and `b` takes its place (`d + momentum * b` for `nesterov`).

    Args:
        momentum: how much of the buffer stays at each step.
        dampening: how much of the gradient does not enter the buffer.
        nesterov: look ahead along the buffer; needs momentum and no dampening.
        other arguments: as for `Adam`.

    Raises:
        ValueError: an argument is out of its range, and what `Optimizer` raises.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.4600, -0.9200], requires_grad=True)

    Source:
        Sutskever et al., On the importance of initialization and momentum in deep learning, 2013;
        torch.optim.SGD, whose momentum leaves `lr` out of the buffer.
    """

    _options_added_later: ClassVar[dict[str, Any]] = {
        "nesterov": False,
        "maximize": False,
        "foreach": None,
        "differentiable": False,
        "fused": False,
    }

    _elementwise: ClassVar[bool] = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_one_element("lr", lr)
        if lr < 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if momentum < 0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if weight_decay < 0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        names = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
        super().__init__(params, chosen(locals(), names))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": None} if group["momentum"] != 0 else {}

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, weight_decay = float(group["lr"]), float(group["weight_decay"])
        momentum, dampening = float(group["momentum"]), float(group["dampening"])
        nesterov, maximize = group["nesterov"], group["maximize"]
        if not (momentum or weight_decay) and axpy(p, g, lr if maximize else -lr):
            return  # the plain step, done in one pass

        arrays = [p, g]
        starts = False
        if momentum:
            buffer: Any = state.get("momentum_buffer")
            starts = buffer is None
            if starts:
                buffer = state["momentum_buffer"] = wrap(np.empty_like(p))
            arrays.append(buffer._array)
        for p, g, *buffers, d, s in self._blocks(*arrays, scratch=2, group=group):
            # `g` is the direction so far: the gradient itself, or `d`; `s` takes products.
            for b in buffers:
                if starts:
                    np.copyto(b, g)
                else:
                    np.multiply(b, momentum, out=b)
                    np.add(b, np.multiply(g, 1 - dampening, out=s) if dampening else g, out=b)
                g = np.add(g, np.multiply(b, momentum, out=s), out=d) if nesterov else b
            np.subtract(p, np.multiply(g, lr, out=s), out=p)

    def _recorded(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Tensor:
        lr, momentum, dampening = of_group(group, "lr", "momentum", "dampening")
        if momentum != 0:
            b = state.get("momentum_buffer")
            # The first buffer is no function of the gradient, as in PyTorch.
            b = g.detach().clone() if b is None else b * momentum + g * (1 - dampening)
            state["momentum_buffer"] = b
            g = g + b * momentum if group["nesterov"] else b
        return p - g * lr
