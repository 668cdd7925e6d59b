"""`torch.testing`: comparison of results and creation of inputs for tests."""

from tinytorch.testing.comparison import assert_allclose, assert_close
from tinytorch.testing.creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
