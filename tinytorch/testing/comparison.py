"""`assert_close`, which compares tensors, numbers, and nested sequences and mappings of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tinytorch.core.layout import strided
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes
from tinytorch.ops.arithmetic import isclose
from tinytorch.ops.create import as_tensor, tensor

__all__ = ["assert_allclose", "assert_close"]

#: The default tolerances by dtype, relative and absolute; 0 for other dtypes.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


class _Comparison:
    """The options of `assert_close`, and the comparison of all pairs of elements."""

    def __init__(self, rtol: float | None, atol: float | None, message: Any, **options: bool) -> None:
        if (rtol is None) != (atol is None):
            raise ValueError(
                "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                f"{'rtol' if rtol is None else 'atol'}."
            )
        self.tolerances = None if rtol is None or atol is None else (rtol, atol)
        self.message, self.options = message, options

    def fail(self, text: str, place: tuple[Any, ...]) -> NoReturn:
        """Raise AssertionError for the pair at `place`, its path in the nested inputs."""
        if isinstance(self.message, str):
            raise AssertionError(self.message)
        text += _located(place)
        raise AssertionError(self.message(text) if callable(self.message) else text)

    def compare(self, actual: Any, expected: Any, place: tuple[Any, ...] = ()) -> None:
        for pair in self.pairs(actual, expected, place):
            pair()

    def pairs(self, actual: Any, expected: Any, place: tuple[Any, ...]) -> list[Any]:
        """Return the comparisons as functions: the types of all inputs are checked before the first comparison."""
        if _is_sequence(actual) and _is_sequence(expected):
            if len(actual) != len(expected):
                self.fail(f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", place)
            return [pair for i in range(len(actual)) for pair in self.pairs(actual[i], expected[i], (*place, i))]
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            self.compare_keys(actual, expected, place)
            keys = _in_order(actual)
            return [pair for key in keys for pair in self.pairs(actual[key], expected[key], (*place, key))]
        return [self.pair(actual, expected, place)]

    def compare_keys(self, actual: Mapping[Any, Any], expected: Mapping[Any, Any], place: tuple[Any, ...]) -> None:
        missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or additional:
            self.fail(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {_in_order(missing)}\n"
                f"Additional keys in the actual mapping: {_in_order(additional)}",
                place,
            )

    def pair(self, actual: Any, expected: Any, place: tuple[Any, ...]) -> Callable[[], None]:
        """Return the comparison of two inputs that are not nested."""
        if actual is None or expected is None:
            return lambda: self.compare_identity("None", actual, expected, place)
        if isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
            return lambda: self.compare_identity("Booleans", bool(actual), bool(expected), place)
        if _is_number(actual) and _is_number(expected):
            return lambda: self.compare_numbers(actual, expected, place)
        kinds = type(actual), type(expected)
        if isinstance(actual, Tensor) and isinstance(expected, Tensor):  # each layout is a class of its own
            kinds = (
                kinds[0] if actual.layout is strided else Tensor,
                kinds[1] if expected.layout is strided else Tensor,
            )
        related = isinstance(actual, kinds[1]) or isinstance(expected, kinds[0])
        if related and (self.options["allow_subclasses"] or kinds[0] is kinds[1]):
            tensors = _as_tensor(actual), _as_tensor(expected)
            if tensors[0] is not None and tensors[1] is not None:
                return lambda: self.compare_tensors(tensors[0], tensors[1], place)
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {kinds[0]} and {kinds[1]}.{_located(place)}"
        )

    def compare_identity(self, what: str, actual: Any, expected: Any, place: tuple[Any, ...]) -> None:
        if actual is not expected:
            self.fail(f"{what} mismatch: {actual} is not {expected}", place)

    def compare_numbers(self, actual: Any, expected: Any, place: tuple[Any, ...]) -> None:
        actual, expected = (x.item() if isinstance(x, np.generic) else x for x in (actual, expected))
        if self.options["check_dtype"] and type(actual) is not type(expected):
            self.fail(f"The (d)types do not match: {type(actual)} != {type(expected)}.", place)
        exact = isinstance(actual, int) and isinstance(expected, int)
        rtol, atol = self.tolerances or ((0.0, 0.0) if exact else _TOLERANCES["float64"])
        self.compare_scalars(actual, expected, rtol, atol, place)

    def compare_scalars(self, actual: Any, expected: Any, rtol: float, atol: float, place: tuple[Any, ...]) -> None:
        if actual == expected:
            return
        if self.options["equal_nan"] and actual != actual and expected != expected:
            return
        difference = abs(actual - expected)
        if math.isfinite(difference) and difference <= atol + rtol * abs(expected):
            return
        relative = difference / abs(expected) if expected != 0 else math.inf
        equality = rtol == 0 and atol == 0
        self.fail(
            f"Scalars are not {'equal' if equality else 'close'}!\n\n"
            f"Expected {expected} but got {actual}.\n"
            f"Absolute difference: {difference}{_allowed(atol, equality)}\n"
            f"Relative difference: {relative}{_allowed(rtol, equality)}",
            place,
        )

    def compare_tensors(self, actual: Any, expected: Any, place: tuple[Any, ...]) -> None:
        """Compare the attributes of two tensors, then their elements."""

        def fail_attribute(name: str, a: Any, b: Any) -> None:
            self.fail(f"The values for attribute '{name}' do not match: {a} != {b}.", place)

        options = self.options
        if actual.shape != expected.shape:
            fail_attribute("shape", actual.shape, expected.shape)
        if options["check_device"] and actual.device != expected.device:
            fail_attribute("device", actual.device, expected.device)
        if options["check_dtype"] and actual.dtype is not expected.dtype:
            fail_attribute("dtype", actual.dtype, expected.dtype)
        if options["check_stride"] and actual.stride() != expected.stride():
            fail_attribute("stride()", actual.stride(), expected.stride())
        if options["check_layout"] and actual.layout is not expected.layout:
            fail_attribute("layout", actual.layout, expected.layout)
        if actual.layout is not strided or expected.layout is not strided:
            return self.compare_sparse(actual, expected, place)
        rtol, atol = self.tolerances or _default_tolerances(_TOLERANCES, actual, expected)
        common = dtypes.promote_types(actual.dtype, expected.dtype)
        if common.category < dtypes.FLOATING:
            common = dtypes.int64
        kind = common.numpy
        a, b = actual._array.astype(kind, copy=False), expected._array.astype(kind, copy=False)
        close = isclose(wrap(a), wrap(b), rtol, atol, options["equal_nan"])._array
        if close.all():
            return
        if a.ndim == 0:
            self.compare_scalars(a.item(), b.item(), rtol, atol, place)
        self.fail(_mismatch(a, b, close, rtol, atol), place)

    def compare_sparse(self, actual: Any, expected: Any, place: tuple[Any, ...]) -> None:
        """Compare two tensors of which at least one is sparse: the parts of two in one layout, else the elements."""
        if actual.layout is not expected.layout:
            dense = [x if x.layout is strided else x.to_dense() for x in (actual, expected)]
            return self.compare_tensors(dense[0], dense[1], place)
        name = str(actual.layout).removeprefix("torch.sparse_").upper()
        if actual.is_sparse and actual.is_coalesced() is not expected.is_coalesced():
            actual, expected = actual.coalesce(), expected.coalesce()
        if actual._nnz() != expected._nnz():
            self.fail(
                f"The number of specified values in sparse {name} tensors does not match: {actual._nnz()} != "
                f"{expected._nnz()}",
                place,
            )
        for (part, a), (_, b) in zip(actual._parts(), expected._parts(), strict=True):
            whole = _Comparison(None, None, self.message, **self.options) if part != "values" else self
            try:
                whole.compare_tensors(a, b, place)
            except AssertionError as error:
                text = str(error)
                raise AssertionError(text.replace("Tensor-likes", f"Sparse {name} {part}", 1)) from None
        return None


def _mismatch(actual: Any, expected: Any, close: Any, rtol: float, atol: float) -> str:
    """Return the error message for arrays of the same dtype that are not close everywhere."""
    wrong = close.size - int(np.count_nonzero(close))
    equality = rtol == 0 and atol == 0
    absolute = np.abs(actual - expected)
    divisor = np.abs(expected)
    wide = np.float32 if absolute.dtype.kind == "i" else absolute.dtype
    with np.errstate(all="ignore"):
        relative = absolute.astype(wide) / divisor.astype(wide)
    lines = [
        f"Tensor-likes are not {'equal' if equality else 'close'}!",
        "",
        f"Mismatched elements: {wrong} / {close.size} ({wrong / close.size:.1%})",
    ]
    for name, difference, tolerance in (("absolute", absolute, atol), ("relative", relative, rtol)):
        difference[close] = 0
        known = difference.astype(np.float64) if difference.dtype.kind == "V" else difference
        place = np.unravel_index(int(known.argmax()), known.shape)
        index = tuple([int(coordinate) for coordinate in place])
        lines.append(
            f"Greatest {name} difference: {difference[index].item()} at index {index}{_allowed(tolerance, equality)}"
        )
    return "\n".join(lines)


def _default_tolerances(table: dict[str, tuple[float, float]], *tensors: Tensor) -> tuple[float, float]:
    """Return the largest default tolerances, relative and absolute, of the dtypes of tensors."""
    rtols, atols = zip(*[table.get(x.dtype.name, (0.0, 0.0)) for x in tensors], strict=True)
    return max(rtols), max(atols)


def _allowed(tolerance: float, equality: bool) -> str:
    return "" if equality else f" (up to {tolerance} allowed)"


def _located(place: tuple[Any, ...]) -> str:
    if not place:
        return ""
    return f"\n\nThe failure occurred for item {''.join(f'[{item!r}]' for item in place)}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex, np.number))


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _in_order(keys: Collection[Any]) -> list[Any]:
    try:
        return sorted(keys)
    except TypeError:
        return list(keys)


def _as_tensor(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value.detach()
    try:
        return as_tensor(value)
    except Exception:  # any exception means that the value cannot be a tensor
        return None


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| for all elements.

    The inputs are tensors, NumPy arrays, numbers, or nested sequences and mappings of these.

    Args:
        rtol, atol: the tolerances, both or neither; the defaults are (1.6e-2, 1e-5) for bfloat16, (1e-3, 1e-5) for
            float16, (1.3e-6, 1e-5) for float32, (1e-7, 1e-7) for float64, else 0.

    Example:
        >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0 + 1e-7]))
        >>> torch.testing.assert_close(torch.tensor([1, 2]), torch.tensor([1, 3]))
        Traceback (most recent call last):
            ...
        AssertionError: Tensor-likes are not equal!
        <BLANKLINE>
        Mismatched elements: 1 / 2 (50.0%)
        Greatest absolute difference: 1 at index (1,)
        Greatest relative difference: 0.3333333432674408 at index (1,)
    """
    comparison = _Comparison(
        rtol,
        atol,
        msg,
        allow_subclasses=allow_subclasses,
        equal_nan=equal_nan,
        check_device=check_device,
        check_dtype=check_dtype,
        check_layout=check_layout,
        check_stride=check_stride,
    )
    comparison.compare(actual, expected)


#: The default tolerances of `assert_allclose`.
_OLD_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Compare with wider tolerances, ignoring dtypes; deprecated, as in PyTorch, in favour of `assert_close`.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     torch.testing.assert_allclose(torch.tensor([1.0]), torch.tensor([1.0 + 1e-6]))
    """
    warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please "
        "use `torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
    )
    actual = actual if isinstance(actual, Tensor) else tensor(actual)
    expected = expected if isinstance(expected, Tensor) else tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = _default_tolerances(_OLD_TOLERANCES, actual, expected)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)
