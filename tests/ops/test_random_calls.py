"""Random calls of all ops, drawn from their samples, give in both libraries the same, or are refused in both.

The tensors of a sample get other dtypes, sizes, layouts and numbers, and now and then options change; the sample is
called as it is, as a method, in place, with `out=` or in `vmap`, and differentiated once or twice. A seed and a number
determine a call: TINYTORCH_SEED=3 TINYTORCH_CALLS=1000000 makes a million others.
"""

from __future__ import annotations

import functools
import os
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tinytorch
from tests.conftest import SEED
from tests.declared import FUNCTIONS
from tests.faces.calls import function, tensors_in
from tests.oracle import needs_oracle, torch
from tests.samples import Sample, all_samples

pytestmark = needs_oracle

CALLS = int(os.environ.get("TINYTORCH_CALLS", "2000"))

FLOATS = ("float32", "float32", "float32", "float64", "float64", "float16", "bfloat16", "complex64", "complex128")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "bool")
WAYS = ("call", "call", "method", "in place", "out", "first", "first", "second", "vmap")
LAYOUTS = ("plain", "plain", "turned", "turned", "steps", "part", "expanded", "last")
NUMBERS = (0, 1, 2, -1, 3, 0.5, 2.5, -0.5, 1e3)
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "complex64": 2.0**-23}
EPS |= {"float64": 2.0**-52, "complex128": 2.0**-52}
#: Below this errors do not count: where numbers are no longer normal.
TINY = {"float16": 2.0**-22, "bfloat16": 2.0**-130, "float32": 2.0**-140, "complex64": 2.0**-140}
#: Families of samples whose functions only move numbers; those which compute each element by itself; those which get
#: NaN and infinities; those for which a change of sizes makes a singular matrix, or reads beyond PyTorch's memory.
MOVES, ELEMENTS = ("shape", "copies"), ("pointwise", "special")
ANY, STIFF = ("reduce", "index", "nn", *MOVES, *ELEMENTS), ("decompose", "linalg", "rnn")

