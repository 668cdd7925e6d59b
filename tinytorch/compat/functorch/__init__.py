"""`functorch`, a package that comes with PyTorch: what is `torch.func` now."""

from tinytorch.func import functional_call as functional_call
from tinytorch.func import grad as grad
from tinytorch.func import grad_and_value as grad_and_value
from tinytorch.func import hessian as hessian
from tinytorch.func import jacfwd as jacfwd
from tinytorch.func import jacrev as jacrev
from tinytorch.func import jvp as jvp
from tinytorch.func import stack_module_state as stack_module_state
from tinytorch.func import vjp as vjp
from tinytorch.func import vmap as vmap
