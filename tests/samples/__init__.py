"""One list of sample inputs per op; `tests/test_ops.py` drives everything that an op must do over them.

A sample is `Sample("sum", x, dim=1)`: the public name (a path below `torch`, such as "nn.functional.relu" or
"Tensor.view") and its arguments. NumPy arrays among them, also inside lists, become tensors: of tinytorch and of
PyTorch alike. Floating arrays are float64; the tests derive float32, non-contiguous and in-place forms.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tinytorch


@dataclass
class Sample:
    """One call: the public name, its arguments, and what the tests may ask of it.

    Attributes:
        name: path below `torch`.
        args, kwargs: arguments; arrays become tensors.
        backward: whether gradients are compared with PyTorch's.
        gradcheck: whether numerical differentiation makes sense (not at kinks, for discontinuous or random functions).
        in_place: whether the op's in-place form can be called with the same arguments.
        hermitian: whether matrices among the arguments are Hermitian in the complex form of the sample.
        rtol, atol: how near to PyTorch in float64 (float32 allows 1e4 times as much).
        select: which part of the result is compared (signs of eigenvectors …); None for all.
        family: the module of this folder that has the sample.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    backward: bool = True
    gradcheck: bool = True
    in_place: bool = False
    hermitian: bool = False
    rtol: float = 1e-9
    atol: float = 1e-11
    select: Callable[[Any], Any] | None = None
    family: str = ""

    def key(self) -> str:
        """Return what identifies the sample: its name, its arguments with the elements of arrays, what is compared."""
        select: Any = self.select
        if select is not None:
            select = select.__qualname__, [each.cell_contents for each in select.__closure__ or ()]
        digest = hashlib.sha1(repr((self.name, self.backward, select, sorted(self.kwargs))).encode())

        def add(value: Any) -> None:
            if isinstance(value, np.ndarray):
                digest.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
            elif isinstance(value, (list, tuple)):
                digest.update(f"{type(value)}{len(value)}".encode())
                for each in value:
                    add(each)
            else:
                digest.update(repr(value).encode())

        add([*self.args, *self.kwargs.values()])
        return digest.hexdigest()[:16]

    def __str__(self) -> str:
        shown = [_shown(arg) for arg in self.args] + [f"{key}={_shown(value)}" for key, value in self.kwargs.items()]
        return f"{self.name}({', '.join(shown)})"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}".replace(", ", "x")
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_shown(each) for each in value) + "]"
    return repr(value)


def sample(name: str, *args: Any, **kwargs: Any) -> Sample:
    """Return `Sample(name, args, kwargs)`, the usual way to write one down."""
    return Sample(name, args, kwargs)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Return normally distributed float64 numbers."""
    return np.random.default_rng(seed + 31 * len(shape)).standard_normal(shape)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0, seed: int = 0) -> np.ndarray:
    """Return uniformly distributed float64 numbers in [low, high)."""
    return np.random.default_rng(seed + 31 * len(shape)).uniform(low, high, shape)


def integers(*shape: int, low: int = -5, high: int = 6, seed: int = 0) -> np.ndarray:
    """Return int64 numbers in [low, high)."""
    return np.random.default_rng(seed + 31 * len(shape)).integers(low, high, shape)


def booleans(*shape: int, seed: int = 0) -> np.ndarray:
    """Return random truth values."""
    return np.random.default_rng(seed + 31 * len(shape)).random(shape) < 0.5


def distinct(*shape: int, seed: int = 0) -> np.ndarray:
    """Return float64 numbers of which no two are near (for max, sort, median …: no ties, no kinks)."""
    count = int(np.prod(shape))
    order = np.random.default_rng(seed + 31 * len(shape)).permutation(count)
    return (order.reshape(shape) - count / 2 + 0.3) / 4


@functools.cache
def all_samples() -> list[Sample]:
    """Return the samples of all modules in this folder, each once."""
    found: dict[tuple[Any, ...], Sample] = {}
    for module in pkgutil.iter_modules(__path__):
        for each in importlib.import_module(f"{__name__}.{module.name}").SAMPLES:
            each.family = module.name
            asked = each.gradcheck, each.in_place, each.hermitian, each.rtol, each.atol
            found.setdefault((each.key(), *asked), each)
    for name in {each.name.partition(".")[0] for each in found.values()}:
        getattr(tinytorch, name)  # or an error that says what to run
    return list(found.values())
