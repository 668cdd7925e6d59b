"""The calculus: each op's kernel with the formulas of its gradient.

| module | what |
|---|---|
| `pointwise`, `special` | on each element: arithmetic, comparison, logic; special functions and what is rarer |
| `reduce`, `statistics` | sums, extremes, cumulative ones; quantiles, histograms, segments |
| `shape`, `copies` | views, joining and splitting; copies of what views give, tensors with a view of them replaced |
| `index` | reading and writing by index, gather and scatter, masks, sorting, searching |
| `create`, `random`, `storage` | tensors from numbers; random ones; the memory of a tensor as PyTorch shows it |
| `linalg` | products of matrices and vectors, `einsum` |
| `decompose`, `solve` | `torch.linalg`: factorisations, determinants, norms; inverses, systems, functions of matrices |
| `matrices` | linear algebra under the names that `torch` itself has; distances, covariances |
| `nn`, `norm`, `attention`, `ctc`, `embedding` | of neural networks: activations, softmax, losses; and larger ones |
| `conv`, `pool`, `resample`, `rnn` | convolutions, pooling, resizing and warping, recurrent layers |
| `out` | no ops: `out=`, put around those that have it |

It is `torch.ops`, too, where PyTorch has operators that programs define: see `tinytorch.library`.
"""

from collections.abc import Callable
from typing import Any, NoReturn


class _Namespace:
    """Operators that a program defined, by name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")


_namespaces: dict[str, _Namespace] = {}

#: Enters PyTorch's own operators, `torch.ops.aten`; the package sets it.
enter_aten: Callable[[], Any] = dict


def load_library(path: Any) -> NoReturn:
    """Raise OSError: `torch.ops.load_library` loads operators compiled for PyTorch, which cannot run here."""
    raise OSError(f"could not load {path}: it is compiled for PyTorch, not for tinytorch")


def __getattr__(name: str) -> Any:
    if name == "aten":
        enter_aten()
    if name in _namespaces:
        return _namespaces[name]
    raise AttributeError(f"module 'tinytorch.ops' has no attribute {name!r}")