#: Functions, and the differences of theirs that docs/differences.md explains ("odd": with NaN or infinities).
KNOWN = [
    (re.compile(f"({name.strip()})$"), re.compile(words.strip()))
    for name, _, words in (line.partition(" : ") for line in r"""
    .* : .*passes (TypeError|.*(INTERNAL ASSERT|MKL FFT error|primitive descriptor|got None|memory format))
    .* : .*passes .*(for outputs with complex dtype|derivative for .* is not implemented|i1e?_backward|pdist_b|Double b)
    .* : .*passes .*(Batching rule|vmap: |[a-z]+..: Expected (self.dtype|dtype|a long)|Found dtype|addmv input tensors)
    .* : .*passes .*(returned an invalid gradient|isFloatingType.grad|view size is not|0 elements into|non-zero size)
    .* : .*passes .*(Autograd not support dtype|size of (the )?tensor (a )?.0|select.*index 0 out of range|bool tensor)
    .* : .*raises .*(dynamic shape|mixed dtype|bias type|states and weights|Expected hidden|expected offsets|0 is zero)
    topk|(nan)?median|kthvalue|mode|.*sort : .*(values exact|gradient: values)
    (nan)?quantile|segment_reduce|acosh|block_diag|.*det|ldexp|(scatter|index)_reduce|.*grid_sampler?.* : .*gradient: v
    embedding|select_scatter|(Tensor[.])?dist|vander|.*logdet|.*nuc.*|.*hardsigmoid|.*cross_entropy : .*gradient: v
    logical_.*|ne|eq|le|lt|ge|gt : .*gradient
    special[.](.*bessel.*|airy_ai|zeta)|logaddexp2? : .*values
    .*gamma.*|special.psi : (.*gradient: values|odd values)
    .*matrix_exp|.*polynomi.*|.*polygamma|igammac?|sinc|special.(ndtr|psi)|.*cholesky_.* : (odd )?values (rounding|nonf)
    .*(shrink|swish|hardtanh)|.*[cs]?elu6?|.*mish|.*sinc|logit|cumprod|.*margin.*|clamp.* : odd .*gradient: values
    .*(mish|sinc|soft_margin_loss|log_ndtr|head_attention_forward) : .*gradient: values
    .*(gelu|margin_loss|attention|conv.*)|(var|std)(_mean)?|pow|Tensor.__rpow__|addcdiv|.*_loss|addmm : odd .*nonfinite
    (nan)?median|.*softmax|nn.functional.(pairwise_distance|softmax|.*_norm) : .*values (nonfinite|rounding)
    linalg.pinv|.*avg_pool3d|gradient|mvlgamma|special.multigammaln : values (rounding|nonfinite)
    grid_sampler.*|[cp]?dist|.*multi_margin_loss : values
    .*cross_entropy|.*nll_loss : (gradient: )?passes .*(size mismatch|broadcast shape)
    signbit|hash_tensor|copysign : odd (gradient: )?values (exact|rounding)
    bucketize|searchsorted|topk : (odd )?values (exact|rounding)
    narrow_copy|.*affine_grid.* : values (moved|exact)|passes .*tensor_cpu
    take_along_dim|addmv|abs|.*embedding(_bag)?|.*segment_reduce|.*norm|conv.*|flip : passes
    linalg[.](lstsq|solve)|.*(lstm|gru|rnn).*|.*addb?mm|addr|.*_scatter|index_(put|fill)|diff : passes
    (nn[.]functional[.])?embedding|index_select : .*raises IndexError
    index_(select|fill)|(arg)?(max|min)|roll|.*grid_samp.*|.*lu_unpack|linalg[.]qr : .*(shape|gradient)
    Tensor.__getitem__|fft.ihfftn|.*attention|.*nll_loss|any|all|linalg[.](lstsq|solve.*)|addmm : shape
    linalg[.]solve.*|.*lu_solve|.*poisson_nll_loss|.*embedding_bag|fft.(ihfftn|fftn)|svd : .*values rounding
    pixel_unshuffle|channel_shuffle|.*_norm|clamp|vander|addcdiv|convolution : gradient: passes
    (Tensor.__r)?pow.*|logit|.*normalize|special.i1 : .*values nonfinite
    .*pad|stft|addmm : gradient: (values|type None)
    .*attention : gradient: type
    matmul|.*linear|ldexp|einsum : passes .*(non-singleton|for ..?Bool)
    where|clamp|addc.* : dtype .* in vmap
    .*fractional_max.*|.*dropout|.*gaussian_nll_loss|cdist|index_(reduce|copy)|addbmm|scatter_reduce : raises
    .*logits|.*nll_loss|.*logsumexp|mean|unbind_copy|gradient|.*attention|constant_pad_nd|.*[.]to|.*lp_pool2d : raises
    mode|kthvalue|cum(max|min)|.*conv.*|.*rnn.*|lstm : raises .*(complex|bias to be 1-dim|_rnn_layer|be multiplied)
    trace|index_select|(slice|select)_scatter|.*lu_solve|.*one_hot|searchsorted|.*cross_entropy : raises .*vmap
    detach_copy|logical_.*|conv.*|kron|angle|ldexp : requires_grad|strides
    .*attention_forward : error AssertionError.*expecting embedding
""".strip().splitlines())
]  # fmt: skip


def in_dtype(array: Any, dtype: str) -> Any:
    """Return about the same numbers in a dtype; those of bfloat16, which NumPy lacks, in float32."""
    if array.dtype.kind == "f" and dtype == "bool":
        return array > 0
    if array.dtype.kind == "c" and "complex" not in dtype:
        array = array.real
    if array.dtype.kind == "f" and "int" in dtype:
        array = np.clip(np.rint(np.nan_to_num(array * 2, nan=0, posinf=3, neginf=-3)), -100, 100)
    with np.errstate(all="ignore"):
        return (np.abs(array) if dtype == "uint8" else array).astype("float32" if dtype == "bfloat16" else dtype)


