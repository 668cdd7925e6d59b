"""Ops of neural networks: the linear layer."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import activation, products, reduce
from tinytorch.kernels.checks import tensor_name
from tinytorch.ops.arguments import unless_empty
from tinytorch.ops.linalg.products import mm_nn, mm_tn
from tinytorch.ops.register import public


def _flat(x: Tensor) -> Tensor:
    """Return (..., I) as (N, I)."""
    return x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _linear_x(g: Tensor, weight: Tensor, x_shape: tuple[int, ...]) -> Tensor:
    if weight.ndim == 1:
        return g.unsqueeze(-1) * weight
    out: Tensor = mm_nn(_flat(g), weight)
    return out if len(x_shape) == 2 else out.reshape(x_shape)


def _linear_weight(g: Tensor, x: Tensor, weight_shape: tuple[int, ...]) -> Tensor:
    if len(weight_shape) == 1:
        g = g.unsqueeze(-1)
    # g.T @ x, not (x.T @ g).T, so that the result has the weight's memory layout.
    out: Tensor = mm_tn(_flat(g), _flat(x))
    return out if len(weight_shape) == 2 else out.reshape(weight_shape)


def _linear_bias(g: Tensor, bias_shape: tuple[int, ...]) -> Tensor:
    shape = g._array.shape
    if len(shape) > 1 and bias_shape == shape[-1:]:
        return _column_sums(g)
    return g.sum_to_size(bias_shape)


@op(x=lambda g, x_shape: g.expand(x_shape))
def _column_sums(x: Any) -> Any:
    """Return the sums of (..., O) over all dimensions but the last."""
    return reduce.column_sums(activation.widened(x)).astype(x.dtype, copy=False)


@public("nn.functional.linear", binds=False, out="exact", autocast="op")
@op(
    refuses=unless_empty("addmm_impl_cpu_"),
    name="Mm",
    overload=("bias", "AddmmBackward0"),
    x=_linear_x,
    weight=_linear_weight,
    bias=_linear_bias,
)
def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """Return `x @ weight.T + bias`, of shape (*, out_features); of shape (*) for a weight of one dimension.

    Args:
        x: shape (*, in_features), with any number of leading dimensions.
        weight, bias: (out_features, in_features) or (in_features,), and a shape that broadcasts to (out_features,).

    Raises:
        RuntimeError: the shapes do not match, or the dtypes differ; convert with `.to(dtype)`.

    Example:
        >>> x, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
        >>> torch.nn.functional.linear(x, weight, torch.tensor([10.0, 20.0]))
        tensor([[11., 23.]])
    """
    try:
        if (
            x.ndim != 2
            or weight.ndim != 2
            or x.dtype is not weight.dtype
            or x.dtype.kind == "b"
            or x.shape[1] != weight.shape[1]
        ):
            _check_linear(x, weight)
            if x.ndim != 2:  # one large product is faster than many small ones
                flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
                out = linear.op.kernel(flat, weight, bias)
                return out.reshape(x.shape[:-1] + weight.shape[:-1])
    except AttributeError:
        raise _no_tensor("weight", 2, weight) from None
    if bias is not None:
        _check_bias(bias, x, weight)
    if x.dtype.itemsize >= 4:
        return products.linear(x, weight, bias)
    return products.linear(activation.widened(x), activation.widened(weight), bias).astype(x.dtype, copy=False)


def _no_tensor(argument: str, position: int, value: Any) -> TypeError:
    return TypeError(
        f"linear(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
    )


def _check_linear(x: Any, weight: Any) -> None:
    if x.ndim == 0 or weight.ndim == 0:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {x.ndim}D and {weight.ndim}D"
        )
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if x.dtype != weight.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {tensor_name(x)} and {tensor_name(weight)}"
        )
    if x.dtype.kind == "b":
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    if x.shape[-1] != weight.shape[-1]:
        if weight.ndim == 1:
            raise RuntimeError(f"size mismatch, got input ({x.shape[-1]}), vec ({weight.shape[0]})")
        rows = math.prod(x.shape[:-1])
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x.shape[-1]} and {weight.shape[1]}x{weight.shape[0]})"
        )


def _check_bias(bias: Any, x: Any, weight: Any) -> None:
    if weight.ndim == 1:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    try:
        differ = bias.dtype != x.dtype
    except AttributeError:
        raise _no_tensor("bias", 3, bias) from None
    if differ:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {tensor_name(bias)} and {tensor_name(weight)}"
        )
    if bias.shape != weight.shape[:1]:
        features = weight.shape[0]
        if bias.ndim and bias.shape[-1] not in (1, features):
            raise RuntimeError(
                f"The expanded size of the tensor ({features}) must match the existing size ({bias.shape[-1]}) at "
                f"non-singleton dimension 1.  Target sizes: [{math.prod(x.shape[:-1])}, {features}].  Tensor sizes: "
                f"{list(bias.shape)}"
            )
