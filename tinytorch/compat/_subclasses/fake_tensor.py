"""`torch._subclasses.fake_tensor`: tensors without elements, of which there are none; programs ask."""

from typing import Any

from tinytorch.core.tensor import Tensor

from ..absent import Refused

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]


_NONE = (NotImplementedError, "torch._subclasses: tinytorch has no fake tensors")


class FakeTensor(Refused, Tensor):
    """A tensor without elements: there are none."""

    _error = _NONE


class FakeTensorMode(Refused):
    """Makes tensors without elements: there is no such mode."""

    _error = _NONE


def is_fake(x: Any) -> bool:
    """Return False."""
    return False
