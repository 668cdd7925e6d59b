"""The element types, PyTorch's promotion rules, and the default type.

A `dtype` is PyTorch's name for an element type; `dtype.numpy` is NumPy's. The rules of promotion are one table
(`_PROMOTED`) and one function (`result_dtype`), which all other code uses.
"""

from __future__ import annotations

import builtins
import functools
import itertools
from typing import Any

import numpy as np

from .silence import quiet

__all__ = [
    "bfloat16", "bool", "can_cast", "cdouble", "cfloat", "chalf", "complex128", "complex32", "complex64",
    "double", "dtype", "float", "float16", "float32", "float64",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "get_default_dtype", "half", "int", "int16", "int32", "int64", "int8", "long", "promote_types",
    "qint32", "qint8", "quint2x4", "quint4x2", "quint8",
    "set_default_dtype", "short", "uint16", "uint32", "uint64", "uint8",
]  # fmt: skip

FLOATS = "fV"  # NumPy's kinds of floating-point dtypes; bfloat16 is of kind V
DIFFERENTIABLE = "fVc"  # and those of the dtypes that can have gradients

RARE = "?HILQ"  # NumPy's characters of bool and uint16 to uint64, which many of PyTorch's kernels do not support

BOOL, INTEGER, FLOATING, COMPLEX = 0, 1, 2, 3  # the categories of promotion, in their order


