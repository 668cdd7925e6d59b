"""Differences between PyTorch and tinytorch for an entry of PyTorch's operator database (OpInfo): `findings`.

An entry is an operator with samples of its arguments. Both libraries run a sample in lockstep: the call, its gradient,
and the gradient of the gradient. A difference is named by a kind ("float32", "method", "errors" …) and a word
("values", "strides", "node" …).

Numbers are compared with a tolerance that depends on the dtype. If they differ by more, PyTorch computes the sample
again in float64; a result of ours that is about as close to that as PyTorch's own result differs only by rounding.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import random
import re
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from hypothesis import settings

import tinytorch
from tests import oracle
from tests.conftest import PROFILE

torch = oracle.module()
oracle.package("expecttest")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db
# The import freezes the flags of PyTorch's backends, and loads its own profile of hypothesis.
torch.backends.flags_frozen.__globals__["__allow_nonbracketed_mutation_flag"] = True
settings.load_profile(PROFILE)

DATABASE = {f"{info.name}/{info.variant_test_name}".rstrip("/"): info for info in op_db}

#: By dtype: the relative tolerance, and the absolute one in units of the largest number (at least 1).
TOLERANCE = {
    "float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-4, "float64": 1e-8, "complex64": 1e-4, "complex128": 1e-8,
}  # fmt: skip
#: The namespaces that may contain an operator of PyTorch; tinytorch's has the same name in the same namespace.
PLACES = ("", "nn.functional", "special", "linalg", "_C._nn", "fft", "masked", "Tensor")


class Absent(Exception):
    """An argument or a result is not supported by tinytorch: other layouts and dtypes."""


class Missing(Exception):
    """tinytorch does not have the function."""


def attribute(root: Any, path: str) -> Any:
    for name in filter(None, path.split(".")):
        root = getattr(root, name)
    return root


def own(path: str) -> Any:
    """Return the object of tinytorch with a dotted name; AttributeError if it only raises an error."""
    value = attribute(tinytorch, path)
    if tinytorch.absent.is_refusing(value):
        raise AttributeError(path)
    return value


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested arguments with `change` applied to each leaf."""
    if isinstance(value, torch.Size):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(item, change) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: mapped(item, change) for key, item in value.items()}
    return change(value)


