"""`Muon`: steps along the orthogonalized momentum of matrices."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import Optimizer, Params, by_kernel, check_one_element, pick, zeros_like

__all__ = ["Muon"]


class Muon(Optimizer):
    """Muon, for matrices: `p = p * (1 - lr * weight_decay) - lr' * O`.

    `O` approximates the orthogonal matrix nearest to the momentum `b = b + (1 - momentum) * (g - b)`, or with
    `nesterov` to `g + momentum * (b - g)`. It is the result of `ns_steps` of a Newton-Schulz iteration in
    bfloat16 (rounded as in PyTorch), which brings all singular values near 1.

    The parameters have two dimensions, and their weight decay is decoupled. The iteration is `x = a * x + (b * y + c *
    y @ y) @ x` with `y = x @ x.T` and the coefficients a, b, c. For a matrix of m rows and n columns `lr'` is `lr *
    sqrt(max(1, m / n))` ("original" or None), or `lr * 0.2 * sqrt(max(m, n))` ("match_rms_adamw", for which learning
    rates of `AdamW` are suitable).

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
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return {"momentum_buffer": zeros_like(p)}

    _update = by_kernel(optim.muon_update)
