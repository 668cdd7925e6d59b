"""`Adafactor`: adaptive steps from row and column means of the squared gradient."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import optim
from tinytorch.optim.optimizer import Optimizer, Params, by_kernel, check_one_element, pick, scalar, zeros_like

__all__ = ["Adafactor"]


class Adafactor(Optimizer):
    """Adafactor: `p = p - a * u`, where `u` is the gradient over the root of its average square.

    To save memory, the average square `v` of a matrix is stored as the means `r` of its rows and `c` of its
    columns, with `v = r * c / mean(r)`. The averages are `v = v + w * (g * g - v)` with
    `w = t**beta2_decay`. The step is proportional to the parameter: `a = max(eps[1], rms(p)) *
    min(lr, 1 / sqrt(t)) / max(1, rms(u) / d)`, where `rms` is the root mean square.

    `lr` is the largest relative step, `eps` has lower bounds of the squares (None: the machine epsilon of the dtype)
    and of `rms(p)`. The weight decay is decoupled. Other arguments as for `Adam`.

    Example:
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> optimizer = torch.optim.Adafactor([w])
        >>> for _ in range(2):
        ...     optimizer.zero_grad()
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        >>> w
        tensor([ 0.9686, -1.9686], requires_grad=True)

    Source: Shazeer and Stern, Adafactor: Adaptive Learning Rates with Sublinear Memory Cost, 2018, algorithms 4 and 5.
    """

    _options_added_later: ClassVar[dict[str, Any]] = {"foreach": None}
    _counts: ClassVar[tuple[str, ...]] = ("step",)

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_one_element("lr", lr)
        if not lr >= 0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, pick(locals(), "lr beta2_decay eps d weight_decay foreach maximize"))

    def _new_state(self, p: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        shape = p._array.shape
        if len(shape) < 2:
            return {"step": scalar(0.0), "variance": zeros_like(p)}
        *outer, rows, columns = shape
        return {
            "step": scalar(0.0),
            "row_var": wrap(np.zeros_like(p._array, shape=(*outer, rows, 1), order="C")),
            "col_var": wrap(np.zeros_like(p._array, shape=(*outer, 1, columns), order="C")),
        }

    _update = by_kernel(optim.adafactor_update)