class Drawn:
    """A tensor that both libraries make: an array, a dtype, a layout, and the batch dimension for `vmap`."""

    def __init__(self, rng: np.random.Generator, array: Any, dtype: str, layout: str, batch: int | None) -> None:
        shape, self.dtype, self.layout, self.batch = array.shape, dtype, layout, batch
        self.change: Callable[[Any, Any], Any] = lambda x, library: x
        if layout == "turned" and len(shape) > 1:
            order = [int(d) for d in rng.permutation(len(shape))]
            array = array.transpose(np.argsort(order))
            self.change, self.layout = lambda x, library: x.permute(order), f"permute({order})"
        elif layout == "steps" and shape:
            array = np.repeat(array, 2, -1)
            self.change = lambda x, library: x[..., ::2]
        elif layout == "part" and len(array if shape else ()):
            array = np.concatenate([array[:1], array])
            self.change = lambda x, library: x[1:]
        elif layout == "expanded" and array.size and shape:
            array = array.take([0], int(rng.integers(len(shape))))
            self.change = lambda x, library: x.expand(shape)
        elif layout == "last" and len(shape) == 4:
            self.change = lambda x, library: x.contiguous(memory_format=library.channels_last)
        self.array = np.ascontiguousarray(array).reshape(array.shape)

    def make(self, library: Any, grad: bool, wide: bool) -> Any:
        """Return the tensor; `wide`: in double precision, to compare errors."""
        tensor = library.from_numpy(self.array.copy())
        tensor = self.change(tensor.bfloat16() if self.dtype == "bfloat16" else tensor, library)
        if wide and self.dtype in TINY:
            tensor = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
        return tensor.detach().requires_grad_() if grad and self.dtype in EPS else tensor

    def __repr__(self) -> str:
        numbers = np.array2string(self.array, separator=", ", threshold=60).replace("\n", "")
        batch = "" if self.batch is None else f" batch {self.batch}"
        return f"<{self.dtype} {list(self.array.shape)} {self.layout}{batch} {numbers}>"


@functools.cache
def by_name() -> list[list[Sample]]:
    """Return the samples of each function."""
    found: dict[str, list[Sample]] = {}
    for each in all_samples():
        found.setdefault(each.name, []).append(each)
    return list(found.values())


