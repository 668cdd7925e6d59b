"""Tensors of numbers, whose sizes may be those of other tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.fx.onnx.builder import Builder, Length, Operand, Size, rule, torch
from tinytorch.fx.onnx.ops.shape import sizes_of
from tinytorch.kernels import dtypes
from tinytorch.nn import functional as F


def filled(b: Builder, sizes: Any, number: Any) -> Any:
    """Return a tensor of one number."""
    dtype = b.out.dtype
    if isinstance(number, Operand):
        return b.cast(number, dtype).Expand(sizes)
    array = np.array(number).astype(dtype.numpy)
    if not any(isinstance(n, Length) for n in sizes) and np.prod(sizes) <= 64:
        return b.constant(np.full(sizes, array, dtype.numpy))
    return b.node("ConstantOfShape", sizes, value=b.onnx.numpy_helper.from_array(array.reshape(1)))


def _constant(name: str, number: float) -> None:
    rule(getattr(torch, name))(lambda b, *size, **kwargs: filled(b, sizes_of(size or (kwargs["size"],)), number))
    rule(getattr(Tensor, f"new_{name}"))(
        lambda b, x, *size, **kwargs: filled(b, sizes_of(size or (kwargs["size"],)), number)
    )
    rule(getattr(torch, f"{name}_like"))(lambda b, x, **kwargs: filled(b, x.sizes, number))


_constant("zeros", 0)
_constant("ones", 1)
_constant("empty", 0)
rule(torch.full)(lambda b, size, fill_value, **kwargs: filled(b, sizes_of((size,)), fill_value))
rule(Tensor.new_full)(lambda b, x, size, fill_value, **kwargs: filled(b, sizes_of((size,)), fill_value))
rule(torch.full_like)(lambda b, x, fill_value, **kwargs: filled(b, x.sizes, fill_value))
rule(torch.fill, Tensor.fill_)(lambda b, x, value: filled(b, x.sizes, value))
rule(Tensor.zero_)(lambda b, x: filled(b, x.sizes, 0))


@rule(torch.arange)
def _arange(b: Builder, *args: Any, start: Any = 0, end: Any = None, step: Any = 1, **kwargs: Any) -> Any:
    if len(args) == 1:
        end = args[0]
    elif args:
        start, end = args[:2]
        step = args[2] if len(args) > 2 else step
    dtype = b.out.dtype
    if not any(isinstance(x, Operand) for x in (start, end, step)):
        (n,) = b.out.shape
        exact = np.float64 if any(isinstance(x, float) for x in (start, step)) else np.int64
        return b.constant((start + np.arange(n, dtype=exact) * step).astype(dtype.numpy))
    # (Of lengths, which are whole numbers.)
    kind = dtype if dtype in (dtypes.int64, dtypes.int32, dtypes.float32, dtypes.float64) else dtypes.int64
    return b.node("Range", *[b.cast(x, kind) for x in (start, end, step)]).cast(dtype)


@rule(torch.linspace)
def _linspace(b: Builder, start: Any, end: Any, steps: Any, **kwargs: Any) -> Any:
    dtype = b.out.dtype
    if not any(isinstance(x, Operand) for x in (start, end, steps)):
        return b.constant(np.linspace(start, end, steps).astype(dtype.numpy))
    first, last = b.cast(start, dtype), b.cast(end, dtype)
    at = b.node("Range", *map(b.scalar, (0, steps, 1))).convert(dtype)
    gaps = (b.cast(steps, dtype) - 1).Max(1)
    return first + at * ((last - first) / gaps)


@rule(torch.eye)
def _eye(b: Builder, n: Size, m: Size | None = None, **kwargs: Any) -> Any:
    rows, columns = n, n if m is None else m
    if isinstance(rows, int) and isinstance(columns, int):
        return b.constant(np.eye(rows, columns, dtype=b.out.dtype.numpy))
    return b.node("ConstantOfShape", [rows, columns]).EyeLike(dtype=b.type_of(b.out.dtype))


@rule(torch.tensor)
def _tensor(b: Builder, data: Any, **kwargs: Any) -> Any:
    if isinstance(data, Operand):
        return b.cast(data, b.out.dtype)
    if isinstance(data, (tuple, list)) and any(isinstance(x, Operand) for x in data):
        return b.concat(*[x.unsqueeze(0) for x in [b.cast(x, b.out.dtype) for x in data]], axis=0)
    return b.constant(np.array(data).astype(b.out.dtype.numpy))


rule(torch.scalar_tensor)(lambda b, s, **kwargs: _tensor(b, s))
rule(Tensor.new_tensor)(lambda b, x, data, **kwargs: _tensor(b, data))
rule(Tensor.stride, Tensor.is_contiguous, Tensor.element_size, Tensor.storage_offset, Tensor.data_ptr, torch.is_complex,
     torch.is_floating_point, torch.is_nonzero, torch.is_signed, torch.is_same_size, torch.equal, torch.allclose)(
    lambda b, *args, **kwargs: b.refuse("it returns no tensor")
)  # fmt: skip
rule(torch.rand, torch.randn, torch.randint, torch.rand_like, torch.randn_like, torch.randint_like, torch.randperm,
     torch.normal, torch.bernoulli, torch.multinomial, torch.poisson, Tensor.normal_, Tensor.uniform_,
     Tensor.bernoulli_, Tensor.exponential_, F.gumbel_softmax, F.rrelu)(
    lambda b, *args, **kwargs: b.refuse("random numbers are drawn")
)  # fmt: skip
