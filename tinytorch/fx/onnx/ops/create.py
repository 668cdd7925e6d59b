"""Tensors of numbers, whose sizes may be those of other tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.fx.onnx.builder import Builder, Length, Size, Unsaid, Value, says
from tinytorch.fx.onnx.ops.shape import sizes_of
from tinytorch.kernels import dtypes


def filled(b: Builder, sizes: Any, number: Any) -> str:
    """Return a tensor of one number."""
    dtype = b.out.dtype
    if isinstance(number, (Value, Length)):
        return b.op("Expand", b.cast(number, dtype), b.ints(sizes))
    array = np.array(number).astype(dtype.numpy)
    if not any(isinstance(n, Length) for n in sizes) and np.prod(sizes) <= 64:
        return b.constant(np.full(sizes, array, dtype.numpy))
    value = b.onnx.numpy_helper.from_array(array.reshape(1))
    return b.op("ConstantOfShape", b.ints(sizes), value=value)


def _constant(name: str, number: float) -> None:
    @says(name)
    def write(b: Builder, *size: Any, **kwargs: Any) -> Any:
        return filled(b, sizes_of(size or (kwargs["size"],)), number)

    @says(f"{name}_like")
    def like(b: Builder, x: Value, **kwargs: Any) -> Any:
        return filled(b, b.sizes(x), number)

    @says(f"Tensor.new_{name}")
    def new(b: Builder, x: Value, *size: Any, **kwargs: Any) -> Any:
        return filled(b, sizes_of(size or (kwargs["size"],)), number)


_constant("zeros", 0)
_constant("ones", 1)
_constant("empty", 0)


@says("full")
def _full(b: Builder, size: Any, fill_value: Any, **kwargs: Any) -> Any:
    return filled(b, sizes_of((size,)), fill_value)


@says("full_like")
def _full_like(b: Builder, x: Value, fill_value: Any, **kwargs: Any) -> Any:
    return filled(b, b.sizes(x), fill_value)


@says("Tensor.new_full")
def _new_full(b: Builder, x: Value, size: Any, fill_value: Any, **kwargs: Any) -> Any:
    return filled(b, sizes_of((size,)), fill_value)


@says("fill", "Tensor.fill_")
def _fill(b: Builder, x: Value, value: Any) -> Any:
    return filled(b, b.sizes(x), value)


@says("Tensor.zero_", "zero_")
def _zero(b: Builder, x: Value) -> Any:
    return filled(b, b.sizes(x), 0)


@says("arange")
def _arange(b: Builder, *args: Any, start: Any = 0, end: Any = None, step: Any = 1, **kwargs: Any) -> Any:
    if len(args) == 1:
        end = args[0]
    elif args:
        start, end = args[:2]
        step = args[2] if len(args) > 2 else step
    dtype = b.out.dtype
    if not any(isinstance(x, (Length, Value)) for x in (start, end, step)):
        (n,) = b.out.shape
        exact = np.float64 if any(isinstance(x, float) for x in (start, step)) else np.int64
        return b.constant((start + np.arange(n, dtype=exact) * step).astype(dtype.numpy))
    # (Of lengths, which are whole numbers.)
    kind = dtype if dtype in (dtypes.int64, dtypes.int32, dtypes.float32, dtypes.float64) else dtypes.int64
    made = b.op("Range", *[b.cast(x, kind) for x in (start, end, step)])
    return made if kind is dtype else b.cast(Value(made, b.out.shape, kind), dtype)


@says("linspace")
def _linspace(b: Builder, start: Any, end: Any, steps: Any, **kwargs: Any) -> Any:
    dtype = b.out.dtype
    if not any(isinstance(x, (Length, Value)) for x in (start, end, steps)):
        return b.constant(np.linspace(start, end, steps).astype(dtype.numpy))
    first, last = b.cast(start, dtype), b.cast(end, dtype)
    at = b.op("Cast", b.op("Range", b.scalar(0), b.scalar(steps), b.scalar(1)), to=b.type_of(dtype))
    gaps = b.op("Max", b.op("Sub", b.cast(steps, dtype), b.cast(1, dtype)), b.cast(1, dtype))
    return b.op("Add", first, b.op("Mul", at, b.op("Div", b.op("Sub", last, first), gaps)))


@says("eye")
def _eye(b: Builder, n: Size, m: Size | None = None, **kwargs: Any) -> Any:
    rows, columns = n, n if m is None else m
    if isinstance(rows, int) and isinstance(columns, int):
        return b.constant(np.eye(rows, columns, dtype=b.out.dtype.numpy))
    shape = b.op("ConstantOfShape", b.ints([rows, columns]))
    return b.op("EyeLike", shape, dtype=b.type_of(b.out.dtype))


@says("Tensor.new_tensor")
def _new_tensor(b: Builder, x: Value, data: Any, **kwargs: Any) -> Any:
    return _tensor(b, data)


@says("scalar_tensor")
def _scalar_tensor(b: Builder, s: Any, **kwargs: Any) -> Any:
    return _tensor(b, s)


@says("tensor")
def _tensor(b: Builder, data: Any, **kwargs: Any) -> Any:
    if isinstance(data, (Value, Length)):
        return b.cast(data, b.out.dtype)
    if isinstance(data, (tuple, list)) and any(isinstance(x, (Value, Length)) for x in data):
        parts = [b.cast(x, b.out.dtype) for x in data]
        return b.op("Concat", *[b.unsqueezed(x, 0) for x in parts], axis=0)
    return b.constant(np.array(data).astype(b.out.dtype.numpy))


@says("Tensor.stride", "Tensor.is_contiguous", "Tensor.element_size", "Tensor.storage_offset", "is_floating_point",
      "is_complex", "is_nonzero", "Tensor.data_ptr", "is_signed", "is_same_size", "equal", "allclose")  # fmt: skip
def _about(b: Builder, *args: Any, **kwargs: Any) -> Any:
    raise Unsaid("it returns no tensor")


@says("rand", "randn", "randint", "rand_like", "randn_like", "randint_like", "randperm", "normal", "bernoulli",
      "multinomial", "poisson", "Tensor.normal_", "Tensor.uniform_", "Tensor.bernoulli_", "Tensor.exponential_",
      "nn.functional.gumbel_softmax", "nn.functional.rrelu")  # fmt: skip
def _random(b: Builder, *args: Any, **kwargs: Any) -> Any:
    raise Unsaid("random numbers are drawn")


__all__ = ["filled"]
