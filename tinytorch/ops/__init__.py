"""The ops: each is declared by its kernel and the formulas of its gradients.

| module | contents |
|---|---|
| `register`, `autocast`, `overrides`, `out`, `return_types` | no ops: registration and wrappers of public functions |
| `signature` | no ops: what PyTorch says of arguments that do not fit |
| `arguments`, `writing`, `left_out` | no ops: shared helpers; names that are absent |
| `batching`, `batch_rules` | no ops: `vmap`, and its rules |
| `complex`, `bits` | complex numbers; lazy conjugates and negatives |
| `arithmetic`, `compare`, `transcendental`, `special` | elementwise ops |
| `reduce`, `statistics` | sums, extrema, cumulative ops; quantiles, histograms |
| `shape`, `join`, `rearrange`, `copies` | views; joining and splitting; reordering of elements; copies of views |
| `index`, `scatter`, `masks`, `sort` | reading and writing by index, position or mask; sorting, searching |
| `create`, `sequences`, `windows`, `random`, `rejection` | tensors from numbers and shapes; random tensors |
| `convert`, `storage`, `memory`, `values`, `members`, `operators` | dtype conversion; memory; other Tensor members |
| `fft`, `stft` | the functions of `torch.fft`; short-time Fourier transforms |
| `linalg.products` | products of matrices and vectors, `einsum` |
| `quantized` | products with numbers of 8 or 16 bits |
| `linalg.factor`, `linalg.solve` | `torch.linalg`: factorisations, norms; inverses, systems, functions of matrices |
| `linalg.matrices` | linear algebra named in `torch` itself; distances, covariances |
| `nn` | neural-network ops, one module for each kind of layer |

This package is also `torch.ops`, the namespace of user-defined operators: see `tinytorch.library`.
"""

from pathlib import PurePath
from typing import Any

from tinytorch.core.supplied import imported


class _Namespace:
    """Operators that a program defined, by name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")


_namespaces: dict[str, _Namespace] = {}

#: The modules that enter the operators of compiled libraries, by the ends of the libraries' paths.
_LIBRARIES = {
    "torchvision/_C": "torchvision_ops",
    "torchaudio/lib/_torchaudio": "torchaudio_ops",
    "torchaudio/lib/libtorchaudio": "torchaudio_ops",
}

__traced_as__ = "op"  # (read by `torch.compile`)


def add_namespace(name: str, operators: _Namespace) -> None:
    """Register operators as `torch.ops.name`."""
    _namespaces[name] = operators


def load_library(path: Any) -> None:
    """Register the operators of a library compiled for PyTorch: torchvision's and torchaudio's, reimplemented here.

    Raises:
        OSError: another library is named: code compiled for PyTorch cannot run here.
    """
    path = PurePath(path)
    stem = (path.parent / path.name.partition(".")[0]).as_posix()
    found = [module for end, module in _LIBRARIES.items() if stem.endswith(f"/{end}")]
    if not found:
        raise OSError(f"could not load {path}: it is compiled for PyTorch, not for tinytorch")
    imported(found[0])


def __getattr__(name: str) -> Any:
    if name in ("aten", "profiler"):
        imported("fx._aten")
    if name in _namespaces:
        return _namespaces[name]
    raise AttributeError(f"module 'tinytorch.ops' has no attribute {name!r}")
