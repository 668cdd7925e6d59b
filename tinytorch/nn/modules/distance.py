"""Distance and similarity of vectors as modules."""

from __future__ import annotations

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn.modules._family import layer
from tinytorch.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


@layer(F.cosine_similarity)
class CosineSimilarity(Module):
    """x1 · x2 / (|x1| |x2|) along a dimension; arguments as `cosine_similarity`.

    Example:
        >>> torch.nn.CosineSimilarity()(torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 0.0]]))
        tensor([1.])
    """

    dim: int = 1
    eps: float = 1e-8


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last dimension; arguments as `pairwise_distance`.

    Example:
        >>> torch.nn.PairwiseDistance()(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
        tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
