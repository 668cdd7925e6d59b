"""`NAdam`: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.optim.optimizer import LATER, Optimizer, Params, check, moments, pick, scalar, scalars, zeros_like

__all__ = ["NAdam"]


class NAdam(Optimizer):
    """NAdam: Adam with Nesterov momentum: `p = p - lr * (a * g + b * m) / (sqrt(v') + eps)`.

    `m`, `v` and `v'` are those of `Adam`. The factors follow a schedule of momenta, `mu_t = beta1 *
    (1 - 0.96**(t * momentum_decay) / 2)`, and the product `P_t` of those so far:
    `a = (1 - mu_t) / (1 - P_t)` and `b = mu_(t+1) / (1 - P_(t+1))`.

    Args:
        momentum_decay: rate at which the momentum approaches `betas[0]`.
        other arguments: as for `Adam`.

    Raises:
        ValueError: an argument is out of its range; and as for `Optimizer`.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.NAdam([w], lr=0.1)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.8200, -1.8179], requires_grad=True)

    Source:
        Dozat, Incorporating Nesterov Momentum into Adam, 2016.
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
        return {"step": scalar(0.0), "mu_product": scalar(1.0), "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        lr, eps = float(group["lr"]), float(group["eps"])
        beta1, beta2 = map(float, group["betas"])
        step, product = state["step"]._array, state["mu_product"]._array
        step += 1
        t = float(step)

        def momentum(t: float) -> float:
            return beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"]))

        now, then = momentum(t), momentum(t + 1)
        product *= now
        so_far = float(product)
        # The bias correction of v is folded into the scalars, as in Adam.
        c = (1 - beta2**t) ** 0.5
        of_g, of_m = lr * (1 - now) / (1 - so_far) * c, lr * then / (1 - so_far * then) * c
        eps *= c
        arrays = p, g, state["exp_avg"]._array, state["exp_avg_sq"]._array
        for p, g, m, v, d, s, r in self._blocks(*arrays, scratch=3, group=group):
            # `g` may be the same array as `d`; `s` and `r` hold intermediate results.
            np.subtract(g, m, out=s)
            np.add(m, np.multiply(s, 1 - beta1, out=s), out=m)
            np.multiply(np.square(g, out=s), 1 - beta2, out=s)
            np.add(np.multiply(v, beta2, out=v), s, out=v)
            np.add(np.sqrt(v, out=s), eps, out=s)
            np.multiply(g, of_g, out=d)
            np.add(d, np.multiply(m, of_m, out=r), out=d)
            np.subtract(p, np.divide(d, s, out=d), out=p)

    def _recorded(self, p: Tensor, g: Tensor, state: dict[str, Any], group: dict[str, Any]) -> Tensor:
        lr, eps = scalars(group, "lr", "eps")
        beta1, beta2 = group["betas"]
        t = float(state["step"])
        now, then = (beta1 * (1 - 0.5 * 0.96 ** (time * group["momentum_decay"])) for time in (t, t + 1))
        product = state["mu_product"] = state["mu_product"] * now
        m, v = moments(g, state, beta1, beta2)
        divisor = (v / (1 - beta2**t)).sqrt() + eps
        of_g, of_m = lr * (1 - now) / (1 - product), lr * then / (1 - product * then)
        return p - (g * of_g + m * of_m) / divisor
