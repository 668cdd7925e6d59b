"""`torch.nn.utils.stateless`: the deprecated name of `torch.func.functional_call`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from tinytorch.core.warning import warn
from tinytorch.nn.modules.module import Module
from tinytorch.nn.utils._functional_call import functional_call as _functional_call
from tinytorch.nn.utils._functional_call import swapped_tensors

__all__ = ["functional_call"]


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Return `torch.func.functional_call(…)`; this name is deprecated, as in PyTorch."""
    warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> AbstractContextManager[None]:
    """Return a context manager in which tensors replace those of a module; see `func.functional_call`.

    Private in PyTorch too, but packages for Bayesian layers use it.

    Arguments as for `func.functional_call`; `stack_weights` has no effect.

    Example:
        >>> layer = torch.nn.Linear(2, 1)
        >>> with torch.nn.utils.stateless._reparametrize_module(layer, {"weight": torch.zeros(1, 2)}):
        ...     layer.weight
        tensor([[0., 0.]])
    """
    return swapped_tensors(module, parameters_and_buffers, tie_weights, strict)
