"""Ready-made parametrizations: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import limits
from tinytorch.nn import functional as F
from tinytorch.nn.modules.module import Module
from tinytorch.nn.utils import parametrize
from tinytorch.nn.utils.spectral_norm import default_dim
from tinytorch.ops.create import zeros_like
from tinytorch.ops.join import cat
from tinytorch.ops.linalg.matrices import _weight_norm, geqrf, norm_except_dim, orgqr
from tinytorch.ops.linalg.products import mv, vdot
from tinytorch.ops.linalg.solve import matrix_exp, solve
from tinytorch.ops.register import autocasting
from tinytorch.ops.sequences import eye

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return _weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, dim=self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Parametrize a weight by its norms (`original0`) and directions (`original1`); return the module.

    The arguments are those of `nn.utils.weight_norm`.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
        >>> layer.parametrizations.weight.original0.shape
        torch.Size([3, 1])

    Source: Salimans and Kingma, "Weight Normalization", 2016.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def read_hook_state(
        state_dict: Any, prefix: str, local_metadata: Any, strict: Any, missing_keys: Any, unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:  # fmt: skip
        """Convert a state dict of `nn.utils.weight_norm`."""
        keys = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in keys):
            for k, key in enumerate(keys):
                state_dict[f"{prefix}parametrizations.{name}.original{k}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(read_hook_state)
    return module


class _SpectralNorm(Module):
    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            height, width = matrix.size()
            u, v = matrix.new_empty(height).normal_(0, 1), matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _matrix(self, weight: Tensor) -> Tensor:
        moved = weight if self.dim == 0 else weight.movedim(self.dim, 0)
        return moved.flatten(1)

    def _power_method(self, matrix: Tensor, count: int) -> None:
        with no_grad():
            for _ in range(count):
                self._u.copy_(F.normalize(mv(matrix, self._v), dim=0, eps=self.eps))
                self._v.copy_(F.normalize(mv(matrix.t(), self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Backward saves copies, which later calls do not change in place.
        u, v = self._u.clone(), self._v.clone()
        return weight / vdot(u, mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Parametrize a weight so that the estimate of its largest singular value is 1; return the module.

    `n_power_iterations` improve the estimate at each access in training; `dim`, that of the outputs, is by default 0,
    but 1 for transposed convolutions.

    Example:
        >>> layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(20, 40))
        >>> bool((torch.linalg.matrix_norm(layer.weight, 2) - 1).abs() < 0.1)
        True

    Source: Miyato et al., "Spectral Normalization for Generative Adversarial Networks", 2018.
    """
    weight = _weight(module, name)
    dim = default_dim(module) if dim is None else dim
    parametrization = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, parametrization)


def _weight(module: Module, name: str) -> Tensor:
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _make_orthogonal(a: Tensor) -> Tensor:
    """Return the factor Q of a tall matrix; the signs are chosen so that an orthogonal matrix is mapped to itself."""
    reflectors, tau = autocasting(geqrf)(a)
    q: Tensor = autocasting(orgqr)(reflectors, tau)
    return q * reflectors.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.size(-2), q.size(-1)
    distance = (q.mH @ q - eye(k, dtype=q.dtype)).abs()
    return bool((distance < 10 * n * limits.finfo(q.dtype).eps).all())


class _Orthogonal(Module):
    base: Tensor

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        n, k = x.size(-2), x.size(-1)
        transposed = n < k
        if transposed:
            x = x.mT
            n, k = k, n
        if self.orthogonal_map is _OrthMaps.householder:
            # The product Q of the reflections, whose vectors are below the diagonal.
            tau = 2.0 / (1.0 + x.tril(-1).square().sum(-2))
            lower = x.tril(-1) + eye(n, k, dtype=x.dtype)
            q: Tensor = autocasting(orgqr)(lower, tau)
            q = q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            a = x.tril()
            if n != k:
                a = F.pad(a, (0, n - k))
            a = a - a.mH  # skew-symmetric, or skew-Hermitian
            if self.orthogonal_map is _OrthMaps.matrix_exp:
                q = matrix_exp(a)
            else:
                identity = eye(n, dtype=a.dtype)
                q = autocasting(solve)(identity - a * 0.5, identity + a * 0.5)
            q = q[..., :k]
        if getattr(self, "base", None) is not None:
            q = self.base @ q
        return q.mT if transposed else q

    def right_inverse(self, value: Tensor) -> Tensor:
        if value.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {value.shape}."
            )
        q = value
        n, k = q.size(-2), q.size(-1)
        transposed = n < k
        if transposed:
            q = q.mT
            n, k = k, n
        if "base" not in self._buffers:
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            reflectors, tau = autocasting(geqrf)(q)
            diagonal = reflectors.diagonal(dim1=-2, dim2=-1)
            diagonal.copy_(diagonal.sgn())
            # A reflection that is the identity encodes a change of sign.
            diagonal[tau == 0.0] *= -1
            return reflectors.mT if transposed else reflectors
        if n == k:
            q = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        else:
            columns = q.new_empty((*q.shape[:-1], n - k)).normal_()
            q = _make_orthogonal(cat((q, columns), -1))
        self.base = q
        original = zeros_like(value)
        original.diagonal(dim1=-2, dim2=-1).fill_(-1)
        return original


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Parametrize a weight so that it is an orthogonal matrix, or has orthonormal rows or columns; return the module.

    A complex weight becomes a unitary matrix.

    `orthogonal_map` is "matrix_exp", "cayley" or "householder"; by default the first for square or complex matrices,
    the last for others. With `use_trivialization` the matrix that the weight was set to is kept, and its rotations are
    parametrized.

    Example:
        >>> weight = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(20, 40)).weight
        >>> torch.allclose(weight.T @ weight, torch.eye(20), atol=1e-5)
        True

    Source: Lezcano-Casado, "Trivializations for Gradient-Based Optimization on Manifolds", 2019.
    """
    weight = _weight(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    map_ = getattr(_OrthMaps, orthogonal_map, None)
    if map_ is None:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    parametrization = _Orthogonal(weight, map_, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)
