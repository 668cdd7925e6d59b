"""Activation functions as modules, which call the functions of `nn.functional`; `MultiheadAttention`."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.autograd.grad_mode import is_grad_enabled
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.nn import functional as F
from tinytorch.nn import init as initial
from tinytorch.nn.modules import _fast_path
from tinytorch.nn.modules._family import ReprLayer, layer
from tinytorch.nn.modules.linear import NonDynamicallyQuantizableLinear
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.create import empty
from tinytorch.ops.nn.attention import canonical_mask, decides, full_mask

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU",
    "Sigmoid", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh",
    "Tanhshrink", "Threshold",
]  # fmt: skip


@layer()
class _Inplace(ReprLayer):
    """The base of functions whose only setting is `inplace`."""

    inplace: bool = False


@layer(F.relu)
class ReLU(_Inplace):
    """max(x, 0), elementwise; as in other activations, `inplace` writes into the input.

    Example:
        >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """


@layer(F.threshold, shown="threshold value")
class Threshold(ReprLayer):
    """`x` where x > threshold, else `value`; arguments as `nn.functional.threshold`.

    Example:
        >>> torch.nn.Threshold(0.1, 20)(torch.tensor([0.0, 1.0]))
        tensor([20.,  1.])
    """

    threshold: float
    value: float
    inplace: bool = False


@layer(F.hardtanh, shown="min_val max_val")
class Hardtanh(ReprLayer):
    """`x` clamped to [min_val, max_val].

    `min_value` and `max_value` are deprecated names of the bounds.

    Example:
        >>> torch.nn.Hardtanh()(torch.tensor([-3.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        if min_value is not None:
            warn("keyword argument `min_value` is deprecated and renamed to `min_val`", FutureWarning)
            min_val = min_value
        if max_value is not None:
            warn("keyword argument `max_value` is deprecated and renamed to `max_val`", FutureWarning)
            max_val = max_value
        if max_val <= min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace


class ReLU6(Hardtanh):
    """min(max(x, 0), 6), elementwise.

    Example:
        >>> torch.nn.ReLU6()(torch.tensor([-1.0, 2.0, 8.0]))
        tensor([0., 2., 6.])
    """

    _repr_attributes = ""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


@layer(F.leaky_relu, shown="negative_slope")
class LeakyReLU(ReprLayer):
    """`x` where x >= 0, else negative_slope * x.

    Example:
        >>> torch.nn.LeakyReLU(0.5)(torch.tensor([-1.0, 2.0]))
        tensor([-0.5000,  2.0000])
    """

    negative_slope: float = 1e-2
    inplace: bool = False


class PReLU(ReprLayer):
    """`x` where x >= 0, else weight * x, with trainable slopes.

    `weight` holds one slope, or `num_parameters` for as many channels (dimension 1), initially `init`.

    Example:
        >>> torch.nn.PReLU()(torch.tensor([-1.0, 2.0])).detach()
        tensor([-0.2500,  2.0000])

    Source: He et al., "Delving deep into rectifiers", 2015.
    """

    _repr_attributes = "num_parameters"

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the slopes to `init`."""
        initial.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)


@layer(F.rrelu, shown="lower upper")
class RReLU(ReprLayer):
    """`x` where x >= 0, else a * x, with a from U(lower, upper); in evaluation, a is their mean.

    Example:
        >>> torch.nn.RReLU(0.25, 0.75).eval()(torch.tensor([-1.0, 2.0]))
        tensor([-0.5000,  2.0000])
    """

    lower: float = 1 / 8
    upper: float = 1 / 3
    inplace: bool = False


@layer(F.elu, shown="alpha")
class ELU(ReprLayer):
    """`x` where x > 0, else alpha * (exp(x) - 1).

    Example:
        >>> torch.nn.ELU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False


@layer(F.celu)
class CELU(ELU):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)); `alpha` as for `ELU`.

    Example:
        >>> torch.nn.CELU(2.0)(torch.tensor([-1.0, 2.0]))
        tensor([-0.7869,  2.0000])
    """


@layer(F.selu)
class SELU(_Inplace):
    """scale * (max(0, x) + min(0, alpha * (exp(x) - 1))); see `nn.functional.selu`.

    With scale = 1.0507 and alpha = 1.6733, which preserve mean 0 and variance 1 from layer to layer.

    Example:
        >>> torch.nn.SELU()(torch.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])
    """


@layer(F.gelu)
class GELU(Module):
    """x * Φ(x), with Φ the distribution function of the standard normal.

    `approximate` is "none", or "tanh" for Φ(x) ≈ (1 + tanh(sqrt(2/π) * (x + 0.044715 x³))) / 2.

    Example:
        >>> torch.nn.GELU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.1587,  1.9545])

    Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016.
    """

    approximate: str = "none"

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


@layer(F.silu)
class SiLU(_Inplace):
    """x * sigmoid(x), also called swish.

    Example:
        >>> torch.nn.SiLU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])
    """


@layer(F.mish)
class Mish(_Inplace):
    """x * tanh(softplus(x)).

    Example:
        >>> torch.nn.Mish()(torch.tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])
    """


class _InplaceWithoutRepr(_Inplace):
    def extra_repr(self) -> str:
        return ""


@layer(F.hardsigmoid)
class Hardsigmoid(_InplaceWithoutRepr):
    """x / 6 + 1 / 2 clamped to [0, 1].

    Example:
        >>> torch.nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500])
    """


@layer(F.hardswish)
class Hardswish(_InplaceWithoutRepr):
    """x * hardsigmoid(x).

    Example:
        >>> torch.nn.Hardswish()(torch.tensor([-4.0, 0.0, 1.5]))
        tensor([-0.0000,  0.0000,  1.1250])
    """


@layer(F.glu, shown="dim")
class GLU(ReprLayer):
    """a * sigmoid(b), with a and b the first and second half of the input along `dim`.

    Example:
        >>> torch.nn.GLU()(torch.tensor([1.0, 2.0, 0.0, 0.0]))
        tensor([0.5000, 1.0000])
    """

    dim: int = -1


@layer(F.sigmoid)
class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    Example:
        >>> torch.nn.Sigmoid()(torch.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """


