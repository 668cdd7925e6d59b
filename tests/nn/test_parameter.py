"""`Parameter` and `Buffer`, compared with PyTorch."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import tinytorch
from tests.same import same_to_the_word as check
from tinytorch import nn


def shares_memory(torch: Any) -> Any:
    x = torch.ones(2)
    p = torch.nn.Parameter(x)
    x.add_(1)
    return [p, p._version, p.is_leaf, p.grad_fn is None]


def from_result(torch: Any) -> Any:
    made = torch.nn.Parameter(torch.ones(2, requires_grad=True) * 3)
    made.sum().backward()
    return [made, made.is_leaf, made.grad]


def results_are_tensors(torch: Any) -> Any:
    p = torch.nn.Parameter(torch.ones(2))
    made = [p * 2, p.detach(), p.data, p.clone(), p.view(1, 2), p[0]]
    return [type(each).__name__ for each in made] + [isinstance(each, torch.nn.Parameter) for each in made]


def copied(torch: Any) -> Any:
    p = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    p.grad, p.note = torch.ones(2), "x"
    made = copy.deepcopy([p, p])
    made[0].fill_(5)
    return [type(made[0]).__name__, made[0] is made[1], made[0].grad, hasattr(made[0], "note"), p, made[0]]


def pickled(torch: Any) -> Any:
    p = torch.nn.Parameter(torch.ones(2))
    p.note = "x"
    made = pickle.loads(pickle.dumps(p))
    return [type(made).__name__, made, made.note, made.is_leaf]


def of_a_subclass(torch: Any) -> Any:
    class Mine(torch.nn.Parameter):
        pass

    made = Mine(torch.ones(2))
    return [
        type(made).__name__, isinstance(made, torch.nn.Parameter),
        isinstance(torch.nn.Parameter(), Mine),
        type(Mine(torch.nn.Parameter(torch.ones(1)))).__name__, type(copy.deepcopy(made)).__name__,
    ]  # fmt: skip


def buffer(torch: Any) -> Any:
    x = torch.ones(2)
    b = torch.nn.Buffer(x, persistent=False)
    x.add_(1)
    return [
        type(b).__name__, b, b.persistent, isinstance(b, torch.nn.Buffer),
        isinstance(x, torch.nn.Buffer),
        isinstance(3, torch.nn.Buffer), isinstance(3, torch.nn.Parameter), torch.nn.Buffer(),
    ]  # fmt: skip


def default_dtype(torch: Any) -> Any:
    torch.set_default_dtype(torch.float64)
    try:
        return [torch.nn.Parameter(), torch.nn.Buffer(), torch.nn.Linear(1, 1).weight.dtype]
    finally:
        torch.set_default_dtype(torch.float32)


PROGRAMS = {
    "uninitialized on a device that is none": lambda t: t.nn.UninitializedParameter(device="nosuch"),
    "uninitialized buffer on a device that is none": lambda t: t.nn.UninitializedBuffer(device="nosuch"),
    "empty": lambda t: t.nn.Parameter(),
    "repr": lambda t: repr(t.nn.Parameter(t.ones(2))),
    "str, frozen": lambda t: str(t.nn.Parameter(t.ones(2), False)),
    "integers": lambda t: t.nn.Parameter(t.tensor([1])),
    "integers, frozen": lambda t: t.nn.Parameter(t.tensor([1]), requires_grad=False),
    "of number": lambda t: t.nn.Parameter(3),
    "buffer of number": lambda t: t.nn.Buffer(3),
    "memory": shares_memory,
    "of a result": from_result,
    "results": results_are_tensors,
    "deepcopy": copied,
    "pickle": pickled,
    "subclass": of_a_subclass,
    "buffer": buffer,
    "default dtype": default_dtype,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_pytorch(name: str) -> None:
    check(PROGRAMS[name])


def test_a_parameter_of_a_user_s_tensor_class_keeps_the_class() -> None:
    class Mine(tinytorch.Tensor):
        pass

    made = nn.Parameter(Mine([1.0, 2.0]))
    assert type(made) is Mine and isinstance(made, nn.Parameter) and made.requires_grad
    assert not isinstance(Mine([1.0]), nn.Parameter)
    module = nn.Module()
    module.weight = made
    assert next(module.parameters()) is made


@pytest.mark.parametrize("requires_grad", [True, False])
@pytest.mark.parametrize("inside", [True, False])
def test_of_an_inference_tensor(inside: bool, requires_grad: bool) -> None:
    def program(torch: Any) -> Any:
        with torch.inference_mode():
            x = torch.ones(2)
        with torch.inference_mode(inside):
            made = torch.nn.Parameter(x, requires_grad)
            return made.requires_grad, made.is_inference(), made.is_leaf

    check(program)