def flat(value: Any) -> list[Any]:
    """Return the leaves of nested arguments or results, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    return [value]


# From PyTorch's arguments and functions to tinytorch's


def our_dtype(dtype: Any) -> Any:
    if not hasattr(tinytorch, str(dtype).rpartition(".")[2]) or dtype is torch.complex32:
        raise Absent(str(dtype))
    return getattr(tinytorch, str(dtype).rpartition(".")[2])


def our_tensor(tensor: Any, converted: dict[Any, Any]) -> Any:
    """Convert a tensor to one of ours with the same strides; tensors that share memory do so afterwards, too."""
    if id(tensor) in converted:
        return converted[id(tensor)]
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
        raise Absent(f"{tensor.layout} {tensor.device}")
    if tensor.dim() > 64:
        raise Absent("more dimensions than NumPy has")
    dtype = our_dtype(tensor.dtype)
    memory = tensor.detach().untyped_storage()
    key = (memory.data_ptr(), dtype)
    if key not in converted or not memory.nbytes():
        count = memory.nbytes() // tensor.element_size()
        line = torch.empty(0, dtype=tensor.dtype).set_(memory, 0, (count,), (1,))
        if tensor.dtype == torch.bfloat16:
            line = line.view(torch.int16)
        converted[key] = tinytorch.from_numpy(line.numpy().copy()).view(dtype)
    layout = tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()
    try:
        result = converted[key].as_strided(*layout)
    except RuntimeError as error:  # PyTorch has freed the memory when it refused another call with this tensor
        raise Absent(str(error)) from None
    if tensor.is_conj():
        result = result.conj()
    converted[id(tensor)] = result.detach().requires_grad_(tensor.requires_grad)
    return converted[id(tensor)]


def ours(value: Any, converted: dict[Any, Any]) -> Any:
    """Convert PyTorch's arguments to tinytorch's; tensors are also stored in `converted`, by the id of the original."""

    def change(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return our_tensor(value, converted)
        if isinstance(value, torch.dtype):
            return our_dtype(value)
        if isinstance(value, torch.Size):
            return tinytorch.Size(value)
        if isinstance(value, torch.device):
            return tinytorch.device(str(value))
        if isinstance(value, (torch.memory_format, torch.layout)):
            name = str(value).rpartition(".")[2]
            if not hasattr(tinytorch, name):
                raise Absent(name)
            return getattr(tinytorch, name)
        if isinstance(value, torch.Generator):
            raise Absent("a generator's state")
        if isinstance(value, torch.nn.LinearCrossEntropyOptions):
            given = {each.name: change(getattr(value, each.name)) for each in dataclasses.fields(value)}
            return tinytorch.nn.LinearCrossEntropyOptions(**given)
        if isinstance(value, torch.nn.PairwiseDistance):
            return tinytorch.nn.PairwiseDistance(value.norm, value.eps, value.keepdim)
        if isinstance(value, types.FunctionType):
            return with_tinytorch(value)
        return value

    return mapped(value, change)


def counterpart(function: Any) -> Any:
    """Return tinytorch's function for a public function of PyTorch; None if PyTorch's function is not public.

    Raises:
        Missing: tinytorch does not have the function.
    """
    name = getattr(function, "__name__", "")
    if function is torch._C._nn.log_sigmoid:
        return tinytorch.nn.functional.logsigmoid
    for place in PLACES:
        with contextlib.suppress(AttributeError):
            if attribute(attribute(torch, place), name) is function and name:
                try:
                    return own(f"{place}.{name}")
                except AttributeError:
                    raise Missing(f"{place}.{name}".lstrip(".")) from None
    return None


def with_tinytorch(function: Any, depth: int = 0) -> Any:
    """Return a copy of a Python function of PyTorch's tests whose global names refer to tinytorch in place of torch."""

    def change(value: Any) -> Any:
        name = getattr(value, "__name__", "")
        if isinstance(value, types.ModuleType):
            if name.partition(".")[0] == "torch":
                with contextlib.suppress(AttributeError):
                    return attribute(tinytorch, name.partition(".")[2])
            return value
        if name == "freeze_rng_state":
            return contextlib.nullcontext
        if isinstance(value, torch.nn.PairwiseDistance):
            return ours(value, {})
        module = getattr(value, "__module__", None) or ""
        if isinstance(value, types.FunctionType) and module.startswith("torch.testing"):
            return with_tinytorch(value, depth + 1) if depth < 3 else value
        if callable(value) and not isinstance(value, type):
            replacement = counterpart(value)
            return value if replacement is None else replacement
        return value

    codes = [function.__code__]
    codes += [constant for constant in codes[0].co_consts if isinstance(constant, types.CodeType)]
    names = {name for code in codes for name in code.co_names} & function.__globals__.keys()
    scope = {**function.__globals__, **{name: change(function.__globals__[name]) for name in names}}
    cells = [types.CellType(change(cell.cell_contents)) for cell in function.__closure__ or ()]
    result = types.FunctionType(codes[0], scope, function.__name__, function.__defaults__, tuple(cells) or None)
    result.__kwdefaults__ = function.__kwdefaults__
    return result


def functions(info: Any, kind: str) -> tuple[Any, Any]:
    """Return the function, the method or the in-place form of an entry, of PyTorch and tinytorch; None if it has none.

    Raises:
        Missing: tinytorch does not have the function.
    """
    function = {"method": info.method_variant, "in place": info.inplace_variant}.get(kind, info.op)
    if function is None:
        return None, None
    if isinstance(function, functools.partial):
        return function, functools.partial(counterpart(function.func), *function.args, **function.keywords)
    method = kind in ("method", "in place")
    root, name = ("Tensor", function.__name__) if method else ("", info.name)
    with contextlib.suppress(AttributeError):
        if attribute(attribute(torch, root), name) is function:
            with contextlib.suppress(AttributeError):
                return function, own(f"{root}.{name}")
            if isinstance(function, types.FunctionType):
                raise Missing(name)
    ours = counterpart(function)
    if ours is None and isinstance(function, types.FunctionType):
        ours = with_tinytorch(function)
    if ours is None:
        raise Missing(name)
    return function, ours


# Running a sample with one library