class dtype:
    """An element type, such as `tinytorch.float32`; compare with `is` or `==`.

    Attributes:
        name: PyTorch's name, "float32".
        itemsize: bytes of one element.
        is_floating_point, is_complex, is_signed: the same as PyTorch's attributes.
        category: 0 for bool, 1 for integers, 2 for floating point, 3 for complex; a higher one wins in promotion.

    Example:
        >>> torch.float32, torch.float32.itemsize, torch.long.is_floating_point
        (torch.float32, 4, False)
    """

    __slots__ = (
        "_numpy", "category", "is_complex", "is_floating_point", "is_signed", "itemsize", "name", "tensor_name",
    )  # fmt: skip

    def __init__(self, name: str, tensor_name: str, category: builtins.int, itemsize: builtins.int) -> None:
        self.name = name
        self.tensor_name = tensor_name  # "Float", as in PyTorch's messages and `FloatTensor`
        self.category = category
        self.itemsize = itemsize
        self.is_floating_point = category == FLOATING
        self.is_complex = category == COMPLEX
        self.is_signed = name != "bool" and not name.startswith("uint")
        # bfloat16 and float8 are not NumPy's own: they are looked up when first used.
        late = name == "bfloat16" or name.startswith("float8")
        self._numpy: np.dtype[Any] | None = None if late else np.dtype(name)

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype of the same elements.

        Raises:
            NotImplementedError: there are no tensors of this type.
        """
        if self._numpy is None:
            if self is not bfloat16 and self not in FLOAT8:
                raise NotImplementedError(f"tinytorch has no tensors of dtype {self!r}")
            try:
                import ml_dtypes
            except ModuleNotFoundError:
                raise ImportError(f"{self.name} needs ml_dtypes (the extra `bf16`): pip install ml_dtypes") from None
            if not hasattr(ml_dtypes, self.name):
                raise ImportError(f"{self.name} needs a newer ml_dtypes: pip install -U ml_dtypes")
            self._numpy = np.dtype(getattr(ml_dtypes, self.name))
            _FROM_NUMPY[self._numpy] = self
        return self._numpy

    def to_complex(self) -> dtype:
        """Return the complex dtype whose parts have this dtype; the dtype itself if it is complex.

        Raises:
            RuntimeError: there is no such dtype.

        Example:
            >>> torch.float64.to_complex()
            torch.complex128
        """
        if self.is_complex:
            return self
        try:
            return {float16: complex32, bfloat16: complex64, float32: complex64, float64: complex128}[self]
        except KeyError:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.tensor_name}") from None

    def to_real(self) -> dtype:
        """Return the dtype of the real and the imaginary part; the dtype itself if it is not complex.

        Example:
            >>> torch.complex64.to_real()
            torch.float32
        """
        return {complex32: float16, complex64: float32, complex128: float64}.get(self, self)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name  # pickled and copied by reference: there is one object per dtype


uint8 = dtype("uint8", "Byte", INTEGER, 1)
int8 = dtype("int8", "Char", INTEGER, 1)
int16 = short = dtype("int16", "Short", INTEGER, 2)
int32 = int = dtype("int32", "Int", INTEGER, 4)
int64 = long = dtype("int64", "Long", INTEGER, 8)
float16 = half = dtype("float16", "Half", FLOATING, 2)
bfloat16 = dtype("bfloat16", "BFloat16", FLOATING, 2)
float32 = float = dtype("float32", "Float", FLOATING, 4)
float64 = double = dtype("float64", "Double", FLOATING, 8)
bool = dtype("bool", "Bool", BOOL, 1)
uint16 = dtype("uint16", "UInt16", INTEGER, 2)
uint32 = dtype("uint32", "UInt32", INTEGER, 4)
uint64 = dtype("uint64", "UInt64", INTEGER, 8)
UNSIGNED = (uint16, uint32, uint64)  # few operations support them; none promotes them with other integers
LACKING = (bool, *UNSIGNED)


class Absent(dtype):
    """A dtype that no tensor has: programs compare dtypes with it, or have tables of all dtypes."""

    __slots__ = ()

    def __init__(self, name: str, tensor_name: str, category: builtins.int, itemsize: builtins.int) -> None:
        super().__init__("bfloat16", tensor_name, category, itemsize)  # `numpy` looks it up
        self.name = name
        self.is_floating_point = name.startswith("float")
        self.is_signed = "uint" not in name and name != "float8_e8m0fnu"  # (which has no sign bit)


qint8 = Absent("qint8", "QInt8", INTEGER, 1)
qint32 = Absent("qint32", "QInt32", INTEGER, 4)
quint8 = Absent("quint8", "QUInt8", INTEGER, 1)
quint4x2 = Absent("quint4x2", "QUInt4x2", INTEGER, 1)
quint2x4 = Absent("quint2x4", "QUInt2x4", INTEGER, 1)
float8_e4m3fn = dtype("float8_e4m3fn", "Float8_e4m3fn", FLOATING, 1)
float8_e4m3fnuz = dtype("float8_e4m3fnuz", "Float8_e4m3fnuz", FLOATING, 1)
float8_e5m2 = dtype("float8_e5m2", "Float8_e5m2", FLOATING, 1)
float8_e5m2fnuz = dtype("float8_e5m2fnuz", "Float8_e5m2fnuz", FLOATING, 1)
float8_e8m0fnu = Absent("float8_e8m0fnu", "Float8_e8m0fnu", FLOATING, 1)
#: Their tensors are stored, copied and converted: no op computes with them, and nothing is promoted to them.
FLOAT8 = (float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz)
complex32 = chalf = Absent("complex32", "ComplexHalf", COMPLEX, 4)
complex64 = cfloat = dtype("complex64", "ComplexFloat", COMPLEX, 8)
complex128 = cdouble = dtype("complex128", "ComplexDouble", COMPLEX, 16)

ALL = (
    bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, *UNSIGNED, complex64, complex128,
)  # fmt: skip
#: The dtypes that tensors, and their files, have.
STORED = (*ALL, *FLOAT8)
#: The names of the dtypes in PyTorch's messages that come from C++.
C_NAMES = {
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double", "bool": "bool",
    "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int",
    "uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip
_FROM_NUMPY: dict[np.dtype[Any], dtype] = {d._numpy: d for d in ALL if d._numpy is not None}
_FROM_PYTHON: dict[Any, dtype] = {
    builtins.bool: bool, builtins.int: int64, builtins.float: float64, complex: complex128,
}  # fmt: skip


def narrowed(values: Any, kind: np.dtype[Any]) -> Any:
    """Return numbers as an array of 8-bit floats, rounded as in PyTorch; if `kind` is no such dtype, as they are.

    PyTorch converts to float32 first. What is out of the range of float8_e4m3fn becomes its largest number, also
    infinity (ml_dtypes makes it NaN); the other dtypes have infinity, or NaN, for it.
    """
    if kind.kind not in FLOATS or kind.itemsize != 1 or getattr(values, "dtype", None) == kind:
        return values
    wide = values.astype(np.float32) if isinstance(values, np.ndarray) else np.asarray(values, np.float32)
    if kind.name == "float8_e4m3fn":
        wide = np.clip(wide, np.float32(-448), np.float32(448))
    made = wide.astype(kind)
    if kind.name == "float8_e5m2" and made.size and type(made) is np.ndarray:  # PyTorch's NaN has all bits set
        made.view(np.uint8)[...] |= np.isnan(wide).astype(np.uint8)
    return made


def from_numpy_dtype(numpy_dtype: np.dtype[Any]) -> dtype:
    """Return the dtype of NumPy's; TypeError where PyTorch has none (text, objects, dates)."""
    kind = _FROM_NUMPY.get(numpy_dtype)
    if kind is None:
        for late in (bfloat16, *FLOAT8):
            if numpy_dtype.name == late.name:
                late.numpy  # noqa: B018  (adds it to the table)
                return late
        kind = _FROM_NUMPY.get(numpy_dtype.newbyteorder("="))
    if kind is None:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{numpy_dtype.type.__name__}. The only supported types are: "
            "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
            "uint8, and bool."
        )
    return kind


