"""The linear layer with a weight of 8 or 16 bits."""

from __future__ import annotations

from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.nn.modules.linear import Linear as FloatLinear
from tinytorch.nn.modules.linear import NonDynamicallyQuantizableLinear
from tinytorch.nn.modules.module import Module
from tinytorch.nn.utils.parametrize import type_before_parametrizations
from tinytorch.ops.create import ones, zeros
from tinytorch.ops.quantized import bfloat16_bits, dequantized_rows, quantized_linear, quantized_rows, saturated

__all__ = ["Linear"]

#: By the dtype of the weight, that of the tensor which holds it.
_STORED = {dtypes.qint8: dtypes.int8, dtypes.float16: dtypes.float16, dtypes.bfloat16: dtypes.uint16}


class Linear(Module):
    """y = x Wᵀ + b with a weight that is stored in 8 or 16 bits: `DynamicQuantizedLinear`.

    With `dtype=torch.qint8`, each row of the weight is int8 and has a scale. PyTorch's layer has one scale for the
    whole weight, and rounds the input to 8 bits, too; here the input and the sums stay float32, which is more accurate,
    and as fast where the time is that of reading the weight. With `torch.float16`, or `torch.bfloat16` (which PyTorch
    lacks here), there are no scales.

    Its state has other names than that of PyTorch, whose packed weights tinytorch neither writes nor reads. The input
    gets a gradient; the weight and the bias are not trained.

    Args:
        in_features, out_features: the lengths of the last dimension of input and output.
        bias_: whether to add b.
        dtype: `torch.qint8`, `torch.float16` or `torch.bfloat16`.

    Attributes:
        weight_values: `(out_features, in_features)`, int8, float16, or uint16 that holds the bits of bfloat16 (which
            NumPy lacks); zeros at first.
        weight_scales: `(out_features,)`, float32, by which the rows of the values are multiplied; None for 16 bits.
        bias_values: `(out_features,)`, float32, or None.
        weight_dtype: the argument `dtype`.

    Shape: `(*, in_features)` -> `(*, out_features)`, float32, with at least one leading dimension.

    Example:
        >>> layer = torch.ao.nn.quantized.dynamic.Linear(20, 30)
        >>> layer(torch.ones(128, 20)).shape, layer.weight_values.dtype
        (torch.Size([128, 30]), torch.int8)
    """

    weight_values: Tensor
    weight_scales: Tensor | None
    bias_values: Tensor | None

    def __init__(self, in_features: int, out_features: int, bias_: bool = True, dtype: Any = dtypes.qint8) -> None:
        super().__init__()
        if dtype not in _STORED:
            raise RuntimeError(f"Unsupported dtype specified for quantized Linear!: {dtype}")
        self.in_features = in_features
        self.out_features = out_features
        self.weight_dtype = dtype
        self.register_buffer("weight_values", zeros(out_features, in_features, dtype=_STORED[dtype]))
        scales = ones(out_features, dtype=dtypes.float32) if dtype is dtypes.qint8 else None
        self.register_buffer("weight_scales", scales)
        self.register_buffer("bias_values", zeros(out_features, dtype=dtypes.float32) if bias_ else None)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Linear:
        """Return the quantized layer of a `torch.nn.Linear`.

        Its attribute `qconfig`, a configuration of `torch.ao.quantization` or None, says which dtype the weight gets:
        None means `torch.qint8`. `use_precomputed_fake_quant` has no effect.
        """
        if type_before_parametrizations(mod) not in (FloatLinear, NonDynamicallyQuantizableLinear):
            raise AssertionError(
                "nn.quantized.dynamic.Linear.from_float only works for one of"
                f"['Linear', 'NonDynamicallyQuantizableLinear'], got {type(mod)}"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        dtype = dtypes.qint8 if mod.qconfig is None else mod.qconfig.dtype
        layer = cls(mod.in_features, mod.out_features, mod.bias is not None, dtype)
        layer.set_weight_bias(mod.weight, mod.bias)
        return layer

    def set_weight_bias(self, w: Tensor, b: Tensor | None) -> None:
        """Quantize a weight, and take it and a bias.

        Args:
            w: `(out_features, in_features)`, floating-point.
            b: `(out_features,)`, or None.
        """
        with no_grad():
            if self.weight_dtype is dtypes.qint8:
                self.weight_values, self.weight_scales = quantized_rows(w.detach())
            elif self.weight_dtype is dtypes.float16:
                self.weight_values = saturated(w.detach())
            else:
                self.weight_values = bfloat16_bits(w.detach())
            self.bias_values = None if b is None else b.detach().to(dtypes.float32, copy=True)

    def weight(self) -> Tensor:
        """Return the dequantized weight: `(out_features, in_features)`, float32."""
        result: Tensor = dequantized_rows(self.weight_values, self.weight_scales)
        return result

    def bias(self) -> Tensor | None:
        """Return the bias."""
        return self.bias_values

    def forward(self, x: Tensor) -> Tensor:
        """Return x Wᵀ + b, of shape `(*, out_features)`."""
        result: Tensor = quantized_linear(x, self.weight_values, self.weight_scales, self.bias_values)
        return result

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        """Return the sizes, and how the weight is stored."""
        text = f"in_features={self.in_features}, out_features={self.out_features}, dtype={self.weight_dtype}"
        return text + ", qscheme=torch.per_channel_affine" * (self.weight_dtype is dtypes.qint8)
