"""`SparseAdam`: Adam for sparse gradients, which changes only the rows that have a gradient."""

from __future__ import annotations

from typing import Any, ClassVar

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import Optimizer, Params, by_kernel, check, check_one_element, zeros_like

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Adam for sparse gradients, as of `nn.Embedding(sparse=True)`: changes only the rows that have a gradient.

    The running averages of the other rows stay as they are, too, which is not what Adam does with gradients of 0. The
    arguments are those of `Adam`; `lr` and `eps` are greater than 0.

    A dense gradient raises RuntimeError.

    Example:
        >>> table = torch.nn.Embedding.from_pretrained(torch.ones(3, 2), freeze=False, sparse=True)
        >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.25)
        >>> table(torch.tensor([1])).sum().backward()
        >>> optimizer.step()
        >>> table.weight.detach()
        tensor([[1.0000, 1.0000],
                [0.7500, 0.7500],
                [1.0000, 1.0000]])
    """

    _options_added_later: ClassVar[dict[str, Any]] = {"maximize": False}

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_one_element("lr", lr)
        if not lr > 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check(betas=betas)
        entries: Any = params if isinstance(params, Tensor) else list(params)  # (of a tensor: an error)
        listed = [x for each in entries for x in _listed(each)]
        sparse = [k for k, x in enumerate(listed) if getattr(x, "is_sparse", False)]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        of_groups = any(isinstance(each, dict) for each in entries)
        groups = [_listed(each) for each in entries] if of_groups else [listed]
        found = [
            [i, k]
            for i, group in enumerate(groups)
            for k, x in enumerate(group)
            if isinstance(x, Tensor) and x.is_complex()
        ]
        if found:
            raise ValueError(f"Complex params at indices {found}: SparseAdam does not support complex parameters")
        super().__init__(entries, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": zeros_like(p), "exp_avg_sq": zeros_like(p)}

    _update = by_kernel(optim.sparse_adam_update)

    def _update_sparse(self, p: Tensor, g: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
        g = (-g if group["maximize"] else g).detach().coalesce()
        state["step"] += 1
        if not g._nnz():
            return
        m, v = state["exp_avg"], state["exp_avg_sq"]
        at, values = tuple(g._indices()._array), g._values()._array
        optim.lazy_adam_update(p._array, at, values, m._array, v._array, state["step"], group)
        for each in (p, m, v):
            each._bump()


def _listed(entry: Any) -> list[Any]:
    if not isinstance(entry, dict):
        return [entry]
    params = entry["params"] = entry["params"] if isinstance(entry["params"], Tensor) else list(entry["params"])
    return [params] if isinstance(params, Tensor) else params
