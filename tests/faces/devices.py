"""Arrays of other devices, and tensors without data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.faces import face
from tests.faces.calls import converted, function, strided, tensors_in
from tests.samples import Sample
from tinytorch.core import unusual
from tinytorch.kernels.meta import NoData


class Standin(np.ndarray):
    """An array of another device: ufuncs and NumPy's functions work by NumPy's protocols, and conversion raises."""

    def __array_finalize__(self, obj: Any) -> None:
        pass

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if "out" in kwargs:
            kwargs["out"] = tuple(bare(each) for each in kwargs["out"])
        return dressed(getattr(ufunc, method)(*map(bare, inputs), **{k: bare(v) for k, v in kwargs.items()}))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return dressed(func(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()}))

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("an array of another device was converted to NumPy's implicitly")


def bare(value: Any) -> Any:
    if isinstance(value, Standin):
        return value.view(np.ndarray)
    if isinstance(value, (list, tuple)):
        return type(value)(bare(each) for each in value)
    return value


def dressed(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = np.asarray(value)  # the device has no scalars, only 0-d arrays
    if isinstance(value, np.ndarray):
        return value.view(Standin)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(dressed(each) for each in value)
    return value


@face(ignoring=[RuntimeWarning])  # from the array class of the test, not from the package
def kernels_accept_arrays_of_another_device(sample: Sample) -> None:
    args = [converted(arg, tinytorch, lambda array: array.copy("K").view(Standin)) for arg in sample.args]
    kwargs = {
        key: converted(arg, tinytorch, lambda array: array.copy("K").view(Standin))
        for key, arg in sample.kwargs.items()
    }
    result = function(tinytorch, sample.name)(*args, **kwargs)
    for each in tensors_in(result, tinytorch):
        # (Methods of ndarray, such as `dot`, return scalars also for the derived class: so 0-d results may be plain.)
        assert isinstance(each._array, Standin) or each.ndim == 0, "the result came back on the CPU"


#: Functions that depend on the elements, so that PyTorch cannot run them on the meta device either; and copies.
OF_ELEMENTS = """
    allclose argwhere bincount cov equal histogram histogramdd linalg.lstsq masked_select nonzero repeat_interleave
    nn.functional.gaussian_nll_loss nn.functional.one_hot Tensor.__getitem__ Tensor.cpu Tensor.to unique
    unique_consecutive where
""".split()


#: Functions of which some results depend on the shape or the dtype of a tensor alone, or on some of the tensors.
OF_SOME = """
    Tensor.view_as Tensor.reshape_as Tensor.expand_as Tensor.type_as meshgrid broadcast_tensors block_diag lu_unpack
    atleast_1d atleast_2d atleast_3d histogramdd embedding_bag nn.functional.multi_head_attention_forward
""".split()


def on_meta(x: Any) -> Any:
    """Return an argument with its tensors on the meta device, as leaves."""
    if isinstance(x, tinytorch.Tensor):
        return x.detach().to("meta").requires_grad_(x.requires_grad)
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        return type(x)(on_meta(each) for each in x)
    return x


def described(x: Any) -> Any:
    """Return what a result on the meta device has in common with the real one."""
    if isinstance(x, tinytorch.Tensor):
        return tuple(x.shape), x.stride(), str(x.dtype), x.requires_grad
    if isinstance(x, (list, tuple)):
        return [described(each) for each in x]
    return repr(x)


def compared(sample: Sample, change: Any, describe: Any = described) -> None:
    """Assert that a sample on the meta device has the properties of the real call, and so have its gradients."""
    given = [converted(each, tinytorch, change, True) for each in (*sample.args, *sample.kwargs.values())]
    without = on_meta(given)
    outcomes = []
    for values in (given, without):
        named = dict(zip(sample.kwargs, values[len(sample.args) :], strict=True))
        result = function(tinytorch, sample.name)(*values[: len(sample.args)], **named)
        differentiated = result if sample.select is None else sample.select(result)
        outputs = [x for x in tensors_in([differentiated], tinytorch) if x.requires_grad]
        if sample.backward and outputs:
            tinytorch.autograd.backward(outputs, [tinytorch.ones_like(x) for x in outputs])
        outcomes.append((result, [x.grad for x in tensors_in(values, tinytorch)]))
    assert describe(outcomes[0]) == describe(outcomes[1])
    assert all(x.is_meta for x in tensors_in(outcomes[1], tinytorch))


@face()
def all_but_the_numbers_is_the_same_on_meta(sample: Sample) -> None:
    for change in (None, strided):
        try:
            compared(sample, change)
        except NoData:
            if sample.name not in OF_ELEMENTS:
                raise


def of_rules(x: Any) -> Any:
    """Return the properties that the rules of NumPy's functions determine."""
    if isinstance(x, tinytorch.Tensor):
        return tuple(x.shape), str(x.dtype), x.requires_grad
    return [of_rules(each) for each in x] if isinstance(x, (list, tuple)) else repr(x)


@face()
def so_it_is_by_the_rules_for_large_arrays(sample: Sample) -> None:
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(unusual, "SMALL", -1)
        try:
            compared(sample, None, of_rules)
        except NoData:
            if sample.name not in OF_ELEMENTS:
                raise


def chosen(values: Any, position: int, seen: list[Any]) -> Any:
    """Return arguments of which one tensor, by its position among all tensors, is on the meta device."""
    if isinstance(values, tinytorch.Tensor):
        seen.append(values)
        return on_meta(values) if len(seen) == position + 1 else values
    if isinstance(values, (list, tuple)) and not hasattr(values, "_fields"):
        return type(values)([chosen(each, position, seen) for each in values])
    return values


@face()
def no_result_is_computed_from_one_tensor_without_data(sample: Sample) -> None:
    given = [converted(each, tinytorch, None, False) for each in (*sample.args, *sample.kwargs.values())]
    tensors: list[Any] = []
    chosen(given, -1, tensors)
    if any(x.numel() == 0 for x in tensors) or sample.kwargs.get("beta") == 0 or sample.name in OF_SOME:
        return
    for position in range(len(tensors)) if len(tensors) > 1 else ():
        values = chosen(given, position, [])
        args, named = values[: len(sample.args)], dict(zip(sample.kwargs, values[len(sample.args) :], strict=True))
        try:
            result = function(tinytorch, sample.name)(*args, **named)
        except (RuntimeError, IndexError):
            pass
        else:
            assert any(x.is_meta for x in tensors_in([result], tinytorch))
        if sample.in_place and position:
            before = args[0].clone()
            with pytest.raises(RuntimeError):
                getattr(args[0], sample.name.rpartition(".")[2] + "_")(*args[1:], **named)
            assert tinytorch.equal(before, args[0])
