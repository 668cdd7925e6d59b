"""`torch._tensor_str`: how tensors are printed; private in PyTorch, but packages use it."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.kernels.printing import _format_elements, get_printoptions, printoptions, set_printoptions

__all__ = ["PRINT_OPTS", "printoptions", "set_printoptions"]


class _Options:
    """The options of `set_printoptions` as read-only attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return get_printoptions()[name]
        except KeyError:
            raise AttributeError(f"there is no option {name!r} of printing") from None


PRINT_OPTS = _Options()


def _tensor_str(self: Tensor, indent: int) -> str:
    """Return the elements of a tensor in brackets, lines after the first indented by `indent` spaces.

    Example:
        >>> torch._tensor_str._tensor_str(torch.ones(2), 0)
        '[1., 1.]'
    """
    return _format_elements(self._array, self.dtype, indent)
