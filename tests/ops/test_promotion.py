"""Result types, error classes and edge values of every op and pair of dtypes, against PyTorch.

Each test goes through thousands of small calls and asserts at the end that the list of differences is empty.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import module
from tests.same import words

torch = module()

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
INTEGERS = DTYPES[1:6]
FLOATS = DTYPES[6:]
RTOL = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-12}


def edge_values(dtype: str) -> list[Any]:
    """Return the numbers of a dtype at which arithmetic goes wrong, if it does."""
    if dtype == "bool":
        return [False, True]
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        if dtype == "uint8":
            return [0, 1, 2, 7, 128, 249, 255]
        return [0, -1, 1, info.min, info.max, 7, -7, 2]
    return [0.0, -0.0, 0.5, -1.0, 7.0, -7.0, float("inf"), -float("inf"), float("nan"), 2.5]


def nonzero_values(dtype: str) -> list[Any]:
    return [value for value in edge_values(dtype) if value != 0]


def without_least(dtype: str) -> list[Any]:
    """Return the edge values but for the least of a signed type: divided by -1 it ends PyTorch's process."""
    return [value for value in edge_values(dtype) if dtype not in INTEGERS[1:] or value > -100]


class Operand:
    """A tensor to be made with either library, or a Python number."""

    def __init__(self, values: Any, dtype: str | None = None, shape: Any = None) -> None:
        self.values, self.dtype, self.shape = values, dtype, shape

    def make(self, library: Any) -> Any:
        if self.dtype is None:
            return self.values
        made = library.tensor(self.values, dtype=getattr(library, self.dtype))
        return made if self.shape is None else made.reshape(self.shape)

    def __repr__(self) -> str:
        if self.dtype is None:
            return repr(self.values)
        size = "" if self.shape is not None else " 0-d"
        return f"{self.dtype}{size}"


def array_of(tensor: Any) -> Any:
    """Return a tensor of either library as an array, bfloat16 as float32."""
    tensor = tensor.detach()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    return tensor.numpy()


def outcome(call: Callable[..., Any], library: Any, operands: Any) -> Any:
    try:
        return call(library, *[each.make(library) for each in operands])
    except Exception as error:  # every class: it is compared
        return error


def shown(result: Any) -> str:
    """Return an outcome in one line."""
    if isinstance(result, Exception):
        return f"{type(result).__name__}: {str(result)[:200]}"
    return str(getattr(result, "dtype", result))


def differs(ours: Any, theirs: Any, rtol: float | None = None, signs: bool = False, raised: bool = False) -> str | None:
    """Return what is different in two outcomes, or None.

    Args:
        ours, theirs: the outcomes.
        rtol: how near numbers must be, by default as their dtype allows.
        signs: compare the signs of zeros too.
        raised: of errors look only at whether there is one.
    """
    if raised and isinstance(theirs, Exception) and isinstance(ours, Exception):
        return None
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        if type(ours).__name__ != type(theirs).__name__:
            return f"{shown(ours)} against {shown(theirs)}"
        lost = words(str(theirs).split("\n")[0]) - words(str(ours))
        if len(lost) > 0.5 * len(words(str(theirs).split("\n")[0])):
            return f"words: {ours!r} against {theirs!r}"
        return None
    if isinstance(theirs, tuple):
        found = [differs(a, b, rtol, signs) for a, b in zip(ours, theirs, strict=True)]
        return next((each for each in found if each), None)
    if not isinstance(theirs, torch.Tensor):
        return None if type(ours) is type(theirs) and ours == theirs else f"{ours!r}, {theirs!r}"
    if str(ours.dtype) != str(theirs.dtype):
        return f"{ours.dtype} against {theirs.dtype}"
    if tuple(ours.shape) != tuple(theirs.shape):
        return f"shape {tuple(ours.shape)} against {tuple(theirs.shape)}"
    mine, other = array_of(ours), array_of(theirs)
    if other.dtype.kind != "f":
        wrong = mine != other
    else:
        rtol = rtol or RTOL[str(theirs.dtype).removeprefix("torch.")]
        # (gelu is near 0 to 1e-10 where its argument is very negative, and there PyTorch loses digits.)
        tiny = 1e-9 if other.dtype.itemsize < 8 else 1e-16
        with np.errstate(all="ignore"):
            wrong = ~np.isclose(mine, other, rtol, tiny, equal_nan=True)
            if signs:
                wrong |= (np.signbit(mine) != np.signbit(other)) & ~np.isnan(other)
    if wrong.any():
        places = np.argwhere(wrong)[:3].tolist()
        return f"values at {places}: {mine[wrong][:3]} against {other[wrong][:3]}"
    return None


