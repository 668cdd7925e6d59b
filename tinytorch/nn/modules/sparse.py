"""Embeddings: tables of vectors, looked up by index."""

from __future__ import annotations

from typing import Any, Self

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn import init
from tinytorch.nn.modules._family import non_default
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.create import empty

__all__ = ["Embedding", "EmbeddingBag"]


class _EmbeddingTable(Module):
    """The base of both embeddings: the table and its initial values."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    weight: Tensor

    def _register_weight(self, values: Tensor | None, requires_grad: bool, device: Any, dtype: Any) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        if values is not None and tuple(values.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        table = empty(shape, device=device, dtype=dtype) if values is None else values
        self.weight = Parameter(table, requires_grad=requires_grad)
        if values is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table again."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0


class Embedding(_EmbeddingTable):
    """A table of `num_embeddings` vectors; the output holds the rows at the indices in the input.

    The row `padding_idx` is initially 0 and gets no gradient; other arguments as for `nn.functional.embedding`.

    Attributes:
        weight: the table, `(num_embeddings, embedding_dim)`, from N(0, 1).

    Shape: integers `(*)` -> `(*, embedding_dim)`.

    Example:
        >>> words = torch.nn.Embedding(10, 3, padding_idx=0)
        >>> words(torch.tensor([[1, 2], [4, 0]])).shape
        torch.Size([2, 2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._register_weight(_weight, not _freeze, device, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """Return a layer with the table `embeddings`, whose memory it shares.

        `freeze` excludes the table from training.

        Example:
            >>> words = torch.nn.Embedding.from_pretrained(torch.tensor([[1.0, 2.3], [4.0, 5.1]]))
            >>> words(torch.tensor(1))
            tensor([4.0000, 5.1000])
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        settings = padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
        return cls(rows, columns, *settings, _weight=embeddings, _freeze=freeze)

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows at the indices, of shape `(*, embedding_dim)`."""
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        shown = non_default(self, padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, sparse=False)
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *shown])


class EmbeddingBag(_EmbeddingTable):
    """The sum, mean or maximum of the rows of a table, for every bag of indices.

    The index `padding_idx` is left out of its bags; its row is initially 0 and gets no gradient. Other arguments as for
    `nn.functional.embedding_bag`.

    Attributes:
        weight: the table, `(num_embeddings, embedding_dim)`, from N(0, 1).

    Shape: integers `(B, L)`, or `(N,)` with offsets `(B,)` -> `(B, embedding_dim)`.

    Example:
        >>> bags = torch.nn.EmbeddingBag(10, 3, mode="sum")
        >>> bags(torch.tensor([1, 2, 4, 5, 4]), torch.tensor([0, 2])).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self._register_weight(_weight, True, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """Return a layer with the table `embeddings`, whose memory it shares; see `Embedding.from_pretrained`.

        Example:
            >>> bags = torch.nn.EmbeddingBag.from_pretrained(torch.tensor([[1.0, 2.0], [4.0, 5.0]]))
            >>> bags(torch.tensor([[1, 0]]))
            tensor([[2.5000, 3.5000]])
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        settings = max_norm, norm_type, scale_grad_by_freq, mode, sparse
        layer = cls(rows, columns, *settings, embeddings, include_last_offset, padding_idx)
        layer.weight.requires_grad = not freeze
        return layer

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Return the sum, mean or maximum of the rows of every bag, of shape `(B, embedding_dim)`."""
        settings = self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse
        bags = self.include_last_offset, self.padding_idx
        return F.embedding_bag(input, self.weight, offsets, *settings, per_sample_weights, *bags)

    def extra_repr(self) -> str:
        shown = non_default(self, max_norm=None, norm_type=2, scale_grad_by_freq=False)
        shown = [f"{self.num_embeddings}, {self.embedding_dim}", *shown, f"mode={self.mode!r}"]
        return ", ".join(shown + non_default(self, padding_idx=None))
