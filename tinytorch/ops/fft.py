"""The functions of `torch.fft`: discrete Fourier transforms.

All of them are composed of three ops, the transforms of complex to complex numbers, of real to complex ones, and of
complex to real ones. These are linear, and the gradient of each is one of them again.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.kernels import fft as kernels
from tinytorch.kernels.dtypes import dtype as Dtype
from tinytorch.kernels.fft import BY_COUNT, BY_ROOT, UNSCALED
from tinytorch.kernels.reduce import axis_of, int_of
from tinytorch.ops.arguments import named, op_of
from tinytorch.ops.complex import conj, conjugate
from tinytorch.ops.rearrange import constant_pad, roll
from tinytorch.ops.register import public
from tinytorch.ops.sequences import arange
from tinytorch.ops.shape import _slice

Dims = int | Sequence[int]

# The ops ------------------------------------------------------------------------------------------

complex_to_complex = op_of(
    kernels.complex_to_complex, name="FftC2C", complex=OWN,
    x=lambda g, dims, scale, forward: complex_to_complex(g, dims, scale, not forward),
)  # fmt: skip
real_to_complex = op_of(
    kernels.real_to_complex, name="FftR2C", complex=OWN,
    x=lambda g, x_shape, dims, scale, onesided: _of_real(g, x_shape[dims[-1]], dims, scale, onesided),
)  # fmt: skip
complex_to_real = op_of(
    kernels.complex_to_real, name="FftC2R", complex=OWN,
    x=lambda g, dims, scale, length: _scaled_interior(real_to_complex(g, dims, scale, True), dims[-1], length, 2.0),
)  # fmt: skip
_complex_to_real_part = op_of(
    kernels.complex_to_real_part, name="FftC2Real", complex=OWN,
    x=lambda g, dim, scale: real_to_complex(g, (dim,), scale, False),
)  # fmt: skip
_scaled_interior = op_of(
    kernels.scaled_interior, complex=OWN,
    x=lambda g, dim, length, factor: _scaled_interior(g, dim, length, factor),
)  # fmt: skip


def _of_real(g: Tensor, length: int, dims: tuple[int, ...], scale: int, onesided: bool) -> Tensor:
    """Return the gradient of a transform of real numbers: the real part of the inverse transform.

    For a half of the spectrum the other half of `g` is zero. The transform to real numbers takes it to be the conjugate
    of the first half, which adds the real part of the sum over the interior twice.
    """
    if onesided:
        return complex_to_real(_scaled_interior(g, dims[-1], length, 0.5), dims, scale, length)
    return _complex_to_real_part(g, dims[0], scale)  # (both halves are returned along one dimension alone)


# Arguments ----------------------------------------------------------------------------------------


def _scale(norm: Any, forward: bool) -> int:
    if norm == "ortho":
        return BY_ROOT
    if norm not in (None, "forward", "backward"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return BY_COUNT if (norm == "forward") == forward else UNSCALED


def _promoted(input: Tensor, to_complex: bool) -> Tensor:
    """Return `input` as floating-point (or complex) numbers."""
    kind = input.dtype
    if kind.is_complex:
        return input
    if not kind.is_floating_point:
        kind = dtypes.get_default_dtype()
    if kind not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"Unsupported dtype {kind.tensor_name}")
    return input.to(kind.to_complex() if to_complex else kind)


def _points(count: int) -> int:
    if count < 1:
        raise RuntimeError(f"Invalid number of data points ({count}) specified")
    return count


def _resized(input: Tensor, dims: Sequence[int], lengths: Sequence[int]) -> Tensor:
    """Return `input` with the given lengths of some dimensions: cut, or with zeros at the end."""
    shape = input._array.shape
    if all([shape[dim] == length for dim, length in zip(dims, lengths, strict=True)]):
        return input
    widths = [0] * (2 * len(shape))
    for dim, length in zip(dims, lengths, strict=True):
        if length < shape[dim]:
            input = _slice(input, dim, 0, length)
        else:
            widths[2 * (len(shape) - 1 - dim) + 1] = length - shape[dim]
    return constant_pad(input, tuple(widths), 0.0) if any(widths) else input


def _one_dim(name: str, input: Tensor, n: Any, dim: Any) -> tuple[int | None, int]:
    """Return the length and the dimension of a transform along one dimension."""
    if n is not None and type(n) is not int:
        n = int_of(n, f"fft_{name}", "n")
    ndim = input._array.ndim
    if type(dim) is not int:
        dim = int_of(dim, f"fft_{name}", "dim")
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return n, axis_of(dim, ndim, name)


def _ints(name: str, argument: str, value: Any) -> list[int]:
    values = value if isinstance(value, (tuple, list)) else (value,)
    return [each if type(each) is int else int_of(each, f"fft_{name}", argument) for each in values]


def _several_dims(name: str, input: Tensor, s: Any, dim: Any) -> tuple[list[int], tuple[int, ...]]:
    """Return the lengths and the dimensions of a transform along several dimensions."""
    shape = input._array.shape
    ndim = len(shape)
    dims: list[int] | range = range(ndim)
    if dim is not None:
        dims = _ints(name, "dim", dim)
        if dims and not ndim:
            raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
        dims = [axis_of(each, ndim, name) for each in dims]
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
    if s is None:
        lengths = [shape[each] for each in dims]
    else:
        lengths = _ints(name, "s", s)
        if dim is not None and len(dims) != len(lengths):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(lengths) > ndim:
            raise RuntimeError(f"Got shape with {len(lengths)} values but input tensor only has {ndim} dimensions.")
        if dim is None:
            dims = range(ndim - len(lengths), ndim)
        lengths = [shape[each] if n == -1 else n for n, each in zip(lengths, dims, strict=True)]
    for n in lengths:
        _points(n)
    return lengths, tuple(dims)


# Along one dimension ------------------------------------------------------------------------------


def _to_complex(name: str, input: Tensor, n: Any, dim: Any, norm: Any, forward: bool, onesided: bool) -> Tensor:
    if onesided and input.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {input.dtype.tensor_name}")
    input = _promoted(input, False)
    n, axis = _one_dim(name, input, n, dim)
    input = _resized(input, (axis,), (_points(input._array.shape[axis] if n is None else n),))
    scale = _scale(norm, forward)
    if input.dtype.is_complex:
        return complex_to_complex(input, (axis,), scale, forward)
    made = real_to_complex(input, (axis,), scale, onesided)
    return made if forward else conj(made)


def _to_real(name: str, input: Tensor, n: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    input = _promoted(input, True)
    n, axis = _one_dim(name, input, n, dim)
    length = _points(2 * (input._array.shape[axis] - 1) if n is None else n)
    if n is not None:
        input = _resized(input, (axis,), (length // 2 + 1,))
    return complex_to_real(conjugate(input) if forward else input, (axis,), _scale(norm, forward), length)


# Along several dimensions -------------------------------------------------------------------------


def _n_to_complex(name: str, input: Tensor, s: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    lengths, dims = _several_dims(name, input, s, dim)
    input = _resized(_promoted(input, True), dims, lengths)
    return complex_to_complex(input, dims, _scale(norm, forward), forward)


def _some(name: str, dims: tuple[int, ...]) -> None:
    if not dims:
        raise RuntimeError(f"{name.replace('2', 'n')} must transform at least one axis")


def _n_from_real(name: str, input: Tensor, s: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    if input.dtype.is_complex:
        name = name.replace("2", "n")
        raise RuntimeError(f"{name} expects a real-valued input tensor, but got {input.dtype.tensor_name}")
    lengths, dims = _several_dims(name, input, s, dim)
    _some(name, dims)
    input, scale = _resized(_promoted(input, False), dims, lengths), _scale(norm, forward)
    if forward:
        return real_to_complex(input, dims, scale, True)
    made = conj(real_to_complex(input, dims[-1:], scale, True))
    return complex_to_complex(made, dims[:-1], scale, False) if len(dims) > 1 else made


def _n_to_real(name: str, input: Tensor, s: Any, dim: Any, norm: Any, forward: bool) -> Tensor:
    lengths, dims = _several_dims(name, input, s, dim)
    _some(name, dims)
    asked = None if s is None else _ints(name, "s", s)[-1]
    length = _points(2 * (input._array.shape[dims[-1]] - 1) if asked in (None, -1) else lengths[-1])
    input = _resized(_promoted(input, True), dims, [*lengths[:-1], length // 2 + 1])
    scale = _scale(norm, forward)
    if not forward:
        return complex_to_real(input, dims, scale, length)
    if len(dims) > 1:
        input = complex_to_complex(input, dims[:-1], scale, True)
    return complex_to_real(conjugate(input), dims[-1:], scale, length)


def _published(transform: Any, name: str, what: str, said: str, example: tuple[str, str], autocast: str | None) -> Any:
    """Make a transform public, with a docstring of what it returns, what is said of its family, and an example."""
    call, result = example
    doc = f"""Return {what}.

    {said}

    Example:
        >>> {call.replace("F.", "torch.fft.")}
{textwrap.indent(result, "        ")}
    """
    return public(f"fft.{name}", out="fft", autocast=autocast)(named(transform, name, doc))


_ONE = """`dim` (..., n, ...) is cut to `n` points, or filled up with zeros; by default it stays as it is. `norm`
    "backward" (as None) scales the inverse transform by 1 / n, "forward" the forward one, "ortho" either by
    1 / sqrt(n). RuntimeError: `n` is not positive, or the dtype is float16 or bfloat16."""
_ONE_HALF = """The first n // 2 + 1 elements along `dim` are used, for `n` results: by default 2 (m - 1) for m elements.
    The imaginary parts at frequency 0 and n / 2 are ignored. `norm` and errors are as for `fft`."""
_SEVERAL = """The dimensions `dim` are cut to the lengths `s`, or filled up with zeros; -1 keeps a length. By default
    they are {}. `norm` is as for `fft`, with the product of the lengths as n."""
_SEVERAL_HALF = """`s` are the lengths of the result along `dim`, by default {};
    -1, and by default the length of the last dimension, of which the first half is given, are as in `irfft`.
    `norm` is as for `fft`, with the product of the lengths as n."""
_DEFAULTS = {"2": "the last two", "n": "the last ones, as many as `s` has, without `s` all"}


def _along_one(name: str, compute: Callable[..., Tensor], *flags: bool, what: str, example: tuple[str, str]) -> Any:
    """Return the public transform along one dimension that computes `compute(name, input, n, dim, norm, *flags)`."""

    def transform(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        return compute(name, input, n, dim, norm, *flags)

    return _published(transform, name, what, _ONE if compute is _to_complex else _ONE_HALF, example, "float32")


def _along_several(
    name: str, compute: Callable[..., Tensor], forward: bool, what: str, example: tuple[str, str]
) -> Any:
    """Return two public transforms: along two dimensions, and along any, of the name `name` with "2" and "n"."""
    name2, namen = f"{name}2", f"{name}n"

    def transform2(input: Tensor, s: Dims | None = None, dim: Dims = (-2, -1), norm: str | None = None) -> Tensor:
        return compute(name2, input, s, dim, norm, forward)

    def transform(input: Tensor, s: Dims | None = None, dim: Dims | None = None, norm: str | None = None) -> Tensor:
        return compute(namen, input, s, dim, norm, forward)

    said = _SEVERAL_HALF if compute is _n_to_real else _SEVERAL
    autocast = None if "h" in name else "float32"
    return tuple([
        _published(
            made, name + end, what.format({"2": "two", "n": "several"}[end]), said.format(_DEFAULTS[end]),
            (example[0].format(end), example[1]), autocast,
        )
        for end, made in (("2", transform2), ("n", transform))
    ])  # fmt: skip


fft = _along_one(
    "fft", _to_complex, True, False,
    what="the discrete Fourier transform along a dimension: `out[k] = sum(x[j] * exp(-2πi j k / n))`",
    example=("F.fft(torch.tensor([1.0, 2.0, 3.0, 4.0]))", "tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])"),
)  # fmt: skip
ifft = _along_one(
    "ifft", _to_complex, False, False,
    what="the inverse transform along a dimension: `out[j] = sum(x[k] * exp(2πi j k / n)) / n`",
    example=("F.ifft(torch.tensor([4.0, 0.0, 0.0, 0.0]))", "tensor([1.-0.j, 1.-0.j, 1.-0.j, 1.-0.j])"),
)  # fmt: skip
rfft = _along_one(
    "rfft", _to_complex, True, True,
    what="the first n // 2 + 1 elements of the transform of real numbers, which determine the others",
    example=("F.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))", "tensor([10.+0.j, -2.+2.j, -2.+0.j])"),
)  # fmt: skip
irfft = _along_one(
    "irfft", _to_real, False,
    what="the `n` real numbers whose transform begins with `input`: the inverse of `rfft`",
    example=("F.irfft(torch.tensor([10 + 0j, -2 + 2j, -2 + 0j]))", "tensor([1., 2., 3., 4.])"),
)  # fmt: skip
hfft = _along_one(
    "hfft", _to_real, True,
    what="the transform, which is real, of `n` numbers of which the second half are conjugates of the first",
    example=("F.hfft(torch.tensor([1 + 0j, 2 + 1j, 3 + 0j]))", "tensor([ 8.,  0.,  0., -4.])"),
)  # fmt: skip
ihfft = _along_one(
    "ihfft", _to_complex, False, True,
    what="the first n // 2 + 1 elements of the inverse transform of real numbers: the inverse of `hfft`",
    example=("F.ihfft(torch.tensor([8.0, 0.0, 0.0, -4.0]))", "tensor([1.-0.j, 2.+1.j, 3.-0.j])"),
)  # fmt: skip
fft2, fftn = _along_several(
    "fft", _n_to_complex, True, "the discrete Fourier transform along {} dimensions",
    ("F.fft{}(torch.ones(2, 2))", "tensor([[4.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j]])"),
)  # fmt: skip
ifft2, ifftn = _along_several(
    "ifft", _n_to_complex, False, "the inverse discrete Fourier transform along {} dimensions",
    ("F.ifft{}(torch.ones(2, 2))", "tensor([[1.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j]])"),
)  # fmt: skip
rfft2, rfftn = _along_several(
    "rfft", _n_from_real, True, "the transform of real numbers along {} dimensions: along the last the half, as `rfft`",
    ("F.rfft{}(torch.ones(2, 3))", "tensor([[6.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j]])"),
)  # fmt: skip
irfft2, irfftn = _along_several(
    "irfft", _n_to_real, False, "the real numbers whose transform along {} dimensions, by half, is `input`",
    ("F.irfft{}(torch.tensor([[6.0, 0.0], [0.0, 0.0]]), s=(2, 3))", "tensor([[1., 1., 1.],\n        [1., 1., 1.]])"),
)  # fmt: skip
hfft2, hfftn = _along_several(
    "hfft", _n_to_real, True, "the transform along {} dimensions of numbers with a real transform; see `hfft`",
    ("F.hfft{}(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), s=(2, 3))", "tensor([[1., 1., 1.],\n        [1., 1., 1.]])"),
)  # fmt: skip
ihfft2, ihfftn = _along_several(
    "ihfft", _n_from_real, False, "the inverse transform of real numbers along {} dimensions: the inverse of `hfft`",
    ("F.ihfft{}(torch.ones(2, 3)).real", "tensor([[1., 0.],\n        [0., 0.]])"),
)  # fmt: skip


# Frequencies --------------------------------------------------------------------------------------


@public("fft.fftfreq", listed=False)
def fftfreq(
    n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Dtype | None = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return the sample frequencies of an `n`-point transform: 0 and the positive ones first, then the negative ones.

    `n` is the number of points, `d` the sample spacing; the other arguments are as for `arange`.

    Example:
        >>> torch.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    n = int_of(n, "fft_fftfreq", "n")
    numbers = [*range((n + 1) // 2), *range(-(n // 2), 0)]
    return _frequencies("fftfreq", n, numbers, n, d, out, dtype, layout, device, requires_grad, pin_memory)


@public("fft.rfftfreq", listed=False)
def rfftfreq(
    n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Dtype | None = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return the (non-negative) sample frequencies of the transform of `n` real numbers; see `fftfreq`.

    Example:
        >>> torch.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """
    n = int_of(n, "fft_rfftfreq", "n")
    count = int(n / 2) + 1
    return _frequencies("rfftfreq", count, range(count), n, d, out, dtype, layout, device, requires_grad, pin_memory)


