"""`torch.export.dynamic_shapes`: which sizes of the inputs may differ from call to call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.func.pytree import flatten
from tinytorch.fx.export.tracing import ExportError
from tinytorch.nn.modules.module import Module


class _DimHint:
    """A size of which the exporter finds out whether it may differ (AUTO, DYNAMIC), or which does not (STATIC)."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"DimHint({self.kind})"

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        """Return the hint; bounds have no effect."""
        return self


class Dim:
    """A size that may differ from call to call; sizes of the same name are equal.

    Args:
        name: its name.
        min, max: its bounds, both included; None for the usual ones.

    Attributes:
        AUTO, DYNAMIC: in the place of a `Dim`: a size that may differ, without a name.
        STATIC: a size that does not differ.

    Example:
        >>> batch = torch.export.Dim("batch", min=1, max=64)
        >>> batch, 2 * batch
        (Dim('batch', min=1, max=64), 2*batch)
    """

    AUTO: ClassVar[Any] = _DimHint("AUTO")
    DYNAMIC: ClassVar[Any] = _DimHint("DYNAMIC")
    STATIC: ClassVar[Any] = _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.min, self.max = 0 if min is None else min, max
        if self.max is not None and self.max <= self.min:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name
        self.root, self.factor, self.offset = self, 1, 0

    def _derived(self, factor: int, offset: int) -> Dim:
        made = Dim(self.root.__name__)
        made.root, made.factor, made.offset = self.root, factor, offset
        return made

    def __add__(self, number: int) -> Dim:
        return self._derived(self.factor, self.offset + number)

    def __sub__(self, number: int) -> Dim:
        return self + -number

    def __mul__(self, number: int) -> Dim:
        if number <= 0:
            raise NotImplementedError(
                f"Attempted to multiply {self!r} by {number}, where a positive integer was expected"
            )
        return self._derived(self.factor * number, self.offset * number)

    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        if self.root is self:
            limits = [f"min={self.min}", *[f"max={self.max}"] * (self.max is not None)]
            return f"Dim('{self.__name__}', {', '.join(limits)})"
        factor = f"{self.factor}*" * (self.factor != 1)
        sign = f" {'+' if self.offset > 0 else '-'} {abs(self.offset)}" * bool(self.offset)
        return f"{factor}{self.root.__name__}{sign}"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Return several `Dim`s.

    Example:
        >>> torch.export.dims("batch", "length", min=1)
        (Dim('batch', min=1), Dim('length', min=1))
    """
    return tuple([Dim(name, min=min, max=max) for name in names])


class ShapesCollection:
    """The dynamic sizes of tensors, given by the tensors themselves.

    Example:
        >>> x = torch.ones(4, 3)
        >>> shapes = torch.export.ShapesCollection()
        >>> shapes[x] = {0: torch.export.Dim("batch")}
        >>> program = torch.export.export(torch.nn.Linear(3, 2), (x,), dynamic_shapes=shapes)
        >>> program.module()(torch.ones(7, 3)).shape
        torch.Size([7, 2])
    """

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[Any, Any]] = {}

    def __setitem__(self, x: Tensor, shape: Any) -> None:
        self._shapes[id(x)] = x, shape

    def __getitem__(self, x: Tensor) -> Any:
        return self._shapes[id(x)][1]

    def __len__(self) -> int:
        return len(self._shapes)

    def find(self, x: Any) -> Any:
        """Return the sizes of a tensor, or None."""
        return self._shapes.get(id(x), (None, None))[1]


class Dynamic(NamedTuple):
    """A dynamic size of an input.

    Attributes:
        leaf: the number of the input among the leaves of the arguments.
        dim: the dimension.
        size: the `Dim`, or None for a size without a name.
        name: its name, or "".
        required: whether it is an error if the model needs the size to be a certain number.
    """

    leaf: int
    dim: int
    size: Dim | None
    name: str
    required: bool


def names_of(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
    """Return the names of a model's arguments, in the order of a call."""
    function = model.forward if isinstance(model, Module) else model
    try:
        bound = inspect.signature(function).bind_partial(*args, **kwargs)
    except (TypeError, ValueError):
        return [*[f"args_{k}" for k in range(len(args))], *kwargs]
    names: list[str] = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}_{k}" for k in range(len(value))]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            names += list(value)
        else:
            names.append(name)
    return [*names[: len(args)], *kwargs]


def leaf_names(names: list[str], values: list[Any]) -> list[str]:
    """Return the names of the leaves of arguments."""
    found: list[str] = []
    for name, value in zip(names, values, strict=True):
        found += [f"{name}{path}" for path in _paths(value)]
    return found


def _children(x: Any) -> list[tuple[Any, Any]] | None:
    """Return the items of a tuple, list or dict by their keys; None for anything else."""
    if isinstance(x, (tuple, list)):
        return list(enumerate(x))
    return list(x.items()) if isinstance(x, dict) else None


def _paths(x: Any) -> Iterator[str]:
    children = _children(x)
    if children is None:
        count = len(flatten(x)[0])
        yield from [""] if count == 1 else [f"_{k}" for k in range(count)]
        return
    for key, value in children:
        for path in _paths(value):
            yield f"_{key}{path}"


