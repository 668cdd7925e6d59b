"""Checks of derivatives against finite differences: `gradcheck`, `gradgradcheck`.

Every check sees the function as a Jacobian per input and floating-point output, one row per element of the input and
one column per element of the output: taken numerically row by row, by backward column by column, by forward mode row
by row. In the fast mode each is reduced by random vectors: `u` over the rows, `v` over the columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from tinytorch.autograd.api import grad
from tinytorch.autograd.forward_ad import dual_level, make_dual, unpack_dual
from tinytorch.autograd.function import _Undefined
from tinytorch.autograd.functional import unit_tensors
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.ops.arithmetic import allclose
from tinytorch.ops.create import empty, zeros_like
from tinytorch.ops.join import stack
from tinytorch.ops.random import Generator, rand, randn

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Derivatives do not agree with finite differences, or break another rule that a check knows."""


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

    For each input that requires grad and each differentiable output whole Jacobians are compared by `allclose`, or
    with `fast_mode` one random projection of them. It is also checked that backward gives the same twice, that it
    multiplies by the gradient of the output, and that it takes undefined gradients for zeros.

    Args:
        func: takes the inputs, returns a Tensor or a tuple or list of Tensors, of which those of floats count.
        inputs: the arguments; those that require grad are to be float64, each element with memory of its own.
        eps: the step of the differences, to both sides.
        raise_exception: raise GradcheckError where a check fails; else return False.
        nondet_tol: how much two backward passes may differ.
        check_undefined_grad: check that undefined gradients count as zeros, and undefined tangents in forward mode.
        check_grad_dtypes: check that gradients have their input's dtype.
        check_batched_grad: check `grad(..., is_grads_batched=True)`.
        check_batched_forward_grad: accepted; forward mode goes through a batch vector by vector (see `func.vmap`), and
            each vector is what `check_forward_ad` checks.
        fast_mode: compare a random projection of each Jacobian. It costs a few calls per input, not one per element.
        masked: let gradients for a gradient of zeros be close to zero; else they are exactly zero.

    Raises:
        GradcheckError: a check failed, and `raise_exception` is set.
        ValueError: no input requires grad.
        RuntimeError: an input has a stride of 0.

    Example:
        >>> x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(lambda x: (x * x).sum(), x)
        True
    """
    _need(check_forward_ad or check_backward_ad, "check_forward_ad", "check_backward_ad")
    _entails(check_batched_grad, "check_batched_grad", check_backward_ad, "check_backward_ad")
    _entails(check_batched_forward_grad, "check_batched_forward_grad", check_forward_ad, "check_forward_ad")
    arguments = _as_tuple(inputs)
    _check_inputs(arguments)
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

    It is `gradcheck` of the function that takes `inputs` and `grad_outputs` to the gradients of the inputs.

    Args:
        func, inputs: as for `gradcheck`.
        grad_outputs: the gradients of the differentiable outputs; unless given, drawn from [-1, 1) and with grad.
        gen_non_contig_grad_outputs: make those that are drawn non-contiguous.
        check_fwd_over_rev: check forward mode through backward.
        check_rev_over_rev: check backward through backward.
        eps, atol, rtol, raise_exception, nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad,
            fast_mode, masked: as for `gradcheck`.

    Raises:
        GradcheckError: a check failed, and `raise_exception` is set.

    Example:
        >>> x = torch.randn(3, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradgradcheck(lambda x: x.sin() * x, x)
        True
    """
    _need(check_fwd_over_rev or check_rev_over_rev, "check_fwd_over_rev", "check_rev_over_rev")
    _entails(check_undefined_grad, "check_undefined_grad", check_rev_over_rev, "check_rev_over_rev")
    _entails(check_batched_grad, "check_batched_grad", check_rev_over_rev, "check_rev_over_rev")
    arguments = _as_tuple(inputs)
    if grad_outputs is None:
        outputs = _differentiable(func(*arguments))
        vectors = tuple([_drawn_like(each, gen_non_contig_grad_outputs) for each in outputs])
    else:
        vectors = _as_tuple(grad_outputs)
    count = len(arguments)
    wanted = [*map(_requires_grad, arguments), *(each.requires_grad for each in vectors)]

    def gradients(*given: Any) -> tuple[Tensor, ...]:
        both = [  # forward mode hands in detached tensors
            each.requires_grad_() if want else each for each, want in zip(given, wanted, strict=True)
        ]
        found = grad(
            _differentiable(func(*both[:count])),
            [each for each, want in zip(both[:count], wanted, strict=False) if want],
            both[count:],
            create_graph=True,
            allow_unused=True,
        )
        return tuple([each for each in found if each is not None])

    return gradcheck(
        gradients, arguments + vectors, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


# The arguments ------------------------------------------------------------------------------------


def _need(given: bool, first: str, second: str) -> None:
    if not given:
        raise AssertionError(f"Expected at least one of {first} or {second} to be True")


def _entails(given: bool, name: str, needed: bool, other: str) -> None:
    if given and not needed:
        raise AssertionError(f"Setting {name}=True requires {other} to be True")


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _requires_grad(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _differentiable(result: Any) -> list[Tensor]:
    return [each for each in _as_tuple(result) if each.requires_grad]


def _drawn_like(output: Tensor, non_contiguous: bool) -> Tensor:
    """Return a gradient for `output`, drawn as PyTorch draws it."""
    shape = tuple(output.shape)
    gaps = non_contiguous and output.numel() > 1
    drawn: Tensor = empty((*shape[:-1], 2 * shape[-1]) if gaps else shape, dtype=output.dtype)
    drawn.uniform_(-1, 1)
    return (drawn[..., 1::2] if gaps else drawn).requires_grad_()


def _check_inputs(arguments: tuple[Any, ...]) -> None:
    for k, each in enumerate(arguments):
        if not _requires_grad(each):
            continue
        if each.dtype is not dtypes.float64:
            warnings.warn(
                f"Input #{k} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex.",
                stacklevel=3,
            )
        if each.numel() and any(stride == 0 < size - 1 for stride, size in zip(each.stride(), each.shape, strict=True)):
            raise RuntimeError(
                f"The {k}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
    if not any(map(_requires_grad, arguments)):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


# Jacobians ----------------------------------------------------------------------------------------


class _Problem:
    """A function at a point, and its Jacobians.

    Attributes:
        wanted: the inputs that require grad; `places`: where they are among the arguments.
        floats: the results that are floating-point.
        outputs: those of them that require grad; `columns`: where they are among `floats`.
    """

    def __init__(
        self, func: Callable[..., Any], arguments: tuple[Any, ...], eps: float, atol: float, rtol: float,
        nondet_tol: float, check_grad_dtypes: bool,
    ) -> None:  # fmt: skip
        self.func, self.arguments, self.eps, self.atol, self.rtol = func, arguments, eps, atol, rtol
        self.nondet_tol, self.check_grad_dtypes = nondet_tol, check_grad_dtypes
        self.places = [k for k, each in enumerate(arguments) if _requires_grad(each)]
        self.wanted: list[Tensor] = [arguments[k] for k in self.places]
        results = _as_tuple(func(*arguments))
        self.outputs = _differentiable(results)
        self.floats: list[Tensor] = [each for each in results if each.is_floating_point()]
        self.columns = [k for k, each in enumerate(self.floats) if each.requires_grad]

    def evaluate(self, arguments: Sequence[Any]) -> list[Tensor]:
        """Return the floating-point results at `arguments`."""
        results = _as_tuple(self.func(*arguments))
        return [each for each in results if each.is_floating_point()]

    def numerical(self, j: int, u: Tensor | None = None) -> list[Tensor]:
        """Return the Jacobian (or `u` times it) of each of `floats` by input `j`, by central differences."""
        data = self.wanted[j].data  # a write to it is not noticed by the graph
        if u is None:
            indices = product(*map(range, data.shape))
            rows = [self._difference(data[i], self.eps, f"on index {i} ") for i in indices]
        else:
            rows = [self._difference(data, u.reshape(data.shape) * self.eps, "")]
        return self._by_rows(rows)

    def by_forward(self, j: int, u: Tensor | None = None) -> list[Tensor]:
        """Return the same by forward mode."""
        x = self.wanted[j]
        tangents: list[Tensor | None] = [zeros_like(each) for each in self.wanted]
        rows = []
        for direction in unit_tensors(x) if u is None else [u.reshape(x.shape)]:
            tangents[j] = direction
            rows.append(self.tangents(tangents))
        return self._by_rows(rows)

    def by_backward(self, output: Tensor, v: Tensor | None = None) -> list[Tensor]:
        """Return the Jacobian (or it times `v`) of `output` by each of `wanted`, by backward.

        Raises:
            GradcheckError: a gradient is of another dtype than its input, or another one the second time.
        """
        first, second = (self._by_columns(output, v) for _ in range(2))
        for one, two in zip(first, second, strict=True):
            if one.numel() and (one - two).abs().max() > self.nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
                    "times gives different values, although analytical gradient matches numerical gradient. The "
                    f"tolerance for nondeterminism was {self.nondet_tol}. If the function is expected to be "
                    "nondeterministic, pass nondet_tol=<tol>."
                )
        return first

    def _by_rows(self, rows: Sequence[Sequence[Tensor | None]]) -> list[Tensor]:
        jacobians = [each.detach().new_zeros((len(rows), each.numel())) for each in self.floats]
        for number, row in enumerate(rows):
            for jacobian, values in zip(jacobians, row, strict=True):
                if values is not None:
                    jacobian[number] = values.detach().reshape(-1)
        return jacobians

    def _by_columns(self, output: Tensor, v: Tensor | None) -> list[Tensor]:
        count = output.numel() if v is None else 1
        jacobians = [each.detach().new_zeros((each.numel(), count)) for each in self.wanted]
        for number, vector in enumerate(unit_tensors(output) if v is None else [v.reshape(output.shape)]):
            found = grad(output, self.wanted, vector, retain_graph=True, allow_unused=True)
            for jacobian, g in zip(jacobians, found, strict=True):
                if g is None:
                    continue
                if self.check_grad_dtypes and g.dtype is not jacobian.dtype:
                    raise GradcheckError("Gradient has dtype mismatch")
                jacobian[:, number] = g.detach().reshape(-1)
        return jacobians

    def _difference(self, entry: Tensor, step: Any, where: str) -> list[Tensor]:
        """Return the derivatives of the results as `entry`, a part of an input's memory, goes by `step`."""
        before = entry.clone()
        sides = []
        try:
            for moved in (before - step, before + step):
                entry.copy_(moved)
                sides.append([each.clone() for each in self.evaluate(self.arguments)])
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
        """Return the tangents of the results for those of `wanted`; None stands for an input that has none."""
        with dual_level():
            arguments = list(self.arguments)
            for k, tangent in zip(self.places, tangents, strict=True):
                primal = self.arguments[k].detach()
                arguments[k] = primal if tangent is None else make_dual(primal, tangent)
            return [unpack_dual(each).tangent for each in self.evaluate(arguments)]


# Comparisons --------------------------------------------------------------------------------------


def _compare_jacobians(problem: _Problem, forward: bool) -> None:
    inputs = range(len(problem.wanted))
    numerical = [problem.numerical(j) for j in inputs]
    if not problem.outputs:
        _check_constant(numerical, 0)
    tangents = [problem.by_forward(j) for j in inputs] if forward else []
    for i, (column, output) in enumerate(zip(problem.columns, problem.outputs, strict=True)):
        analytical = [each[column] for each in tangents] if forward else problem.by_backward(output)
        for j in inputs:
            if not _close(analytical[j], numerical[j][column], problem.rtol, problem.atol):
                raise GradcheckError(_mismatch(i, j, numerical[j][column], analytical[j], forward))


def _compare_projections(problem: _Problem, forward: bool) -> None:
    generator = Generator()  # PyTorch's: always the same vectors, and the user's generator is left alone
    us = [_random_vector(each, generator) for each in problem.wanted]
    vs = [] if forward else [_random_vector(each, generator) for each in problem.outputs]
    numerical = [problem.numerical(j, u) for j, u in enumerate(us)]
    if not problem.outputs:
        _check_constant(numerical, problem.nondet_tol)
    if forward:
        analytical = [problem.by_forward(j, u) for j, u in enumerate(us)]
    else:
        products = [problem.by_backward(output, v) for output, v in zip(problem.outputs, vs, strict=True)]
    for j, u in enumerate(us):
        for i, column in enumerate(problem.columns):
            theirs = numerical[j][column][0]
            atol = problem.atol * u.sum().item()
            if forward:
                ours = analytical[j][column][0]
            else:
                ours = products[i][j][:, 0].dot(u)
                theirs = (vs[i] * theirs).sum()
                atol *= vs[i].sum().item()
            if not _close(ours, theirs, problem.rtol, atol):
                message = _mismatch(i, j, theirs, ours, forward)
                raise GradcheckError(message + _in_slow_mode(problem, i, j, forward))


def _check_constant(numerical: list[list[Tensor]], tolerance: float) -> None:
    for jacobians in numerical:
        for jacobian in jacobians:
            if jacobian.numel() and jacobian.abs().max() > tolerance:
                raise GradcheckError("Numerical gradient for function expected to be zero")


def _random_vector(like: Tensor, generator: Generator) -> Tensor:
    vector: Tensor = rand(like.numel(), generator=generator).to(like.dtype)
    return vector.div_(vector.norm())


def _close(one: Tensor, two: Tensor, rtol: float, atol: float) -> bool:
    kind = dtypes.promote_types(one.dtype, two.dtype)
    return allclose(one.to(kind), two.to(kind), rtol, atol)


def _mismatch(i: int, j: int, numerical: Tensor, analytical: Tensor, forward: bool) -> str:
    mode = "computed with forward mode " if forward else ""
    return (
        f"Jacobian {mode}mismatch for output {i} with respect to input {j},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _in_slow_mode(problem: _Problem, i: int, j: int, forward: bool) -> str:
    """Return what whole Jacobians would have said of a mismatch of their projections."""
    column = problem.columns[i]
    numerical = problem.numerical(j)[column]
    analytical = problem.by_forward(j)[column] if forward else problem.by_backward(problem.outputs[i])[j]
    text = (
        "\nThe above quantities relating the numerical and analytical jacobians are computed in fast mode, of random "
        "projections. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
        f"Numerical:\n {numerical}\nAnalytical:\n{analytical}\n\n"
        f"The max per-element difference (slow mode) is: {(numerical - analytical).abs().max()}.\n"
    )
    if _close(analytical, numerical, problem.rtol, problem.atol):
        text += (
            "Fast gradcheck failed but element-wise differences are small. This means that the test might've passed "
            "in slow_mode! Call gradcheck with fast_mode=False."
        )
    return text


# Rules of backward and of forward mode ------------------------------------------------------------


def _check_multiplies_by_gradient(problem: _Problem, masked: bool) -> None:
    zeros = [zeros_like(each) for each in problem.outputs]
    for g in grad(problem.outputs, problem.wanted, zeros, allow_unused=True):
        if g is not None and not (allclose(g, zeros_like(g)) if masked else g.eq(0).all()):
            raise GradcheckError("backward not multiplied by grad_output")


def _check_batched_gradients(problem: _Problem) -> None:
    """Check that the gradients of a batch of vectors are those of each."""
    for output in problem.outputs:
        # The user's generator is left alone.
        vectors: Tensor = randn((2, *output.shape), generator=Generator(), dtype=output.dtype)
        each = [grad(output, problem.wanted, vector, retain_graph=True, allow_unused=True) for vector in vectors]
        found = grad(output, problem.wanted, vectors, retain_graph=True, allow_unused=True, is_grads_batched=True)
        for j, (batch, *rows) in enumerate(zip(found, *each, strict=True)):
            if batch is not None and not allclose(batch, stack(rows), problem.rtol, problem.atol):
                raise GradcheckError(
                    "gradcheck or gradgradcheck failed while testing batched gradient computation.\n"
                    f"For input {j}, the batch gives:\n{batch}\nand its vectors one by one:\n{stack(rows)}\n"
                )


def _check_undefined_gradients(problem: _Problem) -> None:
    """Check all gradients of the outputs undefined, then each in turn where there are several."""
    count = len(problem.outputs)
    cases = [set(range(count)), *({k} for k in range(count) if count > 1)]
    for undefined in cases:
        outputs = [
            _Undefined.apply(each) if k in undefined else each
            for k, each in enumerate(_differentiable(problem.func(*problem.arguments)))
        ]
        zeros = [zeros_like(each) for each in outputs]
        try:
            found = grad(outputs, problem.wanted, zeros, allow_unused=True)
        except RuntimeError as error:
            _warn_of_undefined_gradients()
            raise GradcheckError("Expected backward function to handle undefined output grads.") from error
        if any(g is not None and not g.eq(0).all() for g in found):
            _warn_of_undefined_gradients()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
            )


def _warn_of_undefined_gradients() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may "
        "break existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature',
        stacklevel=4,
    )


def _check_undefined_tangents(problem: _Problem) -> None:
    """Check for each input that no tangent gives what a tangent of zeros gives."""
    generator = Generator()
    tangents = [_random_vector(each, generator).reshape(each.shape) for each in problem.wanted]
    for j, each in enumerate(problem.wanted):
        with_zeros, without = (
            problem.tangents([*tangents[:j], other, *tangents[j + 1 :]]) for other in (zeros_like(each), None)
        )
        for i, (one, two) in enumerate(zip(with_zeros, without, strict=True)):
            if one is not None and two is not None and not allclose(one, two):
                raise GradcheckError(
                    f"Mismatch in tangent values for output with index: {i} when input: {each} has an undefined "
                    f"tangent value. Got: {two} but expected: {one}"
                )
