"""`SGD`: stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any, ClassVar

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import Optimizer, Params, by_kernel, check_one_element, pick

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent: `p = p - lr * d`.

    The direction `d` is the gradient (negated for `maximize`) plus `weight_decay * p`. With momentum it
    is accumulated in a buffer, `b = d` at the first step and `b = momentum * b + (1 - dampening) * d`
    later, and replaced by `b` (`d + momentum * b` with `nesterov`).

    `nesterov` requires momentum and no dampening; other arguments as for `Adam`.

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
        torch.optim.SGD, whose momentum buffer does not contain `lr`.
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
        super().__init__(params, pick(locals(), names))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": None} if group["momentum"] != 0 else {}

    _update = by_kernel(optim.sgd_update)

    def _update_sparse(self, p: Tensor, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group.get("fused"):
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        lr, momentum = float(group["lr"]), float(group["momentum"])
        with no_grad():
            g = -g.detach() if group["maximize"] else g.detach()
            if group["weight_decay"] != 0:
                g = g.add(p, alpha=group["weight_decay"])  # (raises PyTorch's error)
            if momentum:
                buffer = state.get("momentum_buffer")
                if buffer is None:
                    buffer = state["momentum_buffer"] = g.clone()
                else:
                    buffer.mul_(momentum).add_(g, alpha=1 - group["dampening"])
                g = g.add(buffer, alpha=momentum) if group["nesterov"] else buffer
            p.add_(g, alpha=-lr)
