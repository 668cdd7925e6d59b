"""`Parameter`, a tensor that a module trains, and `Buffer`, one that it only keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch import dtypes
from tinytorch._tensor import Tensor, wrap

__all__ = ["Buffer", "Parameter"]


class _ParameterMeta(type):
    """Makes `isinstance(t, Parameter)` true for what `Parameter` has marked, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return (
            cls is Parameter and isinstance(instance, Tensor) and "_is_param" in instance.__dict__
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is trained: a `Module` registers it when it is assigned as an attribute.

    It shares memory with `data`. Made from an instance of a user's subclass of Tensor it stays one,
    and `isinstance(t, Parameter)` is true all the same.

    Args:
        data: the values; an empty tensor by default.
        requires_grad: whether it is trained.

    Raises:
        RuntimeError: `requires_grad` of a tensor that is not floating point.
        AttributeError: `data` is no tensor.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.Parameter(torch.zeros(2))
        Parameter containing:
        tensor([0., 0.], requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """Return the parameter, on the memory of `data`."""
        data = _empty() if data is None else data
        detached = data.detach()
        if requires_grad and not detached.dtype.is_floating_point:
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        kind = type(data)
        plain = kind in (Tensor, Parameter, cls)
        made = wrap(detached._array, cls if plain else kind)
        made._cell = detached._cell
        made._requires_grad = bool(requires_grad)
        if not plain:
            made._is_param = True
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            # Without the gradient and the attributes, as in PyTorch: a copy starts its training
            # afresh.
            copied = type(self)(wrap(self._array.copy("K")), self._requires_grad)
            memo[id(self)] = copied
        return memo[id(self)]

    def __repr__(self) -> str:  # type: ignore[override]
        if type(self) is Parameter:
            return "Parameter containing:\n" + self._text("tensor")
        return f"Parameter containing:\nParameter({self._text(type(self).__name__)})"


class _BufferMeta(type):
    """Makes `isinstance(t, Buffer)` true for the tensors that `Buffer` has marked."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and "_is_buffer" in instance.__dict__


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a `Module` registers as a buffer when it is assigned as an attribute.

    What is made is a plain tensor on the memory of `data`, with a mark that `isinstance(t, Buffer)`
    sees.

    Args:
        data: the values; an empty tensor by default.
        persistent: whether `state_dict` has it.

    Raises:
        AttributeError: `data` is no tensor.

    Example:
        >>> import tinytorch as torch
        >>> class Scale(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factor = torch.nn.Buffer(torch.tensor([2.0]))
        >>> Scale().state_dict()["factor"]
        tensor([2.])
    """

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        """Return the marked tensor."""
        data = _empty() if data is None else data
        made = data.detach().requires_grad_(data.requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


def _empty() -> Tensor:
    made: Tensor = wrap(np.empty(0, dtypes.get_default_dtype().numpy))
    return made