def report(differences: list[str]) -> None:
    shown = "\n".join(differences[:40])
    assert not differences, f"{len(differences)} differences:\n{shown}"


def pairs(
    firsts: Callable[[str], list[Any]] = edge_values, values: Callable[[str], list[Any]] = edge_values
) -> Iterator[tuple[Operand, Operand]]:
    """Return operands of every pair of dtypes and categories, with numbers made by `firsts` and `values`."""
    for a, b in itertools.product(DTYPES, DTYPES):
        yield (Operand(firsts(a), a, (-1, 1)), Operand(values(b), b, (1, -1)))
        yield Operand(firsts(a), a, (-1, 1)), Operand(values(b)[-1], b)
        yield Operand(firsts(a)[-1], a), Operand(values(b), b, (1, -1))
        yield Operand(firsts(a)[-1], a), Operand(values(b)[0], b)
    for a, number in itertools.product(DTYPES, (True, 3, -1, 2.5, -0.5, float("inf"))):
        yield Operand(firsts(a), a, (-1, 1)), Operand(number)
        yield Operand(firsts(a)[-1], a), Operand(number)
        yield Operand(number), Operand(values(a), a, (-1, 1))
        yield Operand(number), Operand(values(a)[-1], a)


def named(name: str, **kwargs: Any) -> Callable[..., Any]:
    return lambda library, *args: getattr(library, name)(*args, **kwargs)


def operator_of(symbol: str) -> Callable[..., Any]:
    function = eval(f"lambda a, b: a {symbol} b")
    return lambda library, a, b: function(a, b)


COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
BINARY = {
    name: named(name)
    for name in (
        "add", "sub", "mul", "rsub", "div", "true_divide", "atan2", "hypot", "copysign", "maximum",
        "minimum", "fmax", "fmin", "logaddexp", "xlogy", "logical_and", "logical_or", "logical_xor",
        "bitwise_and", "bitwise_or", "bitwise_xor", "float_power", "isclose", *COMPARISONS,
    )
}  # fmt: skip
BINARY |= {
    "add alpha=2": named("add", alpha=2), "sub alpha=2": named("sub", alpha=2),
    "add alpha=0.5": named("add", alpha=0.5), "sub alpha=True": named("sub", alpha=True),
    "result_type": lambda library, a, b: str(library.result_type(a, b)),
    "where": lambda library, a, b: library.where(library.tensor([[True], [False]])[:1], a, b),
}  # fmt: skip
BINARY |= {symbol: operator_of(symbol) for symbol in ("+", "-", "/", "&", "==", "<")}
# Those that raise where integers are divided by zero: once with zeros, once without.
DIVISIONS: dict[str, Callable[..., Any]] = {
    "floor_divide": named("floor_divide"), "remainder": named("remainder"), "fmod": named("fmod"),
    "div trunc": named("div", rounding_mode="trunc"), "div floor": named("div", rounding_mode="floor"),
    "//": operator_of("//"), "%": operator_of("%"),
}  # fmt: skip


def accepted(theirs: Any, operands: Any) -> bool:
    """Return whether a difference is a deliberate one of docs/differences.md, by PyTorch's error."""
    # A number where PyTorch wants a tensor.
    return isinstance(theirs, TypeError) and any(each.dtype is None for each in operands)


