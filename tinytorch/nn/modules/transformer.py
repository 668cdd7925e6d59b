"""The Transformer: layers of attention and feed-forward networks, and stacks of these layers."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, ClassVar

from tinytorch.autograd.grad_mode import is_grad_enabled
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.nn import functional as F
from tinytorch.nn import init
from tinytorch.nn.modules import _fast_path
from tinytorch.nn.modules._family import redefining
from tinytorch.nn.modules.activation import GELU, MultiheadAttention, ReLU
from tinytorch.nn.modules.container import ModuleList
from tinytorch.nn.modules.dropout import Dropout
from tinytorch.nn.modules.linear import Linear
from tinytorch.nn.modules.module import Module
from tinytorch.nn.modules.normalization import LayerNorm
from tinytorch.ops import autocast
from tinytorch.ops.create import full
from tinytorch.ops.nn.attention import canonical_mask, decides

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
]  # fmt: skip

Activation = str | Callable[[Tensor], Tensor]


def _causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Return a mask (size, size) of -inf above the diagonal and 0 elsewhere."""
    mask: Tensor = full((size, size), -math.inf, device=device, dtype=dtype)
    return mask.triu(diagonal=1)


def _is_causal(mask: Tensor | None, hint: bool | None, length: int) -> bool:
    """Return the hint; if it is None, whether the mask is the causal mask."""
    if hint is not None or mask is None:
        return hint is True
    return mask.shape == (length, length) and decides((mask == _causal_mask(length, dtype=mask.dtype)).all())


def _length(x: Tensor, batch_first: bool) -> int:
    return x.shape[1 if batch_first and x.ndim == 3 else 0]


def _copies(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _get_activation_fn(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    functions: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
    if activation not in functions:
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return functions[activation]


class _Layer(Module):
    """The base of encoder and decoder layers: their parts, and the self-attention block."""

    _attentions: ClassVar[tuple[str, ...]] = ("self_attn",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **options))
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for k in blocks:
            setattr(self, f"norm{k}", LayerNorm(d_model, eps=layer_norm_eps, **options))
        for k in blocks:
            setattr(self, f"dropout{k}", Dropout(dropout))
        self._set_activation(_get_activation_fn(activation))

    def _set_activation(self, function: Callable[[Tensor], Tensor]) -> None:
        self.activation = function

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
        need_weights: bool = False,
    ) -> Tensor:
        x = self.self_attn(x, x, x, key_padding_mask, need_weights, attn_mask, is_causal=is_causal)[0]
        return self.dropout1(x)


@redefining("__init__")
class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, both with a residual connection and layer normalisation.

    Input and output are (S, N, E), or with `batch_first` (N, S, E), E = `d_model`. `activation` is "relu", "gelu" or a
    function of one tensor; `norm_first` normalises the inputs of attention and network (pre-norm) instead of the sums
    (post-norm).

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16)
        >>> layer(torch.ones(5, 3, 8)).shape
        torch.Size([5, 3, 8])

    Source:
        Vaswani et al., "Attention Is All You Need", 2017; Xiong et al., "On Layer Normalization in the Transformer
        Architecture", 2020 (`norm_first`).
    """

    def _set_activation(self, function: Callable[[Tensor], Tensor]) -> None:
        # PyTorch's attribute, which selects its fused kernel.
        self.activation_relu_or_gelu = (
            1 if function == F.relu or isinstance(function, ReLU)
            else 2 if function == F.gelu or isinstance(function, GELU)
            else 0
        )  # fmt: skip
        super()._set_activation(function)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's output, of the shape of `src`.

        Args:
            src: shape (S, E), (S, N, E), or (N, S, E) with `batch_first`.
            src_mask: (S, S) or (N * heads, S, S), True (or -inf) for pairs of positions that are masked.
            src_key_padding_mask: (S,) or (N, S), True (or -inf) for positions that are masked for all queries.
            is_causal: a hint that `src_mask` is the causal mask.
        """
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", src_mask, "src_mask", src.dtype)
        mask = canonical_mask(src_mask, "src_mask", None, "", src.dtype)
        x = src
        options = {"is_causal": is_causal}
        if self._fused(src) and self.self_attn._masks_whole_row(src, mask, padding):
            options["need_weights"] = True
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, **options)
            out: Tensor = x + self._ff_block(self.norm2(x))
        else:
            x = self.norm1(x + self._sa_block(x, mask, padding, **options))
            out = self.norm2(x + self._ff_block(x))
        if autocast.on and self._fused(src):
            (out,) = autocast.lowered(out)
        return out

    def _fused(self, src: Tensor) -> bool:
        """Return whether PyTorch would use its fused kernel, whose result under autocasting has low precision."""
        return (
            not self.training
            and bool(self.activation_relu_or_gelu)
            and self.norm1.eps == self.norm2.eps
            and self.self_attn._fused(src)
            and not (is_grad_enabled() and any(p.requires_grad for p in self.parameters()))
        )

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


