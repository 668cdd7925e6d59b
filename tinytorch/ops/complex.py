"""Complex numbers: their parts, conjugates, and construction from real numbers.

`conj` is lazy: a view of the memory with a bit (`ops/bits.py`). What formulas use is `conjugate`, which computes.
"""

from __future__ import annotations

import builtins

from tinytorch.core import mode
from tinytorch.core.complex import OWN
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import complex as kernels
from tinytorch.kernels.arithmetic import conjugate as _conjugate_kernel
from tinytorch.ops.arguments import check_tensor
from tinytorch.ops.bits import bit_view, with_bits
from tinytorch.ops.bits import resolved as resolved
from tinytorch.ops.bits import resolving as resolving
from tinytorch.ops.register import pointwise, public
from tinytorch.ops.shape import select

# Parts --------------------------------------------------------------------------------------------

_view_as_real = op(
    batch="leading", name="ViewAsReal", view=True, x=lambda g: _complex(select(g, -1, 0), select(g, -1, 1))
)(kernels.view_as_real)
_view_as_real.op.name = "view_as_real"
_view_as_complex = op(batch="leading", name="ViewAsComplex", view=True, x=lambda g: view_as_real(g))(
    kernels.view_as_complex
)
_view_as_complex.op.name = "view_as_complex"


@public()
def view_as_real(input: Tensor) -> Tensor:
    """Return the real and imaginary parts of a complex tensor, as a view with one more dimension, of length 2.

    Example:
        >>> torch.view_as_real(torch.tensor([1 + 2j, 3 - 1j]))
        tensor([[ 1.,  2.],
                [ 3., -1.]])
    """
    if mode.is_lazy(input):
        if input._conjugated:
            raise RuntimeError(
                "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so "
                "you can view it as real, use self.resolve_conj(); however, be warned that the resulting tensor "
                "will NOT alias the original."
            )
        return _bit_view(view_as_real(input._plain))
    return _view_as_real(input)


@public()
def view_as_complex(input: Tensor) -> Tensor:
    """Return pairs of real numbers (..., 2) as a view of complex numbers.

    RuntimeError: the last dimension has not the length 2, or the memory has no complex numbers in these places.

    Example:
        >>> torch.view_as_complex(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
        tensor([1.+2.j, 3.-1.j])
    """
    if mode.is_lazy(input):
        return _bit_view(view_as_complex(input._plain))
    return _view_as_complex(input)


def as_kind(x: Tensor, kind: str) -> Tensor:
    """Return a tensor as a view of complex numbers if `kind` is "c", else of real ones; itself if it has such."""
    if (x._array.dtype.kind == "c") is (kind == "c"):
        return x
    return _view_as_complex(x) if kind == "c" else _view_as_real(x)


def real_part(input: Tensor) -> Tensor:
    """Return the real part of a complex tensor, as a view."""
    return _part(input, 0)


def imaginary_part(input: Tensor) -> Tensor:
    """Return the imaginary part of a complex tensor, as a view; of a lazy conjugate it is a lazy negative."""
    return _part(input, 1)


def _bit_view(negated: Tensor) -> Tensor:
    return bit_view(negated, False, True)


def _part(input: Tensor, k: int) -> Tensor:
    if mode.is_lazy(input):
        part = _part(input._plain, k)
        return _bit_view(part) if input._negated is not (input._conjugated and k == 1) else part
    return select(view_as_real(input), -1, k)


# Conjugates ---------------------------------------------------------------------------------------

conjugate = pointwise(
    "conj", _conjugate_kernel, x=lambda g: conjugate(g), complex=OWN, node_name="ConjPhysical",
    doc="Return the conjugate.",
)  # fmt: skip


def _with_bits(input: Tensor, conjugated: builtins.bool) -> Tensor:
    return with_bits(input, conjugated, not conjugated)


def lazy_conjugate(input: Tensor) -> Tensor:
    """Return the conjugates of complex numbers as a view."""
    return _with_bits(input, True)


@public(method=True)
def conj(input: Tensor) -> Tensor:
    """Return the complex conjugates, as a view whose elements are conjugated when they are read; a real `input` itself.

    Example:
        >>> x = torch.tensor([1 + 2j, 3 - 1j])
        >>> y = torch.conj(x)
        >>> y
        tensor([1.-2.j, 3.+1.j])
        >>> y[0] = 5j  # writes the conjugate into the memory
        >>> x
        tensor([0.-5.j, 3.-1.j])
    """
    return lazy_conjugate(input) if input._memory.dtype.kind == "c" else input


