"""What calls of ops seldom need: operands of two dtypes, arrays without data, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tinytorch.core.declaration import NUMBERS, Op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes, silence
from tinytorch.kernels.checks import exceeds_dimensions, too_many_dimensions
from tinytorch.kernels.dtypes import FLOATS, number
from tinytorch.kernels.meta import NoData, NotCopied, is_meta, on_zeros

_F32, _I64 = np.dtype(np.float32), np.dtype(np.int64)
PLAIN_NUMBERS = frozenset((float, int, bool))
#: The largest arrays without data for which kernels run on zeros.
SMALL = 2**12


def promoted(made: Op, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the operands of a ufunc: arrays of PyTorch's result dtype, or an unchanged Python number (`made.numbers`).

    NumPy's weak promotion of Python numbers equals PyTorch's unless the number's category is the higher one.
    """
    if made.name == "sub":
        refuse_booleans(x, y)
    if not (made.in_float32 or made.of_tensors):
        if isinstance(x, Tensor) and not isinstance(y, Tensor):
            kind = x._array.dtype.kind
            if kind == "f" and type(y) in PLAIN_NUMBERS:  # (NumPy would widen bfloat16)
                made.refuse_dtype(x._array.dtype)
                return x._array, _taken(made, y, x._array.dtype)
            if type(y) is int and x._array.dtype is _I64 and not made.floating and -(2**63) <= y < 2**63:
                return x._array, _taken(made, y, _I64)
        elif isinstance(y, Tensor) and not isinstance(x, Tensor):
            kind = y._array.dtype.kind
            if kind == "f" and type(x) in PLAIN_NUMBERS:
                made.refuse_dtype(y._array.dtype)
                return _taken(made, x, y._array.dtype), y._array
    numbers = () if made.of_tensors else NUMBERS
    x, y = (
        each if isinstance(each, (Tensor, np.ndarray, *numbers)) else made.adopted(each, k)
        for k, each in enumerate((x, y))
    )
    operands = []
    for each in (x, y):
        if isinstance(each, Tensor):
            operands.append((each.dtype, 2 if each._array.ndim else 1))
        elif isinstance(each, np.ndarray):
            operands.append((dtypes.from_numpy_dtype(each.dtype), 2 if each.ndim else 1))
        else:
            operands.append((dtypes.of_number(each), 0))
    target = dtypes.result_dtype(*operands)
    if made.floating and not (target.is_floating_point or target.is_complex):
        target = dtypes.get_default_dtype()
    numpy_dtype = target.numpy
    if (
        made.in_float32
        and numpy_dtype.itemsize == 2
        and target.is_floating_point
        and not (isinstance(y, Tensor) and y._array.ndim)
    ):
        narrow = _cast(x, numpy_dtype) if isinstance(x, Tensor) else x
        wide = silence.quiet(made.kernel)(_cast(narrow, _F32), _cast(y, _F32))
        return silence.cast(wide, numpy_dtype), np.ones((), numpy_dtype)  # the result, and 1, which leaves it unchanged
    arrays = _cast(x, numpy_dtype), _cast(y, numpy_dtype)
    if numpy_dtype not in made.accepted:
        made.refuse_dtypes(arrays)
    return arrays


def _taken(made: Op, value: Any, kind: Any) -> Any:
    """Return a number as the kernel takes it: as it is, or as an array."""
    return value if made.numbers else number(value, kind) if value else np.asarray(value, kind)


def refuse_booleans(x: Any, y: Any) -> None:
    """Raise PyTorch's error if one operand of a subtraction is boolean."""
    booleans = [
        each._array.dtype.kind == "b" if isinstance(each, Tensor) else isinstance(each, bool) for each in (x, y)
    ]
    if all(booleans):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if any(booleans):
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead."
        )


