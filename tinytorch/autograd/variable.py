"""`Variable`, the old name of a tensor that can require grad."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor

__all__ = ["Variable"]


class _VariableType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableType):
    """The old name of a tensor that can require grad: `Variable(x, requires_grad=True)` returns a Tensor on x's memory.

    Example:
        >>> torch.autograd.Variable(torch.ones(2), requires_grad=True)
        tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        """Return a leaf on the memory of `data`."""
        made = Tensor() if data is None else data.detach()
        return made.requires_grad_(requires_grad)
