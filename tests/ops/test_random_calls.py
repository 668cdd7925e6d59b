"""Random calls of the ops with random dtypes, shapes, layouts and arguments, run by both libraries.

A call is the text of a small program, so that a failure shows one that can be run. `CALLS` has an entry for each op;
HYPOTHESIS_PROFILE=long makes 100,000 calls, from a seed that TINYTORCH_SEED sets (see `tests/conftest.py`).
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tinytorch
from tests.oracle import FUSED, needs_oracle, torch
from tests.programs.drawn import RANDOMS, executed, random_programs
from tests.same import expressions

pytestmark = needs_oracle

#: Per op the kinds of its arguments (`KINDS`), `name=kind` those given by name, in brackets what may be left out. A
#: name that begins with a dot is a method's. After a bar: "distinct" where equal numbers would leave open which one is
#: chosen, "finite" where infinities and NaN are left out.
CALLS = """
    abs x; acos x; acosh x; add x like [alpha=whole]; addcdiv x same same [value=number]
    addcmul x same same [value=number]; addmm x2 mat_b mat_c [beta=number] [alpha=number]; all x [dim] [keepdim=flag]
    allclose x same; amax x [dim=dims] [keepdim=flag]; amin x [dim=dims] [keepdim=flag]
    aminmax x [dim=dim] [keepdim=flag]; any x [dim] [keepdim=flag]; argmax x [dim] [keepdim=flag] | distinct
    argmin x [dim] [keepdim=flag] | distinct; argsort x [dim] [descending=flag] | distinct; argwhere x; asin x; asinh x
    atan x; atan2 x like; atanh x; atleast_2d x; baddbmm x3 x3 x3; bincount flat; bitwise_and x like; bitwise_not x
    bitwise_or x like; bitwise_xor x like; bmm x3 x3; broadcast_to x shape; bucketize x edges [right=flag]
    cat xs [dim]; ceil x; chunk x count [dim]; clamp x number number; clamp x other other; clamp_max x number
    clamp_min x number; clone x; copysign x like; cos x; cosh x; count_nonzero x [dim]; cummax x dim | distinct
    cummin x dim | distinct; cumprod x dim; cumsum x dim; deg2rad x; diag x [offset]; diag_embed x [offset=offset]
    diagflat x [offset]; diagonal x [offset] [dim]; div x like [rounding_mode=rounding]; dot x1 x1; eq x like
    equal x same; erf x; erfc x; exp x; exp2 x; expm1 x; fft.fft x [count] [dim=dim] [norm=norm] | finite
    fft.fft2 x [s=lengths] [dim=dims] [norm=norm] | finite
    fft.fftn x [s=lengths] [dim=dims] [norm=norm] | finite; fft.fftshift x [dims]
    fft.hfft x [count] [dim=dim] [norm=norm] | finite
    fft.hfft2 x [s=lengths] [dim=dims] [norm=norm] | finite
    fft.hfftn x [s=lengths] [dim=dims] [norm=norm] | finite
    fft.ifft x [count] [dim=dim] [norm=norm] | finite
    fft.ifft2 x [s=lengths] [dim=dims] [norm=norm] | finite
    fft.ifftn x [s=lengths] [dim=dims] [norm=norm] | finite; fft.ifftshift x [dims]
    fft.ihfft x [count] [dim=dim] [norm=norm] | finite
    fft.ihfft2 x [s=lengths] [dim=dims] [norm=norm] | finite
    fft.ihfftn x [s=lengths] [dim=dims] [norm=norm] | finite
    fft.irfft x [count] [dim=dim] [norm=norm] | finite
    fft.irfft2 x [s=lengths] [dim=dims] [norm=norm] | finite
    fft.irfftn x [s=lengths] [dim=dims] [norm=norm] | finite
    fft.rfft x [count] [dim=dim] [norm=norm] | finite
    fft.rfft2 x [s=lengths] [dim=dims] [norm=norm] | finite
    fft.rfftn x [s=lengths] [dim=dims] [norm=norm] | finite; flatten x [dim] [dim]; flip x dims; fliplr x
    flipud x; float_power x like; floor x; floor_divide x like; fmax x like; fmin x like; fmod x like; frac x
    full_like x number; gather x dim index; ge x like; gt x like; hypot x same; index_select x dim places
    index_fill x dim places number; isclose x same; isfinite x; isinf x; isnan x; le x like; lerp x same number; log x
    log10 x; log1p x; log2 x; log_softmax x dim; logaddexp x same; logical_and x like; logical_not x; logical_or x like
    logical_xor x like; logsumexp x dims [keepdim=flag]; lt x like; masked_fill x mask number; masked_select x mask
    matmul x fitting; maximum x like; max x; max x dim [keepdim=flag] | distinct; mean x [dim=dims] [keepdim=flag]
    median x | distinct; median x dim [keepdim=flag] | distinct; min x; min x dim [keepdim=flag] | distinct
    minimum x like; mm x2 x2; movedim x dim dim; mul x like; mv x2 x1; nan_to_num x [number]
    nanmean x [dim=dims] [keepdim=flag]; nanmedian x | distinct; nansum x [dim=dims] [keepdim=flag]
    narrow x dim small small; ne x like; neg x; nonzero x; norm x [p=order] [dim=dims]; ones_like x
    outer x1 x1; permute x permutation; pow x like; pow x whole; pow x number; prod x [dim] [keepdim=flag]
    rad2deg x; ravel x; reciprocal x; relu x; remainder x like; repeat_interleave x small [dim=dim]; reshape x shape
    roll x whole [dim]; rot90 x whole; round x; rsqrt x; rsub x like; scatter x dim index number
    scatter_add x dim index twin; select x dim whole; sgn x; sigmoid x; sign x; signbit x; sin x; sinc x; sinh x
    softmax x dim; sort x [dim] [descending=flag] | distinct; split x small [dim]; sqrt x; square x
    squeeze x [dim]; stack xs [dim]; std x [dim=dims] [keepdim=flag] [correction=small]
    stft x2 count [hop_length=count] [center=flag] [normalized=flag] [onesided=flag] return_complex=yes | finite
    sub x like [alpha=whole]; sum x [dim=dims] [keepdim=flag] [dtype=dtype]; swapaxes x dim dim; t x
    take x places; take_along_dim x index dim; tan x; tanh x; tensor_split x count [dim]
    tensordot x fitting [dims=small]; tile x times; topk x count [dim] | distinct; trace x2; transpose x dim dim
    tril x [offset]; triu x [offset]; trunc x; unbind x [dim]; unflatten x dim shape
    unique x [return_counts=flag] | distinct; unique_consecutive x; unsqueeze x dim
    var x [dim=dims] [keepdim=flag] [correction=small]; vdot x1 x1; where mask x same; xlogy x like
    zeros_like x; .add_ x like; .bool x; .clamp_ x number; .contiguous x; .copy_ x like; .div_ x like
    .double x; .expand x shape; .expand_as x like; .fill_ x number; .float x; .half x
    .index_add x dim places twin; .int x; .item x; .long x; .masked_fill_ x mask number; .mul_ x like
    .new_zeros x shape; .pow_ x number; .repeat x times; .sub_ x like; .sum_to_size x shape; .to x dtype; .tolist x
    .type_as x like; .unfold x dim small small; .view x shape; .view_as x like
