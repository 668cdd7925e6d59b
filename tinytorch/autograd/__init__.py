"""`torch.autograd`: `backward`, `grad`, modes, `Function`, hooks, checks (floor 4)."""

from tinytorch.autograd import function, graph
from tinytorch.autograd.engine import backward, grad
from tinytorch.autograd.function import Function
from tinytorch.autograd.gradcheck import gradcheck, gradgradcheck
from tinytorch.autograd.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)
from tinytorch.legacy import Variable

__all__ = [
    "Function", "Variable", "backward", "enable_grad", "function", "grad", "gradcheck", "gradgradcheck", "graph",
    "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled",
]  # fmt: skip
