"""Samples give the same, bit for bit, whether the call and the walk backward are in C (core/native.py) or in Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import tinytorch
from tests.faces import face
from tests.faces.calls import call, single, strided, tensors_in
from tests.samples import Sample
from tinytorch.core.mode import function_modes
from tinytorch.core.native import library


@contextmanager
def in_python() -> Iterator[None]:
    """Let Python call the ops and walk backward: what is in C declines while there are function modes, and hooks."""
    hooked = tinytorch.zeros(1, requires_grad=True)
    handle = hooked.register_hook(lambda g: g)
    function_modes.on += 1
    try:
        yield
    finally:
        function_modes.on -= 1
        handle.remove()


def seen(x: Any) -> tuple[Any, ...]:
    """Return all that a program can see of a tensor."""
    array = x.detach().resolve_conj().resolve_neg().numpy() if x.layout is tinytorch.strided else x.to_dense().numpy()
    node = x.grad_fn
    nodes = () if node is None else (node.name(), len(node.next_functions), x.output_nr)
    strides = x.stride() if x.layout is tinytorch.strided and x.numel() > 1 else ()
    bits = np.where(np.isnan(array), np.nan, array).tobytes() if array.dtype.kind in "fc" else array.tobytes()
    return tuple(x.shape), strides, x.dtype, bits, x.requires_grad, x._is_view(), x._version, nodes


def outcome(sample: Sample, change: Any) -> Any:
    tinytorch.manual_seed(0)
    try:
        result, inputs = call(sample, tinytorch, change, requires_grad=sample.backward)
        if sample.select is not None:
            result = sample.select(result)
        outputs = tensors_in(result, tinytorch)
        shown = [seen(each) for each in outputs]
        recorded = [each for each in outputs if each.requires_grad]
        if recorded:
            tinytorch.autograd.backward(recorded, [tinytorch.ones_like(each) for each in recorded])
        return shown, [each.grad if each.grad is None else seen(each.grad) for each in inputs]
    except Exception as error:
        return type(error), str(error)


@face(lambda sample: library is not None)
def the_same_in_python(sample: Sample) -> None:
    for change in (None, single, strided):
        found = outcome(sample, change)
        with in_python():
            assert found == outcome(sample, change)
