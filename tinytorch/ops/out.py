"""`out=`: functions that write their result into tensors that they are given (floor 3).

One wrapper serves all of them. It is set on the names of the public modules when these are made, so methods, operators
and what the ops call among themselves do not pass through it. What differs from function to function is in `RULES`:
which dtypes `out` may have, and which overlap of `out` with the arguments PyTorch finds.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tinytorch.core import dtypes
from tinytorch.core.inplace import check_overlap
from tinytorch.core.mode import local, no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.core.view import check_write, count_write
from tinytorch.ops import pointwise
from tinytorch.ops.autocast import outside
from tinytorch.ops.create import bring_to

__all__ = ["install", "install_all", "resized", "with_out"]

Check = Callable[[str, dtypes.dtype, dtypes.dtype], None]


# Which dtypes `out` may have ----------------------------------------------------------------------


def _castable(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
    if have.category > want.category:
        raise RuntimeError(
            f"result type {have.tensor_name} can't be cast to the desired output type {want.tensor_name}"
        )


def _any(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
    """Every dtype will do."""


def _castable_inputs(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
    if have.category > want.category:
        raise TypeError(
            f"torch.cat(): input types can't be cast to the desired output type {want.tensor_name}"
        )


def _safely(title: str, what: str = "result") -> Check:
    """Return the check that the result can be cast, with a function's own name for itself."""

    def check(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
        if have.category > want.category:
            raise RuntimeError(
                f"{title.format(name=name)}: Expected {what} to be safely castable from {have.tensor_name} dtype, but "
                f"got {what} with dtype {want.tensor_name}"
            )

    return check


def _of_type(text: str, kind: dtypes.dtype) -> Check:
    """Return the check that `out` has one dtype."""

    def check(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
        if want is not kind:
            raise RuntimeError(text.format(name=name, want=want.tensor_name))

    return check


def _same(text: str) -> Check:
    """Return the check that `out` has the result's dtype."""

    def check(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
        if have is not want:
            raise RuntimeError(
                text.format(
                    name=name,
                    have=have.tensor_name,
                    want=want.tensor_name,
                    have_c=_C_NAMES.get(have.name, have.name),
                    want_c=_C_NAMES.get(want.name, want.name),
                )
            )

    return check


#: What PyTorch's messages call the dtypes where they come from C++.
_C_NAMES = {
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int", "int64": "long int",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip

# What `out` may overlap with: of the arguments nothing is looked at; the same elements or none; none.
NOTHING, PARTS, ALL = range(3)


class Rule(NamedTuple):
    """How a function writes into `out`.

    Attributes:
        check: raises PyTorch's error for a dtype that `out` must not have.
        overlap: which overlap of `out` with the arguments is an error; else PyTorch does not look for it.
        typed: without `dtype=`, the dtype of `out` is what the function computes in.
        check_several: the check where there are several results.
        of_several: the check where there are several tensors among the arguments.
        strict: elements of `out` must not share memory even where it has another shape, and is resized.
    """

    check: Check = _castable
    overlap: int = PARTS
    typed: bool = False
    check_several: Check | None = None
    of_several: Check | None = None
    strict: bool = False


_EXACT = _same("Expected out tensor to have dtype {have_c}, but got {want_c} instead")
_FOUND = _same("Found dtype {want} but expected {have}")
_SCALAR_TYPE = "{name}(): self and result must have the same scalar type"
_TO_BOOL = "{name} does not support non-boolean outputs."
_ONLY_BOOL = _of_type("{name} only supports bool tensor for result, got: {want}", dtypes.bool)
_MEDIAN = _same(
    "Expected tensor for 'values' to have the same type as tensor for argument #2 'self'; but type "
    "torch.{want}Tensor does not equal torch.{have}Tensor (while checking arguments for {name})"
)


def _reduced(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
    if have.category > want.category:
        raise RuntimeError(
            "Expected canCast(typeMetaToScalarType(self.dtype()), typeMetaToScalarType(out.dtype())) to be true, but "
            f"got false: {have.tensor_name} can't be cast to {want.tensor_name}"
        )


def _boolean(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
    if want is not dtypes.bool and want is not have:
        _ONLY_BOOL(name, have, want)


def _mean(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
    if have.category > want.category:
        raise RuntimeError(
            f"mean.dtype_out(): input types can't be cast to the desired output type {want.tensor_name}"
        )


def _nan_sum(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
    if have.category > want.category:
        raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{want.tensor_name}'")


def _floating(name: str, have: dtypes.dtype, want: dtypes.dtype) -> None:
    if want.category < have.category:
        raise RuntimeError(
            f"{name}(): Expected floating point type for result tensor, but got: {want.tensor_name}"
        )


#: Names of torch's functions by the rule that they go by.
RULES: list[tuple[Rule, str]] = [
    # Elementwise, with the usual promotion.
    (Rule(), """
        acos acosh add addcdiv addcmul addr angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan
        atan2 atanh bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor complex copysign cos cosh
        deg2rad digamma div divide eq erf erfc erfinv exp exp2 expm1 floor_divide fmax fmin fmod gcd ge ger greater
        greater_equal gt hypot i0 igamma igammac lcm ldexp le lerp less less_equal lgamma log log10 log1p log2
        logaddexp logaddexp2 logical_and logical_not logical_or logical_xor logit lt maximum minimum mul multiply
        mvlgamma ne nextafter not_equal outer polar polygamma pow rad2deg reciprocal remainder rsqrt sigmoid sin
        sinc sinh sqrt square sub subtract tan tanh threshold true_divide xlogy
    """),
    # Elementwise, into the dtype of the input alone.
    (Rule(_FOUND), """
        abs absolute bitwise_not ceil conj_physical fix floor frac hardshrink neg negative round sgn sign trunc
    """),
    (Rule(_FOUND, of_several=_castable), "clamp clamp_max clamp_min clip"),
    (Rule(_same("nan_to_num: dtype of out: {want} should be same as input: {have}")), "nan_to_num"),
    (Rule(_of_type(_TO_BOOL, dtypes.bool)), "isneginf isposinf signbit"),
    (Rule(_same("Expected out type to be {have} but got {want}")), "where"),
    (Rule(_same(
        "the output given to float_power has dtype {want} but the operation's result requires dtype {have}"
    )), "float_power"),
    # Reductions.
    (Rule(_castable, NOTHING), "diff kron std var"),
    (Rule(_any, NOTHING, typed=True), "cumprod cumsum prod sum"),
    (Rule(_nan_sum, NOTHING, typed=True), "nanmean nansum"),
    (Rule(_mean, NOTHING, typed=True), "mean"),
    (Rule(_floating, NOTHING), "logsumexp"),
    (Rule(_boolean, NOTHING), "all any"),
    (Rule(_same(
        "Expected the dtype for input and out to match, but got {have} for input's dtype and {want} for out's dtype."
    ), NOTHING), "amax amin"),
    (Rule(_reduced, NOTHING, check_several=_EXACT), "max min"),
    (Rule(_MEDIAN, NOTHING), "median nanmedian"),
    (Rule(_same("expected scalar_type {have} but found {want}"), NOTHING), "cummax cummin logcumsumexp"),
    (Rule(_same("torch.frexp() expects mantissa to have dtype {have_c} but got {want_c}")), "frexp"),
    (Rule(_same("heaviside is not yet implemented for tensors with different dtypes.")), "heaviside"),
    (Rule(_same("output values must be of same type as input"), ALL), "kthvalue"),
    (Rule(_same("expected scalar type '{have}' but got '{want}'"), NOTHING), "mode"),
    (Rule(_same("quantile() out tensor must be same dtype as the input tensor"), NOTHING), "nanquantile quantile"),
    (Rule(_EXACT, NOTHING), """
        aminmax argmax argmin argsort diag frobenius_norm isin log_softmax msort norm renorm slice_scatter softmax
        sort topk tril triu
    """),
    (Rule(_same(
        "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {have_c} and hist "
        "{want_c}"
    ), NOTHING), "histc histogram"),
    # Parts.
    (Rule(_EXACT, ALL), "gather index_add index_copy index_reduce take_along_dim"),
    (Rule(_EXACT, ALL, strict=True), "scatter scatter_add scatter_reduce"),
    (Rule(_same(
        "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
        "whether out_int32 flag is True, but we got output tensor's dtype {want}"
    ), ALL), "bucketize searchsorted"),
    (Rule(_same(_SCALAR_TYPE), ALL, strict=True), "index_select masked_select"),
    (Rule(_same(
        "take(): self and out expected to have the same dtype, but got self.dtype = {have} and out.dtype = {want}"
    ), ALL, strict=True), "take"),
    (Rule(_of_type(
        "{name}: Expected out tensor to have scalar type Long but got scalar type{want}", dtypes.int64
    ), ALL, strict=True), "nonzero nonzero_static"),
    (Rule(_castable_inputs, ALL), """
        cat column_stack concat concatenate dstack hstack row_stack stack vstack
    """),
    # Products of matrices, and what linear algebra else there is.
    (Rule(_EXACT, NOTHING), """
        addmm addmv baddbmm bmm cholesky cross inverse lu_solve lu_unpack matmul matrix_power mm mv qr slogdet svd
    """),
    (Rule(_same("self and mat2 must have the same dtype, but got {want} and {have}"), NOTHING), "addbmm"),
    (Rule(_same("multi_dot(): expected out tensor to have dtype {have_c} but got {want_c}"), NOTHING), "chain_matmul"),
    (Rule(_same("linalg.matrix_norm expected out tensor dtype {have} but got: {want}"), NOTHING), "nuclear_norm"),
    (Rule(_same("result dtype {want} does not match input dtype {have}"), NOTHING), "dot vdot"),
    (Rule(_same(
        "tensordot: Expected the output tensor to have dtype {have}, but got an output tensor with dtype {want}"
    ), NOTHING), "inner tensordot"),
    (Rule(_safely("{name}"), NOTHING), """
        cholesky_inverse cholesky_solve triangular_solve
    """),
    (Rule(_safely("torch.geqrf", "a"), NOTHING), "geqrf"),
    (Rule(_safely("torch.linalg.householder_product"), NOTHING), "orgqr"),
    (Rule(_same(
        "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{have} and result has dtype "
        "{want}"
    ), NOTHING), "ormqr"),
    (Rule(_same("Expected self.dtype() == output.dtype() to be true, but got false"), NOTHING), "narrow_copy"),
    # Copies of views.
    (Rule(_EXACT, NOTHING), """
        alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy select_copy
        slice_copy split_copy split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy
        unsqueeze_copy view_copy
    """),
]  # fmt: skip

#: The same for the other modules, by their names below `torch`.
OF_MODULES: dict[str, list[tuple[Rule, str]]] = {
    "linalg": [
        (Rule(_EXACT, NOTHING), """
            cholesky cholesky_ex cross det eigh eigvalsh inv inv_ex ldl_factor ldl_factor_ex ldl_solve lu lu_factor
            lu_factor_ex lu_solve matmul matrix_power qr slogdet solve solve_ex svd svdvals vector_norm
        """),
        (Rule(_safely("{name}"), NOTHING), "tensorinv tensorsolve"),
        (Rule(_safely("torch.linalg.lstsq", "solution"), NOTHING), "lstsq"),
        (Rule(_safely("linalg.{name}"), NOTHING), "cond eig eigvals pinv"),
        (Rule(_safely("torch.linalg.{name}"), NOTHING), "householder_product matrix_rank"),
        (Rule(_same("linalg.{name} expected out tensor dtype {have} but got: {want}"), NOTHING), "matrix_norm norm"),
        (Rule(_same("multi_dot(): expected out tensor to have dtype {have_c} but got {want_c}"), NOTHING), "multi_dot"),
        (Rule(_same("linalg.vecdot: Expected out of dtype{have} but found {want}"), NOTHING), "vecdot"),
        (Rule(_same("expected scalar type {have} but found {want}"), NOTHING), "solve_triangular"),
    ],
    "special": [(Rule(), """
        airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u
        chebyshev_polynomial_v chebyshev_polynomial_w digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc
        gammaincc gammaln hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e laguerre_polynomial_l
        legendre_polynomial_p log1p log_ndtr logit modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
        modified_bessel_k1 multigammaln ndtr ndtri polygamma psi scaled_modified_bessel_k0 scaled_modified_bessel_k1
        shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
        shifted_chebyshev_polynomial_w sinc spherical_bessel_j0 xlog1py xlogy zeta
    """), (Rule(_FOUND), "round"), (Rule(_floating, NOTHING), "logsumexp")],
    "fft": [(Rule(_safely("{name}"), NOTHING), """
        fft fft2 fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn
    """)],
    "nn.functional": [
        (Rule(_FOUND), "gelu hardshrink softplus softshrink"),
        (Rule(), "normalize"),
        (Rule(_same("expected scalar type {have} but found {want}"), NOTHING), "logsigmoid"),
        (Rule(_EXACT, NOTHING), "avg_pool2d avg_pool3d linear"),
    ],
}  # fmt: skip


# Writing ------------------------------------------------------------------------------------------


def with_out(function: Any, rule: Rule = RULES[0][0], name: str | None = None) -> Any:
    """Return `function` with an argument `out`: a tensor, or several, that the result is written into.

    Args:
        function: returns a tensor, or several.
        rule: says what `out` may be.
        name: the public name, by default the function's.
    """
    public = name or function.__name__
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code and not code.co_flags & _STARS else ()
    make = _MAKERS.get(names if code and not code.co_kwonlyargcount else (), _of_many)
    call = make(function, rule, public)
    functools.update_wrapper(call, function)
    call.__name__ = call.__qualname__ = public
    return call


# What calls go through that have no `out`: as short as can be, since all calls of the public functions do.

_NOT_GIVEN: Any = object()
_STARS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _of_one(function: Any, rule: Rule, name: str) -> Any:
    def call(x: Any = _NOT_GIVEN, /, *, out: Any = None, **named: Any) -> Any:
        if out is None and not named and x is not _NOT_GIVEN:
            return function(x)
        args = _given(name, (x,), named, ("input",))
        return function(*args) if out is None else _into(function, rule, name, out, args, {})

    return call


def _of_two(function: Any, rule: Rule, name: str) -> Any:
    if name in _OPERANDS:
        return _of_operands(function, rule, name, *_OPERANDS[name])

    def call(x: Any = _NOT_GIVEN, y: Any = _NOT_GIVEN, /, *, out: Any = None, **named: Any) -> Any:
        if out is None and not named and y is not _NOT_GIVEN:
            return function(x, y)
        args = _given(name, (x, y), named, ("input", "other"))
        return function(*args) if out is None else _into(function, rule, name, out, args, {})

    return call


def _of_operands(
    function: Any, rule: Rule, name: str, both: bool, signatures: tuple[str, ...]
) -> Any:
    """As `_of_two`, of a function that does not take numbers everywhere. Looks at no more where tensors are given."""
    title = getattr(getattr(function, "op", None), "name", name)
    title = title if title.startswith("special_") else name

    def call(x: Any = _NOT_GIVEN, y: Any = _NOT_GIVEN, /, *, out: Any = None, **named: Any) -> Any:
        if (
            type(x) is Tensor
            and (type(y) is Tensor or (y is not _NOT_GIVEN and not both))
            and out is None
            and not named
        ):
            return function(x, y)
        args = _given(name, (x, y), named, ("input", "other"))
        if not (isinstance(args[0], Tensor) and (not both or isinstance(args[1], Tensor))):
            _check_operands(title, both, signatures, args)
        return function(*args) if out is None else _into(function, rule, name, out, args, {})

    return call


def _check_operands(
    name: str, both: bool, signatures: tuple[str, ...], args: tuple[Any, ...]
) -> None:
    """Raise PyTorch's error for a number where it takes a tensor alone."""
    if both:
        k = 0 if not isinstance(args[0], Tensor) else 1
        raise TypeError(
            f"{name}(): argument '{('input', 'other')[k]}' (position {k + 1}) must be Tensor, not "
            f"{type(args[k]).__name__}"
        )
    if len(signatures) < 3 or not isinstance(args[1], Tensor):
        raise pointwise.no_such_call(name, args, signatures)


_TENSOR_AND_NUMBER = (
    "Tensor input, Tensor other, *, Tensor out = None", "Tensor input, Number other, *, Tensor out = None",
)  # fmt: skip
_NUMBER_FIRST = (_TENSOR_AND_NUMBER[0], "Number self, Tensor other", _TENSOR_AND_NUMBER[1])
_EITHER = (
    _TENSOR_AND_NUMBER[0],
    f"{_NUMBER_FIRST[1]}, *, Tensor out = None",
    _TENSOR_AND_NUMBER[1],
)

#: By name, the functions of two that do not take numbers everywhere: whether both must be tensors, else the calls.
_OPERANDS: dict[str, tuple[bool, tuple[str, ...]]] = {
    name: (both, signatures)
    for both, signatures, names in (
        (True, (), """
            arctan2 atan2 fmax fmin hypot logaddexp logical_and logical_or logical_xor maximum minimum
        """),
        (False, _TENSOR_AND_NUMBER, """
            copysign eq fmod ge greater greater_equal gt le less less_equal lt ne not_equal
        """),
        (False, _NUMBER_FIRST, """
            bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor remainder
        """),
        (False, _EITHER, "xlog1py xlogy zeta"),
    )
    for name in names.split()
}  # fmt: skip


def _of_many(function: Any, rule: Rule, name: str) -> Any:
    def call(
        x: Any = _NOT_GIVEN,
        y: Any = _NOT_GIVEN,
        z: Any = _NOT_GIVEN,
        /,
        *more: Any,
        out: Any = None,
        **kwargs: Any,
    ) -> Any:
        try:
            if out is None and not kwargs and not more:
                if z is not _NOT_GIVEN:
                    return function(x, y, z)
                if y is not _NOT_GIVEN:
                    return function(x, y)
                if x is not _NOT_GIVEN:
                    return function(x)
            args = tuple([each for each in (x, y, z, *more) if each is not _NOT_GIVEN])
            if out is None:
                return function(*args, **kwargs)
            return _into(function, rule, name, out, args, kwargs)
        except AttributeError as error:
            refused = _not_a_tensor(function, name, (x, y, z, *more), kwargs, error)
            if refused is None:
                raise
            raise refused from None
        except TypeError:
            renamed = _renamed(function, kwargs)
            if renamed is None:
                raise
        return call(*args, out=out, **renamed)

    return call


def _not_a_tensor(
    function: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: AttributeError
) -> TypeError | None:
    """Return PyTorch's error if what an attribute was missing of is an argument that is no tensor, else None."""
    given = error.obj
    if isinstance(given, Tensor) or given is _NOT_GIVEN:
        return None
    kind = type(given)
    shown = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
    for argument, value in kwargs.items():
        if value is given:
            return TypeError(f"{name}(): argument '{argument}' must be Tensor, not {shown}")
    names = _parameter_names(inspect.unwrap(function))
    for position, (argument, value) in enumerate(zip(names, args, strict=False), 1):
        if value is given:
            return TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {shown}"
            )
    return None


#: NumPy's names of arguments, which PyTorch's functions understand, and "self" of calls with a number first.
_NUMPY = {
    "a": "input", "x": "input", "x1": "input", "x2": "other", "axis": "dim", "keepdims": "keepdim", "self": "input",
}  # fmt: skip


def _renamed(function: Any, kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Return arguments with NumPy's names replaced; None if there are none that the function does not have itself."""
    if _NUMPY.keys().isdisjoint(kwargs):
        return None
    own = _parameter_names(inspect.unwrap(function))
    renamed = {key if key in own else _NUMPY.get(key, key): kwargs[key] for key in kwargs}
    return None if renamed.keys() == kwargs.keys() else renamed


def _given(
    name: str, placed: tuple[Any, ...], named: dict[str, Any], names: tuple[str, ...]
) -> tuple[Any, ...]:
    """Return arguments that may be given by place or by name, also by NumPy's."""
    renamed = {}
    for key, value in named.items():
        public = key if key in names else _NUMPY.get(key, key)
        if public not in names or (public != key and placed[names.index(public)] is not _NOT_GIVEN):
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
        renamed[public] = value
    args = []
    for each, by_place in zip(names, placed, strict=True):
        by_name = renamed.get(each, _NOT_GIVEN)
        if by_place is not _NOT_GIVEN and by_name is not _NOT_GIVEN:
            raise TypeError(f"{name}() got multiple values for argument '{each}'")
        if by_place is _NOT_GIVEN and by_name is _NOT_GIVEN:
            raise TypeError(f'{name}() missing 1 required positional arguments: "{each}"')
        args.append(by_name if by_place is _NOT_GIVEN else by_place)
    return tuple(args)


#: By the names of a function's arguments: the ops of one and of two tensors have no others.
_MAKERS: dict[tuple[str, ...], Any] = {("input",): _of_one, ("input", "other"): _of_two}


def install_all(torch: dict[str, Any]) -> None:
    """Give the functions of the package and of its modules that take `out` in PyTorch that argument."""
    install(torch)
    for path in OF_MODULES:
        names: Any = torch
        for part in path.split("."):
            names = vars(names[part]) if part in names else None
            if names is None:
                break
        else:
            install(names, path)


#: Functions that have the argument, and refuse it.
_REFUSING = ("nonzero", "norm", "normalize")


def install(module: dict[str, Any], path: str = "") -> None:
    """Give the functions of a public module that take `out` in PyTorch that argument.

    Args:
        module: the module's names.
        path: its name below `torch`.
    """
    for rule, names in OF_MODULES[path] if path else RULES:
        for name in names.split():
            function = module.get(name)
            if function is None:
                continue
            if name in _REFUSING:
                signature: Any = inspect.signature(function)
            elif "out" in _parameter_names(inspect.unwrap(function)):
                continue  # it sees to it itself
            else:
                signature = _SignatureWithOut(function)
            made = module[name] = with_out(function, rule, name)
            made.__module__ = module["__name__"]  # where pickle finds it
            made.__signature__ = signature


def _parameter_names(function: Any) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    if code is None:
        return ()
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names


def _into(
    function: Any, rule: Rule, name: str, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Write what `function` returns into `out`."""
    if local.state.autocast is not None:  # PyTorch has no autocasting into `out`
        return outside(_into, function, rule, name, out, args, kwargs)
    if name == "nonzero" and kwargs.get("as_tuple"):
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    outs = (out,) if isinstance(out, Tensor) else out
    if not isinstance(outs, (tuple, list)) or not outs or not isinstance(outs[0], Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    for k, each in enumerate(outs):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"expected Tensor as element {k} in argument 'out', but got {type(each).__name__}"
            )
    read = list(_tensors((args, kwargs)))
    state = local.state
    recorded = state.grad and any(each.requires_grad for each in (*read, *outs))
    for mode in state.modes or ():
        if any(mode.tangent(each) is not None for each in (*read, *outs)):
            raise NotImplementedError(
                f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
            )
    asked = kwargs.get("dtype") if rule.typed else None
    if asked is not None:
        _EXACT(name, asked, outs[0].dtype)
    if recorded:
        # What has no derivative (comparisons …) may be written: the result's dtype tells.
        with no_grad():
            result = function(*args, **kwargs)
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
            raise RuntimeError(
                f"{name}_out() expected an out= argument of size {len(results)}, got size {len(outs)}"
            )
        raise TypeError(f"expected tuple of {len(results)} elements but got {len(outs)}")
    if recorded and any(each._array.dtype.kind not in "biu" for each in results):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if name == "split_copy":  # PyTorch's copies into tensors that must have the shapes
        with no_grad():
            for each, made in zip(outs, results, strict=True):
                each.copy_(made)
        return None
    check = rule.check if isinstance(result, Tensor) else rule.check_several or rule.check
    if rule.of_several is not None and len(read) > 1:
        check = rule.of_several
    for k, (each, made) in enumerate(zip(outs, results, strict=True)):
        have = made.dtype
        (check if k == 0 or have is results[0].dtype or name == "lstsq" else _EXACT)(
            name, have, each.dtype
        )
        _check_memory(each, made._array.shape, read, rule)
    for each, made in zip(outs, results, strict=True):
        array = made._array
        if each._array.shape != array.shape:
            if np.may_share_memory(each._array, array):
                array = array.copy()
            resized(each, array.shape)
        np.copyto(each._array, array, casting="unsafe")
        count_write(each)
    if isinstance(result, Tensor):
        return out
    if type(result) is tuple:
        return None if name.endswith("_copy") else tuple(outs)
    return _result_type(type(result))(outs)


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield all tensors among arguments."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)


def _check_memory(out: Tensor, shape: tuple[int, ...], read: list[Tensor], rule: Rule) -> None:
    """Raise PyTorch's error for an `out` that must not be written to."""
    array, overlap = out._array, rule.overlap
    strict = rule.strict or overlap == PARTS
    check_write(out, recorded=False, overlap=array.shape != shape and not strict)
    if overlap == NOTHING or (array.shape != shape and overlap == PARTS):
        return
    for each in read:
        if each._cell is out._cell and each._cell is not None:
            check_overlap(array, each._array, overlap == PARTS)


def _typed(
    function: Any,
    rule: Rule,
    name: str,
    out: Tensor,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """Call a function that computes in the dtype of `out`."""
    kind = out.dtype
    source = args[0] if args else kwargs.get("input")
    if not isinstance(source, Tensor) or source.dtype is kind:
        return function(*args, **kwargs)
    if rule.check is not _any:
        rule.check(name, source.dtype, kind)
        if source.dtype.category != kind.category:
            return function(*args, **kwargs)  # which may refuse integers
    return function(*args, **(kwargs | {"dtype": kind}))


#: The ops that functions with more arguments are without those.
_PLAIN: dict[Any, Any] = {
    pointwise.add: pointwise.plus,
    pointwise.sub: pointwise.minus,
    pointwise.div: pointwise.true_divide,
}


def _written_directly(
    function: Any, rule: Rule, out: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> bool:
    """Compute straight into `out` if the function is a ufunc of floating tensors that fit; return whether it was."""
    op = getattr(_PLAIN.get(function, function), "op", None)
    kernel = op and op.kernel
    target = out._array
    if (
        kwargs
        or not isinstance(kernel, np.ufunc)
        or kernel.nin != len(args)
        or kernel.nout != 1
        or kernel.types[0].endswith("?")
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


def resized(x: Tensor, shape: tuple[int, ...]) -> None:
    """Bring a tensor to a shape, as `bring_to` does.

    Warns:
        UserWarning: PyTorch's, if `x` had elements.
    """
    array = x._array
    if array.size:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(array.shape)}, which does not "
            f"match the required output shape {list(shape)}. This behavior is deprecated, and in a future PyTorch "
            "release outputs will not be resized unless they have zero elements. You can explicitly reuse an out "
            "tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
            UserWarning,
            stacklevel=4,
        )
    bring_to(x, shape)


# How it looks -------------------------------------------------------------------------------------


_RESULT_TYPES: dict[type, type] = {}


def _result_type(cls: type) -> type:
    """Return the class of several results that were written into `out`, as PyTorch has it."""
    if cls not in _RESULT_TYPES:
        own = {"__slots__": (), "__module__": cls.__module__}
        _RESULT_TYPES[cls] = type(f"{cls.__name__}_out", (cls,), own)
    return _RESULT_TYPES[cls]


class _SignatureWithOut(inspect.Signature):
    """A function's signature with `out` in it, worked out when it is looked at: the import need not wait for it."""

    __slots__ = ("_function",)

    def __init__(self, function: Any) -> None:
        self._function = function

    @property
    def _whole(self) -> Any:
        signature = inspect.signature(self._function)
        parameters = list(signature.parameters.values())
        at = len(parameters)
        if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
            at -= 1
        out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
        parameters.insert(at, out)
        return signature.replace(parameters=parameters)

    # Under these names the base class keeps them.
    _parameters = property(lambda self: self._whole._parameters)
    _return_annotation = property(lambda self: self._whole._return_annotation)
