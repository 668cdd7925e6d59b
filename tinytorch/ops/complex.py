"""Complex numbers: their parts, conjugates, and construction from real numbers.

`conj` computes the conjugate at once: `is_conj` and `is_neg` are always false (PyTorch's `conj` is a lazy view).
"""

from __future__ import annotations

import builtins
from typing import Any

from tinytorch.core.complex import OWN
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.core.view import CROSSING
from tinytorch.kernels import complex as kernels
from tinytorch.kernels.arithmetic import conjugate as _conjugate_kernel
from tinytorch.ops.arguments import check_tensor
from tinytorch.ops.register import pointwise, public
from tinytorch.ops.shape import select

# Parts --------------------------------------------------------------------------------------------

_view_as_real = op(name="ViewAsReal", view=True, x=lambda g: _complex(select(g, -1, 0), select(g, -1, 1)), complex=OWN)(
    kernels.view_as_real
)
_view_as_real.op.name = "view_as_real"
_view_as_complex = op(name="ViewAsComplex", view=True, x=lambda g: view_as_real(g), complex=OWN)(
    kernels.view_as_complex
)
_view_as_complex.op.name = "view_as_complex"


def _crossing(made: Tensor) -> Tensor:
    """Mark a view whose dtype is not that of its base: recorded writes into it are refused."""
    if made._view is not None:
        made._view.kind = CROSSING
    return made


@public()
def view_as_real(input: Tensor) -> Tensor:
    """Return the real and imaginary parts of a complex tensor, as a view with one more dimension, of length 2.

    Args:
        input: complex numbers, of any shape.

    Raises:
        RuntimeError: the tensor is not complex.

    Example:
        >>> torch.view_as_real(torch.tensor([1 + 2j, 3 - 1j]))
        tensor([[ 1.,  2.],
                [ 3., -1.]])
    """
    return _crossing(_view_as_real(input))


@public()
def view_as_complex(input: Tensor) -> Tensor:
    """Return pairs of real numbers as a view of complex numbers.

    Args:
        input: floating-point numbers (..., 2).

    Raises:
        RuntimeError: the last dimension has not the length 2, or the memory has no complex numbers in these places.

    Example:
        >>> torch.view_as_complex(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
        tensor([1.+2.j, 3.-1.j])
    """
    return _crossing(_view_as_complex(input))


def real_part(input: Tensor) -> Tensor:
    """Return the real part of a complex tensor, as a view."""
    return select(view_as_real(input), -1, 0)


def imaginary_part(input: Tensor) -> Tensor:
    """Return the imaginary part of a complex tensor, as a view."""
    return select(view_as_real(input), -1, 1)


# Conjugates ---------------------------------------------------------------------------------------

conjugate = pointwise("conj", _conjugate_kernel, x=lambda g: conj(g), complex=OWN, doc="Return the conjugate.")


def _itself(name: str, what: str) -> Any:
    def itself(input: Tensor) -> Tensor:
        check_tensor(input, name)
        return input

    itself.__name__ = itself.__qualname__ = name
    itself.__doc__ = f"""Return `input` itself: {what}.

    Example:
        >>> x = torch.tensor([1.0, -2.0])
        >>> torch.{name}(x) is x
        True
    """
    return itself


@public(method=True)
def conj(input: Tensor) -> Tensor:
    """Return the complex conjugates; `input` itself if it is real. Unlike PyTorch's, the result is no view.

    Example:
        >>> torch.conj(torch.tensor([1 + 2j, 3 - 1j]))
        tensor([1.-2.j, 3.+1.j])
    """
    check_tensor(input, "conj")
    return conjugate(input) if input._array.dtype.kind == "c" else input


@public(method=True, out="same")
def conj_physical(input: Tensor) -> Tensor:
    """Return the complex conjugates; `input` itself if it is real.

    Example:
        >>> torch.conj_physical(torch.tensor([1 + 2j, 3 - 1j]))
        tensor([1.-2.j, 3.+1.j])
    """
    check_tensor(input, "conj_physical")
    return conjugate(input) if input._array.dtype.kind == "c" else input


resolve_conj = public("resolve_conj", method=True)(_itself("resolve_conj", "no conjugation waits to be done"))
resolve_neg = public("resolve_neg", method=True)(_itself("resolve_neg", "no negation waits to be done"))


@public(method=True)
def conj_physical_(input: Tensor) -> Tensor:
    """Replace complex numbers by their conjugates, in place; return `input`.

    Example:
        >>> x = torch.tensor([1 + 2j])
        >>> _ = x.conj_physical_()
        >>> x
        tensor([1.-2.j])
    """
    return input.copy_(conjugate(input)) if input._array.dtype.kind == "c" else input


@public()
def imag(input: Tensor) -> Tensor:
    """Return the imaginary part of complex numbers, as a view.

    Raises:
        RuntimeError: the tensor is real.

    Example:
        >>> torch.imag(torch.tensor([1 + 2j, 3 - 1j]))
        tensor([ 2., -1.])
    """
    return input.imag


@public(method=True)
def is_conj(input: Tensor) -> builtins.bool:
    """Return False: conjugates are computed at once.

    Example:
        >>> torch.is_conj(torch.tensor([1.0]))
        False
    """
    check_tensor(input, "is_conj")
    return False


@public(method=True)
def is_neg(input: Tensor) -> builtins.bool:
    """Return False: negations are computed at once.

    Example:
        >>> torch.is_neg(torch.tensor([-1.0]))
        False
    """
    check_tensor(input, "is_neg")
    return False


# Construction -------------------------------------------------------------------------------------

_complex = op(name="Complex", broadcasts=True, complex=OWN, x=lambda g: real_part(g), y=lambda g: imaginary_part(g))(
    kernels.of_parts
)
_complex.op.name = "complex"
_polar = op(
    name="Polar", broadcasts=True, complex=OWN,
    x=lambda g, y: real_part(g) * y.cos() + imaginary_part(g) * y.sin(),
    y=lambda g, out: imaginary_part(g * conj(out)),
)(kernels.polar)  # fmt: skip
_polar.op.name = "polar"


@public(out="complex")
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """Return the complex numbers with the given real and imaginary parts.

    Args:
        real, imag: float32 or float64 numbers, of shapes that broadcast.

    Raises:
        RuntimeError: the dtypes differ, or are not these.

    Example:
        >>> torch.complex(torch.tensor([1.0, 2.0]), torch.tensor([0.0, -3.0]))
        tensor([1.+0.j, 2.-3.j])
    """
    check_tensor(real, "complex", "real")
    check_tensor(imag, "complex", "imag", 2)
    return _complex(real, imag)


@public(out="complex")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Return the complex numbers with the given absolute values and angles.

    Args:
        abs, angle: float32 or float64 numbers, of shapes that broadcast.

    Raises:
        RuntimeError: the dtypes differ, or are not these.

    Example:
        >>> torch.polar(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
        tensor([1.+0.j, 2.+0.j])
    """
    check_tensor(abs, "polar", "abs")
    check_tensor(angle, "polar", "angle", 2)
    return _polar(abs, angle)
