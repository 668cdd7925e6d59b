"""Samples as calls: of one library or the other, as functions of their tensors, with arrays changed on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

import tinytorch
from tests.oracle import torch
from tests.samples import Sample
from tinytorch.core.tensor import wrap


def function(library: Any, name: str) -> Any:
    """Return the function at the path `name` below `library`."""
    for part in name.split("."):
        library = getattr(library, part)
    return library


def converted(value: Any, library: Any, change: Any = None, requires_grad: bool = False) -> Any:
    """Return an argument with its arrays as the library's tensors."""
    if isinstance(value, np.ndarray):
        array = value if change is None else change(value)
        if library is tinytorch:
            tensor = (
                wrap(array)
                if type(array) is not np.ndarray
                else tinytorch.from_numpy(array.copy("K") if array.base is None else array)
            )
        else:
            tensor = torch.from_numpy(array.copy("K") if array.base is None else array)
        if requires_grad and array.dtype.kind in "fc":
            tensor.requires_grad_()
        return tensor
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(converted(each, library, change, requires_grad) for each in value)
    if library is torch and isinstance(value, tinytorch.dtype):
        return getattr(torch, value.name)
    return value


def call(sample: Sample, library: Any, change: Any = None, requires_grad: bool = False) -> tuple[Any, list[Any]]:
    """Return the result of a sample and the tensors among its arguments."""
    args = [converted(arg, library, change, requires_grad) for arg in sample.args]
    kwargs = {key: converted(arg, library, change, requires_grad) for key, arg in sample.kwargs.items()}
    result = function(library, sample.name)(*args, **kwargs)
    return result, tensors_in([*args, *kwargs.values()], library)


def tensors_in(values: Any, library: Any) -> list[Any]:
    """Return all tensors in nested sequences."""
    if isinstance(values, library.Tensor):
        return [values]
    if isinstance(values, (list, tuple)):
        return [tensor for each in values for tensor in tensors_in(each, library)]
    return []


def parts(result: Any) -> list[Any]:
    """Return the tensors or values that a call returned."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


def array_of(value: Any) -> Any:
    return value.numpy(force=True) if hasattr(value, "numpy") else np.asarray(value)


def single(array: Any) -> Any:
    return array.astype(np.float32) if array.dtype == np.float64 else array


def strided(array: Any) -> Any:
    """Return the same numbers in non-contiguous memory, with the axes in reverse order."""
    if array.ndim == 0:
        return array
    wide = np.zeros((*array.shape[::-1], 2), array.dtype)
    wide[..., 0] = array.T
    return wide[..., 0].T


def as_function(sample: Sample, in_place: bool = False) -> tuple[Any, list[Any]]:
    """Return a sample as a function of its floating-point tensors, and the tensors; in place it works on a copy."""
    everything = [*sample.args, *sample.kwargs.values()]
    tensors = [converted(each, tinytorch, requires_grad=True) for each in everything]
    inputs = [each for each in tensors_in(tensors, tinytorch) if each.requires_grad]

    def run(*given: Any) -> Any:
        replaced = dict(zip([id(each) for each in inputs], given, strict=True))

        def put(value: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)(put(each) for each in value)
            return replaced.get(id(value), value)

        args = [put(each) for each in tensors[: len(sample.args)]]
        kwargs = dict(zip(sample.kwargs, [put(each) for each in tensors[len(sample.args) :]], strict=True))
        if in_place:
            result = getattr(args[0].clone(), f"{sample.name.rpartition('.')[2]}_")(*args[1:], **kwargs)
        else:
            result = function(tinytorch, sample.name)(*args, **kwargs)
        if sample.select is not None:
            result = sample.select(result)
        found = tensors_in(result, tinytorch)
        return tuple([each for each in found if each.dtype.is_floating_point or each.dtype.is_complex])

    return run, inputs
