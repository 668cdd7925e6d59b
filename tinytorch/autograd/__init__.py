"""Automatic differentiation: `backward`, `grad`, modes, `Function`, hooks, checks. (PyTorch's `torch.autograd`.)"""

from tinytorch._tensor import Tensor
from tinytorch.autograd import graph as graph
from tinytorch.autograd.engine import backward, grad
from tinytorch.autograd.function import Function
from tinytorch.autograd import function as function
from tinytorch.autograd.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "Function", "Variable", "backward", "enable_grad", "function", "grad", "gradcheck", "gradgradcheck", "graph",
    "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled",
]  # fmt: skip

Variable = Tensor  # PyTorch's old name

from tinytorch.autograd.gradcheck import gradcheck, gradgradcheck  # noqa: E402
