"""How a function or class is treated while a call is traced: what it, or the module that defines it, declares.

The declaration is `__traced_as__` (see `core.mode.traced_as`); the package's own default is "refused". Users' code
declares nothing: its source is followed.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import Any

from tinytorch.core.names import module_of

#: The source is followed.
INLINE = "inline"
#: It runs as it is, and the operations in it are recorded.
OP = "op"
#: As OP; and truth values that it looks at, and tensors that it creates, follow from its arguments alone.
TRUSTED = "trusted"
#: As OP; and it returns a tensor whose elements follow from numbers, and from the shapes and dtypes of tensors.
CREATES = "creates"
#: As OP; and it returns new random numbers, which are others in each call: no constants.
DRAWS = "draws"
OPS = (OP, DRAWS)
#: It runs as it is, and returns a value that follows from its arguments and from nothing that changes.
PURE = "pure"
#: As PURE, of tensors: a call is one step of the program.
OPAQUE = "opaque"
#: It calls its first argument with the others; options that are keyword-only do not change what is computed.
CALLS = "calls"
#: Of optimizers: a step changes Python's objects, and runs as it is in each call of the program.
STATEFUL = "stateful"
#: It is not known what a call of it does.
REFUSED = "refused"


def declared(x: Any) -> str | None:
    """Return the policy that a function or method declares for itself."""
    policy: str | None = getattr(x, "__traced_as__", None)
    return policy


def policy_of(x: Any) -> str | None:
    """Return the policy of a function, class or module: its own, or that of the module or package that defines it."""
    if isinstance(x, types.ModuleType):
        return _of_module(x.__name__)
    if isinstance(x, types.FunctionType) and hasattr(x, "__wrapped__"):  # (`functools.wraps` copies the declaration)
        home = _of_module(x.__globals__.get("__name__") or "")
        if home is None:
            return None
    return declared(x) or _of_module(module_of(x))


@functools.cache
def _of_module(name: str) -> str | None:
    """Return the policy that a module declares, or the nearest package around it."""
    while name:
        policy: str | None = vars(sys.modules[name]).get("__traced_as__") if name in sys.modules else None
        if policy is not None:
            return policy
        name = name.rpartition(".")[0]
    return None
