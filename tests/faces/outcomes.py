"""What a call of a sample gives, in either library: results, and gradients of the arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.faces.calls import array_of, call, single, strided, tensors_in
from tests.kept import Numbers
from tests.samples import Sample

#: How the arrays of a sample are changed before the call.
CHANGES: dict[str, Callable[[Any], Any] | None] = {"float64": None, "float32": single, "strided": strided}


class Outcome(NamedTuple):
    """What a call returned, how many of the results require grad, and the gradients of the arguments."""

    results: Any
    with_grad: int
    gradients: list[Numbers | None]


def plain(value: Any) -> Any:
    """Return a result with `Numbers` for tensors, lists for sequences, and the names of dtypes and devices."""
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if hasattr(value, "requires_grad"):
        return Numbers(str(value.dtype), array_of(value))
    return value if isinstance(value, (bool, int, float, complex, str)) or value is None else str(value)


def outcome(sample: Sample, library: Any, change: Callable[[Any], Any] | None) -> Outcome:
    """Call a sample, and differentiate a sum of its results with random weights."""
    result, inputs = call(sample, library, change, requires_grad=True)
    if sample.select is not None:
        result = sample.select(result)
    outputs = [each for each in tensors_in(result, library) if each.requires_grad]
    results = plain(result)
    if not outputs or not sample.backward:
        return Outcome(results, len(outputs), [])
    weights = [np.random.default_rng(5).standard_normal(tuple(each.shape)) for each in outputs]
    library.autograd.backward(
        outputs, [library.tensor(w, dtype=each.dtype) for w, each in zip(weights, outputs, strict=True)]
    )
    return Outcome(results, len(outputs), [plain(each.grad) for each in inputs])


def compare(ours: Outcome, theirs: Outcome, rtol: float, atol: float) -> None:
    """Assert that two outcomes agree in values, dtypes and shapes; float32 may differ by 1e4 times as much."""
    agree(ours.results, theirs.results, rtol, atol)
    assert ours.with_grad == theirs.with_grad, "requires_grad differs"
    agree(ours.gradients, theirs.gradients, max(rtol, 1e-7), max(atol, 1e-9) * 10)


def agree(ours: Any, theirs: Any, rtol: float, atol: float) -> None:
    """Assert that two results, as `plain` returns them, agree in values, dtypes and shapes."""
    if isinstance(theirs, Numbers):
        assert isinstance(ours, Numbers), ours
        assert ours.dtype == theirs.dtype
        assert ours.array.shape == theirs.array.shape
        slack = 1.0 if theirs.dtype.endswith(("t64", "complex128")) else 1e4
        np.testing.assert_allclose(ours.array, theirs.array, rtol=rtol * slack, atol=atol * slack)
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            agree(mine, other, rtol, atol)
    else:
        assert ours == theirs