def as_dtype(value: Any) -> dtype:
    """Return `value` as a dtype: itself, or the type of Python's `float`, `int`, `bool`, `complex`.

    Raises:
        TypeError: `value` is none of these.
    """
    if isinstance(value, dtype):
        return value
    try:
        return _FROM_PYTHON[value]
    except (KeyError, TypeError):
        raise TypeError(f"dtype must be torch.dtype, not {type(value).__name__}") from None


# Promotion ----------------------------------------------------------------------------------------


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    if a.category != b.category:
        higher, lower = (a, b) if a.category > b.category else (b, a)
        if higher is complex64 and lower is float64:
            return complex128
        return higher
    if {a, b} == {float16, bfloat16}:
        return float32
    if uint8 in (a, b):  # the only unsigned dtype here: uint8 and int8 promote to int16
        other = b if a is uint8 else a
        return int16 if other is int8 else other
    return a if a.itemsize > b.itemsize else b


class _Promoted(dict[tuple[dtype, dtype], dtype]):
    def __missing__(self, pair: tuple[dtype, dtype]) -> dtype:
        a, b = pair
        if a is b:
            return a
        if a in FLOAT8 or b in FLOAT8:
            what = f"attempted to promote {a.tensor_name} and {b.tensor_name}"
            raise RuntimeError(f"Promotion for Float8 Types is not supported, {what}")
        if complex32 in pair and not any(isinstance(each, Absent) and each is not complex32 for each in pair):
            other = b if a is complex32 else a
            wide = {bfloat16: complex64, float32: complex64, float64: complex128}
            return wide.get(other, other if other.is_complex else complex32)
        if isinstance(a, Absent) or isinstance(b, Absent):
            raise NotImplementedError(f"tinytorch has no tensors of dtype {a!r} or {b!r}")
        what = f"attempted to promote {a.tensor_name} and {b.tensor_name}"
        raise RuntimeError(f"Promotion for uint16, uint32, uint64 types is not supported, {what}")


