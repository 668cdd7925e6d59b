"""Checks of gradients against finite differences: `gradcheck`, `gradgradcheck` (floor 4)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch._tensor import Tensor, wrap
from tinytorch.autograd.engine import grad
from tinytorch.autograd.mode import no_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """An analytical gradient does not agree with the numerical one."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Return True if the gradients of `func` agree with central differences, at float64 precision.

    For each output and each input that requires grad the whole Jacobian is compared; with `fast_mode` a random
    projection of it, `v @ J @ u`, which costs two evaluations per input.

    Args:
        func: takes the inputs, returns a Tensor or a tuple of Tensors.
        inputs: the arguments; those that require grad are to be float64 leaves with memory of their own.
        eps: half the step of the difference.
        atol, rtol: absolute and relative tolerance.
        raise_exception: raise GradcheckError; else return False.
        nondet_tol: how much two backward passes may differ.
        check_undefined_grad: also check that outputs without a gradient are treated as zeros.
        check_grad_dtypes: also check that gradients have their input's dtype.
        check_batched_grad, check_batched_forward_grad, check_forward_ad: not there yet (NotImplementedError).
        check_backward_ad: check at all.
        fast_mode: compare random projections instead of whole Jacobians.
        masked: accepted for compatibility.

    Raises:
        GradcheckError: the gradients disagree, and `raise_exception` is set.
        ValueError: no input requires grad.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(lambda x: (x * x).sum(), x)
        True
    """
    if check_batched_grad or check_batched_forward_grad or check_forward_ad:
        raise NotImplementedError("gradcheck: forward mode and batched gradients are not there yet")
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    try:
        if check_backward_ad:
            _check(
                func,
                arguments,
                eps,
                atol,
                rtol,
                nondet_tol,
                fast_mode,
                check_undefined_grad,
                check_grad_dtypes,
            )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Return True if the gradients of the gradients of `func` agree with central differences.

    Args:
        func, inputs: as for `gradcheck`.
        grad_outputs: vectors for the first gradient; random ones that require grad unless given.
        gen_non_contig_grad_outputs: make those random ones non-contiguous.
        check_fwd_over_rev: not there yet (NotImplementedError).
        check_rev_over_rev: check at all.
        eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad,
            fast_mode, masked: as for `gradcheck`.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradgradcheck(lambda x: x.sin() * x, x)
        True
    """
    if check_fwd_over_rev:
        raise NotImplementedError("gradgradcheck: forward mode is not there yet")
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable(func(*arguments))
        generator = np.random.default_rng(0)
        vectors = []
        for output in outputs:
            array = generator.standard_normal(output._array.shape).astype(output._array.dtype)
            if gen_non_contig_grad_outputs and array.ndim:
                array = np.repeat(array[..., None], 2, axis=-1)[..., 0]
            vectors.append(wrap(np.asarray(array)).requires_grad_())
    else:
        vectors = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    count = len(arguments)

    def gradients(*both: Any) -> tuple[Tensor, ...]:
        firsts, seconds = both[:count], both[count:]
        wanted = [each for each in firsts if isinstance(each, Tensor) and each.requires_grad]
        found = grad(
            _differentiable(func(*firsts)),
            wanted,
            list(seconds),
            create_graph=True,
            allow_unused=True,
        )
        return tuple([each for each in found if each is not None and each.requires_grad])

    if not gradients(*arguments, *vectors):
        return True  # a constant gradient: nothing to differentiate
    return gradcheck(
        gradients, (*arguments, *vectors), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=False, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, fast_mode=fast_mode,
    )  # fmt: skip


def _differentiable(result: Any) -> list[Tensor]:
    several = [result] if isinstance(result, Tensor) else list(result)
    return [each for each in several if isinstance(each, Tensor) and each.requires_grad]