def compared(
    table: dict[str, Callable[..., Any]], operands: Any, signs: bool = True, raised: bool = False
) -> list[str]:
    """Return the differences of all ops of a table on all operands; for `signs`, `raised` see `differs`."""
    differences = []
    operands = list(operands)
    for name, call in table.items():
        strict = signs and name not in ("maximum", "minimum", "fmax", "fmin", "relu", "relu_")
        for each in operands:
            theirs = outcome(call, torch, each)
            if accepted(theirs, each):
                continue
            found = differs(outcome(call, tinytorch, each), theirs, None, strict, raised)
            if found:
                differences.append(f"{name}({', '.join(map(repr, each))}): {found}")
    return differences


def test_binary_ops() -> None:
    report(compared(BINARY, pairs()))


def test_divisions() -> None:
    report(compared(DIVISIONS, pairs(without_least)))
    report(compared(DIVISIONS, pairs(without_least, nonzero_values)))


SHIFTS = {
    "bitwise_left_shift": named("bitwise_left_shift"), "bitwise_right_shift": named("bitwise_right_shift"),
    "<<": operator_of("<<"), ">>": operator_of(">>"),
}  # fmt: skip


def widths(dtype: str) -> list[Any]:
    """Return what an integer can be shifted by: not by negative numbers, which C leaves undefined."""
    return [True] if dtype == "bool" else [7.0] if dtype in FLOATS else [0, 1, 7, 31, 100]


def test_shifts() -> None:
    report(compared(SHIFTS, (each for each in pairs(values=widths) if -1 not in values_of(each))))


def values_of(operands: Any) -> list[Any]:
    return [each.values for each in operands if each.dtype is None]


def small_values(dtype: str) -> list[Any]:
    """Return numbers whose powers are defined in C: no float beyond what the integer types hold."""
    if dtype == "bool":
        return [False, True]
    if dtype in FLOATS:
        return [0.0, -0.0, 0.5, -1.0, 2.0, -2.0, float("inf"), -float("inf"), float("nan")]
    return [0, 1, 2, 7] + ([-1, -2] if dtype != "uint8" else [])


POWERS = {"pow": named("pow"), "**": operator_of("**")}


def test_powers() -> None:
    report(compared(POWERS, pairs(small_values, small_values)))
    operands = tensor_first(pairs(small_values, small_values))
    report(compared({"pow_": written("pow_")}, operands, raised=True))
    for exponent in (0, 1, 2, 3, 4, -1, -2, 0.5, -0.5, 1.5, 2.0, 3.0, True):
        numbers = [(Operand(small_values(a), a), Operand(exponent)) for a in DTYPES]
        report(compared(POWERS, numbers))


def written(name: str, **kwargs: Any) -> Callable[..., Any]:
    """Return the in-place method, called on a tensor that broadcasting need not stretch."""

    def call(library: Any, a: Any, b: Any) -> Any:
        if getattr(b, "ndim", 0) == 2:
            a = a.expand(a.shape[0], b.shape[1]) if a.ndim else a.expand(1, b.shape[1])
        a = a.clone()
        result = getattr(a, name)(b, **kwargs)
        assert result is a
        return result

    return call


IN_PLACE = {
    name: written(name)
    for name in (
        "add_", "sub_", "mul_", "div_", "true_divide_", "atan2_", "hypot_", "copysign_", "xlogy_",
        "logical_and_", "logical_or_", "logical_xor_", "bitwise_and_", "bitwise_or_", "bitwise_xor_",
        "__iadd__", "copy_", "fill_", "eq_", "lt_",
    )
}  # fmt: skip
IN_PLACE |= {"add_ alpha=2": written("add_", alpha=2), "sub_ alpha=2": written("sub_", alpha=2)}
IN_PLACE_DIVISIONS = {
    "floor_divide_": written("floor_divide_"), "remainder_": written("remainder_"), "fmod_": written("fmod_"),
    "div_ trunc": written("div_", rounding_mode="trunc"), "div_ floor": written("div_", rounding_mode="floor"),
}  # fmt: skip


