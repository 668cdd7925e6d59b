"""All public functions by name; importing this module imports all modules that declare them."""

from __future__ import annotations

import tinytorch
import tinytorch.fft
import tinytorch.linalg
import tinytorch.nn.functional
import tinytorch.special
from tinytorch.ops import register

for _name in tinytorch.__all__:
    getattr(tinytorch, _name)

FUNCTIONS = dict(register.functions)