def _frequencies(
    name: str, count: int, numbers: Sequence[int], n: int, d: float, out: Tensor | None, dtype: Any, layout: Any,
    device: Any, requires_grad: bool, pin_memory: bool,
) -> Tensor:  # fmt: skip
    """Return `numbers`, as many as `count`, divided by `n * d`."""
    kind = dtypes.as_dtype(dtype) if dtype is not None else dtypes.get_default_dtype() if out is None else out.dtype
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if count < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {count}: [{count}]")
    made = arange(
        count, out=out, dtype=dtype if out is not None else kind, layout=layout, device=device,
        requires_grad=requires_grad, pin_memory=pin_memory,
    )  # fmt: skip
    wide: Any = np.float64 if kind is dtypes.float64 else np.float32
    with np.errstate(all="ignore"):
        spacing: Any = np.float64(1.0) / np.float64(n * d)
        made._array[...] = np.array(numbers, wide) * spacing.astype(wide)
    return made


@public("fft.fftshift")
def fftshift(input: Tensor, dim: Dims | None = None) -> Tensor:
    """Return the input with its dimensions rolled so that frequency 0 is in the middle.

    The dimensions `dim`, by default all, are in the order of `fftfreq`.

    Example:
        >>> torch.fft.fftshift(torch.tensor([0, 1, -2, -1]))
        tensor([-2, -1,  0,  1])
    """
    return _shift(input, dim, lambda length: length // 2)


@public("fft.ifftshift")
def ifftshift(input: Tensor, dim: Dims | None = None) -> Tensor:
    """Undo `fftshift`.

    Example:
        >>> torch.fft.ifftshift(torch.tensor([-2, -1, 0, 1]))
        tensor([ 0,  1, -2, -1])
    """
    return _shift(input, dim, lambda length: (length + 1) // 2)


def _shift(input: Tensor, dim: Any, by: Callable[[int], int]) -> Tensor:
    dims = (
        range(input.ndim) if dim is None else [axis_of(each, input.ndim, "roll") for each in _ints("shift", "dim", dim)]
    )
    return roll(input, [by(input.shape[each]) for each in dims], list(dims))