def tensor_first(operands: Any) -> list[Any]:
    return [each for each in operands if each[0].dtype is not None]


def test_in_place_ops() -> None:
    # Which one of two errors comes first is not compared.
    operands = tensor_first(pairs(finite_values, finite_values))
    report(compared(IN_PLACE, operands, raised=True))
    operands = tensor_first(pairs(without_least, nonzero_values))
    report(compared(IN_PLACE_DIVISIONS, operands, raised=True))


def finite_values(dtype: str) -> list[Any]:
    """Return numbers that every dtype can be converted to: C leaves the others undefined."""
    if dtype in FLOATS:
        return [0.0, 0.5, -1.0, 7.0, 2.5]
    return [False, True] if dtype == "bool" else [0, 1, 2, 7]


UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "cos", "cosh", "deg2rad", "erf",
    "erfc", "exp", "exp2", "expm1", "floor", "frac", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal",
    "log", "log10", "log1p", "log2", "logical_not", "nan_to_num", "neg", "positive", "rad2deg", "reciprocal", "relu",
    "round", "rsqrt", "sgn", "sigmoid", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh",
    "trunc", "ones_like", "zeros_like",
)  # fmt: skip
UNARY_IN_PLACE = tuple(
    f"{name}_" for name in UNARY if hasattr(torch.Tensor, f"{name}_") and hasattr(tinytorch.Tensor, f"{name}_")
)
ACTIVATIONS = (
    "celu", "elu", "gelu", "hardswish", "leaky_relu", "logsigmoid", "mish", "selu", "silu", "softplus", "hardshrink",
)  # fmt: skip


