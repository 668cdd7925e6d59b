"""`Adam`: steps from running averages of the gradient and of its square."""

from __future__ import annotations

from typing import Any, ClassVar

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import LATER, Optimizer, Params, by_kernel, check, initial_state, pick

__all__ = ["Adam"]


class Adam(Optimizer):
    """Adam: `p = p - lr * m' / (sqrt(v') + eps)`.

    `m = beta1 * m + (1 - beta1) * g` and `v = beta2 * v + (1 - beta2) * g * g` are running averages that start at zero;
    `m' = m / (1 - beta1**t)` and `v' = v / (1 - beta2**t)` correct the bias of that start in step t. With `amsgrad` the
    maximum of `v` so far replaces `v`. `weight_decay * p` is added to the gradient; with `decoupled_weight_decay` the
    parameter instead shrinks by `lr * weight_decay` of itself, outside the averages (as in `AdamW`).

    `lr` is a number or a tensor of one element, and so are `betas`, the decay factors. `foreach` and `fused` are
    accepted for compatibility with PyTorch: there is one implementation, the fast one. A step with `capturable`, which
    is for graphs on accelerators, raises AssertionError, as in PyTorch. With `differentiable` the step is recorded, so
    that gradients flow through it to gradients, learning rates and factors that require grad; the parameters may then
    be results of operations, since a leaf that requires grad cannot be written to.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.Adam([w], lr=0.1)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.8004, -1.8002], requires_grad=True)

    Source:
        Kingma and Ba, Adam: A Method for Stochastic Optimization, 2015, algorithm 1; Reddi, Kale
        and Kumar, On the Convergence of Adam and Beyond, 2018 (amsgrad).
    """

    _options_added_later: ClassVar[dict[str, Any]] = {
        "amsgrad": False, **LATER, "decoupled_weight_decay": False, "fused": None,
    }  # fmt: skip

    _counts: ClassVar[tuple[str, ...]] = ("step",)
    _elementwise: ClassVar[bool] = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        betas = betas[0], betas[1]
        tensors = [isinstance(value, Tensor) for value in (lr, *betas)]
        names = ["lr", "betas[0]", "betas[1]"]
        if foreach and not capturable and any(tensors):
            raise ValueError(
                f"{names[tensors.index(True)]} as a Tensor is not supported for capturable=False and foreach=True"
            )
        check(lr=lr, eps=eps, betas=betas, weight_decay=weight_decay)
        if not (all(tensors[1:]) or all(isinstance(beta, float) for beta in betas)):
            raise ValueError(f"betas must be either both floats or both Tensors, got {betas} (write 0.0 for 0)")
        defaults = pick(
            locals(),
            "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay",
        )
        defaults["betas"] = tuple(b.squeeze() if isinstance(b, Tensor) else b for b in betas)
        super().__init__(params, defaults)

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        names = ["exp_avg", "exp_avg_sq"] + ["max_exp_avg_sq"] * bool(group["amsgrad"])
        return initial_state(p, *names)

    _update = by_kernel(optim.adam_update)

    def _update_sparse(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")
