"""Spectral normalisation by a forward pre-hook; `parametrizations.spectral_norm` is the newer form."""

from __future__ import annotations

from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.nn import functional as F
from tinytorch.nn.parameter import Parameter, is_lazy
from tinytorch.nn.utils.weight_norm import find_hook
from tinytorch.ops.linalg.products import dot, mv
from tinytorch.ops.linalg.solve import pinv

__all__ = ["remove_spectral_norm", "spectral_norm"]


class SpectralNorm:
    """The forward pre-hook that divides the weight by its largest singular value."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix whose rows are its slices along `dim`."""
        moved = weight if self.dim == 0 else weight.movedim(self.dim, 0)
        return moved.reshape(moved.shape[0], -1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """Return the divided weight; power iterations update the singular vectors in place."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(mv(matrix, v), dim=0, eps=self.eps))
            # Backward saves copies, which later calls do not change in place.
            u, v = u.clone(), v.clone()
        sigma = dot(u, mv(matrix, v))
        return weight / sigma

    def __call__(self, module: Any, inputs: Any) -> None:
        """Compute the weight."""
        setattr(module, self.name, self.compute_weight(module, module.training))

    def _solve_v_and_rescale(self, matrix: Tensor, u: Tensor, target_sigma: Tensor) -> Tensor:
        # The shortest v with u = normalize(W v) and u W v = sigma.
        v = mv(pinv(matrix.t().mm(matrix)), mv(matrix.t(), u))
        return v * (target_sigma / dot(u, mv(matrix, v)))


class _OfNorm:
    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn


class SpectralNormLoadStateDictPreHook(_OfNorm):
    """The hook that reads former states."""

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: Any, missing_keys: Any,
        unexpected_keys: Any, error_msgs: Any,
    ) -> None:  # fmt: skip
        """Read states from before version 1, which held the divided weight and no `v`."""
        version = local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version")
        key = prefix + self.fn.name
        if version is not None and version >= 1:
            return
        parts = [key + suffix in state_dict for suffix in ("_orig", "_u", "_v")]
        if version is None and all(parts) and key not in state_dict:
            return
        missing = [key + s for s in ("_orig", "", "_u") if key + s not in state_dict]
        if missing:
            if strict:
                missing_keys.extend(missing)
            return
        with no_grad():
            original, weight = state_dict[key + "_orig"], state_dict.pop(key)
            sigma = (original / weight).mean()
            matrix = self.fn.reshape_weight_to_matrix(original)
            state_dict[key + "_v"] = self.fn._solve_v_and_rescale(matrix, state_dict[key + "_u"], sigma)


class SpectralNormStateDictHook(_OfNorm):
    """The hook that notes the version of a state."""

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        """Note the version."""
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def default_dim(module: Any) -> int:
    """Return the dimension of the outputs in a module's weight: 1 for transposed convolutions, else 0."""
    # By the names of all base classes: a parametrized module has a derived class.
    return int(any(base.__name__.startswith("ConvTranspose") for base in type(module).__mro__))


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a module's parameter by an estimate of its largest singular value before each call; return the module.

    In training each call improves the estimate by power iteration.

    The parameter becomes `<name>_orig`. In training each call improves the estimate by `n_power_iterations`; `dim`,
    that of the outputs, is by default 0, but 1 for transposed convolutions.

    Example:
        >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 3))
        >>> list(layer.state_dict())
        ['bias', 'weight_orig', 'weight_u', 'weight_v']

    Source: Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018.
    """
    if find_hook(module, SpectralNorm, name)[1] is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    hook = SpectralNorm(name, n_power_iterations, default_dim(module) if dim is None else dim, eps)
    weight = module._parameters[name]
    if weight is None:
        raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
    if is_lazy(weight):
        raise ValueError(
            "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
            "forward before applying spectral normalization"
        )
    with no_grad():
        height, width = hook.reshape_weight_to_matrix(weight).size()
        u = F.normalize(weight.new_empty(height).normal_(0, 1), dim=0, eps=eps)
        v = F.normalize(weight.new_empty(width).normal_(0, 1), dim=0, eps=eps)
    delattr(module, name)
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)  # a plain attribute, on the parameter's memory
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(SpectralNormStateDictHook(hook))
    module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Undo `spectral_norm`; the parameter keeps its divided value.

    Example:
        >>> layer = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 2))
        >>> layer = torch.nn.utils.remove_spectral_norm(layer)
        >>> sorted(name for name, _ in layer.named_parameters())
        ['bias', 'weight']
    """
    key, hook = find_hook(module, SpectralNorm, name)
    if hook is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    with no_grad():
        weight = hook.compute_weight(module, do_power_iteration=False)
    delattr(module, name)
    delattr(module, name + "_u")
    delattr(module, name + "_v")
    delattr(module, name + "_orig")
    module.register_parameter(name, Parameter(weight.detach()))
    del module._forward_pre_hooks[key]
    for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for number, registered in list(hooks.items()):
            function = getattr(registered, "hook", registered)
            if getattr(function, "fn", None) is hook:
                del hooks[number]
    return module