class Side:
    """A sample and its results with one library: those of the call, then the gradients, then the second gradients."""

    def __init__(self, library: Any, function: Any, arguments: tuple[Any, ...], leaves: list[Any]) -> None:
        self.library = library
        self.function = function
        self.arguments = arguments
        self.leaves = leaves
        self.results: list[Any] = []
        self.kind: type = type(None)

    def call(self, process: Any, in_place: bool) -> None:
        first, args, kwargs = self.arguments
        if in_place:
            first = first.clone()
        self.library.default_generator.manual_seed(0)
        result = self.function(first, *args, **kwargs)
        self.kind = type(result)
        self.results = flat(process(result) if process is not None else result)

    def differentiate(self, which: list[bool], again: bool) -> None:
        """Replace the results by the gradients of the results that `which` selects."""
        numbers = np.random.default_rng(0)
        outputs = [result for result, selected in zip(self.results, which, strict=True) if selected]

        def draw(x: Any) -> Any:
            """Return random numbers, exact in every dtype, so that they are equal in float64."""
            drawn = numbers.integers(-8, 9, tuple(x.shape)) / 4
            return drawn + 1j * (numbers.integers(-8, 9, drawn.shape) / 4) if x.is_complex() else drawn

        weights = [self.library.tensor(draw(x), dtype=x.dtype) for x in outputs]
        grads = self.library.autograd.grad(outputs, self.leaves, weights, allow_unused=True, create_graph=again)
        self.results = list(grads)


def in_float64(value: Any, converted: dict[int, Any]) -> Any:
    """Return PyTorch's arguments with all floating-point tensors converted to float64, complex ones to complex128."""

    def wide(kind: Any) -> Any:
        if kind.is_complex:
            return torch.complex128
        return torch.float64 if kind.is_floating_point else kind

    def change(value: Any) -> Any:
        if isinstance(value, torch.dtype):
            return wide(value)
        if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
            return value
        if id(value) not in converted:
            converted[id(value)] = value.detach().to(wide(value.dtype)).requires_grad_(value.requires_grad)
        return converted[id(value)]

    return mapped(value, change)


# Comparing results


def numbers(x: Any) -> np.ndarray:
    """Return a tensor of either library as a float64 array, of complex numbers as a complex128 array."""
    x = x.detach()
    if isinstance(x, torch.Tensor):
        x = torch.zeros(x.shape, dtype=x.dtype) if x._is_zerotensor() else x.resolve_neg().resolve_conj()
    wide = x.cdouble() if x.is_complex() else x.double()
    return np.asarray(wide.resolve_conj().resolve_neg().numpy())


def close(mine: np.ndarray, theirs: np.ndarray, tolerance: float) -> bool:
    finite = np.abs(theirs[np.isfinite(theirs)])
    unit = max(1.0, finite.max()) if finite.size else 1.0
    return np.allclose(mine, theirs, tolerance, tolerance * unit, equal_nan=True)


def rounding(mine: np.ndarray, theirs: np.ndarray, exact: np.ndarray | None, tol: float) -> bool:
    """Return whether two results differ only by rounding: ours is about as close to the exact one as PyTorch's."""
    if exact is None or exact.shape != mine.shape or not close(theirs, exact, 50 * tol):
        return False
    known = np.isfinite(exact) & np.isfinite(theirs) & np.isfinite(mine)
    if not np.array_equal(mine[~known], theirs[~known], equal_nan=True) or not known.any():
        return False
    worst = [np.abs(x[known] - exact[known]).max() for x in (mine, theirs)]
    return bool(worst[0] <= 20 * worst[1] + tol * np.abs(exact[known]).max())


def difference(
    mine: Any, theirs: Any, exact: Callable[[], np.ndarray | None], of_call: bool
) -> Iterator[tuple[str, str]]:
    """Yield the differences between a result of tinytorch and one of PyTorch, as a word and details."""
    if not isinstance(theirs, torch.Tensor) or not isinstance(mine, tinytorch.Tensor):
        plain = isinstance(theirs, (int, float, complex)) and isinstance(mine, (int, float, complex))
        same = np.isclose(mine, theirs, equal_nan=True) if plain else str(mine) == str(theirs)
        if not same and str(theirs) != str(mine).replace("tinytorch", "torch"):
            yield "type" if type(mine) is not type(theirs) else "values", f"{mine} / {theirs}"
        return
    if theirs.dtype is torch.complex32:
        raise Absent("complex numbers of 16 bits")
    for word, a, b in (
        ("dtype", str(mine.dtype), str(theirs.dtype)),
        ("shape", tuple(mine.shape), tuple(theirs.shape)),
    ):
        if a != b:
            yield word, f"{a} / {b}"
            return
    x, y = numbers(mine), numbers(theirs)
    tolerance = TOLERANCE.get(str(theirs.dtype).removeprefix("torch."), 0)
    if not close(x, y, tolerance) and not (tolerance and rounding(x, y, exact(), tolerance)):
        yield "values", f"{str(x)[:300]} / {str(y)[:300]}"
    if not of_call:
        return
    if mine.requires_grad != theirs.requires_grad:
        yield "requires_grad", f"{mine.requires_grad} / {theirs.requires_grad}"
        return
    if mine.numel() and tuple(mine.stride()) != tuple(theirs.stride()):
        yield "strides", f"{mine.stride()} / {theirs.stride()} of shape {tuple(mine.shape)}"
    if theirs.grad_fn is not None and mine.grad_fn.name() != theirs.grad_fn.name():
        yield "node", f"{mine.grad_fn.name()} / {theirs.grad_fn.name()}"