@layer(F.logsigmoid)
class LogSigmoid(Module):
    """log(1 / (1 + exp(-x))), without overflow.

    Example:
        >>> torch.nn.LogSigmoid()(torch.tensor([0.0, -200.0]))
        tensor([  -0.6931, -200.0000])
    """


@layer(F.tanh)
class Tanh(Module):
    """The hyperbolic tangent.

    Example:
        >>> torch.nn.Tanh()(torch.tensor([0.0, 2.0]))
        tensor([0.0000, 0.9640])
    """


@layer(F.tanhshrink)
class Tanhshrink(Module):
    """`x` - tanh(x).

    Example:
        >>> torch.nn.Tanhshrink()(torch.tensor([0.0, 2.0]))
        tensor([0.0000, 1.0360])
    """


@layer(F.softplus, shown="beta threshold")
class Softplus(ReprLayer):
    """log(1 + exp(beta * x)) / beta, or x where beta * x > threshold.

    Example:
        >>> torch.nn.Softplus()(torch.tensor([0.0, 30.0]))
        tensor([ 0.6931, 30.0000])
    """

    beta: float = 1.0
    threshold: float = 20.0


@layer(F.softsign)
class Softsign(Module):
    """x / (1 + |x|).

    Example:
        >>> torch.nn.Softsign()(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.5000])
    """


@layer()
class _Shrink(Module):
    lambd: float = 0.5

    def extra_repr(self) -> str:
        return str(self.lambd)


@layer(F.hardshrink)
class Hardshrink(_Shrink):
    """`x` where |x| > lambd, else 0.

    Example:
        >>> torch.nn.Hardshrink()(torch.tensor([0.25, 1.0]))
        tensor([0., 1.])
    """


@layer(F.softshrink)
class Softshrink(_Shrink):
    """sign(x) * max(|x| - lambd, 0).

    Example:
        >>> torch.nn.Softshrink()(torch.tensor([0.25, 1.0]))
        tensor([0.0000, 0.5000])
    """


@layer(shown="dim")
class _AlongDim(ReprLayer):
    """The base of softmax functions, with the dimension `dim`."""

    dim: int | None = None


class Softmax(_AlongDim):
    """exp(x) / Σ exp(x), with the sum along `dim`.

    Omitting `dim` warns, and selects PyTorch's default.

    Example:
        >>> torch.nn.Softmax(dim=-1)(torch.tensor([0.0, 0.0]))
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim, 5)  # (5: a `_stacklevel`, as graphs of `torch.fx` show it)


class Softmin(_AlongDim):
    """Softmax of -x; `dim` as for `Softmax`.

    Example:
        >>> torch.nn.Softmin(dim=-1)(torch.tensor([0.0, 2.0]))
        tensor([0.8808, 0.1192])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim, 5)


