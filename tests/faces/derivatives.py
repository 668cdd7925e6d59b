"""Derivatives of every order, forward and reverse, and the in-place form."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import tinytorch
from tests.faces import face
from tests.faces.calls import as_function, call, converted, tensors_in
from tests.faces.outcomes import agree, plain
from tests.samples import Sample
from tinytorch.autograd.forward_ad import Level


def is_differentiable(sample: Sample) -> bool:
    return sample.gradcheck and sample.backward


@face(is_differentiable, always="ci")
def gradients_of_first_and_second_order(sample: Sample) -> None:
    run, inputs = as_function(sample)
    outputs = run(*inputs) if inputs else ()
    if not any(each.requires_grad for each in outputs):
        return
    small = sum(each.numel() for each in (*inputs, *outputs)) < 40
    assert tinytorch.autograd.gradcheck(run, inputs, fast_mode=not small, check_forward_ad=True)
    # For larger samples, forward over reverse is compared with reverse over reverse below.
    assert tinytorch.autograd.gradgradcheck(run, inputs, fast_mode=True, atol=1e-4, check_fwd_over_rev=small)


def vectors(tensors: Any, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    drawn = [
        rng.standard_normal(each.shape) + (1j * rng.standard_normal(each.shape) if each.is_complex() else 0)
        for each in tensors
    ]
    return [tinytorch.tensor(v, dtype=each.dtype) for v, each in zip(drawn, tensors, strict=True)]


def tangents(run: Any, inputs: Any, directions: Any) -> tuple[list[Any], list[Any]]:
    """Return the outputs of a function and their tangents, with zeros for outputs without one."""
    with Level() as level:
        duals = [level.dual(x, v) for x, v in zip(inputs, directions, strict=True)]
        outputs = [level.unpack(out) for out in run(*duals)]
    zeros = [tinytorch.zeros_like(out.primal) for out in outputs]
    return [out.primal for out in outputs], [
        zero if out.tangent is None else out.tangent for out, zero in zip(outputs, zeros, strict=True)
    ]


def total(firsts: Any, seconds: Any) -> Any:
    """Return the inner product of two lists of tensors: of complex numbers as of pairs of real numbers."""
    zero = tinytorch.tensor(0.0, dtype=tinytorch.float64)
    products = [a * b.conj() for a, b in zip(firsts, seconds, strict=True) if a is not None]
    return sum([(each.real if each.is_complex() else each).sum() for each in products], zero)


@face(is_differentiable)
def tangents_are_transposes_of_gradients(sample: Sample) -> None:
    """Compare forward mode with reverse mode, and both ways of nesting them, exactly."""
    run, inputs = as_function(sample)
    outputs = run(*inputs) if inputs else ()
    outputs = [each for each in outputs if each.requires_grad]
    if not outputs:
        return
    gradient = functools.partial(tinytorch.autograd.grad, allow_unused=True)

    def only_differentiable(*given: Any) -> Any:
        return [each for each, first in zip(run(*given), run(*inputs), strict=True) if first.requires_grad]

    v, u = vectors(inputs, 1), vectors(outputs, 2)
    _, pushed = tangents(only_differentiable, inputs, v)
    pulled = gradient(outputs, inputs, u, create_graph=True)
    forward = total(pushed, u)
    reverse = total(pulled, v)
    np.testing.assert_allclose(forward.item(), reverse.item(), rtol=1e-9, atol=1e-9)
    # The derivative of <u, J v> by reverse over reverse, reverse over forward, and forward over reverse.
    if not reverse.requires_grad:
        return
    expected = gradient(reverse, inputs, retain_graph=True)
    found = gradient(forward, inputs) if forward.requires_grad else [None] * len(inputs)
    for want, have in zip(expected, found, strict=True):
        want, have = (0 if each is None else each.numpy() for each in (want, have))
        np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-9)

    def gradients(*given: Any) -> Any:
        found = gradient(only_differentiable(*given), given, u)
        return [tinytorch.zeros_like(x) if g is None else g for g, x in zip(found, given, strict=True)]

    w = vectors(inputs, 3)
    _, pushed = tangents(gradients, inputs, w)
    np.testing.assert_allclose(total(pushed, v).item(), total(expected, w).item(), rtol=1e-9, atol=1e-9)


@face(lambda sample: sample.in_place)
def in_place_form_gives_the_same(sample: Sample) -> None:
    expected, inputs = call(sample, tinytorch, requires_grad=True)
    args = [converted(arg, tinytorch, requires_grad=True) for arg in sample.args]
    kwargs = {key: converted(arg, tinytorch, requires_grad=True) for key, arg in sample.kwargs.items()}
    target = args[0].clone()  # a leaf that requires grad cannot be written to
    version = target._version
    method = getattr(target, f"{sample.name.rpartition('.')[2]}_")
    result = method(*args[1:], **kwargs)
    assert result is target
    assert target._version > version
    agree(plain(target), plain(expected.to(target.dtype)), 0, 0)
    if expected.requires_grad:
        expected.sum().backward()
        target.sum().backward()
        for x, y in zip(inputs, tensors_in([*args, *kwargs.values()], tinytorch), strict=True):
            if x.grad is not None:
                agree(plain(y.grad), plain(x.grad), 1e-12, 1e-12)


@face(lambda sample: sample.in_place and is_differentiable(sample))
def tangents_of_the_in_place_form(sample: Sample) -> None:
    run, inputs = as_function(sample)
    write, _ = as_function(sample, in_place=True)
    if inputs:
        v = vectors(inputs, 1)
        for expected, found in zip(*(tangents(each, inputs, v)[1] for each in (run, write)), strict=True):
            np.testing.assert_allclose(found.numpy(force=True), expected.numpy(force=True), rtol=1e-12)
