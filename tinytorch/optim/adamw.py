"""`AdamW`: Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.optim.adam import Adam
from tinytorch.optim.optimizer import Params, pick

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam with decoupled weight decay: `p = p - lr * (m' / (sqrt(v') + eps) + weight_decay * p)`.

    The decay is the same for every parameter, not divided by the size of its gradients as in `Adam`.

    Arguments as for `Adam`.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.AdamW([w], lr=0.1, weight_decay=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([ 0.8500, -1.8000], requires_grad=True)

    Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019, algorithm 2.
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        options = pick(locals(), "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable")
        super().__init__(params, **options, fused=fused, decoupled_weight_decay=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # also if the state was saved by Adam