def dynamic_sizes(names: list[str], values: list[Any], shapes: Any) -> list[Dynamic]:
    """Return the dynamic sizes of arguments."""
    if not shapes:
        return []
    if isinstance(shapes, ShapesCollection):
        leaves = [x for value in values for x in flatten(value)[0]]
        return [size for k, x in enumerate(leaves) for size in _of_leaf(k, x, shapes.find(x), f"inputs[{k}]")]
    if isinstance(shapes, dict):
        if {*shapes} != {*names}:
            raise ExportError(
                f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names {names} of "
                f"`inputs`, but here they are {[*shapes]}. Alternatively, you could also ignore arg names entirely and "
                "specify `dynamic_shapes` as a list/tuple matching `inputs`."
            )
        given = [shapes[name] for name in names]
    else:
        given = list(shapes)
        if len(given) != len(values):
            raise ExportError(
                "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs` has "
                f"{len(values)} elements, but `dynamic_shapes` has {len(given)} elements"
            )
    found: list[Dynamic] = []
    count = 0
    for k, (value, shape) in enumerate(zip(values, given, strict=True)):
        count = _collect(value, shape, f"[{k}]", count, found)
    return found


def _collect(x: Any, shape: Any, path: str, count: int, found: list[Dynamic]) -> int:
    """Append the dynamic sizes in an argument, and return the number of leaves so far."""
    children = _children(x)
    if shape is None or children is None:
        leaves = flatten(x)[0]
        if shape is not None:
            if len(leaves) != 1:
                raise ExportError(f"{type(x).__name__} objects in `inputs{path}` have no dynamic shapes")
            found += _of_leaf(count, leaves[0], shape, path)
        return count + len(leaves)
    if not isinstance(shape, (tuple, list, dict)) or (isinstance(x, dict) is not isinstance(shape, dict)):
        raise ExportError(
            f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs{path}` is a {type(x)}, "
            f"but `dynamic_shapes{path}` is not"
        )
    if len(children) != len(shape):
        raise ExportError(
            f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs{path}` has "
            f"{len(children)} elements, but `dynamic_shapes{path}` has {len(shape)} elements"
        )
    for key, value in children:
        count = _collect(value, shape[key], f"{path}[{key!r}]", count, found)
    return count


def _of_leaf(leaf: int, x: Any, shape: Any, path: str) -> list[Dynamic]:
    if shape is None:
        return []
    if not isinstance(x, Tensor):
        raise ExportError(f"Expected dynamic shape at `dynamic_shapes{path}` to be None, as the input is no tensor")
    if isinstance(shape, (tuple, list)):
        if len(shape) != x.ndim:
            raise ExportError(
                f"Expected dynamic shape spec {shape} specified at `dynamic_shapes{path}` to have the same length as "
                f"the actual tensor shape {tuple(x.shape)} (expected {x.ndim}, but got {len(shape)} instead)"
            )
        shape = dict(enumerate(shape))
    if not isinstance(shape, dict):
        raise ExportError(f"Unexpected dynamic shape at `dynamic_shapes{path}`: {shape!r}")
    found = []
    for dim, size in shape.items():
        if size is None or isinstance(size, int) or (isinstance(size, _DimHint) and size.kind == "STATIC"):
            continue
        k = dim + x.ndim if dim < 0 else dim
        if not 0 <= k < x.ndim:
            raise ExportError(
                f"Unexpected dimension {dim} at `dynamic_shapes{path}` of a tensor of shape {tuple(x.shape)}"
            )
        if isinstance(size, str):
            found.append(Dynamic(leaf, k, None, size, False))
        elif isinstance(size, Dim):
            name = size.root.__name__ if size.root is size else ""
            found.append(Dynamic(leaf, k, size, name, True))
        elif isinstance(size, _DimHint):
            found.append(Dynamic(leaf, k, None, "", size.kind == "DYNAMIC"))
        else:
            raise ExportError(f"Unexpected dimension mapped to index {dim} at `dynamic_shapes{path}`: {size!r}")
    return found


#: Other sizes, in the place of a size: most models allow for some of them.
CANDIDATES: list[Callable[[int], int]] = [
    lambda n: 2 * n, lambda n: n + 1, lambda n: n + 2, lambda n: n - 1, lambda n: n // 2,
]  # fmt: skip


def other_leaves(leaves: list[Any], sizes: list[Dynamic], other: Callable[[int], int]) -> list[Any] | None:
    """Return arguments with other sizes in the place of the dynamic ones; None if these are out of bounds."""
    new = list(leaves)
    for leaf, dim, size, _, _ in sizes:
        array = new[leaf]._array
        n = array.shape[dim]
        if size is None:
            m = other(n)
            low, high = 1, None
        else:
            root = (n - size.offset) // size.factor
            m = other(root)
            low, high = max(size.root.min, 1), size.root.max
            if m < low or (high is not None and m > high):
                return None
            m = size.factor * m + size.offset
        if m < low or m == n:
            return None
        new[leaf] = wrap(np.take(array, np.arange(m) % n, axis=dim))
    return new


__all__ = ["Dim", "Dynamic", "ShapesCollection", "dims", "dynamic_sizes", "leaf_names", "names_of", "other_leaves"]
