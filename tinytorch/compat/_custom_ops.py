"""PyTorch's name, `torch._custom_ops`, for what `torch.library` has."""

from tinytorch.library import custom_op, impl

__all__ = ["custom_op", "impl"]
