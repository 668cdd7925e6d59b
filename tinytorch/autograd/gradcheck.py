"""Checks of derivatives against finite differences: `gradcheck`, `gradgradcheck`.

A check computes one Jacobian per pair of an input and a floating-point output, with a row per element of the input and
a column per element of the output: numerically and by forward mode row by row, by backward column by column. In fast
mode it is multiplied by random vectors: `u` over the rows, `v` over the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from tinytorch.autograd.api import grad
from tinytorch.autograd.forward_ad import dual_level, make_dual, unpack_dual
from tinytorch.autograd.function import _Undefined
from tinytorch.autograd.functional import unit_tensors
from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes
from tinytorch.ops.arithmetic import allclose
from tinytorch.ops.complex import resolve_conj, view_as_complex, view_as_real
from tinytorch.ops.create import empty, zeros_like
from tinytorch.ops.join import stack
from tinytorch.ops.random import Generator, rand, randn

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Derivatives do not agree with finite differences, or another check of a derivative fails."""


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
    """Return True if the gradients of `func` at `inputs` agree with central differences.

    For each input that requires grad and each differentiable output, the Jacobians are compared by `allclose`, with
    `fast_mode` a random projection of them. Further checks: two backward passes give the same gradients, these are
    multiplied by the gradient of the output, and an undefined gradient of an output is treated as zeros.

    Args:
        func: takes the inputs, returns a Tensor or a tuple or list of Tensors, of which floating-point and complex ones
            are checked.
        inputs: the arguments; those that require grad should be float64 or complex128, without elements that share
            memory.
        check_undefined_grad: check that undefined gradients, and in forward mode undefined tangents, count as zeros.
        check_batched_forward_grad: accepted, without effect: forward mode computes a batch vector by vector (see
            `func.vmap`), which `check_forward_ad` checks.
        fast_mode: compare a random projection of each Jacobian: a few calls per input, rather than one per element.
        masked: for an output gradient of zeros, gradients may be close to zero rather than exactly zero.

    Raises:
        GradcheckError: a check failed, and `raise_exception` is set.

    Example:
        >>> x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(lambda x: (x * x).sum(), x)
        True
    """
    _require_either(check_forward_ad or check_backward_ad, "check_forward_ad", "check_backward_ad")
    _require_implied(check_batched_grad, "check_batched_grad", check_backward_ad, "check_backward_ad")
    _require_implied(check_batched_forward_grad, "check_batched_forward_grad", check_forward_ad, "check_forward_ad")
    arguments = _as_tuple(inputs)
    _check_inputs(arguments)
    func, arguments = _of_real_numbers(func, arguments)
    try:
        problem = _Problem(func, arguments, eps, atol, rtol, nondet_tol, check_grad_dtypes)
        compare = _compare_projections if fast_mode else _compare_jacobians
        if check_backward_ad:
            compare(problem, forward=False)
        if check_forward_ad:
            compare(problem, forward=True)
            if check_undefined_grad:
                _check_undefined_tangents(problem)
        if check_backward_ad:
            if check_batched_grad:
                _check_batched_gradients(problem)
            _check_multiplies_by_gradient(problem, bool(masked))
            if check_undefined_grad:
                _check_undefined_gradients(problem)
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
    """Return True if the second derivatives of `func` agree with central differences of the first.

    It calls `gradcheck` on the function from `inputs` and `grad_outputs` to the gradients of the inputs.

    Args:
        grad_outputs: the gradients of the differentiable outputs; by default drawn from [-1, 1), requiring grad.

    Example:
        >>> x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradgradcheck(lambda x: x.sin() * x, x)
        True
    """
    _require_either(check_fwd_over_rev or check_rev_over_rev, "check_fwd_over_rev", "check_rev_over_rev")
    _require_implied(check_undefined_grad, "check_undefined_grad", check_rev_over_rev, "check_rev_over_rev")
    _require_implied(check_batched_grad, "check_batched_grad", check_rev_over_rev, "check_rev_over_rev")
    arguments = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable(func(*arguments))
        vectors = tuple([_random_gradient(x, gen_non_contig_grad_outputs) for x in outputs])
    else:
        vectors = _as_tuple(grad_outputs)
    count = len(arguments)
    wanted = [*map(_requires_grad, arguments), *(x.requires_grad for x in vectors)]

    def gradients(*values: Any) -> tuple[Tensor, ...]:
        arguments_and_vectors = [  # forward mode passes detached tensors
            x.requires_grad_() if needs_grad else x for x, needs_grad in zip(values, wanted, strict=True)
        ]
        grads = grad(
            _differentiable(func(*arguments_and_vectors[:count])),
            [x for x, needs_grad in zip(arguments_and_vectors[:count], wanted, strict=False) if needs_grad],
            arguments_and_vectors[count:],
            create_graph=True,
            allow_unused=True,
        )
        return tuple([x for x in grads if x is not None])

    return gradcheck(
        gradients, arguments + vectors, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


# The arguments ------------------------------------------------------------------------------------


def _require_either(condition: bool, first: str, second: str) -> None:
    if not condition:
        raise AssertionError(f"Expected at least one of {first} or {second} to be True")


def _require_implied(condition: bool, name: str, required: bool, other: str) -> None:
    if condition and not required:
        raise AssertionError(f"Setting {name}=True requires {other} to be True")


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _requires_grad(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _differentiable(result: Any) -> list[Tensor]:
    return [x for x in _as_tuple(result) if x.requires_grad]


def _random_gradient(output: Tensor, non_contiguous: bool) -> Tensor:
    """Return a random gradient for `output`, drawn as in PyTorch."""
    shape = tuple(output.shape)
    has_gaps = non_contiguous and output.numel() > 1
    vector: Tensor = empty((*shape[:-1], 2 * shape[-1]) if has_gaps else shape, dtype=output.dtype)
    vector.uniform_(-1, 1)
    return (vector[..., 1::2] if has_gaps else vector).requires_grad_()


def _check_inputs(arguments: tuple[Any, ...]) -> None:
    for k, x in enumerate(arguments):
        if not _requires_grad(x):
            continue
        if x.dtype not in (dtypes.float64, dtypes.complex128):
            warn(
                f"Input #{k} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex."
            )
        if x.numel() and any(stride == 0 < size - 1 for stride, size in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"The {k}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
    if not any(map(_requires_grad, arguments)):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _of_real_numbers(
    func: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function and its arguments with the parts of complex tensors, as real tensors, in their place.

    A gradient by PyTorch's convention has as parts the gradients of the parts, so the real Jacobians tell all.
    """
    complex_ones = [isinstance(x, Tensor) and x.is_complex() for x in arguments]

    def of_parts(*given: Any) -> Any:
        results = func(*[view_as_complex(x) if c else x for x, c in zip(given, complex_ones, strict=True)])
        return tuple([
            view_as_real(resolve_conj(x)) if isinstance(x, Tensor) and x.is_complex() else x
            for x in _as_tuple(results)
        ])  # fmt: skip

    parts = [
        view_as_real(x.detach()).clone().requires_grad_(x.requires_grad) if c else x
        for x, c in zip(arguments, complex_ones, strict=True)
    ]
    return of_parts, tuple(parts)


# Jacobians ----------------------------------------------------------------------------------------


class _Problem:
    """A function at a point, and its Jacobians.

    Attributes:
        inputs: the arguments that require grad; `input_positions`: their positions among the arguments.
        results: the floating-point results.
        outputs: the results that require grad; `output_positions`: their positions among `results`.
    """

    def __init__(
        self, func: Callable[..., Any], arguments: tuple[Any, ...], eps: float, atol: float, rtol: float,
        nondet_tol: float, check_grad_dtypes: bool,
    ) -> None:  # fmt: skip
        self.func, self.arguments, self.eps, self.atol, self.rtol = func, arguments, eps, atol, rtol
        self.nondet_tol, self.check_grad_dtypes = nondet_tol, check_grad_dtypes
        self.input_positions = [k for k, x in enumerate(arguments) if _requires_grad(x)]
        self.inputs: list[Tensor] = [arguments[k] for k in self.input_positions]
        results = _as_tuple(func(*arguments))
        self.outputs = _differentiable(results)
        self.results: list[Tensor] = [x for x in results if x.is_floating_point()]
        self.output_positions = [k for k, x in enumerate(self.results) if x.requires_grad]

    def evaluate(self, arguments: Sequence[Any]) -> list[Tensor]:
        results = _as_tuple(self.func(*arguments))
        return [x for x in results if x.is_floating_point()]

    def numerical(self, j: int, u: Tensor | None = None) -> list[Tensor]:
        """Return the Jacobian (or `u` times it) of each of `results` by input `j`, by central differences."""
        data = self.inputs[j].data  # (a write to it is not checked by the graph)
        if u is None:
            indices = product(*map(range, data.shape))
            rows = [self._difference(data[i], self.eps, f"on index {i} ") for i in indices]
        else:
            rows = [self._difference(data, u.reshape(data.shape) * self.eps, "")]
        return self._jacobians_of_rows(rows)

    def by_forward(self, j: int, u: Tensor | None = None) -> list[Tensor]:
        """Return the Jacobians of `numerical`, by forward mode."""
        x = self.inputs[j]
        tangents: list[Tensor | None] = [zeros_like(x) for x in self.inputs]
        rows = []
        for direction in unit_tensors(x) if u is None else [u.reshape(x.shape)]:
            tangents[j] = direction
            rows.append(self.tangents(tangents))
        return self._jacobians_of_rows(rows)

    def by_backward(self, output: Tensor, v: Tensor | None = None) -> list[Tensor]:
        """Return the Jacobian (or its product with `v`) of `output` by each of `inputs`, by backward.

        Raises:
            GradcheckError: the dtype of a gradient is not that of its input, or a second backward differs.
        """
        first, second = (self._jacobians_of_columns(output, v) for _ in range(2))
        for first_gradient, second_gradient in zip(first, second, strict=True):
            if first_gradient.numel() and (first_gradient - second_gradient).abs().max() > self.nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
                    "times gives different values, although analytical gradient matches numerical gradient. The "
                    f"tolerance for nondeterminism was {self.nondet_tol}. If the function is expected to be "
                    "nondeterministic, pass nondet_tol=<tol>."
                )
        return first

    def _jacobians_of_rows(self, rows: Sequence[Sequence[Tensor | None]]) -> list[Tensor]:
        jacobians = [x.detach().new_zeros((len(rows), x.numel())) for x in self.results]
        for number, row in enumerate(rows):
            for jacobian, values in zip(jacobians, row, strict=True):
                if values is not None:
                    jacobian[number] = values.detach().reshape(-1)
        return jacobians

    def _jacobians_of_columns(self, output: Tensor, v: Tensor | None) -> list[Tensor]:
        jacobians, gradients = _columns(output, self.inputs, v)
        for jacobian, g in gradients if self.check_grad_dtypes else ():
            if g.dtype is not jacobian.dtype:
                raise GradcheckError("Gradient has dtype mismatch")
        return jacobians

    def _difference(self, entry: Tensor, step: Any, where: str) -> list[Tensor]:
        """Return the central differences of the results for a change of `entry`, a view of an input, by `step`."""
        before = entry.clone()
        sides = []
        try:
            for moved in (before - step, before + step):
                entry.copy_(moved)
                sides.append([x.clone() for x in self.evaluate(self.arguments)])
        finally:
            entry.copy_(before)
        for low, high in zip(*sides, strict=True):
            for what in ("shape", "dtype"):
                if getattr(low, what) != getattr(high, what):
                    raise AssertionError(
                        f"Expected `func` to return outputs with the same {what} when inputs are perturbed {where}by "
                        f"{self.eps}, but got: {what}s {getattr(low, what)} and {getattr(high, what)}."
                    )
        return [(high - low) / (2 * self.eps) for low, high in zip(*sides, strict=True)]

    def tangents(self, tangents: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Return the tangents of the results, given those of `inputs` (None for an input without one)."""
        with dual_level():
            arguments = list(self.arguments)
            for k, tangent in zip(self.input_positions, tangents, strict=True):
                primal = self.arguments[k].detach()
                arguments[k] = primal if tangent is None else make_dual(primal, tangent)
            return [unpack_dual(x).tangent for x in self.evaluate(arguments)]


def _columns(
    output: Tensor, inputs: Sequence[Tensor], v: Tensor | None = None
) -> tuple[list[Tensor], list[tuple[Tensor, Tensor]]]:
    """Return the Jacobians of `output`, or their products with `v`, by backward; and each gradient beside its own."""
    vectors = list(unit_tensors(output)) if v is None else [v.reshape(output.shape)]
    jacobians = [x.detach().new_zeros((x.numel(), len(vectors))) for x in inputs]
    gradients = []
    for number, vector in enumerate(vectors):
        grads = grad(output, inputs, vector, retain_graph=True, allow_unused=True)
        for jacobian, g in zip(jacobians, grads, strict=True):
            if g is not None:
                jacobian[:, number] = g.detach().reshape(-1)
                gradients.append((jacobian, g))
    return jacobians, gradients


# The Jacobians alone: functions of PyTorch that older programs call ---------------------------------


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: tuple[Any, ...], target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """Return the Jacobian of the first result of `fn(inputs)` by each input that requires grad; deprecated.

    Args:
        fn: a function of one tuple, whose results are real.
        target: the input, or the tuple of inputs, by which to differentiate; by default all that require grad.

    Returns:
        A Jacobian per input, of the shape (elements of the input, elements of the result).
    """
    _warn_of_private_api("get_numerical_jacobian")
    _check_grad_out("get_numerical_jacobian", grad_out)
    with no_grad():
        if _as_tuple(fn(inputs))[0].is_complex():
            raise ValueError("Expected output to be non-complex.")
    problem = _Problem(*_of_real_numbers(lambda *given: fn(given), inputs), eps, 0, 0, 0, False)
    jacobians = []
    for j, position in enumerate(problem.input_positions):
        x = inputs[position]
        if target is None or any(x is each for each in _as_tuple(target)):
            jacobian = problem.numerical(j)[0]
            jacobians.append(jacobian[0::2] + 1j * jacobian[1::2] if x.is_complex() else jacobian)
    return tuple(jacobians)


def get_analytical_jacobian(
    inputs: tuple[Any, ...], output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Tensor, ...], bool, bool, bool]:
    """Return the Jacobian of `output` by each input that requires grad, computed by backward; deprecated.

    Returns:
        The Jacobians, of the shape (elements of the input, elements of `output`); whether two backward passes agreed;
        and whether all gradients have the sizes, and the dtypes, of their inputs.
    """
    _warn_of_private_api("get_analytical_jacobian")
    _check_grad_out("get_analytical_jacobian", grad_out)
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports functions that return "
            "complex outputs."
        )
    differentiated = [x for x in inputs if _requires_grad(x)]
    (first, gradients), (second, _) = (_columns(output, differentiated) for _ in range(2))
    reentrant = all(
        not one.numel() or bool((one - other).abs().max() <= nondet_tol)
        for one, other in zip(first, second, strict=True)
    )
    return tuple(first), reentrant, True, all(g.dtype is jacobian.dtype for jacobian, g in gradients)


def _check_grad_out(name: str, grad_out: float) -> None:
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")


def _warn_of_private_api(name: str) -> None:
    warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be "
        "removed in a future version of PyTorch. If you have a specific use for this or feature request for this to be "
        "a stable API, please file us an issue at https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
    )


# Comparisons --------------------------------------------------------------------------------------


def _compare_jacobians(problem: _Problem, forward: bool) -> None:
    inputs = range(len(problem.inputs))
    numerical = [problem.numerical(j) for j in inputs]
    if not problem.outputs:
        _check_constant(numerical, 0)
    tangents = [problem.by_forward(j) for j in inputs] if forward else []
    for i, (position, output) in enumerate(zip(problem.output_positions, problem.outputs, strict=True)):
        analytical = [jacobians[position] for jacobians in tangents] if forward else problem.by_backward(output)
        for j in inputs:
            if not _all_close(analytical[j], numerical[j][position], problem.rtol, problem.atol):
                raise GradcheckError(_mismatch(i, j, numerical[j][position], analytical[j], forward))


def _compare_projections(problem: _Problem, forward: bool) -> None:
    generator = Generator()  # as in PyTorch always the same vectors; the user's generator is not advanced
    us = [_random_vector(x, generator) for x in problem.inputs]
    vs = [] if forward else [_random_vector(x, generator) for x in problem.outputs]
    numerical = [problem.numerical(j, u) for j, u in enumerate(us)]
    if not problem.outputs:
        _check_constant(numerical, problem.nondet_tol)
    if forward:
        analytical = [problem.by_forward(j, u) for j, u in enumerate(us)]
    else:
        products = [problem.by_backward(output, v) for output, v in zip(problem.outputs, vs, strict=True)]
    for j, u in enumerate(us):
        for i, position in enumerate(problem.output_positions):
            expected = numerical[j][position][0]
            atol = problem.atol * u.sum().item()
            if forward:
                actual = analytical[j][position][0]
            else:
                actual = products[i][j][:, 0].dot(u)
                expected = (vs[i] * expected).sum()
                atol *= vs[i].sum().item()
            if not _all_close(actual, expected, problem.rtol, atol):
                message = _mismatch(i, j, expected, actual, forward)
                raise GradcheckError(message + _slow_mode_report(problem, i, j, forward))


def _check_constant(numerical: list[list[Tensor]], tolerance: float) -> None:
    for jacobians in numerical:
        for jacobian in jacobians:
            if jacobian.numel() and jacobian.abs().max() > tolerance:
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _random_vector(like: Tensor, generator: Generator) -> Tensor:
    vector: Tensor = rand(like.numel(), generator=generator).to(like.dtype)
    return vector.div_(vector.norm())


def _all_close(one: Tensor, two: Tensor, rtol: float, atol: float) -> bool:
    kind = dtypes.promote_types(one.dtype, two.dtype)
    return allclose(one.to(kind), two.to(kind), rtol, atol)


def _mismatch(i: int, j: int, numerical: Tensor, analytical: Tensor, forward: bool) -> str:
    mode = "computed with forward mode " if forward else ""
    return (
        f"Jacobian {mode}mismatch for output {i} with respect to input {j},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _slow_mode_report(problem: _Problem, i: int, j: int, forward: bool) -> str:
    """Return the report on the whole Jacobians after a mismatch of their projections."""
    position = problem.output_positions[i]
    numerical = problem.numerical(j)[position]
    analytical = problem.by_forward(j)[position] if forward else problem.by_backward(problem.outputs[i])[j]
    text = (
        "\nThe above quantities relating the numerical and analytical jacobians are computed in fast mode, of random "
        "projections. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
        f"Numerical:\n {numerical}\nAnalytical:\n{analytical}\n\n"
        f"The max per-element difference (slow mode) is: {(numerical - analytical).abs().max()}.\n"
    )
    if _all_close(analytical, numerical, problem.rtol, problem.atol):
        text += (
            "Fast gradcheck failed but element-wise differences are small. This means that the test might've passed "
            "in slow_mode! Call gradcheck with fast_mode=False."
        )
    return text


# Further checks -----------------------------------------------------------------------------------


def _check_multiplies_by_gradient(problem: _Problem, masked: bool) -> None:
    zeros = [zeros_like(output) for output in problem.outputs]
    for g in grad(problem.outputs, problem.inputs, zeros, allow_unused=True):
        if g is not None and not (allclose(g, zeros_like(g)) if masked else g.eq(0).all()):
            raise GradcheckError("backward not multiplied by grad_output")


def _check_batched_gradients(problem: _Problem) -> None:
    for output in problem.outputs:
        # (A new generator: the user's is not advanced.)
        vectors: Tensor = randn((2, *output.shape), generator=Generator(), dtype=output.dtype)
        one_by_one = [grad(output, problem.inputs, vector, retain_graph=True, allow_unused=True) for vector in vectors]
        batched = grad(output, problem.inputs, vectors, retain_graph=True, allow_unused=True, is_grads_batched=True)
        for j, (batch, *rows) in enumerate(zip(batched, *one_by_one, strict=True)):
            if batch is not None and not allclose(batch, stack(rows), problem.rtol, problem.atol):
                raise GradcheckError(
                    "gradcheck or gradgradcheck failed while testing batched gradient computation.\n"
                    f"For input {j}, the batch gives:\n{batch}\nand its vectors one by one:\n{stack(rows)}\n"
                )


def _check_undefined_gradients(problem: _Problem) -> None:
    """Check backward with all gradients of the outputs undefined, then with one of several at a time."""
    count = len(problem.outputs)
    cases = [set(range(count)), *({k} for k in range(count) if count > 1)]
    for undefined in cases:
        outputs = [
            _Undefined.apply(output) if k in undefined else output
            for k, output in enumerate(_differentiable(problem.func(*problem.arguments)))
        ]
        zeros = [zeros_like(output) for output in outputs]
        try:
            grads = grad(outputs, problem.inputs, zeros, allow_unused=True)
        except RuntimeError as error:
            _warn_of_undefined_gradients()
            raise GradcheckError("Expected backward function to handle undefined output grads.") from error
        if any(g is not None and not g.eq(0).all() for g in grads):
            _warn_of_undefined_gradients()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
            )


def _warn_of_undefined_gradients() -> None:
    warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may "
        "break existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature'
    )


def _check_undefined_tangents(problem: _Problem) -> None:
    """Check for each input that an undefined tangent gives the same as a tangent of zeros."""
    generator = Generator()
    tangents = [_random_vector(x, generator).reshape(x.shape) for x in problem.inputs]
    for j, x in enumerate(problem.inputs):
        with_zeros, without = (
            problem.tangents([*tangents[:j], replacement, *tangents[j + 1 :]]) for replacement in (zeros_like(x), None)
        )
        for i, (with_zero, with_none) in enumerate(zip(with_zeros, without, strict=True)):
            if with_zero is not None and with_none is not None and not allclose(with_zero, with_none):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {i} when input: {x} has an undefined "
                    f"tangent value. Got: {with_none} but expected: {with_zero}"
                )
