"""Losses as modules; every module calls its function in `nn.functional`, which documents the arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.nn import functional as F
from tinytorch.nn.functional.reduction import checked_reduction
from tinytorch.nn.modules._family import layer
from tinytorch.nn.modules.distance import PairwiseDistance
from tinytorch.nn.modules.linear import Linear
from tinytorch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions
from tinytorch.nn.modules.module import Module

__all__ = [
    "CTCLoss", "MultiLabelMarginLoss", "NLLLoss2d",
    "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss",
    "MSELoss", "MarginRankingLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PoissonNLLLoss", "SmoothL1Loss",
    "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip


class _Loss(Module):
    """The base of losses: `reduction`, also from the deprecated arguments `size_average` and `reduce`."""

    reduction: str
    forward: Callable[..., Tensor]

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            reduction = checked_reduction(size_average, reduce, reduction)
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """The base of losses with the buffer `weight`."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


@layer(F.l1_loss)
class L1Loss(_Loss):
    """|x - y|, reduced over all elements (other losses are reduced over samples, pairs or triplets).

    The reduction is "mean", "sum" or "none"; `size_average` and `reduce` are its deprecated form.

    Example:
        >>> torch.nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(1.)
    """


@layer(F.mse_loss)
class MSELoss(_Loss):
    """(x - y)²; arguments as `L1Loss`.

    Example:
        >>> torch.nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """


@layer(F.smooth_l1_loss)
class SmoothL1Loss(_Loss):
    """(x - y)² / (2 beta) where |x - y| < beta, else |x - y| - beta / 2; arguments as `nn.functional.smooth_l1_loss`.

    Example:
        >>> torch.nn.SmoothL1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(0.7500)
    """

    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"
    beta: float = 1.0


@layer(F.huber_loss)
class HuberLoss(_Loss):
    """(x - y)² / 2 where |x - y| <= delta, else delta * (|x - y| - delta / 2); arguments as `nn.functional.huber_loss`.

    Example:
        >>> torch.nn.HuberLoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(0.7500)
    """

    reduction: str = "mean"
    delta: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(self.delta)}")


@layer(F.kl_div)
class KLDivLoss(_Loss):
    """y * (log y - x), with x the predicted log-probabilities; arguments as `nn.functional.kl_div`.

    Example:
        >>> y = torch.tensor([[0.5, 0.5]])
        >>> torch.nn.KLDivLoss(reduction="batchmean")(torch.tensor([[0.25, 0.75]]).log(), y)
        tensor(0.1438)
    """

    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"
    log_target: bool = False


@layer(F.nll_loss)
class NLLLoss(_WeightedLoss):
    """-weight[y] * x[y], with x the log-probabilities of the classes (from `LogSoftmax`).

    Shape: input `(N, C)`, `(C,)` or `(N, C, d1, ...)`; target the same without C, int64.

    Example:
        >>> x = torch.log(torch.tensor([[0.25, 0.75]]))
        >>> torch.nn.NLLLoss()(x, torch.tensor([1]))
        tensor(0.2877)
    """

    weight: Tensor | None = None
    size_average: bool | None = None
    ignore_index: int = -100
    reduce: bool | None = None
    reduction: str = "mean"


@layer(F.cross_entropy)
class CrossEntropyLoss(_WeightedLoss):
    """-log softmax(x)[y], the loss of a classifier, from its unnormalised scores x.

    Shape:
        input `(N, C)`, `(C,)` or `(N, C, d1, ...)`; target the same without C (int64, class
        indices), or the input's shape (floating point, probabilities).

    Example:
        >>> scores = torch.tensor([[0.0, 0.0], [0.0, 2.0]])
        >>> torch.nn.CrossEntropyLoss()(scores, torch.tensor([0, 1]))
        tensor(0.4100)
    """

    weight: Tensor | None = None
    size_average: bool | None = None
    ignore_index: int = -100
    reduce: bool | None = None
    reduction: str = "mean"
    label_smoothing: float = 0.0


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of its scores, which `options` computes in chunks, with less memory.

    The samples are `(N, F)` or `(F,)`, of `in_features`; `out_features` are further dimensions of the scores. Other
    arguments and the target as for `nn.functional.linear_cross_entropy`.

    Example:
        >>> options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
        >>> loss = torch.nn.LinearCrossEntropyLoss(3, 10, options=options)
        >>> loss(torch.zeros(4, 3), torch.tensor([0, 1, 2, 3]))
        tensor(2.3026, grad_fn=<...>)
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias, device, dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape(*shape, self.linear.in_features), target,
            linear_bias=None if bias is None else bias.reshape(shape), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


@layer(F.binary_cross_entropy)
class BCELoss(_WeightedLoss):
    """-weight * (y log x + (1 - y) log(1 - x)), with x a probability.

    Example:
        >>> torch.nn.BCELoss()(torch.tensor([0.25]), torch.tensor([0.0]))
        tensor(0.2877)
    """


