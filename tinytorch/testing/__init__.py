"""`torch.testing`: comparison of results and creation of inputs for tests."""

from tinytorch.testing.comparison import assert_allclose, assert_close
from tinytorch.testing.creation import make_tensor
from tinytorch.testing.filecheck import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