"""

DTYPES = (
    "float32", "float64", "float32", "float64", "float64", "int64", "int64", "bool", "uint8", "int8", "int16", "int32",
    "float16", "bfloat16",
)  # fmt: skip
SIZES = (0, 1, 1, 2, 2, 3, 3, 5)
RTOL = {"float16": 1e-2, "bfloat16": 6e-2, "float32": 2e-5, "float64": 1e-10, "complex64": 2e-5, "complex128": 1e-10}
if not FUSED:
    RTOL["float64"] = 1e-6  # weights are drawn in float32


class Program:
    """The text of one call under construction: lines that make its tensors, and the arguments so far."""

    def __init__(self, rng: random.Random, line: str) -> None:
        call, _, how = line.partition("|")
        self.name, *kinds = call.split()
        self.distinct = "distinct" in how
        self.rng = rng
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.shape: tuple[int, ...] = ()  # of the first tensor
        self.dtype = rng.choice(DTYPES)
        self.grad = self.dtype in ("float32", "float64") and rng.random() < 0.5
        self.special = not self.grad and rng.random() < 0.2 and "finite" not in how
        arguments = []
        for kind in kinds:
            if kind.startswith("["):
                if rng.random() < 0.5:
                    continue
                kind = kind[1:-1]
            name, _, what = kind.rpartition("=")
            if arguments and "=" in arguments[-1] and not name:
                continue  # what comes after a name is given by name
            value = KINDS[what](self)
            arguments.append(f"{name}={value}" if name else value)
        if self.name.startswith("."):
            first, *rest = arguments
            if self.name.endswith("_"):
                first = f"{first}.clone()"
            self.call = f"{first}{self.name}({', '.join(rest)})"
        else:
            self.call = f"torch.{self.name}({', '.join(arguments)})"

    def text(self) -> str:
        """Return the program: it leaves `out` and, where gradients are wanted, `grads`."""
        lines = [*self.lines, f"out = {self.call}"]
        if self.leaves:
            leaves = ", ".join(self.leaves)
            lines += [
                "outs = [t for t in (out if isinstance(out, (tuple, list)) else [out])]",
                "outs = [t for t in outs if isinstance(t, torch.Tensor) and t.requires_grad]",
                "weights = [(torch.arange(t.numel()) % 3 + 1.0).reshape(t.shape).to(t.dtype) for t in outs]",
                f"grads = torch.autograd.grad(outs, [{leaves}], weights, allow_unused=True) if outs else ()",
            ]
        return "\n".join(lines)

    # Tensors ------------------------------------------------------------------------------------

    def numbers(self, shape: tuple[int, ...], dtype: str) -> str:
        """Return nested lists of numbers as text."""
        size = int(np.prod(shape))
        rng = np.random.default_rng(self.rng.randrange(50))
        if dtype == "bool":
            values: Any = rng.random(size) < 0.5
        elif self.distinct:
            values = rng.permutation(size) - (0 if dtype == "uint8" else size // 2)
        else:
            values = rng.integers(0 if dtype == "uint8" else -3, 5, size)
        if "float" in dtype:
            values = values * 0.5
            if self.special and size:
                values[rng.integers(size)] = rng.choice([np.nan, np.inf, -np.inf])
        text = str(values.reshape(shape).tolist())
        return text.replace("nan", "float('nan')").replace("inf", "float('inf')")

    def tensor(self, shape: tuple[int, ...], dtype: str | None = None) -> str:
        """Add the lines that make a tensor of a shape in some layout; return its name."""
        dtype = dtype or self.dtype
        name = f"x{len(self.lines)}"
        layout = self.rng.choice(("plain", "plain", "turned", "steps", "part", "expanded"))
        base, change = shape, ""
        if layout == "turned" and len(shape) > 1:
            order = self.rng.sample(range(len(shape)), len(shape))
            base, change = tuple([shape[d] for d in order]), f".permute({[order.index(d) for d in range(len(shape))]})"
        elif layout == "steps" and shape:
            base, change = (*shape[:-1], shape[-1] * 2), "[..., ::2]"
        elif layout == "part" and shape:
            base, change = (shape[0] + 1, *shape[1:]), "[1:]"
        elif layout == "expanded" and shape and not self.distinct:
            dim = self.rng.randrange(len(shape))
            base, change = (*shape[:dim], 1, *shape[dim + 1 :]), f".expand({', '.join(map(str, shape))})"
        grad = ", requires_grad=True" if self.grad and dtype in ("float32", "float64") else ""
        # (The shape of nested lists is lost where there is nothing in them.)
        empty = f".reshape({base})" if 0 in base else ""
        flat = "[]" if 0 in base else self.numbers(base, dtype)
        if empty and grad:
            grad, empty = "", f"{empty}.requires_grad_()"
            self.leaves.append(name)
        elif grad:
            self.leaves.append(name)
        made = f"torch.tensor({flat}, dtype=torch.{dtype}{grad}){empty}"
        self.lines.append(f"{name} = {made}")
        return f"{name}{change}"

    def sizes(self, count: int | None = None) -> tuple[int, ...]:
        """Return a random shape of at most 120 elements."""
        count = self.rng.randrange(5) if count is None else count
        shape: tuple[int, ...] = ()
        for _ in range(count):
            size = self.rng.choice(SIZES)
            shape = (*shape, size if np.prod(shape or (1,)) * size <= 120 else 1)
        return shape

    def first(self, count: int | None = None) -> str:
        self.shape = self.sizes(count)
        return self.tensor(self.shape)

    def fitting_shape(self) -> tuple[int, ...]:
        """Return a shape that broadcasts with the first tensor's; now and then one that does not."""
        shape = tuple(1 if self.rng.random() < 0.2 else size for size in self.shape)
        shape = shape[self.rng.choice((0, 0, 1, len(shape))) :]
        return self.sizes() if self.rng.random() < 0.05 else shape

    # Arguments ----------------------------------------------------------------------------------

    def like(self) -> str:
        """Return a second operand: a number, or a tensor that broadcasts, of any dtype."""
        if self.rng.random() < 0.2:
            return self.number()
        dtype = self.dtype if self.rng.random() < 0.6 else self.rng.choice(DTYPES)
        return self.tensor(self.fitting_shape(), dtype)

    def number(self) -> str:
        return self.rng.choice(("0", "1", "2", "-1", "0.5", "2.5", "True"))

    def dim(self) -> str:
        count = max(len(self.shape), 1)
        return str(self.rng.randrange(-count - (self.rng.random() < 0.05), count))

    def dims(self) -> str:
        if self.rng.random() < 0.5:
            return self.dim()
        return str(tuple(int(self.dim()) for _ in range(self.rng.randrange(3))))

    def new_shape(self) -> str:
        """Return a shape: one of as many elements, or one to expand to, or any."""
        shape = list(self.shape)
        way = self.rng.randrange(5)
        if way == 0:
            self.rng.shuffle(shape)
        elif way == 1:
            shape = [-1]
        elif way == 2:
            shape = [2, *shape]
        elif way == 3:
            shape = list(self.sizes())
        return str(tuple(shape))

    def permutation(self) -> str:
        dims = list(range(len(self.shape)))
        self.rng.shuffle(dims)
        return str(tuple(dims))

    def index(self) -> str:
        """Return indices of the first tensor's number of dimensions, for `gather` along any of them."""
        least = min(self.shape, default=1)
        shape = tuple(self.rng.randrange(size + 1) for size in self.shape)
        return self.indices(shape, least)

    def places(self) -> str:
        return self.indices((self.rng.randrange(4),), min(self.shape, default=1))

    def indices(self, shape: tuple[int, ...], end: int) -> str:
        rng = np.random.default_rng(self.rng.randrange(50))
        values = rng.integers(0, max(end, 1), shape).tolist()
        return f"torch.tensor({values}, dtype=torch.int64).reshape({shape})"

    def fitting(self) -> str:
        """Return a right factor for a product of matrices."""
        inner = self.shape[-1] if self.shape else 2
        shape = self.rng.choice(((inner,), (inner, 2), (inner, 3), (2, inner, 2)))
        return self.tensor(self.sizes() if self.rng.random() < 0.1 else shape)