def attempt(step: Callable[[], None]) -> Exception | None:
    try:
        step()
    except Exception as error:  # any class, since it is compared
        return error
    return None


def of_errors(mine: Exception | None, theirs: Exception | None) -> Iterator[tuple[str, str]]:
    """Yield the differences between two errors, or an error and None."""
    if mine is not None and theirs is None:
        yield "raises", f"{type(mine).__name__}: {mine}"
    elif mine is None and theirs is not None:
        yield "passes", f"PyTorch: {type(theirs).__name__}: {theirs}"
    elif not isinstance(mine, type(theirs)):
        yield ("error", f"{type(mine).__name__}: {mine} / {type(theirs).__name__}: {theirs}")


def of_sample(info: Any, pair: tuple[Any, Any], sample: Any, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the differences between the libraries for a sample."""
    arguments = (sample.input, tuple(sample.args), sample.kwargs)
    leaves = [x for x in flat(list(arguments)) if isinstance(x, torch.Tensor) and x.requires_grad]
    converted: dict[Any, Any] = {}
    copied: dict[int, Any] = {}
    mine = Side(tinytorch, pair[1], ours(arguments, converted), [converted[id(x)] for x in leaves])
    wide = in_float64(arguments, copied)
    exact = Side(torch, pair[0], wide, [copied.get(id(x), x) for x in leaves])
    theirs = Side(torch, pair[0], arguments, leaves)
    process = sample.output_process_fn_grad
    own = with_tinytorch(process) if isinstance(process, types.FunctionType) else process
    in_place = kind == "in place"
    masks: list[list[bool]] = []
    again = info.supports_gradgrad
    last = 2 if again and kind in ("float32", "complex128") else 1

    def in_double(k: int) -> np.ndarray | None:
        """Return result `k` of the current step, computed by PyTorch in float64."""
        if exact.kind is type(None):
            error = attempt(lambda: exact.call(process, in_place))
            for mask in masks:
                error = error or attempt(functools.partial(exact.differentiate, mask, again))
            if error is not None:
                exact.results = []
        result = exact.results[k] if k < len(exact.results) else None
        return numbers(result) if isinstance(result, torch.Tensor) else None

    for order, prefix in enumerate(("", "gradient ", "second gradient ")):
        if order == 0:
            failed = [attempt(lambda: mine.call(own, in_place)), attempt(lambda: theirs.call(process, in_place))]
        else:
            failed = [attempt(functools.partial(side.differentiate, masks[-1], again)) for side in (mine, theirs)]
        if any(failed):
            yield from ((prefix + word, text) for word, text in of_errors(*failed))
            return
        if len(mine.results) != len(theirs.results) or (order == 0 and mine.kind.__name__ != theirs.kind.__name__):
            yield "type", f"{mine.kind} / {theirs.kind}"
            return
        exact.kind = type(None)
        wrong = False
        for k, (x, y) in enumerate(zip(mine.results, theirs.results, strict=True)):
            if x is None or y is None:
                if (x is None) != (y is None) and order == 1:
                    yield "gradient", f"of input {k}: {x} / {y}"
                continue
            for word, text in difference(x, y, lambda k=k: in_double(k), order == 0):
                yield prefix + word, text
                wrong = wrong or word not in ("strides", "node")
        mask = [
            isinstance(y, torch.Tensor) and x is not None and bool(x.requires_grad and y.requires_grad)
            for x, y in zip(mine.results, theirs.results, strict=True)
        ]
        masks.append(mask)
        if wrong or not any(mask) or not leaves or order == last:
            return


def of_wrong_use(pair: tuple[Any, Any], case: Any) -> Iterator[tuple[str, str]]:
    """Yield the differences between the errors of an invalid call."""
    sample = case.sample_input
    converted: dict[Any, Any] = {}
    first, args, kwargs = ours((sample.input, tuple(sample.args), sample.kwargs), converted)
    theirs = attempt(lambda: pair[0](sample.input, *sample.args, **sample.kwargs))
    if theirs is None:
        return  # (an error on other devices only)
    mine = attempt(lambda: pair[1](first, *args, **kwargs))
    yield from of_errors(mine, theirs)
    words = case.error_regex or ""
    matches = [re.search(words, str(error)) is not None for error in (mine, theirs)]
    if isinstance(mine, type(theirs)) and matches == [False, True]:
        yield "words", f"{mine} / {words}"


def quick(samples: Iterator[Any]) -> list[Any]:
    """Return the small samples among the first ones."""

    def size(sample: Any) -> int:
        arguments = flat([sample.input, list(sample.args), sample.kwargs])
        return sum(x.numel() for x in arguments if isinstance(x, torch.Tensor))

    return [sample for sample in itertools.islice(samples, 300) if size(sample) < 10_000]


def evenly(samples: list[Any], most: int | None) -> list[Any]:
    """Return at most `most` samples, evenly spaced."""
    if most is None or len(samples) <= most:
        return samples
    return [samples[round(k)] for k in np.linspace(0, len(samples) - 1, most)]


def described(sample: Any) -> str:
    """Return a short description of the arguments of a sample."""

    def short(x: Any) -> str:
        if isinstance(x, torch.Tensor):
            return f"<{str(x.dtype)[6:]} {tuple(x.shape)} strides {x.stride()}>"
        if isinstance(x, (list, tuple)):
            return f"[{', '.join(map(short, x))}]"
        return repr(x)[:80]

    words = [short(x) for x in (sample.input, *sample.args)]
    return ", ".join(words + [f"{k}={short(x)}" for k, x in sample.kwargs.items()])[:300]


def findings(name: str, most: dict[str, int] | None) -> dict[str, str]:
    """Return the differences for an entry: by kind and word, the details of the first sample with the difference.

    Args:
        name: a key of `DATABASE`.
        most: the largest number of samples by kind; all samples if None.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # small samples are slow with more
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _findings(DATABASE[name], most)
    finally:
        torch.set_num_threads(threads)


def _findings(info: Any, most: dict[str, int] | None) -> dict[str, str]:
    differing: dict[str, str] = {}
    random.seed(0)

    def note(kind: str, sample: Any, differences: Iterator[tuple[str, str]]) -> None:
        with contextlib.suppress(Absent):
            for word, text in differences:
                differing.setdefault(f"{kind} {word}", f"{described(sample)}\n    {text[:700]}")

    samples: dict[Any, list[Any]] = {}
    for kind in KINDS if most is None else most:
        dtype = torch.float32 if kind in ("method", "in place") else getattr(torch, kind, None)
        if dtype is not None and dtype not in info.dtypes:
            continue
        try:
            pair = functions(info, kind)
        except Missing as error:
            differing[f"{kind} missing"] = str(error)
            continue
        if pair[0] is None:
            continue
        if kind == "errors":
            cases = info.error_inputs_func
            for case in cases(info, "cpu") if cases is not None else ():
                note(kind, case.sample_input, of_wrong_use(pair, case))
            continue
        if dtype not in samples:
            grad = info.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
            torch.default_generator.manual_seed(0)
            # (not `info.sample_inputs`, which searches the stack for the running test: that is slow)
            created = info.sample_inputs_func(info, "cpu", dtype, requires_grad=grad)
            samples[dtype] = list(created) if most is None else quick(iter(created))
        for sample in evenly(samples[dtype], None if most is None else most[kind]):
            if kind != "in place" or not (sample.broadcasts_input or not isinstance(sample.input, torch.Tensor)):
                note(kind, sample, of_sample(info, pair, sample, kind))
    return differing


#: The parts of an entry that are run: samples of a dtype, the method and the in-place form (in float32), invalid calls.
KINDS = (
    "float32", "method", "in place", "int64", "bool", "bfloat16", "float16", "complex64", "complex128", "errors",
)  # fmt: skip
