"""Older names of PyTorch that programs still use: `FloatTensor`, `LongTensor`, …, and functions that were removed."""

from __future__ import annotations

from typing import Any, NoReturn

import tinytorch
from tinytorch.amp.grad_scaler import _amp_foreach_non_finite_check_and_unscale_, _amp_update_scale_
from tinytorch.core.layout import strided
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.ops.create import tensor
from tinytorch.ops.memory import set_
from tinytorch.ops.register import Builtin
from tinytorch.ops.storage import is_storage
from tinytorch.ops.values import legacy_new

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor", "_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_",
    "_cast_Double", "_cast_Float", "_cast_Half", "_cast_Int", "_cast_Long", "_shape_as_tensor", "eig", "lstsq",
    "matrix_rank", "solve", "symeig",
]  # fmt: skip


class _TypedTensor(type):
    """The metaclass of `FloatTensor` and the like: a call creates a tensor, `isinstance` compares the dtype."""

    dtype: dtypes.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and is_storage(args[0]):
            return set_(legacy_new(Tensor, (), kwargs, cls.dtype), args[0])
        if len(args) == 1 and isinstance(args[0], range):
            args = (list(args[0]),)
        return legacy_new(Tensor, args, kwargs, cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.layout is strided

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _typed(dtype: dtypes.dtype) -> Any:
    name = f"{dtype.tensor_name}Tensor"
    doc = f"""Tensors of {dtype}: `{name}(2, 3)` from sizes, `{name}([1, 2])` from data; a type for `isinstance`.

    Example:
        >>> torch.{name}.dtype, isinstance(torch.ones(2), torch.{name})
        ({dtype}, {dtype is dtypes.float32})
    """
    return _TypedTensor(name, (), {"dtype": dtype, "__doc__": doc})


BFloat16Tensor = _typed(dtypes.bfloat16)
BoolTensor = _typed(dtypes.bool)
ByteTensor = _typed(dtypes.uint8)
CharTensor = _typed(dtypes.int8)
DoubleTensor = _typed(dtypes.float64)
FloatTensor = _typed(dtypes.float32)
HalfTensor = _typed(dtypes.float16)
IntTensor = _typed(dtypes.int32)
LongTensor = _typed(dtypes.int64)
ShortTensor = _typed(dtypes.int16)


# Functions that PyTorch removed: the error names the replacement ----------------------------------


def _removed(name: str, instead: str) -> Any:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"This function was deprecated since version 1.9 and is now removed. `torch.{name}` is now {instead}."
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""Raise RuntimeError: PyTorch has no `{name}` any more; it is now {instead}.

    Example:
        >>> torch.{name}(torch.eye(2))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        RuntimeError: This function was deprecated since version 1.9 and is now removed...
    """
    return function


eig = _removed("eig", "`torch.linalg.eig`, whose results are complex")
lstsq = _removed("lstsq", "`torch.linalg.lstsq`, with the arguments the other way round")
matrix_rank = _removed("matrix_rank", "`torch.linalg.matrix_rank`")
solve = _removed("solve", "`torch.linalg.solve`, with the arguments the other way round")
symeig = _removed("symeig", "`torch.linalg.eigh`, or `eigvalsh` for the eigenvalues only")


@Builtin
def _shape_as_tensor(input: Tensor) -> Tensor:
    """Return the sizes as a tensor.

    Example:
        >>> torch._shape_as_tensor(torch.ones(2, 3))
        tensor([2, 3])
    """
    return tensor(list(input.shape), dtype=dtypes.int64)


def _cast(name: str, dtype: dtypes.dtype) -> Any:
    def cast(input: Tensor, non_blocking: bool = False) -> Tensor:
        return input.to(dtype, non_blocking)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"Return `input.to({dtype})`."
    return Builtin(cast)


_cast_Double, _cast_Float = _cast("_cast_Double", dtypes.float64), _cast("_cast_Float", dtypes.float32)
_cast_Half, _cast_Int = _cast("_cast_Half", dtypes.float16), _cast("_cast_Int", dtypes.int32)
_cast_Long = _cast("_cast_Long", dtypes.int64)


def _add_relu(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return `relu(input + alpha * other)`.

    Example:
        >>> torch._VF._add_relu(torch.tensor([1.0, -1.0]), torch.tensor([1.0, -1.0]))
        tensor([2., 0.])
    """
    return tinytorch.relu(tinytorch.add(input, other, alpha=alpha))
