"""Ops of neural networks: the linear layer."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.core import native
from tinytorch.core.complex import HOLOMORPHIC, OWN
from tinytorch.core.mode import short
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import products
from tinytorch.ops.arguments import op_of, unless_empty
from tinytorch.ops.linalg.products import mm_nn, mm_tn
from tinytorch.ops.register import public


def _flat(x: Tensor) -> Tensor:
    """Return (..., I) as (N, I)."""
    shape = x.shape
    if len(shape) < 3:
        return x if len(shape) == 2 else x.unsqueeze(0)
    return x.reshape(math.prod(shape[:-1]), shape[-1])


@native.declared
@short("linear_x", mm_nn)
def _linear_x(g: Tensor, weight: Tensor, x_shape: tuple[int, ...]) -> Tensor:
    if len(x_shape) == 2 == len(weight.shape):
        return mm_nn(g, weight)
    if weight.ndim == 1:
        return g.unsqueeze(-1) * weight
    out: Tensor = mm_nn(_flat(g), weight)
    if len(x_shape) < 3:
        return out if len(x_shape) == 2 else out[0]
    return out.reshape(x_shape)


@native.declared
@short("linear_weight", mm_tn)
def _linear_weight(g: Tensor, x: Tensor, weight_shape: tuple[int, ...]) -> Tensor:
    if len(weight_shape) == 2 == g._array.ndim:
        return mm_tn(g, x)
    if len(weight_shape) == 1:
        g = g.unsqueeze(-1)
    # g.T @ x, not (x.T @ g).T, so that the result has the weight's memory layout.
    out: Tensor = mm_tn(_flat(g), _flat(x))
    return out if len(weight_shape) == 2 else out.reshape(weight_shape)


_column_sums = op_of(
    products.column_sums, batch=lambda x: x.sum(tuple(range(x.ndim - 1))) if x.ndim > 1 else x.clone(), complex=OWN,
    x=lambda g, x_shape: g.expand(x_shape),
)  # fmt: skip


@native.declared
@short("linear_bias", _column_sums)
def _linear_bias(g: Tensor, bias_shape: tuple[int, ...]) -> Tensor:
    shape = g._array.shape
    if len(shape) > 1 and bias_shape == shape[-1:]:
        return _column_sums(g)
    return g.sum_to_size(bias_shape)


@public("nn.functional.linear", binds=False, out="exact", autocast="op")
@op(
    products.affine,
    batch="linear",
    complex=HOLOMORPHIC,
    multiply_adds=lambda out, x, *rest: math.prod(out) * x[-1],
    refuses=unless_empty("addmm_impl_cpu_"),
    name="Mm",
    overload=("bias", "AddmmBackward0"),
    x=_linear_x,
    weight=_linear_weight,
    bias=_linear_bias,
)
def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """Return `x @ weight.T + bias`, of shape (*, out_features); of shape (*) for a weight of one dimension.

    Shapes: (*, in_features), (out_features, in_features) or (in_features,), and a bias that broadcasts to
    (out_features,).

    Example:
        >>> x, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
        >>> torch.nn.functional.linear(x, weight, torch.tensor([10.0, 20.0]))
        tensor([[11., 23.]])
    """