KINDS = {
    "x": Program.first, "x1": lambda p: p.first(1) if not p.shape else p.tensor(p.shape[-1:]),
    "x2": lambda p: p.first(2) if not p.shape else p.tensor((p.shape[-1], 2)),
    "x3": lambda p: p.first(3) if not p.shape else p.tensor((p.shape[0], p.shape[2], 2)),
    "mat_b": lambda p: p.tensor((p.shape[0], 3)), "mat_c": lambda p: p.tensor((3, p.shape[1])),
    "xs": lambda p: f"[{p.first()}, {p.tensor(p.shape, p.rng.choice(DTYPES))}]",
    "flat": lambda p: p.tensor((p.rng.randrange(4),), p.rng.choice(DTYPES)),
    "same": lambda p: p.tensor(p.fitting_shape()), "twin": lambda p: p.tensor(p.shape), "like": Program.like,
    "other": lambda p: p.tensor(p.fitting_shape(), p.rng.choice(DTYPES)),
    "times": lambda p: str(tuple(p.rng.randrange(4) for _ in range(p.rng.randrange(5)))), "fitting": Program.fitting,
    "mask": lambda p: p.tensor(p.fitting_shape(), "bool"), "edges": lambda p: "torch.tensor([-1.0, 0.0, 1.5])",
    "index": Program.index, "places": Program.places, "number": Program.number,
    "whole": lambda p: p.rng.choice(("0", "1", "2", "3", "-1", "-2")),
    "small": lambda p: p.rng.choice(("0", "1", "2", "3")), "count": lambda p: p.rng.choice(("1", "2", "3")),
    "offset": lambda p: p.rng.choice(("-2", "-1", "0", "1", "2")), "permutation": Program.permutation,
    "order": lambda p: p.rng.choice(("1", "2", "0", "3", "float('inf')", "-float('inf')", "'fro'")),
    "norm": lambda p: p.rng.choice(("None", "'forward'", "'backward'", "'ortho'")),
    "lengths": lambda p: str(tuple(p.rng.choice((-1, 1, 2, 3, 5)) for _ in range(p.rng.randrange(4)))),
    "yes": lambda p: "True", "flag": lambda p: p.rng.choice(("True", "False")), "dim": Program.dim,
    "dims": Program.dims, "shape": Program.new_shape,
    "rounding": lambda p: p.rng.choice(("None", "'trunc'", "'floor'")),
    "dtype": lambda p: f"torch.{p.rng.choice(DTYPES)}",
}  # fmt: skip