@redefining("__init__")
class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, and a feed-forward network.

    All with a residual connection and layer normalisation; arguments as `TransformerEncoderLayer`.

    Example:
        >>> layer = torch.nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
        >>> layer(torch.ones(4, 3, 8), torch.ones(5, 3, 8)).shape
        torch.Size([4, 3, 8])
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the layer's output, of the shape of `tgt`.

        Args:
            tgt: shape (T, E), (T, N, E), or (N, T, E) with `batch_first`.
            memory: the encoder's output, (S, E), (S, N, E) or (N, S, E).
            tgt_mask: (T, T) or (N * heads, T, T), True (or -inf) for pairs of positions that are masked.
            memory_mask: (T, S) or (N * heads, T, S).
            tgt_key_padding_mask: (T,) or (N, T), True (or -inf) for positions that are masked for all queries.
            memory_key_padding_mask: (S,) or (N, S).
            tgt_is_causal, memory_is_causal: hints that `tgt_mask` and `memory_mask` are the causal mask.
        """
        x = tgt
        tgt_options = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        memory_options = memory_mask, memory_key_padding_mask, memory_is_causal
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *tgt_options)
            x = x + self._mha_block(self.norm2(x), memory, *memory_options)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *tgt_options))
        x = self.norm2(x + self._mha_block(x, memory, *memory_options))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(
        self, x: Tensor, mem: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        x = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )[0]
        return self.dropout2(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """A stack of copies of a layer, with the same initial parameters.

    The last layer's output goes through `norm`. With `enable_nested_tensor` PyTorch may skip padding in its fused
    kernel; here nothing is skipped, but the output at padded positions is 0, before `norm`, wherever PyTorch's is.
    `mask_check` has no effect.

    Example:
        >>> layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        >>> torch.nn.TransformerEncoder(layer, num_layers=2)(torch.ones(3, 5, 8)).shape
        torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = _reason_not_nested(encoder_layer) if enable_nested_tensor else ""
        if reason:
            warn(f"enable_nested_tensor is True, but self.use_nested_tensor is False because encoder_layer{reason}")
            self.use_nested_tensor = False

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return the output of the last layer, of the shape of `src`.

        Args:
            src, mask, src_key_padding_mask: as those of `TransformerEncoderLayer`.
            is_causal: a hint that `mask` is the causal mask; None to compare it with the causal mask.
        """
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", mask, "mask", src.dtype)
        mask = canonical_mask(mask, "mask", None, "", src.dtype)
        first: Any = self.layers[0]
        is_causal = _is_causal(mask, is_causal, _length(src, first.self_attn.batch_first))
        out = src
        for layer in self.layers:
            out = layer(out, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        if padding is not None and mask is None and self._skips_padding(src, padding):
            if decides((padding != 0).all()):
                raise RuntimeError("to_padded_tensor: at least one constituent tensor should have non-zero numel")
            out = out.masked_fill((padding != 0).unsqueeze(-1), 0)
        return out if self.norm is None else self.norm(out)

    def _skips_padding(self, src: Tensor, padding: Tensor) -> bool:
        """Return whether PyTorch skips padding: in evaluation, without gradients, if it is at the end."""
        first: Any = self.layers[0]
        if not (_fast_path.get_fastpath_enabled() and self.use_nested_tensor) or first.training:
            return False
        if src.ndim != 3 or (
            is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in first.parameters()))
        ):
            return False
        absent = padding != 0
        return decides((absent[:, 1:] >= absent[:, :-1]).all())


def _reason_not_nested(layer: Any) -> str:
    """Return PyTorch's reason for not using its fused kernel for the layer, or "" if it uses it."""
    if not isinstance(layer, TransformerEncoderLayer):
        return " was not TransformerEncoderLayer"
    if layer.norm_first:
        return ".norm_first was True"
    attention = layer.self_attn
    if not attention.batch_first:
        return ".self_attn.batch_first was not True(use batch_first for better inference performance)"
    if not attention._qkv_same_embed_dim:
        return ".self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return ".self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return ".activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return ".norm1.eps was not equal to encoder_layer.norm2.eps"
    return ".self_attn.num_heads is odd" if attention.num_heads % 2 else ""


class TransformerDecoder(Module):
    """A stack of copies of a layer, with the same initial parameters; arguments as `TransformerEncoder`.

    Example:
        >>> layer = torch.nn.TransformerDecoderLayer(8, 2, 16)
        >>> torch.nn.TransformerDecoder(layer, 2)(torch.ones(4, 3, 8), torch.ones(5, 3, 8)).shape
        torch.Size([4, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the output of the last layer; arguments as those of `TransformerDecoderLayer`.

        If the hint `tgt_is_causal` is None, `tgt_mask` is compared with the causal mask.
        """
        first: Any = self.layers[0]
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, first.self_attn.batch_first))
        out = tgt
        for layer in self.layers:
            out = layer(
                out, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return out if self.norm is None else self.norm(out)


class Transformer(Module):
    """The Transformer of Vaswani et al.: an encoder, and a decoder that attends to its output.

    `custom_encoder` and `custom_decoder` are modules that replace encoder and decoder; other arguments as for
    `TransformerEncoderLayer`.

    Example:
        >>> model = torch.nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
        >>> model(torch.ones(3, 5, 8), torch.ones(3, 4, 8)).shape
        torch.Size([3, 4, 8])

    Source: Vaswani et al., "Attention Is All You Need", 2017.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        layer_settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            encoder_layer = TransformerEncoderLayer(*layer_settings, **options)
            norm = LayerNorm(d_model, eps=layer_norm_eps, **options)
            self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            decoder_layer = TransformerDecoderLayer(*layer_settings, **options)
            norm = LayerNorm(d_model, eps=layer_norm_eps, **options)
            self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoder's output, of the shape of `tgt`.

        Args:
            src: the input of the encoder, (S, E), (S, N, E), or (N, S, E) with `batch_first`.
            tgt: the input of the decoder, (T, E), (T, N, E) or (N, T, E).
            src_is_causal, tgt_is_causal: hints that `src_mask` and `tgt_mask` are the causal mask; None to compare.
            the others: as those of `TransformerEncoderLayer` and `TransformerDecoderLayer`.
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the causal mask (sz, sz): -inf above the diagonal, 0 elsewhere.

        Example:
            >>> torch.nn.Transformer.generate_square_subsequent_mask(2)
            tensor([[0., -inf],
                    [0., 0.]])
        """
        return _causal_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
