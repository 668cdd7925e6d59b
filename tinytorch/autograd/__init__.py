"""`torch.autograd`: `backward`, `grad`, modes, `Function`, hooks, checks (floor 4)."""

from tinytorch.autograd import forward_ad, function, functional, grad_mode, graph, profiler
from tinytorch.autograd.anomaly import detect_anomaly, set_detect_anomaly
from tinytorch.core import engine
from tinytorch.autograd.function import Function
from tinytorch.autograd.gradcheck import gradcheck, gradgradcheck
from tinytorch.core.op import SavedTensor
from tinytorch.core.mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from tinytorch.autograd.picture import picture
from tinytorch.autograd.variable import Variable
from tinytorch.ops.overrides import quiet
from tinytorch.ops.register import functions, public

# Classes may answer a call of these two; what a walk does is its own affair.
public("autograd.backward")(quiet(engine.backward))
public("autograd.grad")(quiet(engine.grad))
backward, grad = functions["autograd.backward"], functions["autograd.grad"]

__all__ = [
    "Function", "SavedTensor", "Variable", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
    "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_grad_enabled",
    "is_multithreading_enabled", "no_grad", "picture", "profiler", "set_detect_anomaly", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip
