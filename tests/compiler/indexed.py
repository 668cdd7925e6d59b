"""What the random keys of `tests/ops/test_random_indexing.py` read and write, in functions that can be compiled."""

from __future__ import annotations

import warnings
from typing import Any

import tinytorch as torch
from tests.compiler.test_programs import Compile, seen, tried
from tests.ops.test_random_indexing import Case, laid_out, made_key, numbers, value_for

#: What is done with what a key names.
WRITES = ("read", "graph", "write", "add", "put")


def function_of(write: str, key: Any) -> Any:
    """Return a function of a tensor and a value, which a key says where to write."""

    def read(x: Any, value: Any) -> Any:
        y = x[key]
        (g,) = torch.autograd.grad((y * y).sum(), x) if x.requires_grad else (None,)
        return y.detach() * 2, g

    def graph(x: Any, value: Any) -> Any:
        return x[key] * 1

    def write_(x: Any, value: Any) -> Any:
        y = x.clone()
        y[key] = value
        y.sum().backward()
        return y.detach()

    def add(x: Any, value: Any) -> Any:
        with torch.no_grad():
            x[key] += value

    def put(x: Any, value: Any) -> Any:
        with torch.no_grad():
            x[key] = value
        return x

    return {"read": read, "graph": graph, "write": write_, "add": add, "put": put}[write]


def outcome(case: Case, write: str, compiled: Compile) -> list[Any]:
    """Return what can be seen of some calls with other numbers."""
    found: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        key = tried(made_key, torch, case)
        function = compiled(function_of(write, key))
        for start in range(1, 4):
            x = laid_out(torch, numbers(torch, case.shape, case.dtype, start), case.layout).detach()
            if case.dtype.startswith("float"):
                x.requires_grad_()
            part = tried(lambda x=x: x.detach()[key].shape)
            value = 1 if isinstance(part, str) else tried(value_for, torch, case, tuple(part))
            found.append([seen(tried(function, x, value)), seen(x), seen(value)])
    return found
