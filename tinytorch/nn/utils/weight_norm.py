"""Weight normalisation by a forward pre-hook; deprecated, see `parametrizations`."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.nn.parameter import Parameter, is_lazy
from tinytorch.ops.linalg.matrices import _weight_norm, norm_except_dim

__all__ = ["remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The forward pre-hook that computes the weight."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Tensor:
        """Return the weight, from its norms and directions."""
        return _weight_norm(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    def __call__(self, module: Any, inputs: Any) -> None:
        """Compute the weight."""
        setattr(module, self.name, self.compute_weight(module))


def find_hook(module: Any, hook_class: Any, name: str) -> tuple[int | None, Any]:
    """Return the key and the hook of this class that computes the parameter, or (None, None)."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, hook_class) and hook.name == name:
            return key, hook
    return None, None


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Replace a module's parameter by its norms `<name>_g` and directions `<name>_v`; return the module.

    Deprecated: `nn.utils.parametrizations.weight_norm` does the same.

    Each slice along `dim` has a norm; None is for one norm of the whole tensor.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 3))
        >>> layer.weight_g.shape, layer.weight_v.shape
        (torch.Size([3, 1]), torch.Size([3, 2]))

    Source: Salimans and Kingma, "Weight Normalization", 2016.
    """
    warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
    )
    if find_hook(module, WeightNorm, name)[1] is not None:
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
    """Undo `weight_norm`; the parameter keeps its value.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     layer = torch.nn.utils.weight_norm(torch.nn.Linear(2, 2))
        >>> layer = torch.nn.utils.remove_weight_norm(layer)
        >>> sorted(name for name, _ in layer.named_parameters())
        ['bias', 'weight']
    """
    key, hook = find_hook(module, WeightNorm, name)
    if hook is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    weight = hook.compute_weight(module)
    delattr(module, name)
    del module._parameters[name + "_g"], module._parameters[name + "_v"]
    setattr(module, name, Parameter(weight.data))
    del module._forward_pre_hooks[key]
    return module
