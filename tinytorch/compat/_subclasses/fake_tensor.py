"""`torch._subclasses.fake_tensor`: tensors without elements, of which there are none; programs ask."""

from typing import Any, NoReturn

from tinytorch.core.tensor import Tensor

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]


class FakeTensor(Tensor):
    """A tensor without elements: there are none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError: nothing is traced."""
        raise NotImplementedError("torch._subclasses: tinytorch has no fake tensors")


class FakeTensorMode:
    """Makes tensors without elements: there is no such mode."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("torch._subclasses: tinytorch has no fake tensors")


def is_fake(x: Any) -> bool:
    """Return False."""
    return False
