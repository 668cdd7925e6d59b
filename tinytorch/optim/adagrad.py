"""`Adagrad`: steps scaled by the sum of all squared gradients."""

from __future__ import annotations

from typing import Any, ClassVar

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import Optimizer, Params, by_kernel, check, pick, scalar, zeros_like

__all__ = ["Adagrad"]


class Adagrad(Optimizer):
    """Adagrad: `p = p - lr' * g / (sqrt(s) + eps)`, where `s` is the sum of `g * g` over all steps.

    In step t, `lr' = lr / (1 + (t - 1) * lr_decay)`.

    The sum begins with `initial_accumulator_value`; other arguments as for `Adam`.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.Adagrad([w], lr=0.1)
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.8331, -1.8311], requires_grad=True)

    Source: Duchi, Hazan and Singer, Adaptive Subgradient Methods for Online Learning and Stochastic Optimization, 2011.
    """

    _options_added_later: ClassVar[dict[str, Any]] = {
        "foreach": None,
        "maximize": False,
        "differentiable": False,
        "fused": None,
    }
    _counts: ClassVar[tuple[str, ...]] = ("step",)
    _elementwise: ClassVar[bool] = True

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check(lr=lr, lr_decay=lr_decay, weight_decay=weight_decay)
        check(initial_accumulator_value=initial_accumulator_value, eps=eps)
        names = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused"
        super().__init__(params, pick(locals(), names))
        for group in self.param_groups:
            for p in group["params"]:
                p.numel()  # raises for a parameter without a shape (uninitialized)
                self.state[p] = self._new_state(p, group)

    def share_memory(self) -> None:
        """Move the sums to shared memory, by `share_memory_`."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        start = zeros_like(p)
        # As in PyTorch, the optimizer's default, even if the group sets another value.
        initial = self.defaults["initial_accumulator_value"]
        start._array[...] = complex(initial, initial) if p.is_complex() else initial
        return {"step": scalar(0.0), "sum": start}

    _update = by_kernel(optim.adagrad_update)

    def _update_sparse(self, p: Tensor, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group.get("fused"):
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        g = g.detach().coalesce()
        state["step"]._array += 1
        rate = float(group["lr"]) / (1 + (float(state["step"]) - 1) * group["lr_decay"])
        if group["maximize"]:
            rate = -rate
        at, total = tuple(g._indices()._array), state["sum"]
        optim.sparse_adagrad_update(p._array, at, g._values()._array, total._array, rate, float(group["eps"]))
        p._bump()
        total._bump()
