"""Conversion of tensors to Python and NumPy values, text and copies; and PyTorch's legacy constructors."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tinytorch.core.deterministic import unwritten
from tinytorch.core.mode import local, short, tangents_of, tell_of_reading
from tinytorch.core.supplied import declare_members
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, printing
from tinytorch.kernels.meta import is_meta
from tinytorch.kernels.silence import cast


def _ndim(self: Tensor) -> int:
    """The number of dimensions."""
    return self._array.ndim


def _itemsize(self: Tensor) -> int:
    """The size of one element in bytes."""
    return self._array.itemsize


def _nbytes(self: Tensor) -> int:
    """The size of all elements in bytes."""
    return self._array.size * self._array.itemsize


def _type(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the type's name ("torch.FloatTensor"), or the tensor converted to `dtype`.

    Example:
        >>> torch.zeros(1).type(), torch.zeros(1).type(torch.int64)
        ('torch.FloatTensor', tensor([0]))
    """
    if dtype is None:
        return f"torch.{'meta.' * is_meta(self._array)}{self.dtype.tensor_name}Tensor"
    return self.to(named_type(dtype))


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray[Any, Any]:
    """Return the elements as a NumPy array that shares the tensor's memory.

    RuntimeError: the tensor requires grad, and grad mode is enabled; `force` returns `detach().cpu().numpy()`.

    Example:
        >>> torch.arange(3).numpy()
        array([0, 1, 2])
    """
    if is_meta(self._array):
        raise TypeError(
            "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
        )
    if self.requires_grad and not force and local.state.grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    tell_of_reading(self)
    return self._array


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    array = self.numpy()
    if copy:
        return np.array(array, dtype=dtype)
    return array if dtype is None else cast(array, dtype, copy=False)


@short("item")
def item(self: Tensor) -> Any:
    """Return the single element as a Python number. RuntimeError unless there is exactly one.

    Example:
        >>> torch.tensor([2.5]).item()
        2.5
    """
    if self._array.size != 1:
        raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
    tell_of_reading(self)
    return self._array.item()


def tolist(self: Tensor) -> Any:
    """Return the elements as nested lists of Python numbers; a number for a 0-d tensor."""
    tell_of_reading(self)
    return self._array.tolist()


def _len(self: Tensor) -> int:
    if self._array.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self._array.shape[0]


def _bool(self: Tensor) -> bool:
    if self._array.size != 1:
        what = "no values" if self._array.size == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    tell_of_reading(self, truth=True)
    return bool(self._array.item())


def _float(self: Tensor) -> float:
    self._warn_of_a_scalar()
    return float(_without_imaginary(self._only(), "double"))


def _int(self: Tensor) -> int:
    return int(_without_imaginary(self._only(), "int64_t"))


def _without_imaginary(value: Any, kind: str) -> Any:
    """Return a number for Python's `float` or `int`; of a complex one the real part, if it has no other."""
    if isinstance(value, complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
        return value.real
    return value


def _complex(self: Tensor) -> complex:
    self._warn_of_a_scalar()
    return complex(self._only())


def _only(self: Tensor) -> Any:
    if self._array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return self.item()


def _warn_of_a_scalar(self: Tensor) -> None:
    if self.requires_grad:
        warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
            "Consider using tensor.detach() first.",
            once=True,
        )


def _index(self: Tensor) -> int:
    if self._array.size != 1 or self._array.dtype.kind not in "iub":
        raise TypeError("only integer tensors of a single element can be converted to an index")
    tell_of_reading(self)
    return int(self._array.item())


def _iter(self: Tensor) -> Iterator[Tensor]:
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def _reversed(self: Tensor) -> Tensor:
    return self.flip(0) if self._array.ndim else self


def _format(self: Tensor, spec: str) -> str:
    if self._array.ndim == 0 and type(self) is Tensor and not is_meta(self._array):
        return self.item().__format__(spec)
    return object.__format__(self, spec)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
            "moment.  If you were attempting to deepcopy a module, this may be because of a torch.nn.utils."
            "weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    made = wrap(_copied(self._array, memo), type(self))
    memo[id(self)] = made
    made._requires_grad = self._requires_grad
    made.__dict__.update(copy.deepcopy(self.__dict__, memo))
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    return made


def _dir(self: Tensor) -> Iterable[str]:
    return sorted(set(object.__dir__(self)) - {"__cuda_array_interface__"})  # (as in PyTorch)


