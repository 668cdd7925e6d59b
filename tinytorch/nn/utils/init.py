"""Modules whose parameters are left as they come."""

from __future__ import annotations

import inspect
from typing import Any

from tinytorch.nn.modules.module import Module
from tinytorch.ops.random import get_rng_state, set_rng_state

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return `module_cls(*args, **kwargs)` for parameters that will be loaded: the random generator is left as it was.

    Args:
        module_cls: a class of modules that takes `device`.

    Raises:
        RuntimeError: it is no class of modules, or takes no `device`.

    Example:
        >>> torch.nn.utils.skip_init(torch.nn.Linear, 2, 3)
        Linear(in_features=2, out_features=3, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    # There is no device without memory here: what is drawn is drawn, and the generator set back.
    state = get_rng_state()
    try:
        return module_cls(*args, **kwargs)
    finally:
        set_rng_state(state)
