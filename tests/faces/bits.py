"""Lazy conjugates and negatives in the place of tensors: they change no result."""

from __future__ import annotations

from typing import Any

import numpy as np

import tinytorch
from tests.faces import face
from tests.faces.calls import converted, function, tensors_in
from tests.faces.complex_numbers import as_complex, has_floats
from tests.samples import Sample


def with_bits(value: Any, leaves: list[Any]) -> Any:
    """Return an argument with lazy conjugates or negatives of the same values in the place of its tensors."""
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(with_bits(each, leaves) for each in value)
    if not isinstance(value, tinytorch.Tensor) or not (value.is_complex() or value.is_floating_point()):
        return value
    leaf = (value.conj_physical() if value.is_complex() else -value).requires_grad_()
    leaves.append(leaf)
    return leaf.conj() if value.is_complex() else leaf._neg_view()


def outcome(sample: Sample, lazy: bool) -> Any:
    """Return a sample's results as arrays, the gradients of its arguments, and its error."""
    tinytorch.manual_seed(0)
    args = [converted(each, tinytorch) for each in sample.args]
    kwargs = {key: converted(each, tinytorch) for key, each in sample.kwargs.items()}
    leaves: list[Any] = []
    if lazy:
        args, kwargs = with_bits(args, leaves), {key: with_bits(each, leaves) for key, each in kwargs.items()}
    else:
        leaves = [each for each in tensors_in([*args, *kwargs.values()], tinytorch)]
        leaves = [each.requires_grad_() for each in leaves if each.is_complex() or each.is_floating_point()]
    try:
        result = function(tinytorch, sample.name)(*args, **kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError, AssertionError, BufferError) as error:
        return type(error), [], []
    if sample.select is not None:
        result = sample.select(result)
    found = tensors_in([result], tinytorch)
    made = [each for each in found if each.requires_grad]
    gradients = []
    if made and sample.backward:
        vectors = [tinytorch.ones_like(each) for each in made]
        gradients = [
            None if g is None else np.asarray(g.numpy(force=True))
            for g in tinytorch.autograd.grad(made, leaves, vectors, allow_unused=True)
        ]
        if lazy:
            gradients = [None if g is None else -g if g.dtype.kind == "f" else g.conj() for g in gradients]
    return None, [each.numpy(force=True) for each in found] or [result], gradients


#: Functions that tell of the memory, or refuse the bits as PyTorch does.
TELLING = {
    "is_conj", "is_neg", "view_as_real", "Tensor.numpy", "Tensor.view", "Tensor.data_ptr", "Tensor.is_set_to",
    "Tensor.set_",
}  # fmt: skip


@face(lambda sample: sample.name not in TELLING and has_floats(sample), ignoring=[""])
def bits_change_no_result(sample: Sample) -> None:
    for each in (sample, as_complex(sample, np.complex128)):
        _compare_bits(each)


def _compare_bits(sample: Sample) -> None:
    error, expected, gradients = outcome(sample, lazy=False)
    lazy_error, found, lazy_gradients = outcome(sample, lazy=True)
    assert lazy_error is error
    for have, want in zip(found + lazy_gradients, expected + gradients, strict=True):
        if isinstance(want, np.ndarray):
            assert have.dtype == want.dtype
            np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-12)
