"""The samples of all ops that can be written as ONNX: ONNX Runtime gives what the op gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.faces.calls import converted, function
from tests.oracle import package
from tests.samples import Sample, all_samples
from tests.turns import is_its_turn
from tinytorch import nn
from tinytorch.func.pytree import flatten
from tinytorch.fx.onnx.builder import entry
from tinytorch.fx.onnx.errors import UnsupportedOperatorError

onnx = package("onnx")
package("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore")

#: Why no sample of some functions in the table can be written.
REFUSED = (
    "random numbers are drawn", "it returns no tensor", "ONNX does not tell -0.0 from 0.0", "a norm of matrices",
    "its results are not tensors", "running statistics are updated",
)  # fmt: skip


class Place:
    """Stands for a tensor among arguments."""

    def __init__(self, number: int) -> None:
        self.number = number


def placed(x: Any, tensors: list[Any]) -> Any:
    """Return an argument with places instead of its tensors, which are appended to a list."""
    if isinstance(x, tinytorch.Tensor):
        tensors.append(x.detach())
        return Place(len(tensors) - 1)
    return type(x)([placed(each, tensors) for each in x]) if type(x) in (list, tuple) else x


def filled(x: Any, tensors: Any) -> Any:
    """Return an argument with tensors in their places."""
    if isinstance(x, Place):
        return tensors[x.number]
    return type(x)([filled(each, tensors) for each in x]) if type(x) in (list, tuple) else x


class Call(nn.Module):
    """Calls a function with tensors, and with other arguments that are always the same."""

    def __init__(self, function: Any, args: Any, kwargs: Any) -> None:
        super().__init__()
        self.function, self.args, self.kwargs = function, args, kwargs

    def forward(self, *tensors: Any) -> Any:
        args = [filled(x, tensors) for x in self.args]
        return self.function(*args, **{key: filled(x, tensors) for key, x in self.kwargs.items()})


def single(array: Any) -> Any:
    return array.astype(np.float32) if array.dtype == np.float64 else array


def is_plain(x: Any) -> bool:
    """Return whether the numbers of a tensor are such as runtimes agree on."""
    return not x.dtype.is_complex and x.numel() > 0 and bool(np.isfinite(x.numpy()).all())


def written(sample: Sample) -> str:
    """Return why a call of a sample is not written as ONNX; "" if it is, and gives the same; "-" for one left out."""
    call = function(tinytorch, sample.name)
    tensors: list[Any] = []
    args = [placed(converted(x, tinytorch, single), tensors) for x in sample.args]
    kwargs = {key: placed(converted(x, tinytorch, single), tensors) for key, x in sample.kwargs.items()}
    if not tensors or not all(map(is_plain, tensors)):
        return "-"
    module = Call(call, args, kwargs)
    with tinytorch.no_grad():
        expected = [x for x in flatten(module(*[x.clone() for x in tensors]))[0] if x is not None]
    if not all(isinstance(x, tinytorch.Tensor) for x in expected):
        return "-"
    try:
        program = tinytorch.onnx.export(module, tuple(tensors), training=tinytorch.onnx.TrainingMode.PRESERVE)
    except UnsupportedOperatorError as error:
        return str(error)
    except tinytorch.onnx.OnnxExporterError as error:
        assert "depends on values" in str(error) or "read by Python" in str(error), sample
        return str(error)
    onnx.checker.check_model(program.model_proto)
    onnx.shape_inference.infer_shapes(program.model_proto, strict_mode=True, check_type=True)
    found = program(*tensors)
    assert len(found) == len(expected), sample
    for x, y in zip(found, expected, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape, sample
        np.testing.assert_allclose(x.numpy(), y.detach().numpy(), 1e-4, 1e-4, err_msg=str(sample))
    return ""


def by_name() -> dict[str, list[Sample]]:
    """Return all samples of the functions whose turn it is, which is that of their first sample."""
    found: dict[str, list[Sample]] = {}
    for sample in all_samples():
        found.setdefault(sample.name, []).append(sample)
    return {name: samples for name, samples in found.items() if is_its_turn(samples[0])}


SAMPLES = by_name()


@pytest.mark.parametrize("name", [name for name in SAMPLES if entry(function(tinytorch, name)) is not None])
def test_functions_in_the_table(name: str) -> None:
    reasons = [reason for reason in map(written, SAMPLES[name]) if reason != "-"]
    assert not reasons or "" in reasons or any(each in reasons[0] for each in REFUSED), reasons


@pytest.mark.parametrize("name", [name for name in SAMPLES if entry(function(tinytorch, name)) is None])
def test_functions_that_are_followed(name: str) -> None:
    for sample in SAMPLES[name][:2]:
        reason = written(sample)
        assert reason in ("", "-") or "not supported" in reason or "values" in reason
