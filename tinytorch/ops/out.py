"""`out=`: public functions that write their results into the caller's tensors.

`register.Function` calls `into` for a call with an `out`; methods, operators and the raw functions have no `out`.
`RULES` has what differs between functions: the dtypes that `out` may have, and the overlaps of `out` with arguments
that PyTorch detects. A declaration names its rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tinytorch.core import mode
from tinytorch.core.inplace import check_overlap
from tinytorch.core.mode import local, recording
from tinytorch.core.supplied import batching
from tinytorch.core.tensor import Tensor
from tinytorch.core.view import check_write, count_write
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, elementary, layouts
from tinytorch.kernels.shape import second
from tinytorch.ops import arithmetic
from tinytorch.ops.arguments import not_implemented, op_of
from tinytorch.ops.autocast import outside
from tinytorch.ops.bits import into_bits
from tinytorch.ops.create import bring_to, written

Check = Callable[[str, dtypes.dtype, dtypes.dtype], None]


# Which dtypes `out` may have ----------------------------------------------------------------------


def _holding(text: str, error: type[Exception] = RuntimeError) -> Check:
    """Return a check that the result can be cast to `out`'s dtype."""

    def check(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
        if have.category > want.category:
            raise error(text.format(name=name, have=have.tensor_name, want=want.tensor_name))

    return check


def _safely(title: str, what: str = "result") -> Check:
    """Return the check of `_holding` with the linear-algebra functions' message."""
    return _holding(
        f"{title}: Expected {what} to be safely castable from {{have}} dtype, but got {what} with dtype {{want}}"
    )


def _any(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
    """Accept every dtype."""


def _of_type(text: str, kind: dtypes.dtype) -> Check:
    """Return a check that `out` has the dtype `kind`."""

    def check(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
        if want is not kind:
            raise RuntimeError(text.format(name=name, want=want.tensor_name))

    return check


def _of_spectra(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
    """Check that `out` is complex if the result is, and else floating-point."""
    right, words = (want.is_complex, "complex") if have.is_complex else (want.is_floating_point, "floating point")
    if not right:
        shown = name.replace("2", "n").replace("ifftn", "fftn")  # (which PyTorch's other ones call)
        raise RuntimeError(f"{shown} expects a {words} output tensor, but got {want.tensor_name}")


def _same(text: str) -> Check:
    """Return a check that `out` has the result's dtype."""

    def check(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
        if have is not want:
            raise RuntimeError(
                text.format(
                    name=name,
                    have=have.tensor_name,
                    want=want.tensor_name,
                    have_c=dtypes.C_NAMES.get(have.name, have.name),
                    want_c=dtypes.C_NAMES.get(want.name, want.name),
                )
            )

    return check


_castable = _holding("result type {have} can't be cast to the desired output type {want}")
_castable_inputs = _holding("torch.cat(): input types can't be cast to the desired output type {want}", TypeError)
_reduced = _holding(
    "Expected canCast(typeMetaToScalarType(self.dtype()), typeMetaToScalarType(out.dtype())) to be true, but got "
    "false: {have} can't be cast to {want}"
)
_mean = _holding("mean.dtype_out(): input types can't be cast to the desired output type {want}")
_nan_sum = _holding("\"nansum_cpu\" not implemented for '{want}'", NotImplementedError)
_floating = _holding("{name}(): Expected floating point type for result tensor, but got: {want}")

# Overlaps of `out` with arguments that are errors: none (unchecked), partial ones (same elements may be shared), all.
NOTHING, PARTS, ALL = range(3)


class Rule(NamedTuple):
    """How a function writes into `out`.

    Attributes:
        check: raises PyTorch's error for a dtype that `out` must not have.
        overlap: which overlap of `out` with the arguments is an error.
        typed: without `dtype=`, the function computes in the dtype of `out`.
        check_several: the check for functions with several results.
        of_several: the check for calls with several tensors among the arguments.
        strict: elements of `out` must not share memory, even if `out` is to be resized.
        copied: PyTorch records the computation of the result, and copies it into `out`: gradients flow through it.
        rows: an `out` that is resized gets C order; otherwise the order of the result.
    """

    check: Check = _castable
    overlap: int = PARTS
    typed: bool = False
    check_several: Check | None = None
    of_several: Check | None = None
    strict: bool = False
    copied: bool = False
    rows: bool = False


_EXACT = _same("Expected out tensor to have dtype {have_c}, but got {want_c} instead")
_FOUND = _same("Found dtype {want} but expected {have}")
_SCALAR_TYPE = "{name}(): self and result must have the same scalar type"
_TO_BOOL = "{name} does not support non-boolean outputs."
_ONLY_BOOL = _of_type("{name} only supports bool tensor for result, got: {want}", dtypes.bool)
_MEDIAN = _same(
    "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type "
    "torch.{want}Tensor does not equal torch.{have}Tensor (while checking arguments for {name})"
)


def _boolean(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
    if want not in (dtypes.bool, dtypes.uint8, have):
        _ONLY_BOOL(name, have, want)


def _like(text: str, overlap: int = PARTS, strict: bool = False, copied: bool = False, rows: bool = False) -> Rule:
    """Return the rule of a function whose `out` has the result's dtype."""
    return Rule(_same(text), overlap, strict=strict, copied=copied, rows=rows)


#: The rules by name, as declarations state them (`out=` of `register.public`).
RULES: dict[str, Rule] = {
    "promoted": Rule(),
    "same": Rule(_FOUND),
    "complex": _like("Expected object of scalar type {have} but got scalar type {want} for argument 'out'"),
    "fft": Rule(_of_spectra, NOTHING, rows=True),
    "clamp": Rule(_FOUND, of_several=_castable),
    "nan_to_num": _like("nan_to_num: dtype of out: {want} should be same as input: {have}"),
    "boolean result": Rule(_of_type(_TO_BOOL, dtypes.bool)),
    "where": _like("Expected out type to be {have} but got {want}"),
    "float_power": _like(
        "the output given to float_power has dtype {want} but the operation's result requires dtype {have}"
    ),
    "castable": Rule(_castable, NOTHING),
    "typed": Rule(_any, NOTHING, typed=True),
    "nansum": Rule(_nan_sum, NOTHING, typed=True),
    "mean": Rule(_mean, NOTHING, typed=True),
    "logsumexp": Rule(_floating, NOTHING),
    "boolean": Rule(_boolean, NOTHING),
    "hash_tensor": Rule(_of_type("Expected result to be of dtype uint64, but got {want}", dtypes.uint64), NOTHING),
    "amax": _like(
        "Expected the dtype for input and out to match, but got {have} for input's dtype and {want} for out's dtype.",
        NOTHING,
    ),
    "max": Rule(_reduced, NOTHING, check_several=_EXACT),
    "median": Rule(_MEDIAN, NOTHING),
    "cummax": _like("expected scalar_type {have} but found {want}", NOTHING),
    "frexp": _like("torch.frexp() expects mantissa to have dtype {have_c} but got {want_c}"),
    "heaviside": _like("heaviside is not yet implemented for tensors with different dtypes."),
    "kthvalue": _like("output values must be of same type as input", ALL),
    "mode": _like("expected scalar type '{have}' but got '{want}'", NOTHING),
    "quantile": _like("quantile() out tensor must be same dtype as the input tensor", NOTHING, copied=True, rows=True),
    "exact": Rule(_EXACT, NOTHING),
    "histogram": _like(
        "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {have_c} and hist "
        "{want_c}",
        NOTHING,
    ),
    "gather": Rule(_EXACT, ALL),
    "scatter": Rule(_EXACT, ALL, strict=True),
    "searchsorted": _like(
        "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending "
        "on whether out_int32 flag is True, but we got output tensor's dtype {want}",
        ALL,
    ),
    "index_select": _like(_SCALAR_TYPE, ALL, strict=True),
    "take": _like(
        "take(): self and out expected to have the same dtype, but got self.dtype = {have} and out.dtype = {want}",
        ALL,
        strict=True,
    ),
    "nonzero": Rule(
        _of_type("{name}: Expected out tensor to have scalar type Long but got scalar type{want}", dtypes.int64),
        ALL,
        strict=True,
    ),
    "cat": Rule(_castable_inputs, ALL),
    "addbmm": _like("self and mat2 must have the same dtype, but got {want} and {have}", NOTHING),
    "chain_matmul": _like("multi_dot(): expected out tensor to have dtype {have_c} but got {want_c}", NOTHING),
    "nuclear_norm": _like("linalg.matrix_norm expected out tensor dtype {have} but got: {want}", NOTHING, copied=True),
    "dot": _like("result dtype {want} does not match input dtype {have}", NOTHING),
    "tensordot": _like(
        "tensordot: Expected the output tensor to have dtype {have}, but got an output tensor with dtype {want}",
        NOTHING,
        copied=True,
    ),
    "safe": Rule(_safely("{name}"), NOTHING),
    "safe, copied": Rule(_safely("{name}"), NOTHING, copied=True, rows=True),
    "geqrf": Rule(_safely("torch.geqrf", "a"), NOTHING),
    "householder": Rule(_safely("torch.linalg.householder_product"), NOTHING),
    "ormqr": _like(
        "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{have} and result has "
        "dtype {want}",
        NOTHING,
    ),
    "narrow_copy": _like("Expected self.dtype() == output.dtype() to be true, but got false", NOTHING),
    "lstsq": Rule(_safely("torch.linalg.lstsq", "solution"), NOTHING),
    "eig": Rule(_safely("torch.linalg.{name}", "eigenvalues"), NOTHING),
    "safe linalg": Rule(_safely("linalg.{name}"), NOTHING),
    "safe linalg, copied": Rule(_safely("linalg.{name}"), NOTHING, copied=True),
    "safe torch.linalg": Rule(_safely("torch.linalg.{name}"), NOTHING),
    "matrix_norm": _like("linalg.{name} expected out tensor dtype {have} but got: {want}", NOTHING, copied=True),
    "vecdot": _like("linalg.vecdot: Expected out of dtype{have} but found {want}", NOTHING),
    "solve_triangular": _like("expected scalar type {have} but found {want}", NOTHING),
    "logsigmoid": _like("expected scalar type {have} but found {want}", NOTHING),
}

#: Ops that give the result of `softmax` in `out` a node whose backward raises, as in PyTorch.
_UNDERIVED = {
    name: op_of(second, batch="same shape", name="NotImplemented", input=not_implemented(name))
    for name in ("softmax", "log_softmax")
}


# Writing ------------------------------------------------------------------------------------------


def into(public: Any, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Write the result of a public function, a `register.Function`, into a tensor, or a tuple or list of tensors."""
    if local.state.autocast is not None:  # PyTorch does not autocast calls with `out`
        return outside(into, public, out, args, kwargs)
    function, rule, name = public.raw, RULES[public.rule], public.name.rpartition(".")[2]
    if name == "nonzero" and kwargs.get("as_tuple"):
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    outs = (out,) if isinstance(out, Tensor) else out
    if not isinstance(outs, (tuple, list)) or not outs or not isinstance(outs[0], Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    for k, each in enumerate(outs):
        if not isinstance(each, Tensor):
            raise TypeError(f"expected Tensor as element {k} in argument 'out', but got {type(each).__name__}")
    if mode.in_vmap():
        batching.refuse_out(name, (args, kwargs, outs))
    if any([mode.is_lazy(each) for each in outs]):
        return into_bits(lambda plain: into(public, plain, args, kwargs), out, outs)
    read = list(_tensors((args, kwargs)))
    state = local.state
    recorded = state.grad and any(map(_requires_grad, (*read, *outs)))
    if state.modes is not None and any(map(mode.tangents_of, (*read, *outs))):
        raise NotImplementedError(
            f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
        )
    asked = kwargs.get("dtype") if rule.typed else None
    if asked is not None:
        _EXACT(name, asked, outs[0].dtype)
    onto_leaf = any(each.requires_grad and each.is_leaf for each in outs)
    copied = recorded and (rule.copied or (public.name in _UNDERIVED and not onto_leaf))
    if recorded:
        # An integer or boolean result (comparisons …) has no derivative, so that writing it into `out` is allowed.
        with recording(rule.copied):
            result = function(*args, **kwargs)
        if public.name in _UNDERIVED:
            result = _UNDERIVED[public.name](next(filter(_requires_grad, (*read, *outs))), result._array)
    elif rule.typed and asked is None:
        result = _typed(function, rule, name, outs[0], args, kwargs)
    elif outs is not out and _written_directly(function, rule, outs[0], args, kwargs):
        return out
    else:
        result = function(*args, **kwargs)
    results = (result,) if isinstance(result, Tensor) else tuple(result)
    if outs is out and isinstance(result, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if outs is not out and not isinstance(result, Tensor):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (…, out=Tensor), but expected a tuple of "
            f"{len(results)} Tensors as 'out'"
        )
    if len(outs) != len(results):
        if name.endswith("_copy"):
            raise RuntimeError(f"{name}_out() expected an out= argument of size {len(results)}, got size {len(outs)}")
        raise TypeError(f"expected tuple of {len(results)} elements but got {len(outs)}")
    if recorded and not copied and any(each._array.dtype.kind not in "biu" for each in results):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if name == "split_copy":  # PyTorch copies the parts into `out`, without resizing
        with recording(False):
            for each, made in zip(outs, results, strict=True):
                each.copy_(made)
        return None
    check = rule.check if isinstance(result, Tensor) else rule.check_several or rule.check
    if rule.of_several is not None and len(read) > 1:
        check = rule.of_several
    for k, (each, made) in enumerate(zip(outs, results, strict=True)):
        have = made.dtype
        (check if k == 0 or have is results[0].dtype or name == "lstsq" else _EXACT)(name, have, each.dtype)
        _check_memory(each, made._array.shape, read, rule)
    for each, made in zip(outs, results, strict=True):
        array = made._array
        if each._array.shape != array.shape:
            if np.may_share_memory(each._array, array):
                array = array.copy()
            resized(each, array, rule.rows)
        if copied:
            each.copy_(made)
            continue
        if each._array.itemsize == 1:
            array = dtypes.narrowed(array, each._array.dtype)
        count_write(written(each, array))
    if isinstance(result, Tensor):
        return out
    if type(result) is tuple:
        return None if name.endswith("_copy") else tuple(outs)
    return _result_type(type(result))(outs)


def _requires_grad(each: Tensor) -> bool:
    return each.requires_grad


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield all tensors in nested arguments."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)


def _check_memory(out: Tensor, shape: tuple[int, ...], read: list[Tensor], rule: Rule) -> None:
    """Raise PyTorch's error for an `out` that overlaps itself or an argument, or cannot be written."""
    array, overlap = out._array, rule.overlap
    strict = rule.strict or overlap == PARTS
    check_write(out, recorded=False, overlap=array.shape != shape and not strict, captured=True)
    if overlap == NOTHING or (array.shape != shape and overlap == PARTS):
        return
    for each in read:
        if each._cell is out._cell and each._cell is not None:
            check_overlap(array, each._array, overlap == PARTS)


def _typed(function: Any, rule: Rule, name: str, out: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function so that it computes in the dtype of `out`."""
    kind = out.dtype
    source = args[0] if args else kwargs.get("input")
    if not isinstance(source, Tensor) or source.dtype is kind:
        return function(*args, **kwargs)
    if rule.check is not _any:
        rule.check(name, source.dtype, kind)
        if source.dtype.category != kind.category:
            return function(*args, **kwargs)  # (may raise for integers)
    return function(*args, **(kwargs | {"dtype": kind}))


#: The binary op that computes a function if `alpha` and `rounding_mode` are not passed.
_PLAIN: dict[Any, Any] = {
    arithmetic.add: arithmetic.plus,
    arithmetic.sub: arithmetic.minus,
    arithmetic.div: arithmetic.true_divide,
}


def _is_numeric(kernel: Any) -> bool:
    """Return whether a kernel is a ufunc that gives one array of numbers."""
    return isinstance(kernel, np.ufunc) and kernel.nout == 1 and not kernel.types[0].endswith("?")


def _written_directly(function: Any, rule: Rule, out: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Compute a ufunc, or a kernel like one, straight into `out` if its floating arguments match; return whether."""
    op: Any = getattr(_PLAIN.get(function, function), "op", None)
    kernel: Any = op and op.kernel
    target = out._array
    if (
        kwargs
        or not (kernel in elementary.FUNCTIONS or _is_numeric(kernel))
        or op.operands != len(args)
        or target.dtype.kind != "f"
        or local.state.modes is not None
    ):
        return False
    for each in args:
        if (
            not isinstance(each, Tensor)
            or each._array.dtype != target.dtype
            or each._array.shape != target.shape
            or type(each._array) is not type(target)
        ):
            return False
    _check_memory(out, target.shape, list(args), rule)
    kernel(*[each._array for each in args], out=target)
    count_write(out)
    return True


def resized(x: Tensor, result: Any, rows: bool) -> None:
    """Resize an `out` tensor to the shape of a result, in C order (`rows`) or in the result's, as `bring_to` does."""
    array = x._array
    if array.size:
        warn(
            f"An output with one or more elements was resized since it had shape {list(array.shape)}, which does not "
            f"match the required output shape {list(result.shape)}. This behavior is deprecated, and in a future "
            "PyTorch release outputs will not be resized unless they have zero elements. You can explicitly reuse an "
            "out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
        )
    bring_to(x, result.shape, None if rows else layouts.order_of(result))


# Result types -------------------------------------------------------------------------------------


_RESULT_TYPES: dict[type, type] = {}


def _result_type(cls: type) -> type:
    """Return the named tuple class of results written into `out`: in PyTorch it is `NAME_out`."""
    if cls not in _RESULT_TYPES:
        own = {"__slots__": (), "__module__": cls.__module__}
        _RESULT_TYPES[cls] = type(f"{cls.__name__}_out", (cls,), own)
    return _RESULT_TYPES[cls]
