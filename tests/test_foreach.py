"""The functions `torch._foreach_…`, against PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
from tinytorch.foreach import functions

import tinytorch
from tests.oracle import needs_oracle
from tests.same import same_as_pytorch

TWO = "add sub mul div pow maximum minimum clamp_max clamp_min".split()


def arguments(torch: Any, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Return the arguments of a function after its first list."""

    def tensors() -> list[Any]:
        torch.manual_seed(2)
        return [torch.rand(2) + 0.1, torch.rand(3) + 0.1]

    if name in TWO:
        calls: list[Any] = [((other,), {}) for other in (2, 0.5, [1, 2], [0.5, 2.0], tensors())]
        if name in ("add", "mul", "div"):
            calls.append(((torch.tensor(2.0),), {}))
        if name in ("add", "sub"):
            calls.append(((tensors(),), {"alpha": 2}))
        return [*calls, (([1.0],), {}), ((tensors()[:1],), {})]
    if name in ("addcdiv", "addcmul"):
        values = [(), (2,), ([1, 2],), (torch.tensor([1.0, 2.0]),)]
        lists = (tensors(), tensors()[:])
        calls = [((*lists, *value), {}) for value in values]
        return [*calls, (lists, {"value": 3}), (lists, {"scalars": [3, 4]})]
    if name == "lerp":
        calls = [((tensors(), weight), {}) for weight in (0.3, [0.1, 0.4], tensors())]
        return [*calls, ((tensors(),), {"weight": 0.2}), ((tensors(),), {"weights": tensors()})]
    if name == "copy":
        return [((tensors(),), {})]
    if name in ("norm", "powsum"):
        return [((), {}), ((1,), {}), ((), {"ord": 3}), ((2, torch.float64), {})]
    return [((), {})]


@pytest.mark.parametrize("function", sorted(set(functions()) - {"_foreach_mm"}))
def test_each_function(function: str) -> None:
    name = function.removeprefix("_foreach_").rstrip("_")

    def tensors(torch: Any) -> list[Any]:
        torch.manual_seed(1)
        return [torch.rand(2) + 0.1, torch.rand(3) + 0.1]

    def program(torch: Any) -> list[Any]:
        found, out = getattr(torch, function), []
        for args, named in arguments(torch, name):
            given = tensors(torch)
            try:
                result = found(given, *args, **named)
            except RuntimeError as error:
                result = [type(error).__name__]
            out += [list(result), given]
        return out

    same_as_pytorch(program, 1e-5, 1e-6)
    same_as_pytorch(
        lambda torch: getattr(torch, function)(
            [], *[[] if isinstance(x, list) else x for x in arguments(torch, name)[0][0]]
        )
    )
    if function.endswith("_"):
        given = tensors(tinytorch)
        args = arguments(tinytorch, name)[0][0]
        assert getattr(tinytorch, function)(given, *args) is given


@needs_oracle
def test_all_names_are_there() -> None:
    import torch

    assert {name for name in dir(torch) if name.startswith("_foreach_")} == set(functions())


def test_gradients_flow_through() -> None:
    def program(torch: Any) -> Any:
        x, y = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
        sum(each.sum() for each in torch._foreach_mul([x, y], [3.0, 4.0])).backward()
        return [x.grad, y.grad]

    same_as_pytorch(program)
