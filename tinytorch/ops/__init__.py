"""The calculus: each op's kernel with the formulas of its gradient.

| module | what |
|---|---|
| `register`, `autocast`, `overrides`, `out`, `return_types` | no ops: what is put around them |
| `arguments`, `limits`, `values`, `writing` | no ops: what they share |
| `arithmetic`, `compare`, `transcendental`, `special` | on each element |
| `reduce`, `statistics` | sums, extremes, cumulative ones; quantiles, histograms |
| `shape`, `join`, `rearrange`, `copies` | views; several tensors; elements in another order; copies of views |
| `index`, `scatter`, `masks`, `sort` | reading and writing by index, place, condition; sorting, searching |
| `create`, `sequences`, `random`, `rejection` | tensors from numbers and shapes; random ones |
| `convert`, `storage`, `memory`, `members`, `operators` | other dtypes; memory; the rest of Tensor |
| `fft` | what `torch.fft` has without complex numbers |
| `linalg.products` | products of matrices and vectors, `einsum` |
| `linalg.factor`, `linalg.solve` | `torch.linalg`: factorisations, norms; inverses, systems, functions of matrices |
| `linalg.matrices` | linear algebra under the names that `torch` itself has; distances, covariances |
| `nn` | of neural networks, a module for each kind of layer |

It is `torch.ops`, too, where PyTorch has operators that programs define: see `tinytorch.library`.
"""

from pathlib import PurePath
from typing import Any

from tinytorch.core.supplied import supplied


class _Namespace:
    """Operators that a program defined, by name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")


_namespaces: dict[str, _Namespace] = {}

__traced_as__ = "op"  # by `torch.compile`


def add_namespace(name: str, operators: _Namespace) -> None:
    """Enter operators as `torch.ops.name`."""
    _namespaces[name] = operators


def load_library(path: Any) -> None:
    """Enter the operators of a library that is compiled for PyTorch: those of torchvision are here, too.

    Raises:
        OSError: it is another library: what is compiled for PyTorch cannot run here.
    """
    path = PurePath(path)
    if f"{path.parent.name}/{path.name.partition('.')[0]}" != "torchvision/_C":
        raise OSError(f"could not load {path}: it is compiled for PyTorch, not for tinytorch")
    supplied("torchvision_operators")()


def __getattr__(name: str) -> Any:
    if name == "aten":
        supplied(name)
    if name in _namespaces:
        return _namespaces[name]
    raise AttributeError(f"module 'tinytorch.ops' has no attribute {name!r}")