def method(name: str, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    return lambda library, a: getattr(a.clone(), name)(*args, **kwargs)


def activation(name: str) -> Callable[..., Any]:
    return lambda library, a: getattr(library.nn.functional, name)(a)


def singles() -> list[tuple[Operand]]:
    """Return one operand of each dtype, with dimensions and 0-d."""
    operands = [(Operand(edge_values(a), a, (-1, 1)),) for a in DTYPES]
    operands += [(Operand(edge_values(a)[1], a),) for a in DTYPES]
    return operands + [(Operand([], a),) for a in DTYPES]


def test_unary_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {name: named(name) for name in UNARY} | {name: method(name) for name in UNARY_IN_PLACE}
    table |= {"round decimals=1": named("round", decimals=1)}
    table |= {"-": lambda library, a: -a, "~": lambda library, a: ~a, "+": lambda library, a: +a}
    report(compared(table, singles()))
    table = {name: activation(name) for name in ACTIVATIONS}
    # PyTorch's own gelu: that of oneDNN, which it takes on processors with AVX-512, gives NaN for infinity.
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    report(compared(table, singles(), signs=False))


BOUNDS: dict[str, Callable[..., Any]] = {
    f"clamp {low} {high}": named("clamp", min=low, max=high)
    for low, high in ((0, 3), (0.5, 2.5), (None, 2), (1.5, None), (3, 0.5), (True, None))
}
BOUNDS |= {
    "clamp_ 0 2": method("clamp_", 0, 2), "clamp_ 0.5": method("clamp_", 0.5), "clamp_min 1": named("clamp_min", min=1),
    "clamp_max 1.5": named("clamp_max", max=1.5), "softmax": named("softmax", dim=0),
    "log_softmax": named("log_softmax", dim=0), "lerp 0.5": lambda library, a: library.lerp(a, a, 0.5),
    "addcmul": lambda library, a: library.addcmul(a, a, a, value=2),
    "addcmul 0.5": lambda library, a: library.addcmul(a, a, a, value=0.5),
    "addcdiv": lambda library, a: library.addcdiv(a, a, a), "addcmul_": lambda library, a: a.clone().addcmul_(a, a),
    "addcdiv_": lambda library, a: a.clone().addcdiv_(a, a), "lerp_": lambda library, a: a.clone().lerp_(a, 0.25),
    "masked_fill 1.5": lambda library, a: a.masked_fill(a != 0, 1.5),
    "masked_fill True": lambda library, a: a.masked_fill(a != 0, True), "fill_ 2": method("fill_", 2),
    "fill_ 2.5": method("fill_", 2.5), "where 1": lambda library, a: library.where(a != 0, a, 1),
    "where 1.5": lambda library, a: library.where(a != 0, 1.5, a),
    "full_like 2": lambda library, a: library.full_like(a, 2),
}  # fmt: skip


def test_bounds_fills_and_ops_of_three() -> None:
    operands = [(Operand(finite_values(a), a, (-1, 1)),) for a in DTYPES]
    operands += [(Operand(finite_values(a)[1], a),) for a in DTYPES]
    report(compared(BOUNDS, operands))


OF_TWO: dict[str, Callable[..., Any]] = {
    "clamp to tensors": lambda library, a, b: library.clamp(a, b, b),
    "clamp_min": lambda library, a, b: library.clamp_min(a, b), "lerp": lambda library, a, b: library.lerp(a, b, 0.5),
    "lerp weight": lambda library, a, b: library.lerp(a, a, b.reshape(1, -1)),
    "addcmul": lambda library, a, b: library.addcmul(a, b, b),
    "addcmul mixed": lambda library, a, b: library.addcmul(a, a, b),
    "addcdiv": lambda library, a, b: library.addcdiv(a, b, b),
    "where": lambda library, a, b: library.where(a != 0, a, b),
    "cat": lambda library, a, b: library.cat([a.reshape(-1), b.reshape(-1)]),
    "stack": lambda library, a, b: library.stack([a.reshape(-1)[:1], b.reshape(-1)[:1]]),
    "masked_fill": lambda library, a, b: a.masked_fill(a != 0, b),
    "matmul": lambda library, a, b: library.matmul(a, b.reshape(1, -1)),
    "dot": lambda library, a, b: library.dot(a.reshape(-1)[:2], b.reshape(-1)[:2]),
    "outer": lambda library, a, b: library.outer(a.reshape(-1), b.reshape(-1)),
    "type_as": lambda library, a, b: a.type_as(b),
    "copy_": lambda library, a, b: a.clone().reshape(-1)[:1].copy_(b.reshape(-1)[:1]),
    "setitem": lambda library, a, b: put(a.clone().reshape(-1), b.reshape(-1)[0]),
    "index_add": lambda library, a, b: a.reshape(-1).index_add(0, library.tensor([0, 0]), b.reshape(-1)[:1].expand(2)),
    "scatter": lambda library, a, b: a.reshape(-1).scatter(0, library.tensor([0]), b.reshape(-1)[:1]),
    "equal": lambda library, a, b: library.equal(a, b), "allclose": lambda library, a, b: library.allclose(a, b),
}  # fmt: skip


def put(a: Any, value: Any) -> Any:
    a[0] = value
    return a


def test_other_ops_of_two_dtypes() -> None:
    operands = []
    for a, b in itertools.product(DTYPES, DTYPES):
        firsts, seconds = finite_values(a), finite_values(b)
        operands.append((Operand(firsts, a, (-1, 1)), Operand(seconds, b, (1, -1))))
        operands.append((Operand(firsts, a, (-1, 1)), Operand(seconds[1], b)))
        operands.append((Operand(firsts[1], a), Operand(seconds, b, (1, -1))))
    report(compared(OF_TWO, operands, signs=False))


REDUCTIONS: dict[str, Callable[..., Any]] = {
    name: named(name)
    for name in (
        "sum", "mean", "prod", "nansum", "nanmean", "amax", "amin", "max", "min", "aminmax", "argmax", "argmin", "all",
        "any", "median", "nanmedian", "std", "var", "var_mean", "std_mean", "norm", "count_nonzero",
    )
}  # fmt: skip
REDUCTIONS |= {
    f"{name} dim": named(name, dim=0)
    for name in (
        "sum", "mean", "prod", "nansum", "nanmean", "amax", "amin", "max", "min", "aminmax", "argmax", "argmin", "all",
        "any", "median", "nanmedian", "std", "var", "norm", "count_nonzero", "cumsum", "cumprod", "cummax", "cummin",
        "logsumexp", "argsort", "sort", "unbind",
    )
}  # fmt: skip
REDUCTIONS |= {
    f"{name} {dtype}": (
        lambda library, a, name=name, dtype=dtype: getattr(library, name)(a, dim=0, dtype=getattr(library, dtype))
    )
    for name in ("sum", "mean", "prod", "cumsum", "cumprod", "nansum")
    for dtype in ("int32", "float64", "float16", "bool")
    if (name, dtype) != ("nansum", "int32")  # C leaves infinity as an integer undefined
}
REDUCTIONS |= {
    "logsumexp": named("logsumexp", dim=0), "topk": lambda library, a: library.topk(a, min(1, a.numel()), 0),
    "unique": named("unique"), "nonzero": named("nonzero"),
    "bincount": lambda library, a: library.bincount(a.reshape(-1)), "norm 1": named("norm", p=1),
    "flip": named("flip", dims=[0]), "diff-like": lambda library, a: a.reshape(-1)[1:] - a.reshape(-1)[:-1],
    "tril": lambda library, a: library.tril(a.reshape(-1, 1)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*degrees of freedom:UserWarning")
def test_reductions() -> None:
    operands = [(Operand(finite_values(a), a),) for a in DTYPES]
    operands += [(Operand(finite_values(a)[1], a),) for a in DTYPES]
    operands += [(Operand([], a),) for a in DTYPES]
    # (Infinities and NaN become integers in ways that C leaves undefined.)
    operands += [(Operand([1.0, float("nan"), -float("inf"), float("nan")], a),) for a in FLOATS]
    report(compared(REDUCTIONS, operands, signs=False))


CREATION: dict[str, Callable[..., Any]] = {
    "int / int": lambda library: library.tensor([1, 2]) / 2, "int + 0.5": lambda library: library.tensor([1, 2]) + 0.5,
    "bool * 0.5": lambda library: library.tensor([True]) * 0.5,
    "exp of int": lambda library: library.exp(library.tensor([1, 2])),
    "tensor of floats": lambda library: library.tensor([1.5, 2.5]), "zeros": lambda library: library.zeros(2),
    "arange": lambda library: library.arange(0, 1, 0.25), "linspace": lambda library: library.linspace(0, 1, 3),
    "full": lambda library: library.full((2,), 1.5), "eye": lambda library: library.eye(2),
    "half + 0.5": lambda library: library.ones(2, dtype=library.float16) + 0.5,
    "float32 + 0-d default": lambda library: library.ones(2, dtype=library.float32) + library.tensor(1.5),
    "int + 0-d default": lambda library: library.tensor([1, 2]) + library.tensor(1.5),
    "mean of default": lambda library: library.ones(2).mean(),
    "where of numbers": lambda library: library.where(library.tensor([True, False]), 1.5, 2.5),
    "float_power": lambda library: library.float_power(library.tensor([2]), 3),
    "sigmoid of bool": lambda library: library.sigmoid(library.tensor([True])),
    "atan2 of ints": lambda library: library.atan2(library.tensor([1]), library.tensor([2])),
}  # fmt: skip


@pytest.mark.parametrize("default", FLOATS)
def test_default_dtype(default: str) -> None:
    try:
        for library in (tinytorch, torch):
            library.set_default_dtype(getattr(library, default))
        report(compared(CREATION, [()]))
    finally:
        for library in (tinytorch, torch):
            library.set_default_dtype(library.float32)
