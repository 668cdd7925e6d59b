"""Anomaly detection, against PyTorch's: errors, warnings, and the line that is named."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tinytorch
from tests.autograd.programs import made
from tests.same import same_as_pytorch


def programs() -> dict[str, Any]:
    def nan(lib: Any) -> Any:
        x = lib.tensor(0.0, requires_grad=True)
        with lib.autograd.detect_anomaly():
            ((x * 0).sqrt() * x).backward()

    def nan_of_what_was_nan_before(lib: Any) -> Any:
        y = lib.tensor([-1.0], requires_grad=True).sqrt()
        with lib.autograd.detect_anomaly():
            y.backward()

    def second_output(lib: Any) -> Any:
        x = lib.tensor(0.0, requires_grad=True)
        y = lib.tensor(0.0, requires_grad=True)
        with lib.autograd.set_detect_anomaly(True):
            (x / y.sqrt()).backward()

    def found_only_backward(lib: Any) -> Any:
        x = lib.tensor(0.0, requires_grad=True)
        y = (x * 0).sqrt() * x
        with lib.autograd.set_detect_anomaly(True):
            y.backward()

    def without_nan_check(lib: Any) -> Any:
        x = lib.tensor(0.0, requires_grad=True)
        with lib.autograd.detect_anomaly(check_nan=False):
            seen = lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled()
            ((x * 0).sqrt() * x).backward()
        return seen, bool(x.grad.isnan())

    def an_error_of_a_function(lib: Any) -> Any:
        broken = made(lib, forward=lambda ctx, x: x * 2, backward=lambda ctx, g: {}["broken"])
        with lib.autograd.set_detect_anomaly(True):
            broken.apply(lib.ones(1, requires_grad=True)).backward()

    def modified_in_place(lib: Any) -> Any:
        x = lib.ones(2, requires_grad=True)
        with lib.autograd.set_detect_anomaly(True):
            y = x.exp()
            y.add_(1)
            y.sum().backward()

    def in_second_derivative(lib: Any) -> Any:
        x = lib.tensor(0.0, requires_grad=True)
        with lib.autograd.set_detect_anomaly(True):
            (g,) = lib.autograd.grad(x**1.5, x, create_graph=True)
            lib.autograd.grad(g * 0, x)

    def infinity_is_none(lib: Any) -> Any:
        x = lib.tensor([0.0], requires_grad=True)
        with lib.autograd.detect_anomaly():
            x.sqrt().sum().backward()
        return x.grad, (x * 2).grad_fn.metadata

    def switched(lib: Any) -> Any:
        seen = [lib.is_anomaly_enabled()]
        lib.autograd.set_detect_anomaly(True)
        seen += [lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled()]
        with lib.autograd.set_detect_anomaly(False):
            seen.append(lib.is_anomaly_enabled())
        seen.append(lib.is_anomaly_enabled())
        lib.autograd.set_detect_anomaly(False)
        seen.append(lib.is_anomaly_enabled())
        return seen

    def gradients_are_the_same(lib: Any) -> Any:
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        with lib.autograd.set_detect_anomaly(True):
            y = (x.exp() * x).sum() + x.prod()
            keys = list(y.grad_fn.metadata)
            (g,) = lib.autograd.grad(y, x, create_graph=True)
            g.sum().backward()
        return keys, g, x.grad

    return {name: value for name, value in locals().items() if callable(value)}


@pytest.mark.parametrize("name", programs())
def test_as_pytorch(name: str) -> None:
    same_as_pytorch(programs()[name])


def test_the_warning_names_the_line_of_the_forward_pass() -> None:
    x = tinytorch.tensor(0.0, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        with (
            tinytorch.autograd.detect_anomaly(),
            pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th"),
        ):
            root = (x * 0).sqrt()  # the line
            (root * x).backward()
    text = [str(each.message) for each in caught if issubclass(each.category, UserWarning)][-1]
    assert "Error detected in SqrtBackward0" in text
    assert text.rstrip().endswith("root = (x * 0).sqrt()  # the line")
    assert "tinytorch/autograd" not in text and "tinytorch/methods" not in text


def test_a_line_inside_a_module_is_named() -> None:
    class Root(tinytorch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.sqrt()

    with tinytorch.autograd.set_detect_anomaly(True):
        y = Root()(tinytorch.zeros(1, requires_grad=True))
    assert y.grad_fn.metadata["traceback_"][-1].rstrip().endswith("return x.sqrt()")
