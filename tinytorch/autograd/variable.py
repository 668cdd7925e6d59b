"""`Variable`, the old name of a tensor that can require grad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor

__all__ = ["Variable"]


class _VariableType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class _EngineBase:
    """The part of PyTorch's engine object that programs use."""

    def queue_callback(self, callback: Callable[[], Any]) -> None:
        """Call a function when the backward pass that runs now has ended without an error."""
        callbacks = local.state.callbacks
        if callbacks is None:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        callbacks.append(callback)


class Variable(metaclass=_VariableType):
    """The old name of a tensor that can require grad: `Variable(x, requires_grad=True)` returns a Tensor on x's memory.

    Example:
        >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
        tensor([1., 1.], requires_grad=True)
    """

    _execution_engine = _EngineBase()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        """Return a leaf on the memory of `data`."""
        leaf = Tensor() if data is None else data.detach()
        return leaf.requires_grad_(requires_grad)
