"""Losses as `torch` itself has them (floor 4).

The reduction is a number: 0 for none, which is the default here in PyTorch too, 1 for the mean, 2 for the sum.
"""

from __future__ import annotations

from typing import Any

from tinytorch._tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.ops.ctc import ctc_loss

__all__ = [
    "binary_cross_entropy_with_logits", "cosine_embedding_loss", "ctc_loss", "hinge_embedding_loss", "kl_div",
    "margin_ranking_loss", "poisson_nll_loss", "triplet_margin_loss",
]  # fmt: skip


def _reduction(name: str, position: int, reduction: Any) -> str:
    if not isinstance(reduction, int):
        raise TypeError(
            f"{name}(): argument 'reduction' (position {position}) must be int, not {type(reduction).__name__}"
        )
    return {1: "mean", 2: "sum"}.get(int(reduction), "none")


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:  # fmt: skip
    """`nn.functional.binary_cross_entropy_with_logits` with a number as `reduction`.

    Example:
        >>> import tinytorch as torch
        >>> torch.binary_cross_entropy_with_logits(torch.zeros(2), torch.ones(2), reduction=1)
        tensor(0.6931)
    """
    how = _reduction("binary_cross_entropy_with_logits", 5, reduction)
    return F.binary_cross_entropy_with_logits(
        input, target, weight, reduction=how, pos_weight=pos_weight
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.cosine_embedding_loss` with a number as `reduction`.

    Example:
        >>> import tinytorch as torch
        >>> torch.cosine_embedding_loss(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([-1.0]), reduction=2)
        tensor(1.)
    """
    how = _reduction("cosine_embedding_loss", 5, reduction)
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=how)


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.hinge_embedding_loss` with a number as `reduction`.

    Example:
        >>> import tinytorch as torch
        >>> torch.hinge_embedding_loss(torch.tensor([0.5, 0.25]), torch.tensor([1.0, -1.0]))
        tensor([0.5000, 0.7500])
    """
    how = _reduction("hinge_embedding_loss", 4, reduction)
    return F.hinge_embedding_loss(input, target, margin, reduction=how)


def kl_div(
    input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False
) -> Tensor:
    """`nn.functional.kl_div` with a number as `reduction`.

    Example:
        >>> import tinytorch as torch
        >>> torch.kl_div(torch.tensor([0.5]).log(), torch.tensor([1.0]), 2)
        tensor(0.6931)
    """
    loss = F.kl_div(input, target, reduction="none", log_target=log_target)
    how = _reduction("kl_div", 3, reduction)
    return loss.mean() if how == "mean" else loss.sum() if how == "sum" else loss


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.margin_ranking_loss` with a number as `reduction`.

    Example:
        >>> import tinytorch as torch
        >>> torch.margin_ranking_loss(torch.tensor([0.0]), torch.tensor([1.0]), torch.tensor([1.0]))
        tensor([1.])
    """
    how = _reduction("margin_ranking_loss", 5, reduction)
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=how)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """`nn.functional.poisson_nll_loss` with a number as `reduction`, and no defaults.

    Example:
        >>> import tinytorch as torch
        >>> torch.poisson_nll_loss(torch.zeros(2), torch.tensor([0.0, 2.0]), True, False, 1e-8, 1)
        tensor(1.)
    """
    how = _reduction("poisson_nll_loss", 6, reduction)
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=how)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: int = 0,
) -> Tensor:  # fmt: skip
    """`nn.functional.triplet_margin_loss` with a number as `reduction`.

    Example:
        >>> import tinytorch as torch
        >>> torch.triplet_margin_loss(torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2), margin=2.0, reduction=1)
        tensor(0.5858)
    """
    how = _reduction("triplet_margin_loss", 8, reduction)
    return F.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=how)
