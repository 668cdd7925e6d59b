"""`torch.func`: transforms of functions, `grad(f)`, `jacrev(f)` …, which nest freely (floor 4)."""

from tinytorch.func.modules import functional_call, stack_module_state
from tinytorch.func.transforms import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)

__all__ = [
    "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "stack_module_state", "vjp", "vmap",
]  # fmt: skip