def _copied(array: Any, memo: dict[int, Any]) -> Any:
    """Return a deep copy of an array; copies of arrays that share memory share memory, too."""
    if is_meta(array):
        return copy.deepcopy(array, memo)
    whole = array
    while type(getattr(whole, "base", None)) is np.ndarray:
        whole = whole.base
    if whole is array and id(whole) not in memo:  # (views of it may be copied later)
        memo[id(whole)] = copied = array.copy("K")
        return copied
    memory = copy.deepcopy(whole, memo)
    if memory.strides != whole.strides or not memory.flags.forc:
        return array.copy("K")
    offset = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return np.ndarray(array.shape, array.dtype, memory, offset, array.strides)


def named_type(name: Any) -> dtypes.dtype:
    """Return the dtype for an argument of `Tensor.type`: a dtype, "torch.FloatTensor", or a typed constructor."""
    if isinstance(name, str):
        for kind in dtypes.ALL:
            if name in (f"torch.{kind.tensor_name}Tensor", f"torch.{kind.name}"):
                return kind
        raise ValueError(f"invalid type: '{name}'")
    if name is Tensor:
        return dtypes.get_default_dtype()
    return dtypes.as_dtype(getattr(name, "dtype", name))


def legacy_new(cls: type[Tensor], args: Any, kwargs: Any, dtype: dtypes.dtype | None = None) -> Tensor:
    """Implement `Tensor(...)` and `FloatTensor(...)`: from sizes, nested lists, or a tensor to alias."""
    kind = dtypes.get_default_dtype() if dtype is None else dtype
    for unknown in kwargs.keys() - {"device", "dtype"}:
        raise TypeError(f"new() got an unexpected keyword argument '{unknown}'")
    if not args:
        return wrap(np.empty(0, kind.numpy), cls)
    first = args[0]
    if len(args) == 1 and isinstance(first, Tensor):
        if first.dtype is not kind and dtype is not None:
            raise TypeError(f"expected {kind} (got {first.dtype})")
        made: Tensor = first.detach()
        return made if cls is Tensor else wrap(made._array, cls)
    if len(args) == 1 and isinstance(first, Size):
        args = tuple(first)
    elif len(args) == 1 and isinstance(first, (list, tuple, np.ndarray)):
        return wrap(np.array(_numbers(first), dtype=kind.numpy), cls)
    if all(isinstance(size, (int, np.integer)) and not isinstance(size, bool) for size in args):
        return wrap(unwritten(np.empty(args, kind.numpy)), cls)
    kinds = ", ".join(type(each).__name__ for each in args)
    raise TypeError(f"new(): data must be a sequence or sizes must be ints (got {kinds})")


def _numbers(value: Any) -> Any:
    """Return nested sequences with their tensors replaced by arrays."""
    if isinstance(value, (list, tuple)):
        return [_numbers(each) for each in value]
    return value._array if isinstance(value, Tensor) else value


def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    return _text(self, "tensor" if type(self) is Tensor else type(self).__name__)


def _text(self: Tensor, name: str) -> str:
    tell_of_reading(self)
    try:
        edge = self._current()._edge
        grad_fn = None if edge is None else type(edge[0].shown()).__name__
    except RuntimeError:  # a view that a write to its base has invalidated
        grad_fn = "Invalid"
    tangent = next(iter(tangents_of(self)), None)
    return printing.format_tensor(
        self._array,
        self.dtype,
        name=name,
        requires_grad=self._requires_grad,
        grad_fn=grad_fn,
        tangent=None if tangent is None else format(tangent),
    )


def _new(cls: type[Tensor], *args: Any, **kwargs: Any) -> Any:
    """Create a tensor from sizes (uninitialised), data, or another tensor: PyTorch's legacy constructor."""
    return legacy_new(cls, args, kwargs)


declare_members(
    {
        "__new__": staticmethod(_new),
        "__repr__": _repr,
        "_text": _text,
        "ndim": property(_ndim),
        "itemsize": property(_itemsize),
        "nbytes": property(_nbytes),
        "type": _type,
        "numpy": numpy,
        "__array__": _array,
        "item": item,
        "tolist": tolist,
        "__len__": _len,
        "__bool__": _bool,
        "__float__": _float,
        "__int__": _int,
        "__complex__": _complex,
        "_only": _only,
        "_warn_of_a_scalar": _warn_of_a_scalar,
        "__index__": _index,
        "__reversed__": _reversed,
        "__format__": _format,
        "__deepcopy__": _deepcopy,
    }
)
declare_members({"__dir__": _dir, "__iter__": _iter}, listed=False)