def _check(
    func: Callable[..., Any], arguments: tuple[Any, ...], eps: float, atol: float, rtol: float, nondet_tol: float,
    fast_mode: bool, check_undefined_grad: bool, check_grad_dtypes: bool,
) -> None:  # fmt: skip
    inputs = [each for each in arguments if isinstance(each, Tensor) and each.requires_grad]
    if not inputs:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for k, each in enumerate(inputs):
        if each._array.dtype != np.float64:
            warnings.warn(
                f"Input #{k} requires gradient and is not a double precision floating point. This check will "
                "likely fail if all the inputs are not of double precision floating point.",
                UserWarning,
                stacklevel=4,
            )
        if each._array.size and 0 in each._array.strides and each._array.size > 1:
            raise RuntimeError(
                f"The {k}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
    outputs = _differentiable(func(*arguments))
    if not outputs:
        for k, each in enumerate(inputs):
            if any(
                np.any(column)
                for column in _numerical(func, arguments, each, 0, eps, all_outputs=True)
            ):
                raise GradcheckError(
                    f"Numerical gradient for function expected to be zero (input {k})"
                )
        return
    generator = np.random.default_rng(1)
    for j, output in enumerate(outputs):
        if fast_mode:
            v = generator.standard_normal(output._array.shape)
            found = _gradients(output, inputs, v)
            for k, (each, analytical) in enumerate(zip(inputs, found, strict=True)):
                u = generator.standard_normal(each._array.shape)
                difference = _difference(func, arguments, each, u, j, eps)
                _compare(np.sum(analytical * u), np.sum(v * difference), j, k, atol, rtol)
            continue
        jacobians = [np.zeros((output._array.size, each._array.size)) for each in inputs]
        unit = np.zeros(output._array.shape)
        for row in range(output._array.size):
            unit.flat[row] = 1
            found = _gradients(output, inputs, unit)
            again = _gradients(output, inputs, unit) if row == 0 else found
            for k, (jacobian, one, two) in enumerate(zip(jacobians, found, again, strict=True)):
                jacobian[row] = one.reshape(-1)
                if not np.allclose(one, two, rtol=0, atol=nondet_tol, equal_nan=True):
                    raise GradcheckError(
                        f"Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
                        f"times gives different values, although analytical gradient matches numerical gradient. The "
                        f"tolerance for nondeterminism was {nondet_tol} (output {j}, input {k})."
                    )
            unit.flat[row] = 0
        for k, (each, jacobian) in enumerate(zip(inputs, jacobians, strict=True)):
            columns = _numerical(func, arguments, each, j, eps)
            numerical = np.stack(columns, 1) if columns else np.zeros((output._array.size, 0))
            _compare(jacobian, numerical, j, k, atol, rtol)
    if check_grad_dtypes:
        for k, each in enumerate(inputs):
            (g,) = grad(
                outputs[0],
                each,
                wrap(np.ones_like(outputs[0]._array)),
                retain_graph=True,
                allow_unused=True,
            )
            if g is not None and g.dtype is not each.dtype:
                raise GradcheckError(f"Gradient of input {k} has dtype {g.dtype}, not {each.dtype}")
    if check_undefined_grad and len(outputs) > 1:
        grad(outputs[0], inputs, wrap(np.ones_like(outputs[0]._array)), allow_unused=True)


def _gradients(output: Tensor, inputs: list[Tensor], vector: Any) -> list[Any]:
    v = wrap(vector.astype(output._array.dtype))
    found = grad(output, inputs, v, retain_graph=True, allow_unused=True)
    return [
        np.zeros(each._array.shape) if g is None else np.array(g.detach()._array)
        for each, g in zip(inputs, found, strict=True)
    ]


def _evaluate(
    func: Callable[..., Any], arguments: tuple[Any, ...], j: int, all_outputs: bool = False
) -> Any:
    """Return output `j` (among the floating-point ones) as a new array."""
    result = func(*arguments)
    several = [result] if isinstance(result, Tensor) else list(result)
    if not all_outputs:
        several = _differentiable(several)
    floats = [
        each for each in several if isinstance(each, Tensor) and each._array.dtype.kind == "f"
    ]
    if not floats:
        return np.zeros(0)
    return np.array(floats[j]._array, dtype=np.float64)


def _numerical(
    func: Callable[..., Any],
    arguments: tuple[Any, ...],
    x: Tensor,
    j: int,
    eps: float,
    all_outputs: bool = False,
) -> list[Any]:
    """Return the columns of the Jacobian of output `j` by `x`, by central differences."""
    columns = []
    direction = np.zeros(x._array.shape)
    for column in range(x._array.size):
        direction.flat[column] = 1
        columns.append(_difference(func, arguments, x, direction, j, eps, all_outputs).reshape(-1))
        direction.flat[column] = 0
    return columns


def _difference(
    func: Callable[..., Any], arguments: tuple[Any, ...], x: Tensor, direction: Any, j: int, eps: float,
    all_outputs: bool = False,
) -> Any:  # fmt: skip
    before = x._array.copy()
    sides = []
    try:
        for sign in (1, -1):
            with no_grad():
                x._array[...] = before + sign * eps * direction
            sides.append(_evaluate(func, arguments, j, all_outputs))
    finally:
        x._array[...] = before
    return (sides[0] - sides[1]) / (2 * eps)


def _compare(analytical: Any, numerical: Any, j: int, k: int, atol: float, rtol: float) -> None:
    if not np.allclose(analytical, numerical, rtol=rtol, atol=atol, equal_nan=False):
        raise GradcheckError(
            f"Jacobian mismatch for output {j} with respect to input {k},\nnumerical:{numerical}\n"
            f"analytical:{analytical}\n"
        )