class LogSoftmax(_AlongDim):
    """x - log Σ exp(x), with the sum along `dim`, as for `Softmax`.

    Example:
        >>> torch.nn.LogSoftmax(dim=-1)(torch.tensor([0.0, 0.0]))
        tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim, 5)


class Softmax2d(Module):
    """Softmax over the channels of an image, `(N, C, H, W)` or `(C, H, W)`.

    Example:
        >>> torch.nn.Softmax2d()(torch.zeros(1, 4, 1, 1)).flatten()
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, 5)


class MultiheadAttention(Module):
    """Multi-head attention: softmax(Q Kᵀ / sqrt(d)) V, with separate projections of the inputs for every head.

    Queries and output are (L, N, E), keys and values (S, N, kdim) and (S, N, vdim), or with `batch_first` N comes
    first. `add_bias_kv` appends a trainable key and value, `add_zero_attn` a key and value of zeros.

    Attributes:
        in_proj_weight: the weights of the three projections, `(3 * embed_dim, embed_dim)`; None if `kdim` or `vdim`
            differ, where `q_proj_weight`, `k_proj_weight` and `v_proj_weight` hold them.
        in_proj_bias: their biases, `(3 * embed_dim,)`, initially 0; or None.
        bias_k, bias_v: the trainable key and value, or None.
        out_proj: the output projection.

    Example:
        >>> attention = torch.nn.MultiheadAttention(8, num_heads=2, batch_first=True)
        >>> out, weights = attention(torch.ones(3, 4, 8), torch.ones(3, 5, 8), torch.ones(3, 5, 8))
        >>> out.shape, weights.shape
        (torch.Size([3, 4, 8]), torch.Size([3, 4, 5]))

    Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2.
    """

    in_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    bias_k: Tensor | None
    bias_v: Tensor | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*shape: int) -> Parameter:
            return Parameter(empty(shape, device=device, dtype=dtype))

        separate = {"q_proj_weight": embed_dim, "k_proj_weight": self.kdim, "v_proj_weight": self.vdim}
        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            for name in separate:
                self.register_parameter(name, None)
        else:
            for name, features in separate.items():
                self.register_parameter(name, parameter(embed_dim, features))
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.bias_k = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.bias_v = parameter(1, 1, embed_dim) if add_bias_kv else None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                initial.xavier_uniform_(weight)
        if self.in_proj_bias is not None and self.out_proj.bias is not None:
            initial.constant_(self.in_proj_bias, 0.0)
            initial.constant_(self.out_proj.bias, 0.0)
        for appended in (self.bias_k, self.bias_v):
            if appended is not None:
                initial.xavier_normal_(appended)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output and the attention weights; arguments as `F.multi_head_attention_forward`."""
        additive = any(mask is not None and mask.is_floating_point() for mask in (attn_mask, key_padding_mask))
        key_padding_mask = canonical_mask(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype)
        attn_mask = canonical_mask(attn_mask, "attn_mask", None, "", query.dtype)
        compute_weights = need_weights or (
            query is key is value and not additive and self._masks_whole_row(query, attn_mask, key_padding_mask)
        )
        transposed = self.batch_first and query.ndim == 3
        if transposed:
            # (Identical tensors must stay identical: their projections are computed as one product.)
            same_key, same_value = key is query, value is key
            query = query.transpose(0, 1)
            key = query if same_key else key.transpose(0, 1)
            value = key if same_value else value.transpose(0, 1)
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            self.bias_k, self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias,
            training=self.training, key_padding_mask=key_padding_mask, need_weights=compute_weights,
            attn_mask=attn_mask, use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight, k_proj_weight=self.k_proj_weight, v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (out.transpose(0, 1) if transposed else out), weights if need_weights else None

    def _fused(self, query: Tensor) -> bool:
        """Return whether PyTorch would use its fused kernel for these settings."""
        return (
            _fast_path.get_fastpath_enabled()
            and not self.training
            and query.ndim == 3
            and self.batch_first
            and self._qkv_same_embed_dim
            and self.in_proj_bias is not None
            and self.bias_k is None
            and not self.add_zero_attn
            and self.num_heads % 2 == 0
            and not (is_grad_enabled() and any(x.requires_grad for x in (query, *self.parameters())))
        )

    def _masks_whole_row(self, query: Tensor, mask: Tensor | None, padding: Tensor | None) -> bool:
        """Return whether a query attends to no key, where PyTorch's fused kernel returns NaN instead of zeros."""
        if (mask is None and padding is None) or not self._fused(query):
            return False
        combined: Any = full_mask(mask, padding, query.shape[0], self.num_heads, 0)
        return decides((combined == -math.inf).all(-1).any())
