"""Ops with numbers of few bits: the linear layer with weights of 8 or 16 bits, and the product of matrices of bytes."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes, quantized
from tinytorch.ops.arguments import op_of
from tinytorch.ops.linalg.products import mm_nn
from tinytorch.ops.register import public

__all__ = ["bfloat16_bits", "dequantized_rows", "quantized_linear", "quantized_rows", "saturated"]

_byte_product: Any = op_of(quantized.int_mm, batch=lambda a, b: a.int() @ b.int(), a=None, b=None)


@public("_int_mm", listed=False)
def _int_mm(input: Tensor, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return the product of two matrices of bytes, (n, m) and (m, p), summed exactly in int32.

    The second is int8, the first also uint8. It is fastest where each column of `mat2` is contiguous, as in
    `weight.t()`. `out`, int32 (n, p), takes the result.

    Example:
        >>> a = torch.tensor([[100, -100]], dtype=torch.int8)
        >>> torch._int_mm(a, a.t())
        tensor([[20000]], dtype=torch.int32)
    """
    result: Tensor = _byte_product(input, mat2)
    if out is None:
        return result
    if out.dtype is not dtypes.int32:
        raise RuntimeError(
            f"int_mm_out_cpu: Expected result dtype to be of type kInt but got {dtypes.C_NAMES[out.dtype.name]}"
        )
    for dim, size in enumerate(result.shape):
        if out.ndim != 2 or out.shape[dim] != size:
            got = out.shape[dim] if dim < out.ndim else "none"
            raise RuntimeError(f"int_mm_out_cpu: Expected result.size({dim}) to be {size} but got {got}")
    if not out.is_contiguous():
        raise RuntimeError("int_mm_out_cpu: Expected result to be contiguous.")
    return out.copy_(result)


def _quantized_linear_x(g: Tensor, weight: Tensor, scale: Tensor | None, x_shape: tuple[int, ...]) -> Tensor:
    flat = g.reshape(math.prod(g.shape[:-1]), g.shape[-1])
    out: Tensor = mm_nn(flat, dequantized_rows(weight, scale))
    return out.reshape(x_shape)


@op(
    quantized.quantized_linear, x=_quantized_linear_x, weight=None, scale=None, bias=None,
    multiply_adds=lambda out, x, *rest: math.prod(out) * x[-1],
)  # fmt: skip
def quantized_linear(x: Any, weight: Any, scale: Any = None, bias: Any = None) -> Any:
    """Return `(x @ weight.T) * scale + bias`, of shape (*, out_features), computed in float32.

    `x` is float32 (*, in_features) with at least one leading dimension; the weight (out_features, in_features) int8,
    float16, or uint16 that holds the bits of bfloat16. The gradient of `x` is that of the layer with the dequantized
    weight; the other arguments have none.
    """


@op(quantized.quantized_rows, batch="folded", weight=None, outputs=2)
def quantized_rows(weight: Any) -> Any:
    """Return the rows of a weight as int8, and their scales: the largest magnitude of a row divided by 127."""


@op(quantized.saturated, batch="leading", weight=None)
def saturated(weight: Any) -> Any:
    """Return a weight as float16, with what is beyond its range replaced by its largest number."""


@op(quantized.bfloat16_bits, batch="leading", weight=None)
def bfloat16_bits(weight: Any) -> Any:
    """Return the bits of a weight rounded to bfloat16, as uint16."""


@op(quantized.dequantized_rows, batch="folded", weight=None, scale=None)
def dequantized_rows(weight: Any, scale: Any = None) -> Any:
    """Return the weight of a quantized layer as float32: `weight * scale`, with a scale for each row, or None."""
