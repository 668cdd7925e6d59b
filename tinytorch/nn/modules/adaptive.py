"""`AdaptiveLogSoftmaxWithLoss`: an approximate softmax over many classes of different frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn.modules.container import ModuleList, Sequential
from tinytorch.nn.modules.linear import Linear
from tinytorch.nn.modules.module import Module
from tinytorch.ops.join import cat

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax over many classes; rare classes are in clusters that are evaluated only when needed.

    The classes are ordered by decreasing frequency; those before the first of the `cutoffs` are in the `head`, and each
    cutoff begins a cluster, which has a projection and a layer in `tail`; the projections' widths decrease by
    `div_value`.
    Shapes: `(N, in_features)` and labels `(N,)`, or `(in_features,)` and `()` -> a named tuple of `output`, the
    log-probabilities of the labels, and `loss`, minus their mean.

    Example:
        >>> layer = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 1000, [10, 100])
        >>> x = torch.randn(4, 16)
        >>> layer(x, torch.tensor([0, 9, 99, 999])).output.shape, layer.log_prob(x).shape, layer.predict(x).shape
        (torch.Size([4]), torch.Size([4, 1000]), torch.Size([4]))

    Source: Grave et al., "Efficient softmax approximation for GPUs", 2017.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or any(int(cutoff) != cutoff for cutoff in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for k in range(self.n_clusters):
            hidden = int(in_features // div_value ** (k + 1))
            size = self.cutoffs[k + 1] - self.cutoffs[k]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, False, device, dtype), Linear(hidden, size, False, device, dtype)
                )
            )

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        self.head.reset_parameters()
        for projection, layer in self.tail:
            projection.reset_parameters()
            layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        batched = target_.dim() > 0
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if batched and input_.size(0) != target_.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(
                f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but found inputs with "
                f"size {input_.size()}"
            )
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        if target.numel() and not 0 <= int(target.min()) <= int(target.max()) < self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        # The column of a label in the head's output: that of its class, or of its cluster.
        column = target
        output = input.new_zeros(target.size(0))
        for k in range(self.n_clusters):
            low, high = self.cutoffs[k], self.cutoffs[k + 1]
            inside = (target >= low) & (target < high)
            rows = inside.nonzero().squeeze(1)
            if not rows.numel():
                continue
            column = column.masked_fill(inside, self.shortlist_size + k)
            scores = F.log_softmax(self.tail[k](input.index_select(0, rows)), dim=1)
            label_scores = scores.gather(1, (target.index_select(0, rows) - low).unsqueeze(1))
            output = output.index_copy(0, rows, label_scores.squeeze(1))
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, column.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for k in range(self.n_clusters):
            cluster_log_prob = head[:, self.shortlist_size + k].unsqueeze(1)
            parts.append(F.log_softmax(self.tail[k](input), dim=1) + cluster_log_prob)
        return cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log-probabilities of all classes, `(N, n_classes)`."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of every input, `(N,)`; it evaluates clusters only for inputs that need it."""
        head_output = self.head(input)
        best = head_output.argmax(dim=1)
        rare = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rare.numel():
            log_probs = self._get_full_log_prob(input.index_select(0, rare), head_output.index_select(0, rare))
            best = best.index_copy(0, rare, log_probs.argmax(dim=1))
        return best