@public("_conj", method="_conj")
def _conj(input: Tensor) -> Tensor:
    """Return the lazy complex conjugates of a complex tensor; see `conj`."""
    if input._memory.dtype.kind != "c":
        raise RuntimeError("_conj: the tensor must be complex")
    return _with_bits(input, True)


@public("_neg_view", method="_neg_view")
def _neg_view(input: Tensor) -> Tensor:
    """Return the negatives of numbers, as a view whose elements are negated when they are read.

    Example:
        >>> torch._neg_view(torch.tensor([1.0, -2.0])).is_neg()
        True
    """
    if input._memory.dtype.kind == "b":
        raise NotImplementedError("\"neg_cpu\" not implemented for 'Bool'")
    return _with_bits(input, False)


@public(method=True, out="same")
def conj_physical(input: Tensor) -> Tensor:
    """Return the complex conjugates; `input` itself if it is real.

    Example:
        >>> torch.conj_physical(torch.tensor([1 + 2j, 3 - 1j]))
        tensor([1.-2.j, 3.+1.j])
    """
    return conjugate(input) if input._array.dtype.kind == "c" else input


@public(method=True)
def resolve_conj(input: Tensor) -> Tensor:
    """Return a copy of a lazy conjugate, with the conjugates in its memory; other tensors themselves.

    Example:
        >>> x = torch.tensor([1 + 2j])
        >>> torch.resolve_conj(x.conj()).numpy()
        array([1.-2.j], dtype=complex64)
        >>> torch.resolve_conj(x) is x
        True
    """
    made: Tensor = mode.without_bits(input) if is_conj(input) else input
    return made


@public(method=True)
def resolve_neg(input: Tensor) -> Tensor:
    """Return a copy of a lazy negative (`x.conj().imag`), with the negatives in its memory; other tensors themselves.

    Example:
        >>> x = torch.tensor([1 + 2j])
        >>> torch.resolve_neg(x.conj().imag).numpy()
        array([-2.], dtype=float32)
    """
    made: Tensor = mode.without_bits(input) if is_neg(input) else input
    return made


@public(method=True)
def conj_physical_(input: Tensor) -> Tensor:
    """Replace complex numbers by their conjugates, in place; return `input`.

    Example:
        >>> x = torch.tensor([1 + 2j])
        >>> _ = x.conj_physical_()
        >>> x
        tensor([1.-2.j])
    """
    return input.copy_(conj_physical(input))


@public()
def imag(input: Tensor) -> Tensor:
    """Return the imaginary part of complex numbers, as a view. RuntimeError for real numbers.

    Example:
        >>> torch.imag(torch.tensor([1 + 2j, 3 - 1j]))
        tensor([ 2., -1.])
    """
    return input.imag


@public(method=True)
def is_conj(input: Tensor) -> builtins.bool:
    """Return whether a tensor is a lazy conjugate.

    Example:
        >>> torch.is_conj(torch.tensor([1j])), torch.is_conj(torch.tensor([1j]).conj())
        (False, True)
    """
    check_tensor(input, "is_conj")
    return getattr(input, "_conjugated", False)


@public(method=True)
def is_neg(input: Tensor) -> builtins.bool:
    """Return whether a tensor is a lazy negative.

    Example:
        >>> torch.is_neg(torch.tensor([-1.0])), torch.is_neg(torch.tensor([1j]).conj().imag)
        (False, True)
    """
    check_tensor(input, "is_neg")
    return getattr(input, "_negated", False)


# Construction -------------------------------------------------------------------------------------

_complex = op(name="Complex", broadcasts=True, complex=OWN, x=lambda g: real_part(g), y=lambda g: imaginary_part(g))(
    kernels.of_parts
)
_complex.op.name = "complex"
_polar = op(
    name="Polar", broadcasts=True, complex=OWN,
    x=lambda g, y: real_part(g) * y.cos() + imaginary_part(g) * y.sin(),
    y=lambda g, out: imaginary_part(g * conjugate(out)),
)(kernels.polar)  # fmt: skip
_polar.op.name = "polar"


@public(out="complex")
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Return the complex numbers with the given real and imaginary parts.

    Both are of float32, or of float64, and their shapes broadcast; RuntimeError for others.

    Example:
        >>> torch.complex(torch.tensor([1.0, 2.0]), torch.tensor([0.0, -3.0]))
        tensor([1.+0.j, 2.-3.j])
    """
    return _complex(real, imag)


@public(out="complex")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Return the complex numbers with the given absolute values and angles.

    Both are of float32, or of float64, and their shapes broadcast; RuntimeError for others.

    Example:
        >>> torch.polar(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
        tensor([1.+0.j, 2.+0.j])
    """
    return _polar(abs, angle)