@silence.quiet
def _cast(x: Any, numpy_dtype: Any) -> Any:
    if isinstance(x, Tensor):
        return x._array.astype(numpy_dtype, copy=False)
    if isinstance(x, np.ndarray):
        return x.astype(numpy_dtype, copy=False)
    return np.asarray(x).astype(numpy_dtype)  # a number: wraps as in C, as PyTorch's scalars do


def check_devices(made: Op, arrays: Any) -> list[Any]:
    """Return the tensors' arrays among the arguments of a kernel.

    Raises:
        RuntimeError: a tensor on the meta device meets one on the CPU that is neither 0-d nor an index of it.
    """
    inputs: list[Any] = []
    for i in made.inputs:
        inputs.extend(arrays[i] if isinstance(arrays[i], (list, tuple)) else (arrays[i],))
    if any(map(is_meta, inputs)):
        for k, x in enumerate(inputs):
            if type(x) is np.ndarray and x.ndim > 0 and (not k or x.dtype.kind in FLOATS):
                raise RuntimeError(f"{made.name}: Tensor on device cpu is not on the expected device meta!")
    return inputs


def without_data(made: Op, arrays: Any) -> Any:
    """Return what a kernel returns for arrays some of which have no data, by the rules of NumPy's functions for these.

    Of a kernel that reads elements it is what the kernel returns for zeros. So it is of small arrays: the rules do not
    tell the strides of dimensions of one element.

    Raises:
        RuntimeError: as `check_devices`.
        NotImplementedError: the shape of the result depends on the elements.
    """
    inputs, count = check_devices(made, arrays), made.positional
    given, named = tuple(arrays[:count]), dict(zip(made.arguments[count:], arrays[count:], strict=True))
    try:
        results = silence.quietly(made.kernel, *given, **named)
        made_of = results if isinstance(results, (tuple, list)) else (results,)
        if any([x.size > SMALL for x in (*inputs, *made_of) if is_meta(x)]):
            return results
    except NoData:
        if made.data_dependent:
            text = "the shape of the result depends on the elements, and a tensor on the meta device has none"
            raise NotCopied(f"{made.name}: {text}") from None
    return on_zeros(made.kernel, given, named)


def written_without_data(write: Any, arrays: Any) -> None:
    """Check the arguments of a kernel that writes into an array without data, where nothing happens."""
    with suppress(NoData):  # (it reads elements)
        silence.quietly(write, *arrays)


def translated(made: Op, values: Sequence[Any], error: Exception) -> Exception:
    """Return NumPy's error with PyTorch's class and message; PyTorch's own errors are returned unchanged."""
    text = str(error)
    if isinstance(error, AttributeError) and not isinstance(error.obj, Tensor):
        for i in made.inputs:
            if values[i] is error.obj:
                return made.refusal(error.obj, i)
    if isinstance(error, ValueError) and ("broadcast" in text):
        shapes = [value._array.shape for value in values if isinstance(value, Tensor)]
        return RuntimeError(_broadcast_error(made.name, shapes))
    if isinstance(error, ValueError) and exceeds_dimensions(error):
        return too_many_dimensions()
    if isinstance(error, TypeError) and ("ufunc" in text or "numpy boolean" in text):
        kinds = {value.dtype.tensor_name for value in values if isinstance(value, Tensor)}
        if made.name == "sub":
            refuse_booleans(*values)
        return RuntimeError(f'"{made.name}" not implemented for {" and ".join(sorted(map(repr, kinds)))}')
    return error


def _broadcast_error(name: str, shapes: list[tuple[int, ...]]) -> str:
    if len(shapes) == 2:
        a, b = shapes
        for back in range(1, min(len(a), len(b)) + 1):
            if a[-back] != b[-back] and 1 not in (a[-back], b[-back]):
                dim = max(len(a), len(b)) - back
                return (
                    f"The size of tensor a ({a[-back]}) must match the size of tensor b ({b[-back]}) at "
                    f"non-singleton dimension {dim} ({name} of shapes {list(a)} and {list(b)})"
                )
    return f"{name}: shapes {', '.join(str(list(shape)) for shape in shapes)} cannot be broadcast together"
