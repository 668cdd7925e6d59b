"""`torch.func`: composable transforms of functions, such as `grad(f)`, `jacrev(f)` and `vmap(f)`."""

from typing import Any

from tinytorch.core.supplied import imported
from tinytorch.func.batches import vmap
from tinytorch.func.modules import replace_all_batch_norm_modules_, stack_module_state
from tinytorch.func.rearrange import rearrange
from tinytorch.func.transforms import (
    debug_unwrap,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from tinytorch.nn.utils._functional_call import functional_call

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "rearrange", "replace_all_batch_norm_modules_", "stack_module_state", "sweep", "vjp", "vmap",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "sweep":  # (it needs the compiler)
        return imported("compiler.sweep").sweep
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
