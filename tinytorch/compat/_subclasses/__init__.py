"""`torch._subclasses`: kinds of tensors for tracing, of which there are none."""

from .._subclasses.fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