LINES = expressions(CALLS)


def outcome(text: str, library: str) -> Any:
    """Return what a program leaves, or its error."""
    names, error = executed(text, library)
    return error or [names["out"], *names.get("grads", ())]


def difference(
    ours: Any, theirs: Any, exact_strides: bool = False, graph: bool = True, coarse: float = 0.0
) -> str | None:
    """Return what is different in two outcomes, or None.

    Args:
        ours, theirs: the outcomes; of a list the first is the result, and the others are gradients.
        exact_strides: whether strides are compared.
        graph: whether it is compared what requires grad.
        coarse: the relative error of the coarsest dtype in the program, which gradients may have.
    """
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        if type(ours).__name__ == type(theirs).__name__:
            return None
        # Of two errors in a call another one may come first, that of the dtype for instance.
        if isinstance(theirs, Exception) and isinstance(ours, RuntimeError):
            return None
        return f"{ours!r} against {theirs!r}"
    if isinstance(theirs, (tuple, list)):
        if len(ours) != len(theirs):
            return f"{len(ours)} results against {len(theirs)}"
        found = (
            difference(*both, exact_strides and k == 0, graph and k == 0, coarse if k else 0.0)
            for k, both in enumerate(zip(ours, theirs, strict=True))
        )
        return next((each for each in found if each), None)
    if not isinstance(theirs, torch.Tensor) or not isinstance(ours, tinytorch.Tensor):
        same = ours == theirs or (ours != ours and theirs != theirs)
        return None if same and type(ours) is type(theirs) else f"{ours!r} against {theirs!r}"
    if str(ours.dtype) != str(theirs.dtype):
        return f"dtype {ours.dtype} against {theirs.dtype}"
    if tuple(ours.shape) != tuple(theirs.shape):
        return f"shape {tuple(ours.shape)} against {tuple(theirs.shape)}"
    if exact_strides and theirs.numel() > 1:
        # (What the stride of a dimension of length 1 is tells nothing.)
        both = [[step for step, n in zip(t.stride(), t.shape, strict=True) if n > 1] for t in (ours, theirs)]
        if both[0] != both[1]:
            return f"strides {tuple(ours.stride())} against {tuple(theirs.stride())}"
    if graph and ours.requires_grad != theirs.requires_grad:
        return f"requires_grad {ours.requires_grad} against {theirs.requires_grad}"
    kind = str(theirs.dtype).removeprefix("torch.")
    mine, other = ((each.float() if kind == "bfloat16" else each).numpy(force=True) for each in (ours, theirs))
    rtol = max(RTOL[kind], coarse) if kind in RTOL else 0
    finite = np.abs(other[np.isfinite(other)]) if rtol else other
    largest = float(finite.max()) if finite.size and rtol else 0.0
    with np.errstate(all="ignore"):
        close = np.isclose(mine, other, rtol, rtol * max(largest, 1.0), equal_nan=True)
    return None if close.all() else f"values {mine.tolist()} against {other.tolist()}"