_PROMOTED = _Promoted(
    ((a, b), _promote(a, b))
    for a, b in itertools.product(ALL, ALL)
    if a is b or max(a.category, b.category) == FLOATING or not (a in UNSIGNED or b in UNSIGNED)
)


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """Return the smallest dtype that both can be converted to by PyTorch's rules of promotion.

    Example:
        >>> torch.promote_types(torch.int32, torch.float16), torch.promote_types(torch.uint8, torch.int8)
        (torch.float16, torch.int16)
    """
    type1 = checked("promote_types", "type1", 1, type1)
    type2 = checked("promote_types", "type2", 2, type2)
    return _PROMOTED[type1, type2]


def checked(name: str, argument: str, position: builtins.int, value: Any) -> dtype:
    """Return an argument as a dtype; raise an error unless it is one, or Python's `float`, `int` or `bool`."""
    if not isinstance(value, dtype):
        if value in (builtins.float, builtins.int, builtins.bool, complex):
            return as_dtype(value)
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be torch.dtype, not {type(value).__name__}"
        )
    return value


def can_cast(from_: dtype, to: dtype) -> builtins.bool:
    """Return whether PyTorch's casting rules allow `from_` to be written into `to`, of no lower category.

    Example:
        >>> torch.can_cast(torch.double, torch.float), torch.can_cast(torch.float, torch.int)
        (True, False)
    """
    from_, to = checked("can_cast", "from_", 1, from_), checked("can_cast", "to", 2, to)
    return from_.category <= to.category


for _function in (promote_types, can_cast):
    vars(_function)["__traced_as__"] = "pure"  # by `torch.compile`


def result_dtype(*operands: tuple[dtype, builtins.int]) -> dtype:
    """Return the dtype of an operation on operands given as (dtype, rank).

    `rank` is 2 for a tensor with dimensions, 1 for a 0-d tensor, 0 for a Python number (whose dtype is the default
    one for floats). An operand of lower rank affects the result only if its category is higher.
    """
    best: list[dtype | None] = [None, None, None]
    for kind, rank in operands:
        seen = best[rank]
        best[rank] = kind if seen is None else _PROMOTED[seen, kind]
    result = best[2]
    for lower in (best[1], best[0]):
        if lower is not None and (result is None or lower.category > result.category):
            # A higher category decides alone, as in PyTorch: an int64 tensor and a 0-d float16 give float16.
            if result is not None and result.is_floating_point:
                result = result.to_complex()  # (of a number only the category counts, as for floats)
            else:
                result = lower if result is None or lower.is_complex else _PROMOTED[result, lower]
    if result is None:
        raise ValueError("result_dtype needs an operand")
    return result


def of_number(value: Any) -> dtype:
    """Return the dtype that a Python number has in promotion: int64, bool, or the default floating type."""
    if isinstance(value, (builtins.bool, np.bool_)):
        return bool
    if isinstance(value, (builtins.int, np.integer)):
        return int64
    if isinstance(value, (complex, np.complexfloating)):
        return default[0].to_complex()
    return default[0]


# The default type ---------------------------------------------------------------------------------

default = [float32]


def get_default_dtype() -> dtype:
    """Return the dtype of new floating-point tensors, `float32` unless set.

    Example:
        >>> torch.get_default_dtype()
        torch.float32
    """
    return default[0]


def set_default_dtype(d: dtype, /) -> None:
    """Make `d` the dtype of new floating-point tensors and of Python floats in promotion.

    Raises:
        TypeError: `d` is not a floating-point dtype.

    Example:
        >>> torch.set_default_dtype(torch.float64)
        >>> torch.tensor(1.5).dtype
        torch.float64
        >>> torch.set_default_dtype(torch.float32)
    """
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    d.numpy  # noqa: B018  (raises if there are no tensors of it)
    default[0] = d


@functools.lru_cache(1024)
@quiet
def number(value: Any, kind: np.dtype[Any]) -> Any:
    """Return a cached, read-only 0-d array: NumPy's ufuncs are twice as fast with it as with a Python number.

    (Not for zeros: 0.0 and -0.0 are the same key of the cache.)
    """
    array = np.array(value, kind)
    array.flags.writeable = False
    return array
