"""`Parameter`, a trainable tensor of a module, and `Buffer`, a tensor of a module that is not trained."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np

from tinytorch.core.deterministic import unwritten
from tinytorch.core.device import as_device
from tinytorch.core.layout import strided
from tinytorch.core.mode import innermost, local, without_bits
from tinytorch.core.native import set_parameter
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.ops.overrides import disabled

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy",
]  # fmt: skip


class _ParameterMeta(type):
    """Makes `isinstance(t, Parameter)` true also for instances of Tensor's subclasses that `Parameter` has marked."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and "_is_param" in instance.__dict__


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A trainable tensor: a `Module` registers it when it is assigned as an attribute.

    It shares memory with `data`. If `data` is an instance of a user's subclass of Tensor, so is the result, and
    `isinstance(t, Parameter)` is still true.

    Example:
        >>> torch.nn.Parameter(torch.zeros(2))
        Parameter containing:
        tensor([0., 0.], requires_grad=True)
    """

    __torch_function__: Any = disabled  # results of operations are plain Tensors

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """Return a parameter that shares the memory of `data`."""
        data = _empty() if data is None else data
        data = without_bits(data)
        data_type = type(data)
        plain = data_type in (Tensor, Parameter, cls)
        detached = data if plain and local.state.modes is None else data.detach()  # (also from its tangents)
        if requires_grad and not (detached.dtype.is_floating_point or detached.dtype.is_complex):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        if requires_grad and detached._cell is None and not local.state.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        if not plain and (detached.layout is not strided or innermost(detached) is not detached):
            detached._is_param, detached.requires_grad = True, bool(requires_grad)
            return detached
        parameter = wrap(detached._array, cls if plain else data_type)
        parameter._cell = detached._cell
        parameter._requires_grad = bool(requires_grad)
        if not plain:
            parameter._is_param = True
        return parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            # As in PyTorch, without gradient and attributes.
            copied = type(self)(wrap(self._array.copy("K")), self._requires_grad)
            memo[id(self)] = copied
        return memo[id(self)]

    def __repr__(self) -> str:  # type: ignore[override]
        if type(self) is Parameter:
            return "Parameter containing:\n" + self._text("tensor")
        return f"Parameter containing:\nParameter({self._text(type(self).__name__)})"


set_parameter(Parameter)


class _BufferMeta(type):
    """Makes `isinstance(t, Buffer)` true for tensors that `Buffer` has marked."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and "_is_buffer" in instance.__dict__


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a `Module` registers as a buffer when it is assigned as an attribute.

    The result is a plain tensor that shares the memory of `data`, with a mark for `isinstance(t, Buffer)`.

    `state_dict` includes it if it is `persistent`.

    Example:
        >>> class Scale(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = torch.nn.Buffer(torch.tensor([2.0]))
        >>> Scale().state_dict()["factor"]
        tensor([2.])
    """

    __torch_function__: Any = disabled  # results of operations are plain Tensors

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        """Return the marked tensor."""
        data = _empty() if data is None else data
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


def _empty() -> Tensor:
    return wrap(np.empty(0, dtypes.get_default_dtype().numpy))


# Uninitialized parameters and buffers, whose shape is not known yet -------------------------------


class UninitializedTensorMixin:
    """The base of uninitialized parameters and buffers, whose shape is not known yet."""

    cls_to_become: Any
    data: Any
    requires_grad: bool

    def materialize(self, shape: Any, device: Any = None, dtype: dtypes.dtype | None = None) -> None:
        """Become a parameter (or buffer) of this shape, with uninitialized memory.

        Example:
            >>> p = torch.nn.UninitializedParameter()
            >>> p.materialize((2, 3))
            >>> p.shape
            torch.Size([2, 3])
        """
        if device is not None:
            as_device(device)
        new_dtype = dtypes.as_dtype(self.data.dtype if dtype is None else dtype)
        sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
        self.data = wrap(unwritten(np.empty(sizes, new_dtype.numpy)))
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Raise RuntimeError: the shape is not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> None:
        """Raise RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return (type(self), (self.requires_grad,))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)  # type: ignore[call-arg]
        return memo[id(self)]


def _raising_method(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {name}. This error happens when you are using a "
            f"`LazyModule` or explicitly manipulating `torch.nn.parameter.{type(self).__name__}` objects. When using "
            "LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
        )

    method.__name__ = name
    return method


# Methods that need no shape: queries and changes of dtype and device, and those that modules call.
_ALLOWED = frozenset(
    "bfloat16 char copy_ cpu cuda double float get_device half int is_complex is_floating_point long requires_grad_ "
    "share_memory_ short size to type register_hook".split()
)
_OPERATORS = (
    "abs add and bool contains div eq float floordiv ge getitem gt iadd imul int invert isub iter itruediv le len lt "
    "matmul mod mul ne neg or pos pow radd rmatmul rmul rpow rsub rtruediv setitem sub truediv xor"
).split()


@functools.cache
def _add_raising_methods() -> None:
    """Give the mixin a raising method for every operation, once; called late, when all operations are bound."""
    for name in dir(Tensor):
        operator = name.startswith("__") and name.strip("_") in _OPERATORS
        public = not name.startswith("_") and name not in _ALLOWED
        raising = operator or (public and callable(getattr(Tensor, name)))
        if raising and name not in UninitializedTensorMixin.__dict__:
            setattr(UninitializedTensorMixin, name, _raising_method(name))


def is_lazy(param: Any) -> bool:
    """Return whether a parameter or buffer is uninitialized.

    Example:
        >>> torch.nn.parameter.is_lazy(torch.nn.LazyLinear(2).weight)
        True
    """
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape a lazy module infers at its first call.

    Example:
        >>> weight = torch.nn.parameter.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> weight.shape
        torch.Size([2, 3])
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        """Return the parameter, with an empty array of its dtype."""
        return _uninitialized(cls, requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer whose shape a lazy module infers at its first call.

    Example:
        >>> buffer = torch.nn.parameter.UninitializedBuffer()
        >>> buffer.materialize((2, 3))
        >>> buffer.shape
        torch.Size([2, 3])
    """

    __torch_function__: Any = disabled  # results of operations are plain Tensors

    cls_to_become = Tensor
    persistent: bool

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        """Return the buffer, with an empty array of its dtype."""
        buffer = _uninitialized(cls, requires_grad, device, dtype)
        buffer._is_buffer = True
        buffer.persistent = persistent
        return buffer


def _uninitialized(cls: Any, requires_grad: bool, device: Any, dtype: Any) -> Any:
    _add_raising_methods()
    if device is not None:
        as_device(device)
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    tensor = wrap(np.empty(0, kind.numpy), cls)
    tensor._requires_grad = bool(requires_grad)
    return tensor