class Call:
    """A random call."""

    def __init__(self, seed: int, number: int) -> None:
        self.rng = rng = np.random.default_rng((seed, number))
        self.sample = sample = self.one(self.one(by_name()))
        self.name, self.base, self.way = sample.name, sample.name.rpartition(".")[2], self.one(WAYS)
        declared = FUNCTIONS.get(self.name)
        first = sample.args and isinstance(sample.args[0], np.ndarray)
        possible = {
            "method": first and "linalg" not in self.name and hasattr(torch.Tensor, self.base),
            "in place": first and hasattr(torch.Tensor, f"{self.base}_"), "vmap": first,
            "out": getattr(declared, "rule", None) is not None and sample.select is None,
        }  # fmt: skip
        if not possible.get(self.way, True):
            self.way = "first"
        self.dtype = self.one(FLOATS if rng.random() < 0.85 else INTEGERS)
        if "complex" in self.dtype and sample.family == "decompose":
            self.dtype = "float64"
        self.mixed, self.options = 0.1 * (rng.random() < 0.5), 0.15 * (rng.random() < 0.4)
        self.numbers = self.one(("kept",) * 6 + ("coarse", "special", "other"))
        if sample.family in STIFF or (self.numbers == "special" and sample.family not in ANY):
            self.numbers = "kept"
        self.layouts = ("plain",) if rng.random() < 0.4 else LAYOUTS[:6] if sample.family in STIFF else LAYOUTS
        arguments = (*sample.args, *sample.kwargs.values())
        lengths = [n for each in arguments if isinstance(each, np.ndarray) for n in each.shape]
        self.resized: tuple[int, int] | None = None
        if lengths and sample.family not in STIFF and rng.random() < 0.3:
            n = self.one(lengths)
            self.resized = n, self.one((0, 1, 1, 2, n + 1, n + 2))
        share = {"first": 1, "second": 1, "in place": 0.4, "vmap": 0.4}.get(self.way, 0)
        self.grad = sample.backward and rng.random() < share
        self.tensors: list[Drawn] = []
        self.refused = False
        self.args = [self.changed(each, k) for k, each in enumerate(sample.args)]
        self.kwargs = {key: self.changed(each, key) for key, each in sample.kwargs.items()}
        self.eps = max([EPS.get(each.dtype, 0.0) for each in self.tensors], default=0.0)

    def one(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def changed(self, value: Any, key: Any) -> Any:
        """Return an argument, as it is or changed; `key` is its position or name, None within a sequence."""
        if isinstance(value, np.ndarray):
            return self.tensor(value, key)
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            return type(value)(self.changed(each, None) for each in value)
        if self.rng.random() >= self.options or (key is None and self.rng.random() < 0.7):
            return value
        if isinstance(value, bool):
            return not value
        if isinstance(value, (int, float)) and self.rng.random() < 0.1:
            return self.tensor(np.array(value), None)
        if value is None or isinstance(value, int):
            return self.one((0, 1, 2, 3, -1, -2, value))
        return float(self.one(NUMBERS)) if isinstance(value, float) else value

    def tensor(self, array: Any, key: Any) -> Any:
        """Return a tensor that is like the array of a sample."""
        rng, kind = self.rng, array.dtype.kind
        if self.resized is not None:
            n, m = self.resized
            for dim in [d for d in range(array.ndim) if array.shape[d] == n]:
                wider = (*array.shape[:dim], m, *array.shape[dim + 1 :])
                array = array.take(np.arange(m) % n, dim) if n else np.zeros(wider, array.dtype)
        if rng.random() < 0.03 and self.sample.family != "rnn":
            array = np.asarray(array[0] if array.size and array.ndim and rng.random() < 0.5 else array[None])
        if kind == "f" and rng.random() < 0.02 and key != 0 and self.sample.family != "rnn":
            return self.one(NUMBERS)
        dtype = array.dtype.name
        if kind in "fc":
            dtype = self.one(FLOATS + INTEGERS) if rng.random() < self.mixed else self.dtype
        elif rng.random() < 0.12:
            dtype = self.one(("int32", "int32", "uint8", "int8", "int16", "int64", self.dtype))
        if kind == "c" and "complex" not in dtype:
            dtype = "complex64"
        if kind == "f":
            if self.numbers == "coarse":
                array = np.rint(array * 2) / 2
            elif self.numbers == "other":
                array = rng.standard_normal(array.shape) * self.one((1, 1, 3, 30))
            elif self.numbers == "special" and array.size and "complex" not in dtype:
                array = array.copy()
                array.reshape(-1)[int(rng.integers(array.size))] = self.one((np.nan, np.inf, -np.inf, -0.0, 0.0))
            array = array + 1j * np.roll(array, 1) if "complex" in dtype else array
        array, batch = in_dtype(array, dtype), None
        if self.way == "vmap" and rng.random() < (0.8 if key == 0 else 0.5):
            batch = int(rng.integers(array.ndim + 1))
            array = np.stack([array, np.roll(array, 1)], batch)
        self.tensors.append(Drawn(rng, array, dtype, self.one(self.layouts), batch))
        return self.tensors[-1]

    def __str__(self) -> str:
        given = ", ".join([*map(repr, self.args), *(f"{key}={value!r}" for key, value in self.kwargs.items())])
        return f"{self.way}{' with grad' if self.grad else ''}: {self.name}({given})"

    # Running ------------------------------------------------------------------------------------

    def outcome(self, library: Any, wide: bool = False) -> list[Any]:
        """Return the result, the gradients, and those of the gradients; an error ends the list."""
        steps: list[Any] = []
        try:
            tensors = {id(each): each.make(library, self.grad, wide) for each in self.tensors}
            if any(word in self.name for word in ("dropout", "rrelu", "fractional")):
                library.manual_seed(0)
            result = self.result(library, tensors, wide)
            steps.append(result if self.sample.select is None else self.sample.select(result))
            leaves = [each for each in tensors.values() if each.requires_grad]
            outputs = tensors_in(steps[0], library)
            for _ in range((2 if self.way == "second" else 1) if leaves else 0):
                outputs = [each for each in outputs if each is not None and each.requires_grad]
                if not outputs:
                    break
                weights = [np.arange(each.numel()).reshape(tuple(each.shape)) % 5 - 1.5 for each in outputs]
                given = [library.from_numpy(w).to(x.dtype) for w, x in zip(weights, outputs, strict=True)]
                again = self.way == "second"
                outputs = list(library.autograd.grad(outputs, leaves, given, allow_unused=True, create_graph=again))
                steps.append(outputs)
        except Exception as error:  # any class, since it is compared
            steps.append(error)
        return steps

    def result(self, library: Any, tensors: dict[int, Any], wide: bool) -> Any:
        """Return what the call returns."""

        def put(value: Any, tensors: dict[int, Any]) -> Any:
            if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
                return type(value)(put(each, tensors) for each in value)
            if isinstance(value, tinytorch.dtype) and library is torch:
                name = value.name if not wide or value.name not in TINY else "float64"
                return getattr(torch, name)
            return tensors.get(id(value), value)

        def call(tensors: dict[int, Any], function: Any, skip: int = 0, **more: Any) -> Any:
            kwargs = {key: put(each, tensors) for key, each in self.kwargs.items()}
            return function(*[put(each, tensors) for each in self.args[skip:]], **kwargs, **more)

        if self.way in ("method", "in place"):
            first = put(self.args[0], tensors)
            if self.way == "method":
                return call(tensors, getattr(first, self.base), 1)
            target = first.clone()
            result = call(tensors, getattr(target, f"{self.base}_"), 1)
            return [result, result is target]
        run = function(library, self.name)
        batched = [each for each in self.tensors if each.batch is not None]
        if batched:

            def example(*given: Any) -> Any:
                return call({**tensors, **dict(zip(map(id, batched), given, strict=True))}, run)

            dims = tuple([each.batch for each in batched])
            return library.func.vmap(example, dims, randomness="same")(*[tensors[id(each)] for each in batched])
        if self.way == "out":
            first = call(tensors, run)
            outs = [self.out(library, each, k) for k, each in enumerate(tensors_in(first, library))]
            result = call(tensors, run, out=outs[0] if isinstance(first, library.Tensor) else tuple(outs))
            return [outs, [a is b for a, b in zip(tensors_in(result, library), outs, strict=False)]]
        return call(tensors, run)

    def out(self, library: Any, like: Any, k: int) -> Any:
        """Return a tensor to write to, like a result, or empty, or of another dtype or layout."""
        rng = np.random.default_rng(like.numel() + k)
        kinds = (*FLOATS, *INTEGERS) if rng.random() < 0.2 else (str(like.dtype)[str(like.dtype).rindex(".") + 1 :],)
        dtype, shape = getattr(library, str(rng.choice(kinds))), int(rng.integers(4))
        if not shape:
            return library.empty(0, dtype=dtype)
        dims = tuple(range(like.ndim))[:: -1 if shape == 1 else 1]
        return library.zeros([like.shape[d] for d in dims], dtype=dtype).permute(dims)


# Comparing --------------------------------------------------------------------------------------


def disagreement(call: Call) -> str | None:
    """Return what is different in the outcomes of a call and not known to be, or None."""
    theirs, ours = call.outcome(torch), call.outcome(tinytorch)
    call.refused = isinstance(theirs[-1], Exception)

    @functools.cache
    def exact() -> list[Any]:
        torch.set_default_dtype(torch.float64)
        try:
            return call.outcome(torch, wide=True)
        finally:
            torch.set_default_dtype(torch.float32)

    sizes = [each.array.size for each in call.tensors] + [each.numel() for each in tensors_in(theirs[:1], torch)]
    if isinstance(ours[0], RuntimeError) and not isinstance(theirs[0], Exception) and 0 in sizes:
        return None  # PyTorch does not look at dtypes where there are no elements
    for step in range(max(len(ours), len(theirs))):
        mine, other = part(ours, step), part(theirs, step)
        found = compared(call, mine, other, step, lambda step=step: part(exact(), step))
        found = found and ("", "gradient: ", "second gradient: ", "")[step] + found
        if found:
            odd = any(each.dtype in EPS and not np.isfinite(each.array).all() for each in call.tensors)
            found = f"odd {found}" if odd and "values" in found else found
            found = f"{found} in vmap" if call.way == "vmap" else found
            known = any(names.match(call.name) and words.match(found) for names, words in KNOWN)
            return None if known else found
        if isinstance(other, Exception):
            break
    return None


def part(values: Any, k: int) -> Any:
    """Return an element of a list; None where there is none."""
    return values[k] if isinstance(values, (list, tuple)) and k < len(values) else None


def compared(call: Call, ours: Any, theirs: Any, step: int, exact: Callable[[], Any]) -> str | None:
    """Return what is different in two results, or None; `exact` returns the one of PyTorch in double precision."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        if not isinstance(theirs, Exception):
            return f"raises {ours!r}"
        if not isinstance(ours, Exception):
            return f"passes {theirs!r}"
        # (Of two errors in a call another one may come first.)
        refusals = (RuntimeError, TypeError, ValueError, IndexError)
        return None if isinstance(ours, refusals) or type(ours) is type(theirs) else f"error {ours!r} / {theirs!r}"
    if step == 2 and (ours is None or theirs is None):  # second derivatives of 0
        rest = ours if theirs is None else theirs
        rest = [each for each in (rest if isinstance(rest, list) else [rest]) if each is not None and each.any()]
        return f"values {ours} / {theirs}" if rest else None
    if isinstance(theirs, (list, tuple)):
        if not isinstance(ours, (list, tuple)) or len(ours) != len(theirs):
            return f"type {ours!r} / {theirs!r}"
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            found = compared(call, a, b, step, lambda k=k: part(exact(), k))
            if found:
                return found
        return None
    if not isinstance(theirs, torch.Tensor) or not isinstance(ours, tinytorch.Tensor):
        if isinstance(theirs, float) and isinstance(ours, float):
            return None if np.isclose(ours, theirs, 1e-12, equal_nan=True) else f"values {ours} / {theirs}"
        return None if str(ours).replace("tinytorch", "torch") == str(theirs) else f"type {ours!r} / {theirs!r}"
    for what, a, b in (
        ("dtype", str(ours.dtype), str(theirs.dtype)), ("shape", tuple(ours.shape), tuple(theirs.shape)),
        ("requires_grad", *(each.requires_grad and step == 0 for each in (ours, theirs))),
    ):  # fmt: skip
        if a != b:
            return f"{what} {a} / {b}"
    mine, other = numbers(ours), numbers(theirs)
    if not np.array_equal(mine, other, equal_nan=mine.dtype.kind in "fc"):
        found = apart(call, mine, other, str(theirs.dtype)[6:], step, exact)
        if found:
            shown = [np.array2string(each, separator=", ", threshold=40).replace("\n", "") for each in (mine, other)]
            return f"values {found}: {shown[0]} / {shown[1]}"
    if step or call.way in ("out", "vmap"):
        return None
    steps = [[s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1] for t in (ours, theirs)]
    return None if steps[0] == steps[1] or not mine.size else f"strides {ours.stride()} / {theirs.stride()}"


def numbers(tensor: Any) -> Any:
    """Return the numbers of a tensor of either library."""
    tensor = tensor.detach()
    if isinstance(tensor, torch.Tensor) and tensor._is_zerotensor():
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    tensor = tensor.resolve_conj().resolve_neg()
    return (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()


def apart(call: Call, ours: Any, theirs: Any, dtype: str, step: int, exact: Callable[[], Any]) -> str | None:
    """Return how two arrays of a dtype differ, or None if only by rounding: ours errs about as little as PyTorch's."""
    if dtype not in EPS:
        return "exact"
    if step == 0 and call.sample.family in MOVES:
        return "moved"
    true = numbers(exact()) if dtype in TINY and isinstance(exact(), torch.Tensor) else theirs
    if true.shape != ours.shape:
        true = theirs
    finite = np.isfinite(theirs)
    if not np.array_equal(finite, np.isfinite(ours)) or (
        "complex" not in dtype and not np.array_equal(ours[~finite], theirs[~finite], equal_nan=True)
    ):
        # (Sums in 16 bits overflow in one order or the other.)
        return (
            "nonfinite" if call.eps < 1e-4 or (np.isfinite(true).all() and np.abs(true).max(initial=0) < 1e4) else None
        )
    finite &= np.isfinite(true)
    kind = np.complex128 if "complex" in dtype else np.float64
    a, b, true = (each[finite].astype(kind) for each in (ours, theirs, true))
    eps, size = max(EPS[dtype], call.eps), np.abs(true)
    mine, other, most = np.abs(a - true), np.abs(b - true), size.max(initial=0)
    if call.sample.family in ELEMENTS and len(call.tensors) == 1 and step == 0:
        bound = np.maximum((16 if "complex" in dtype else 4) * eps * size, 2 * other)
    else:
        bound = 4 * other.max(initial=0) + (8 if dtype in TINY else 2000) * 4**step * eps * max(most, 1)
    if eps < 1e-10 and bound is not None and call.sample.family in ELEMENTS:
        bound = np.maximum(bound, 64 * eps * np.maximum(size, 1e-3))
    if (mine <= bound + TINY.get(dtype, 0.0)).all():
        return None
    return f"rounding {mine.max():.2g} against {other.max():.2g} at {most:.2g}"


def agree(numbers: range) -> None:
    """Assert that the calls of these numbers agree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in numbers:
            found = disagreement(call := Call(SEED, number))
            assert found is None, f"Call({SEED}, {number}) is {call}\n{found}"


def test_random_calls_agree() -> None:
    agree(range(CALLS))