#: Calls, and words of PyTorch's errors for them, that tinytorch has an answer for.
ERRORS_OF_PYTORCH = (
    ("torch.logsumexp(", "doesn't match the broadcast shape"),  # of dim=()
    ("torch.clamp(", "doesn't match the broadcast shape"),  # backward, of a result wider than the input
    ("torch.take_along_dim(", "view size is not compatible"),  # of what is not contiguous
    ("torch.fft.", "MKL FFT error"),  # of a batch of no elements
    ("torch.stft(", "MKL FFT error"),
    ("dtype=torch.", "Autograd not support dtype"),  # a sum in integers of what requires grad
)


def is_known(text: str, theirs: Any) -> bool:
    """Return whether a difference is among those that docs/differences.md explains."""
    if isinstance(theirs, TypeError):  # a number where PyTorch wants a tensor
        return True
    if not isinstance(theirs, Exception):
        # (The gradient of PyTorch's std and var with dim=() is not that of all dimensions.)
        return "dim=()" in text and ("torch.std(" in text or "torch.var(" in text)
    return any(call in text and words in str(theirs) for call, words in ERRORS_OF_PYTORCH)


def check(program: Program) -> str | None:
    """Return what is different in a program's outcomes, or None."""
    text = program.text()
    theirs = outcome(text, "torch")
    if is_known(text, theirs):
        return None
    ours = outcome(text, "tinytorch")
    if isinstance(ours, Exception) and not isinstance(theirs, Exception):
        empty = "tensor([]," in text or not getattr(theirs[0], "numel", lambda: 1)()
        if empty and any(words in str(ours) for words in ("not implemented", "Dimension out of")):
            return None  # PyTorch does not look at the arguments where there are no elements
    coarse = max(RTOL[kind] for kind in ("float64", *RTOL) if f"torch.{kind}" in text or kind == "float64")
    return difference(ours, theirs, exact_strides=True, coarse=coarse)


@random_programs(1500, st.sampled_from(LINES), RANDOMS, long=100_000)
def test_random_calls_agree(line: str, rng: random.Random) -> None:
    program = Program(rng, line)
    found = check(program)
    assert found is None, f"{found}\n\nimport torch\n{program.text()}\nprint(out)"
