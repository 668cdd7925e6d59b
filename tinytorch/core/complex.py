"""Complex numbers: which ops compute with them, and the gradients of holomorphic functions.

An op refuses complex tensors unless it is declared with `complex=`, which says that its kernel computes with complex
numbers, and how its formulas are meant:

- `HOLOMORPHIC`: a formula multiplies `g` by the derivative (or its transpose), as for real numbers. By PyTorch's
  convention a gradient is the conjugate of the Wirtinger derivative, so the engine computes `conj(formula(conj(g)))`
  for a complex `g`.
- `OWN`: the formulas follow PyTorch's convention themselves, or their factors are real (views, sums).

Programs without complex numbers pay nothing for this: only when a program first uses a complex dtype are the kernels of
the other ops replaced by functions that look for complex arguments, and the formulas of holomorphic functions wrapped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinytorch.core.supplied import supplied
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes

if TYPE_CHECKING:
    from tinytorch.core.node import Plan

HOLOMORPHIC, OWN = "holomorphic", "own"


class _State:
    """Attributes: `active`: whether a program has used a complex dtype; `plans`, `waiting`: what to change then."""

    def __init__(self) -> None:
        self.active = False
        self.plans: list[Plan] = []
        self.waiting: list[tuple[Any, Any]] = []


_state = _State()


def is_active() -> bool:
    """Return whether the program has used a complex dtype."""
    return _state.active


def refused(name: str, kind: Any) -> NotImplementedError:
    """Return PyTorch's error for a function that does not compute with complex numbers."""
    words = dtypes.from_numpy_dtype(kind).tensor_name
    name = name.strip("_")
    if name == "sign":
        return NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    return NotImplementedError(
        f"\"{name}\" not implemented for '{words}': {name} is not supported for complex types (it does not support "
        "complex input)"
    )


def refuse(name: str, *tensors: Any) -> None:
    """Raise NotImplementedError if one of the tensors is complex: for functions that are composed of ops."""
    if _state.active:
        for each in tensors:
            if isinstance(each, Tensor) and each._array.dtype.kind == "c":
                raise refused(name, each._array.dtype)


def guarded(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that refuses complex arguments."""

    def call(*args: Any, **kwargs: Any) -> Any:
        for each in (*args, *kwargs.values()) if kwargs else args:
            check(name, each)
        return kernel(*args, **kwargs)

    for attribute in ("shares", "writes"):  # (by which `parallel` tells kinds of functions)
        if hasattr(kernel, attribute):
            setattr(call, attribute, getattr(kernel, attribute))
    return call


def check(name: str, value: Any) -> None:
    """Raise NotImplementedError if a kernel's argument is complex, or a sequence with a complex array."""
    kind = getattr(value, "dtype", None)
    if kind is not None:
        if getattr(kind, "kind", None) == "c":
            raise refused(name, kind)
    elif type(value) is complex:
        raise refused(name, dtypes.complex128.numpy)
    elif isinstance(value, (list, tuple)):
        for each in value:
            check(name, each)


def conjugated(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Return the formula of a holomorphic function for real and for complex gradients."""

    def call(g: Any, *values: Any) -> Any:
        if not _is_complex(g):
            return formula(g, *values)
        return _conj(formula(_conj(g), *values))

    return call


def _is_complex(g: Any) -> bool:
    if isinstance(g, (tuple, list)):
        return any(map(_is_complex, g))
    return g is not None and g.dtype.numpy.kind == "c"  # (a sparse gradient has no array)


def _conj(g: Any) -> Any:
    if isinstance(g, (tuple, list)):
        return type(g)([_conj(each) for each in g])
    return supplied("conjugate")(g) if isinstance(g, Tensor) and g._array.dtype.kind == "c" else g


def conjugate_plan(plan: Plan) -> None:
    """Wrap the formulas of a plan of a holomorphic function: now, or when the program first uses complex numbers."""
    if _state.active:
        plan.rules[:] = [(k, conjugated(formula), indices) for k, formula, indices in plan.rules]
    else:
        _state.plans.append(plan)


def guard_kernels(op: Any, change: Callable[[Callable[[Any], Any]], None]) -> None:
    """Make a generated function refuse complex arguments: now, or when the program first uses complex numbers.

    Args:
        op: the op.
        change: replaces each of the function's kernels (None where there is none) by what a function returns for it.
    """
    if _state.active:
        change(lambda kernel: kernel and guarded(op.name, kernel))
    else:
        _state.waiting.append((op, change))


def _begin() -> None:
    _state.active = True
    plans, waiting = _state.plans, _state.waiting
    _state.plans, _state.waiting = [], []
    for plan in plans:
        conjugate_plan(plan)
    for op, change in waiting:
        guard_kernels(op, change)


dtypes.on_complex.append(_begin)
