"""What calls of ops do: `core/call.py` makes their functions."""

from __future__ import annotations

import inspect
import sys
import threading
import traceback

import numpy as np
import pytest

import tinytorch as torch
from tests import declared
from tinytorch.core.mode import DispatchMode, local
from tinytorch.core.op import Op, op


def made(kernel, **facts):
    return op(**facts)(kernel)


def test_functions_have_the_signatures_of_their_ops() -> None:
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("tinytorch.")]
    found = [getattr(each, "op", None) for module in modules for each in list(vars(module).values())]
    calls = {op.caller for op in found if isinstance(op, Op) and not op.operands}
    assert declared.FUNCTIONS and len(calls) > 200
    for call in calls:
        assert tuple(inspect.signature(call).parameters) == call.op.arguments


def test_tracebacks_show_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINYTORCH_TRACEBACK", "full")

    def refused(x):
        raise ValueError("no")

    call = made(refused, x=lambda g: g)
    with pytest.raises(ValueError, match="no") as caught:
        call(torch.ones(2))
    shown = "".join(traceback.format_exception(caught.value))
    assert "core/call.py" in shown and "raise translated(OP, values, error) from None" in shown


def test_what_a_call_computes_is_told_to_the_mode_that_asks() -> None:
    class Witness(DispatchMode):
        def __init__(self):
            self.told = []

        def call(self, op, caller, args, kwargs):
            local.state.witness = self
            try:
                return caller.caller.witnessed(*args, **kwargs)
            finally:
                local.state.witness = None

        def computed(self, op, values, arrays, results):
            self.told.append(
                (op.name, [np.asarray(x).tolist() for x in arrays if x is not None], [x.tolist() for x in results])
            )

        def writes(self, op, values, arrays, kernel):
            self.told.append((op.name, np.asarray(arrays[0]).tolist(), kernel is not None))

    x = torch.tensor([1, 2])
    with Witness() as witness:
        y = x * 2.5
        y.sum(0).max(0)
        y.mul_(2)
        y.masked_fill_(y > 5, 0.0)
    assert witness.told == [
        ("mul", [[1.0, 2.0], 2.5], [[2.5, 5.0]]), ("sum", [[2.5, 5.0], 0, False], [7.5]),
        ("_max_dim", [7.5, 0, False], [7.5, 0]), ("mul", [2.5, 5.0], False),
        ("gt", [[5.0, 10.0], 5.0], [[False, True]]), ("_masked_fill", [5.0, 10.0], True),
    ]  # fmt: skip
    assert y.tolist() == [5, 0]


def test_arguments_by_place_and_by_name() -> None:
    def scaled(x, factor=2, *, shift=0):
        return x * factor + shift

    call = made(scaled, x=lambda g, factor: g * factor)
    x = torch.ones(2)
    assert call(x).tolist() == [2, 2]
    assert call(x, 3).tolist() == call(x, factor=3).tolist() == call(input=x, factor=3).tolist() == [3, 3]
    assert call(x, 3, shift=1).tolist() == [4, 4]
    for args, kwargs, text in (
        ((), {}, 'missing 1 required positional arguments: "x"'),
        ((x, 1, 2), {}, "takes 2 positional arguments but 3 were given"),
        ((x,), {"a_name": 1}, "unexpected keyword argument 'a_name'"),
        ((x,), {"input": x}, "multiple values for argument 'input'"),
        ((np.ones(2),), {}, r"argument 'input' \(position 1\) must be Tensor, not ndarray"),
    ):
        with pytest.raises(TypeError, match=text):
            call(*args, **kwargs)


def test_the_first_calls_may_be_of_several_threads() -> None:
    for _ in range(20):
        call = made(lambda x, factor=2: x * factor, x=lambda g, factor: g * factor)
        found, start = [], threading.Barrier(4)

        def work(call=call, found=found, start=start) -> None:
            start.wait()
            found.append(call(torch.ones(1), 3).item())

        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert found == [3] * 4
