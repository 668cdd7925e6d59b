"""What calls of ops do: it is written by `core/caller.py` when an op is first called."""

from __future__ import annotations

import sys
import threading
import traceback

import numpy as np
import pytest

import tinytorch as torch
from tests import declared
from tinytorch.core.caller import _NAMES, _write
from tinytorch.core.op import Op, op


def made(kernel, **facts):
    return op(**facts)(kernel)


def test_arguments_have_no_name_that_their_caller_needs() -> None:
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("tinytorch.")]
    found = [getattr(each, "op", None) for module in modules for each in list(vars(module).values())]
    of_template = {
        each.caller for each in found if isinstance(each, Op) and "caller" in each.caller.__code__.co_filename
    }
    assert declared.FUNCTIONS
    assert len(of_template) > 200
    for call in of_template:
        if "<" not in call.__code__.co_filename:
            _write(call, call.op)
        names = call.__code__.co_varnames[: call.__code__.co_argcount + call.__code__.co_kwonlyargcount]
        assert set(names) == set(call.op.arguments)
        assert not set(names) & {*_NAMES, "any", "isinstance", "next", "tuple", "type"}, call.op.name
        assert not any(name.startswith("_") or name.isupper() for name in names), call.op.name


def test_tracebacks_show_the_text() -> None:
    def refused(x):
        raise ValueError("no")

    call = made(refused, x=lambda g: g)
    with pytest.raises(ValueError, match="no") as caught:
        call(torch.ones(2))
    shown = "".join(traceback.format_exception(caught.value))
    assert "_array = KERNEL(x._array)" in shown or "raise translated(OP, (x,), _error)" in shown


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
