"""`Muon`: steps along the orthogonalized momentum of matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.optim.optimizer import Optimizer, Params, check_one_element, pick, zeros_like

__all__ = ["Muon"]


class Muon(Optimizer):
    """Muon, for matrices: `p = p * (1 - lr * weight_decay) - lr' * O`.

    `O` approximates the orthogonal matrix nearest to the momentum `b = b + (1 - momentum) * (g - b)`, or with
    `nesterov` to `g + momentum * (b - g)`. It is the result of `ns_steps` of a Newton-Schulz iteration in
    bfloat16 (rounded as in PyTorch), which brings all singular values near 1.

    Args:
        params, lr: as for `Adam`; the parameters have two dimensions.
        weight_decay: each step shrinks a parameter by `lr * weight_decay` of itself.
        momentum: decay factor of the buffer.
        nesterov: use Nesterov momentum.
        ns_coefficients: `a`, `b` and `c` of the iteration `x = a * x + (b * y + c * y @ y) @ x`, where `y = x @ x.T`.
        eps: lower bound of the norm by which a matrix is divided at the start.
        ns_steps: number of iterations, fewer than 100.
        adjust_lr_fn: the rule for `lr'` of a matrix of m rows and n columns. "original" or None: `lr * sqrt(max(1, m /
            n))`; "match_rms_adamw": `lr * 0.2 * sqrt(max(m, n))`, for which learning rates of `AdamW` are suitable.

    Raises:
        ValueError: an argument is out of its range, or a parameter is not a matrix; and as for `Optimizer`.

    Example:
        >>> w = torch.eye(2).requires_grad_()
        >>> optimizer = torch.optim.Muon([w], lr=0.5)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([[0.3875, 0.0000],
                [0.0000, 0.3875]], requires_grad=True)

    Source:
        Jordan et al., Muon: An optimizer for hidden layers in neural networks, 2024; Liu et al., Muon
        is Scalable for LLM Training, 2025 (match_rms_adamw).
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check_one_element("lr", lr)
        for words, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0:
                raise ValueError(f"{words} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        names = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"
        super().__init__(params, pick(locals(), names))
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": zeros_like(p)}

    def _update(self, p: Any, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if g.ndim != 2:
            raise ValueError("Param gradient must be a 2D matrix")
        lr, weight_decay = float(group["lr"]), float(group["weight_decay"])
        momentum = float(group["momentum"])
        b = state["momentum_buffer"]._array
        b += (g - b) * (1 - momentum)
        # As in PyTorch's lerp, the interpolation starts from the nearer end.
        ahead = b - (b - g) * (1 - momentum) if momentum >= 0.5 else g + (b - g) * momentum
        o = orthogonal(ahead if group["nesterov"] else b, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape
        rate = lr
        if group["adjust_lr_fn"] == "match_rms_adamw":
            rate *= 0.2 * math.sqrt(max(rows, columns))
        elif columns:
            rate *= math.sqrt(max(1, rows / columns))
        np.multiply(p, 1 - lr * weight_decay, out=p)
        p -= (o * np.float32(rate)).astype(p.dtype, copy=False)


def orthogonal(matrix: Any, coefficients: Any, steps: int, eps: float) -> Any:
    """Return an approximation of the orthogonal matrix nearest to `matrix`, by Newton-Schulz iterations.

    The result is a float32 array whose values are representable in bfloat16. The arguments are those of `Muon`.
    """
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = (np.float32(value) for value in coefficients)
    tall = matrix.shape[0] > matrix.shape[1]
    x = _rounded((matrix.T if tall else matrix).astype(np.float32))
    norm = _rounded(np.sqrt(np.vdot(x, x)).reshape(1))
    x = _rounded(x / np.maximum(norm, _rounded(np.array([eps], np.float32))))
    for _ in range(steps):
        y = _rounded(x @ x.T)
        x = _rounded(a * x + _rounded(b * y + c * (y @ y)) @ x)
    return x.T if tall else x


def _rounded(x: Any) -> Any:
    """Return float32 numbers rounded to bfloat16, which keeps the upper half of their bits."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    near = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)
    result = near.view(np.float32)
    return np.where(np.isnan(x), x, result)
