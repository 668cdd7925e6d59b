"""Functions of `torch` with the name, but not the signature, of a function in `nn.functional`.

They have the signatures of PyTorch's operators: dropouts without defaults, and losses whose reduction is a number, 0
for none (the default), 1 for the mean, 2 for the sum.
"""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.functional import layers
from tinytorch.nn.functional import loss as loss_functions
from tinytorch.ops.register import public

# Dropouts -----------------------------------------------------------------------------------------


def _dropouts(name: str, dropped: Any) -> list[Any]:
    """Publish a dropout whose arguments have no defaults, and its in-place version."""

    def made(own: str, inplace: bool) -> Any:
        def call(input: Tensor, p: float, train: bool) -> Tensor:
            if not 0 <= p <= 1:
                raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
            result: Tensor = dropped(input, p, train, inplace)
            return result

        call.__name__ = call.__qualname__ = own
        call.__doc__ = f"""Return `input` with elements or channels dropped, see `nn.functional`.

    Example:
        >>> torch.{own}(torch.ones(1, 2), 0.5, False)
        tensor([[1., 1.]])
    """
        return public()(call)

    return [made(name, False), made(f"{name}_", True)]


dropout, dropout_ = _dropouts("dropout", layers.dropout)
alpha_dropout, alpha_dropout_ = _dropouts("alpha_dropout", layers.alpha_dropout)
feature_alpha_dropout, feature_alpha_dropout_ = _dropouts("feature_alpha_dropout", layers.feature_alpha_dropout)
feature_dropout, feature_dropout_ = _dropouts("feature_dropout", layers._channels_dropped)

# Losses -------------------------------------------------------------------------------------------


def _reduction_name(function: str, position: int, reduction: Any) -> str:
    """Return the name of a reduction, given its number."""
    if not isinstance(reduction, int):
        raise TypeError(
            f"{function}(): argument 'reduction' (position {position}) must be int, not {type(reduction).__name__}"
        )
    return {1: "mean", 2: "sum"}.get(int(reduction), "none")


@public(autocast="float32")
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """`nn.functional.binary_cross_entropy_with_logits` with a number as `reduction`.

    Example:
        >>> torch.binary_cross_entropy_with_logits(torch.zeros(2), torch.ones(2), reduction=1)
        tensor(0.6931)
    """
    name = _reduction_name("binary_cross_entropy_with_logits", 5, reduction)
    return loss_functions.binary_cross_entropy_with_logits(input, target, weight, reduction=name, pos_weight=pos_weight)


@public(autocast="float32")
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.cosine_embedding_loss` with a number as `reduction`.

    Example:
        >>> torch.cosine_embedding_loss(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([-1.0]), reduction=2)
        tensor(1.)
    """
    name = _reduction_name("cosine_embedding_loss", 5, reduction)
    return loss_functions.cosine_embedding_loss(input1, input2, target, margin, reduction=name)


@public(autocast="float32")
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0) -> Tensor:
    """`nn.functional.hinge_embedding_loss` with a number as `reduction`.

    Example:
        >>> torch.hinge_embedding_loss(torch.tensor([0.5, 0.25]), torch.tensor([1.0, -1.0]))
        tensor([0.5000, 0.7500])
    """
    name = _reduction_name("hinge_embedding_loss", 4, reduction)
    return loss_functions.hinge_embedding_loss(input, target, margin, reduction=name)


@public(autocast="float32")
def kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """`nn.functional.kl_div` with a number as `reduction`.

    Example:
        >>> torch.kl_div(torch.tensor([0.5]).log(), torch.tensor([1.0]), 2)
        tensor(0.6931)
    """
    loss = loss_functions.kl_div(input, target, reduction="none", log_target=log_target)
    name = _reduction_name("kl_div", 3, reduction)
    return loss.mean() if name == "mean" else loss.sum() if name == "sum" else loss


@public(autocast="float32")
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`nn.functional.margin_ranking_loss` with a number as `reduction`.

    Example:
        >>> torch.margin_ranking_loss(torch.tensor([0.0]), torch.tensor([1.0]), torch.tensor([1.0]))
        tensor([1.])
    """
    name = _reduction_name("margin_ranking_loss", 5, reduction)
    return loss_functions.margin_ranking_loss(input1, input2, target, margin, reduction=name)


@public(autocast="float32")
def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """`nn.functional.poisson_nll_loss` with a number as `reduction`, and no defaults.

    Example:
        >>> torch.poisson_nll_loss(torch.zeros(2), torch.tensor([0.0, 2.0]), True, False, 1e-8, 1)
        tensor(1.)
    """
    name = _reduction_name("poisson_nll_loss", 6, reduction)
    return loss_functions.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=name)


@public(autocast="float32")
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: int = 0,
) -> Tensor:  # fmt: skip
    """`nn.functional.triplet_margin_loss` with a number as `reduction`.

    Example:
        >>> torch.triplet_margin_loss(torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2), margin=2.0, reduction=1)
        tensor(0.5858)
    """
    name = _reduction_name("triplet_margin_loss", 8, reduction)
    return loss_functions.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction=name)
