"""A weight as a length and a direction, worked out anew before each call; deprecated, see `parametrizations`."""

from __future__ import annotations

import warnings
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.parameter import Parameter, is_lazy
from tinytorch.ops.linalg.matrices import norm_except_dim

__all__ = ["remove_weight_norm", "weight_norm"]


def scaled(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """Return `v` with the norms `g`."""
    return v * (g / norm_except_dim(v, dim=dim))


class WeightNorm:
    """The hook that works the weight out."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        """Return the weight of length and direction."""
        return scaled(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    def __call__(self, module: Any, inputs: Any) -> None:
        """Work the weight out."""
        setattr(module, self.name, self.compute_weight(module))


def _hook_of(module: Any, kind: Any, name: str) -> tuple[int | None, Any]:
    """Return the hook of this kind that works the parameter out, with its key, or Nones."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            return key, hook
    return None, None


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Replace a module's parameter by its length `<name>_g` and direction `<name>_v`, and return the module.

    Deprecated: `nn.utils.parametrizations.weight_norm` does the same.

    Args:
        dim: slices along it have lengths of their own; None for one length of all.

    Raises:
        RuntimeError: it has been done already.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 3))
        >>> layer.weight_g.shape, layer.weight_v.shape
        (torch.Size([3, 1]), torch.Size([3, 2]))

    Source:
        Salimans and Kingma, "Weight Normalization", 2016.
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    if _hook_of(module, WeightNorm, name)[1] is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    if is_lazy(weight):
        raise ValueError(
            "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy forward "
            "before applying weight normalization"
        )
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, dim=hook.dim).data))
    module.register_parameter(name + "_v", Parameter(weight.data))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Undo `weight_norm`: the parameter is what it was worked out to be.

    Raises:
        ValueError: there is nothing to undo.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 2))
        >>> layer = torch.nn.utils.remove_weight_norm(layer)
        >>> sorted(name for name, _ in layer.named_parameters())
        ['bias', 'weight']
    """
    key, hook = _hook_of(module, WeightNorm, name)
    if hook is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    weight = hook.compute_weight(module)
    delattr(module, name)
    del module._parameters[name + "_g"], module._parameters[name + "_v"]
    setattr(module, name, Parameter(weight.data))
    del module._forward_pre_hooks[key]
    return module