@layer(F.binary_cross_entropy_with_logits)
class BCEWithLogitsLoss(_Loss):
    """`BCELoss` of sigmoid(x), computed without the rounding and overflow of two separate steps.

    Example:
        >>> torch.nn.BCEWithLogitsLoss()(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(0.6931)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)


@layer()
class PoissonNLLLoss(_Loss):
    """exp(x) - y * x, the loss of counts y with expectation exp(x); arguments as `nn.functional.poisson_nll_loss`.

    Example:
        >>> torch.nn.PoissonNLLLoss()(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
        tensor(0.8591)
    """

    log_input: bool = True
    full: bool = False
    size_average: bool | None = None
    eps: float = 1e-8
    reduce: bool | None = None
    reduction: str = "mean"

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """(log(var) + (x - y)² / var) / 2, the loss of values y of mean x and variance var.

    Arguments as `nn.functional.gaussian_nll_loss`.

    Example:
        >>> mean, value, variance = torch.zeros(2), torch.ones(2), torch.ones(2)
        >>> torch.nn.GaussianNLLLoss()(mean, value, variance)
        tensor(0.5000)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


@layer(F.hinge_embedding_loss)
class HingeEmbeddingLoss(_Loss):
    """x where y = 1, max(0, margin - x) where y = -1; x is a distance.

    Example:
        >>> torch.nn.HingeEmbeddingLoss()(torch.tensor([0.5, 0.25]), torch.tensor([1.0, -1.0]))
        tensor(0.6250)
    """

    margin: float = 1.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


@layer(F.soft_margin_loss)
class SoftMarginLoss(_Loss):
    """log(1 + exp(-y * x)), with y = 1 or -1; arguments as `L1Loss`.

    Example:
        >>> torch.nn.SoftMarginLoss()(torch.tensor([0.0, 0.0]), torch.tensor([1.0, -1.0]))
        tensor(0.6931)
    """


@layer(F.multilabel_soft_margin_loss)
class MultiLabelSoftMarginLoss(_WeightedLoss):
    """`BCEWithLogitsLoss`, averaged over the classes of each sample.

    Example:
        >>> torch.nn.MultiLabelSoftMarginLoss()(torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]))
        tensor(0.6931)
    """


@layer(F.multi_margin_loss)
class MultiMarginLoss(_WeightedLoss):
    """Σ max(0, margin - x[y] + x[i])ᵖ / C, over the classes i other than y.

    Example:
        >>> torch.nn.MultiMarginLoss()(torch.tensor([[0.5, 0.0]]), torch.tensor([0]))
        tensor(0.2500)
    """

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"

    def __post_init__(self) -> None:
        if self.p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if self.weight is not None and self.weight.dim() != 1:
            dims = self.weight.dim()
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {dims}D instead")


@layer()
class _MarginLoss(_Loss):
    """The base of losses with a margin of 0 by default."""

    margin: float = 0.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


@layer(F.cosine_embedding_loss)
class CosineEmbeddingLoss(_MarginLoss):
    """1 - cos(x1, x2) where y = 1, max(0, cos(x1, x2) - margin) where y = -1.

    Example:
        >>> x1, x2 = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
        >>> torch.nn.CosineEmbeddingLoss()(x1, x2, torch.tensor([1]))
        tensor(1.)
    """


@layer(F.margin_ranking_loss)
class MarginRankingLoss(_MarginLoss):
    """max(0, margin - y * (x1 - x2)), with y = 1 where x1 should be greater, else -1.

    Example:
        >>> ranking = torch.nn.MarginRankingLoss()
        >>> ranking(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0]))
        tensor(2.)
    """


@layer(F.triplet_margin_loss)
class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the distance in the p-norm.

    Example:
        >>> a, p, n = torch.tensor([[0.0]]), torch.tensor([[1.0]]), torch.tensor([[1.5]])
        >>> torch.nn.TripletMarginLoss()(a, p, n)
        tensor(0.5000)
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"

    def __post_init__(self) -> None:
        _check_margin("TripletMarginLoss", self.margin)


@layer(F.triplet_margin_with_distance_loss)
class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with a user-defined distance; arguments as `nn.functional.triplet_margin_with_distance_loss`.

    Example:
        >>> far = torch.nn.TripletMarginWithDistanceLoss(
        ...     distance_function=lambda x, y: (x - y).abs().sum(1)
        ... )
        >>> far(torch.tensor([[0.0]]), torch.tensor([[1.0]]), torch.tensor([[1.5]]))
        tensor(0.5000)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        _check_margin("TripletMarginWithDistanceLoss", margin)
        self.distance_function: Any = distance_function or PairwiseDistance()
        self.margin = margin
        self.swap = swap


def _check_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{name}: expected margin to be greater than 0, got {margin} instead")


@layer(F.ctc_loss)
class CTCLoss(_Loss):
    """The negative log-probability of a target, summed over its alignments with the sequence.

    Shape:
        log-probabilities `(T, N, C)` or `(T, C)`, labels `(N, S)` or concatenated, lengths `(N,)` of sequences and
        targets -> `()`, or `(N,)` for "none".

    Example:
        >>> even = torch.full((2, 1, 2), 0.5).log()
        >>> torch.nn.CTCLoss()(even, torch.tensor([[1]]), (2,), (1,)).exp()
        tensor(1.3333)
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False


@layer(F.multilabel_margin_loss)
class MultiLabelMarginLoss(_Loss):
    """sum(max(0, 1 - x[label] + x[other])) / C, over all pairs of a label and another class; arguments as `L1Loss`.

    Shape: scores `(N, C)` or `(C,)`, labels of that shape, terminated by -1 -> `()`, or `(N,)` for "none".

    Example:
        >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> torch.nn.MultiLabelMarginLoss()(x, torch.tensor([[3, 0, -1, 1]]))
        tensor(0.8500)
    """


class NLLLoss2d(NLLLoss):
    """Deprecated: `NLLLoss`, which takes images too; arguments as `NLLLoss`.

    Example:
        >>> issubclass(torch.nn.NLLLoss2d, torch.nn.NLLLoss)
        True
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        warn(
            "`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning,
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)
